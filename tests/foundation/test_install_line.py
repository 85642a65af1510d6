"""The line that installs an extra fits how this copy of donewhen was installed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from donewhen.foundation import install_line as lines
from donewhen.foundation.install_line import Source, install_line, reachable_requirement, source_of


@pytest.mark.parametrize(
    ("direct_url", "expected"),
    [
        (None, Source(None)),
        ({"url": "file:///home/a%20b/clone", "dir_info": {}}, Source("/home/a b/clone")),
        ({"url": "file:///home/clone", "dir_info": {"editable": True}}, Source("/home/clone", editable=True)),
        ({"url": "file:///tmp/x.whl", "archive_info": {}}, Source("/tmp/x.whl")),
        ({"url": "https://host/x.whl", "archive_info": {}}, Source("https://host/x.whl")),
        (
            {"url": "https://host/x.git", "vcs_info": {"vcs": "git", "commit_id": "1a"}},
            Source("git+https://host/x.git@1a"),
        ),
    ],
)
def test_what_an_installer_has_written_says_where_the_copy_is_from(
    direct_url: dict[str, object] | None, expected: Source
) -> None:
    assert source_of(None if direct_url is None else json.dumps(direct_url)) == expected


@pytest.mark.parametrize(
    ("marker", "tool"),
    [
        ("uv-receipt.toml", "uv tool install --force"),
        ("pipx_metadata.json", "pipx install --force"),
        (None, "pip install"),
    ],
)
def test_the_tool_is_the_one_that_installed_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marker: str | None, tool: str
) -> None:
    if marker is not None:
        (tmp_path / marker).touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(lines, "find_spec", lambda name: object())
    monkeypatch.setattr(lines, "_source", lambda: Source(str(tmp_path)))
    assert install_line("web") == f"{tool} '{tmp_path}[web]'"


def test_an_environment_without_pip_gets_a_line_for_uv(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(lines, "find_spec", lambda name: None)
    monkeypatch.setattr(lines, "_source", lambda: Source(str(tmp_path), editable=True))
    assert install_line("web") == f"uv pip install --python {sys.executable} -e '{tmp_path}[web]'"


@pytest.mark.parametrize(
    ("source", "line", "reachable"),
    [
        (Source(None), "'donewhen[web]'", True),
        (Source("git+https://host/x@1a"), "'donewhen[web] @ git+https://host/x@1a'", True),
        (Source("/nowhere/that/is/there.whl"), "", False),
    ],
)
def test_no_line_is_advised_that_cannot_work(
    monkeypatch: pytest.MonkeyPatch, source: Source, line: str, reachable: bool
) -> None:
    monkeypatch.setattr(lines, "_source", lambda: source)
    assert install_line("web").endswith(line)
    assert bool(install_line("web")) == bool(line)
    assert (reachable_requirement() is not None) == reachable
