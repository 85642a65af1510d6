"""The rules for agents in AGENTS.md and CLAUDE.md: between markers, idempotent, removed byte for byte."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from donewhen.adapters.agent_rules import BEGIN, END, RULES, remove_agent_rules, write_agent_rules
from donewhen.foundation.errors import ConfigError

CONTENTS = {
    "text": b"# Rules\n\nBe kind.\n",
    "no line end": b"# Rules\nBe kind.",
    "dos": b"# Rules\r\nBe kind.\r\n",
    "dos without line end": b"# Rules\r\nBe kind.",
    "not utf-8": b"\xff\xfe rules\n",
    "blank lines": b"\n\n\n",
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_other_content_stays_byte_for_byte(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "AGENTS.md"
    path.write_bytes(content)
    write_agent_rules(tmp_path)
    written = path.read_bytes()
    assert written.startswith(content)
    assert written.count(BEGIN[:20]) == written.count(END) == 1
    assert RULES in written.decode("utf-8", "replace").replace("\r\n", "\n")
    assert [change.nothing for change in write_agent_rules(tmp_path)] == [True]
    # What is written below them stays, too.
    path.write_bytes(written + b"More.\n")
    remove_agent_rules(tmp_path)
    assert path.read_bytes() == content + b"More.\n"


def test_files_that_had_nothing_else_are_gone_again(tmp_path: Path) -> None:
    write_agent_rules(tmp_path, for_claude=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["AGENTS.md", "CLAUDE.md"]
    remove_agent_rules(tmp_path)
    assert [*tmp_path.iterdir()] == []
    assert remove_agent_rules(tmp_path) == []


def test_rules_of_another_version_are_replaced_where_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "AGENTS.md"
    path.write_bytes(b"Before.\n\n" + BEGIN + b"\nOld.\n" + END + b"\nAfter.\n")
    write_agent_rules(tmp_path)
    text = path.read_text()
    assert "Old." not in text
    assert (text.index("Before.") < text.index(RULES) < text.index("After.")) is True


@pytest.mark.parametrize(
    ("used", "files"),
    [
        (lambda root: None, ["AGENTS.md"]),
        (lambda root: (root / "CLAUDE.md").write_text("Mine.\n"), ["AGENTS.md", "CLAUDE.md"]),
        (lambda root: (root / "CLAUDE.md").write_text("Read this.\n@AGENTS.md\n"), ["AGENTS.md"]),
        (lambda root: (root / "CLAUDE.md").symlink_to("AGENTS.md"), ["AGENTS.md"]),
    ],
    ids=["none", "own", "imports", "link"],
)
def test_claude_gets_them_where_its_file_is_used_and_only_once(
    tmp_path: Path, used: Callable[[Path], object], files: list[str]
) -> None:
    used(tmp_path)
    assert [change.path.name for change in write_agent_rules(tmp_path)] == files
    assert (tmp_path / "AGENTS.md").read_bytes().count(END) == 1
    before = {path.name for path in tmp_path.iterdir()}
    remove_agent_rules(tmp_path)
    assert not any(END in path.read_bytes() for path in tmp_path.iterdir() if path.exists())
    assert before - {path.name for path in tmp_path.iterdir()} == {"AGENTS.md"}


BROKEN = {
    "no end": BEGIN + b"\nOld.\n",
    "no beginning": b"Text.\n" + END + b"\n",
    "twice": (BEGIN + b"\n" + END + b"\n") * 2,
    "the wrong way round": END + b"\n" + BEGIN + b"\n",
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_broken_markers_are_an_error_and_nothing_is_written(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "AGENTS.md").write_text("Fine.\n")
    (tmp_path / "CLAUDE.md").write_bytes(content)
    for call in (write_agent_rules, remove_agent_rules):
        with pytest.raises(ConfigError, match="markers") as raised:
            call(tmp_path)
        assert str(raised.value.where).startswith(f"{tmp_path / 'CLAUDE.md'}:")
        assert raised.value.next_step
    assert (tmp_path / "AGENTS.md").read_text() == "Fine.\n"
    assert (tmp_path / "CLAUDE.md").read_bytes() == content


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.mkdir(),
        lambda path: path.symlink_to("nowhere.md"),
        lambda path: path.symlink_to(path.name),
        lambda path: os.mkfifo(path),
    ],
    ids=["folder", "broken link", "loop", "pipe"],
)
def test_what_is_no_readable_file_is_an_error_that_names_it(tmp_path: Path, make: Callable[[Path], object]) -> None:
    make(tmp_path / "AGENTS.md")
    with pytest.raises(ConfigError) as raised:
        write_agent_rules(tmp_path)
    assert str(tmp_path / "AGENTS.md") in str(raised.value.where)
