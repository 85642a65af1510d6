"""The crash log: what it holds, what it must not hold, and that writing it never fails."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from donewhen.foundation.crash_log import write_crash_log


def crash() -> ValueError:
    try:
        raise ValueError("token ghp_abcdefghijklmnop1234 was refused")
    except ValueError as error:
        return error


def written(folder: Path, *command: str, **environ: str) -> Path:
    path = write_crash_log(crash(), ["donewhen", *command], {"XDG_STATE_HOME": str(folder)} | environ)
    assert path is not None
    return path


def test_it_has_the_traceback_the_versions_and_the_command(tmp_path: Path) -> None:
    path = written(tmp_path, "complete", "WI-20260214-001")
    text = path.read_text()
    assert path.parent == tmp_path / "donewhen" / "crashes"
    assert "command: donewhen complete WI-20260214-001" in text
    assert "test_crash_log.py" in text
    assert "ValueError" in text
    for name in ("python", "donewhen", "click", "msgspec", "pyyaml", "rich"):
        assert f"\n{name}: " in text


def test_it_has_no_secret_of_the_message_the_command_or_the_environment(tmp_path: Path) -> None:
    words = ("agree", "--key", "hunter2", "--token=opensesame", "xyzzy-plugh")
    text = written(tmp_path, *words, MY_TOKEN="xyzzy-plugh").read_text()  # noqa: S106
    for secret in ("ghp_abcdefghijklmnop1234", "hunter2", "opensesame", "xyzzy-plugh"):
        assert secret not in text
    assert "--key '[redacted]' '--token=[redacted]'" in text


def test_only_the_user_can_read_it(tmp_path: Path) -> None:
    assert stat.S_IMODE(written(tmp_path).stat().st_mode) == 0o600


def test_the_newest_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "donewhen" / "crashes"
    folder.mkdir(parents=True)
    for number in range(30):
        (folder / f"crash-20200101-{number:06d}-1.log").write_text("old")
    newest = written(tmp_path)
    assert len(list(folder.iterdir())) == 20
    assert newest.exists()
    assert not (folder / "crash-20200101-000010-1.log").exists()
    assert (folder / "crash-20200101-000011-1.log").exists()


def test_a_folder_that_cannot_be_written_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setattr("donewhen.foundation.crash_log.gettempdir", lambda: str(tmp_path / "tmp"))
    path = write_crash_log(crash(), ["donewhen"], {"XDG_STATE_HOME": str(tmp_path / "file")})
    assert path is not None
    assert path.is_relative_to(tmp_path / "tmp")
    monkeypatch.setattr("donewhen.foundation.crash_log.gettempdir", lambda: str(tmp_path / "file"))
    assert write_crash_log(crash(), ["donewhen"], {"XDG_STATE_HOME": str(tmp_path / "file")}) is None


def test_without_a_state_folder_the_home_folder_is_used(tmp_path: Path) -> None:
    path = write_crash_log(crash(), ["donewhen"], {"HOME": str(tmp_path), "XDG_STATE_HOME": "not/absolute"})
    assert path is not None
    assert path.parent == tmp_path / ".local" / "state" / "donewhen" / "crashes"
