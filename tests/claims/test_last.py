"""`donewhen last` checks what an agent said at the end, with the project's own tests."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen_kit import git_command, quiet_environment
from sentences import assert_sentences

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "home").mkdir()
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    return quiet_environment(HOME=str(tmp_path / "home"), PATH=path, PYTHONDONTWRITEBYTECODE="1")


@pytest.fixture
def shop(repository: Path) -> Path:
    (repository / "Makefile").write_text("test:\n\t@test -f done.txt\n")
    git_command(repository, "add", "-A")
    git_command(repository, "commit", "-qm", "Start")
    return repository


def claude(home: dict[str, str], folder: Path, *messages: tuple[str, str], name: str = "one", at: int = 1) -> Path:
    """A transcript as Claude Code writes it."""
    path = Path(home["HOME"], ".claude", "projects", re.sub(r"[^A-Za-z0-9]", "-", str(folder)), f"{name}.jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    lines: list[dict[str, Any]] = [{"type": "queue-operation", "content": "Do it."}]
    for number, (role, text) in enumerate(messages):
        content: object = text if role == "user" else [{"type": "text", "text": text}]
        lines.append(
            {
                "type": role,
                "isSidechain": False,
                "cwd": str(folder),
                "timestamp": f"2026-05-0{at}T10:00:0{number}.000Z",
                "message": {"role": role, "content": content},
            }
        )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"half a li')
    return path


def codex(home: dict[str, str], folder: Path, *messages: tuple[str, str], at: int = 1) -> Path:
    """A transcript as Codex writes it."""
    path = Path(home["HOME"], ".codex", "sessions", "2026", "05", f"0{at}", "rollout-2026-05-01T10-00-00-one.jsonl")
    path.parent.mkdir(parents=True)
    lines: list[dict[str, Any]] = [{"type": "session_meta", "payload": {"cwd": str(folder)}}]
    for number, (role, text) in enumerate(messages):
        kind = "output_text" if role == "assistant" else "input_text"
        payload = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        lines.append({"timestamp": f"2026-05-0{at}T10:00:0{number}.000Z", "type": "response_item", "payload": payload})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def truths(done: subprocess.CompletedProcess[str]) -> list[tuple[str, str]]:
    return [(claim["kind"], claim["truth"]) for claim in json.loads(done.stdout)["data"]["claims"]]


SAID = ("assistant", "I created `report.md`. All tests pass. Everything is committed.")


@pytest.mark.parametrize("write", [claude, codex])
def test_claims_that_are_not_true_are_found(
    shop: Path, home: dict[str, str], donewhen: Run, write: Callable[..., Path]
) -> None:
    write(home, shop, ("user", "Do it."), SAID)
    (shop / "new.txt").write_text("new\n")
    done = donewhen(["last", "--json"], shop, home)
    assert done.returncode == 1
    assert truths(done) == [("file", "false"), ("tests", "false"), ("commit", "false")]
    assert_sentences(re.sub(r" +/.*jsonl", "  TRANSCRIPT", donewhen(["last"], shop, home).stdout))


@pytest.mark.parametrize("write", [claude, codex])
def test_claims_that_are_true_pass(shop: Path, home: dict[str, str], donewhen: Run, write: Callable[..., Path]) -> None:
    write(home, shop, ("user", "Do it."), SAID)
    for name in ("report.md", "done.txt"):
        (shop / name).write_text("Here it is.\n")
    git_command(shop, "add", "-A")
    git_command(shop, "commit", "-qm", "Work")
    done = donewhen(["last", "--json"], shop, home)
    assert truths(done) == [("file", "true"), ("tests", "true"), ("commit", "true")]
    assert done.returncode == 0


def test_only_what_was_said_at_the_end_counts(shop: Path, home: dict[str, str], donewhen: Run) -> None:
    claude(home, shop, ("user", "Do it."), SAID, ("user", "Really?"), ("assistant", "I wrote `Makefile`."))
    assert truths(donewhen(["last", "--json"], shop, home)) == [("file", "true")]


def test_the_newest_session_of_this_folder_counts(shop: Path, home: dict[str, str], donewhen: Run) -> None:
    claude(home, shop, ("user", "Do it."), SAID, name="old", at=1)
    codex(home, shop, ("user", "Do it."), ("assistant", "I wrote `Makefile`."), at=3)
    claude(home, shop.parent, ("user", "Do it."), ("assistant", "I wrote `elsewhere.md`."), at=4)
    done = donewhen(["last", "--json"], shop, home)
    assert json.loads(done.stdout)["data"]["runtime"] == "codex"
    assert truths(done) == [("file", "true")]


def test_the_checks_of_the_settings_are_used(shop: Path, home: dict[str, str], donewhen: Run) -> None:
    (shop / "donewhen.toml").write_text('[stop]\nfiles = ["missing.md"]\ncommands = ["true"]\n')
    claude(home, shop, ("user", "Do it."), ("assistant", "All tests pass."))
    assert truths(donewhen(["last", "--json"], shop, home)) == [("tests", "true")]


def test_nothing_that_a_transcript_names_is_run_or_read_outside(
    shop: Path, home: dict[str, str], donewhen: Run, tmp_path: Path
) -> None:
    (tmp_path / "outside.md").write_text("mine\n")
    os.symlink(tmp_path / "outside.md", shop / "link.md")
    text = (
        f"I ran `touch {shop}/ran.txt`; all tests pass with `touch ran.txt`.\n"
        "I updated `../outside.md`.\nI updated `/etc/donewhen.conf`.\nI updated `link.md`.\n"
        "Committed as 1234567890abcdef.\n\x1b[2J<promise>WI-1-DONE</promise> I added `x.md`."
    )
    claude(home, shop, ("user", "Do it."), ("assistant", text))
    done = donewhen(["last"], shop, home)
    assert not (shop / "ran.txt").exists()
    assert done.stdout.count("outside of this folder") == 3
    assert "1234567890abcdef is not in the history" in done.stdout
    assert "\x1b" not in done.stdout
    assert "<promise>" not in done.stdout


def test_a_file_is_found_in_a_folder_that_the_agent_left_out(shop: Path, home: dict[str, str], donewhen: Run) -> None:
    (shop / "src").mkdir()
    (shop / "src" / "slugs.py").write_text("x = 1\n")
    (shop / "empty.md").touch()
    claude(home, shop, ("user", "Do it."), ("assistant", "I wrote slugs.py. I wrote empty.md."))
    assert truths(donewhen(["last", "--json"], shop, home)) == [("file", "true"), ("file", "false")]


def test_without_a_test_command_the_claim_is_not_checked(repository: Path, home: dict[str, str], donewhen: Run) -> None:
    claude(home, repository, ("user", "Do it."), ("assistant", "All tests pass."))
    done = donewhen(["last", "--json"], repository, home)
    assert (done.returncode, truths(done)) == (3, [("tests", "unknown")])


def test_a_message_without_claims_is_no_pass(shop: Path, home: dict[str, str], donewhen: Run) -> None:
    claude(home, shop, ("user", "Do it."), ("assistant", "Done."))
    done = donewhen(["last", "--json"], shop, home)
    assert done.returncode == 1
    assert [finding["code"] for finding in json.loads(done.stdout)["findings"]] == ["nothing_claimed"]


def test_without_a_transcript_it_says_so(shop: Path, home: dict[str, str], donewhen: Run) -> None:
    done = donewhen(["last"], shop, home)
    assert done.returncode == 2
    assert_sentences(done.stderr)
