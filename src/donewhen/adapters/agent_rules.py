"""The few lines that an agent needs, in the files that agents read: ``AGENTS.md``, and ``CLAUDE.md`` where it is
used. They stand between markers, and everything else in the files stays as it is, byte for byte."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

from donewhen.adapters.hook_files import FileChange
from donewhen.foundation.errors import ConfigError
from donewhen.foundation.files import read_limited, write_atomically
from donewhen.foundation.locks import locked_folder
from donewhen.foundation.size_limits import HOOK_FILE

AGENTS_FILE, CLAUDE_FILE = "AGENTS.md", "CLAUDE.md"
BEGIN, END = b"<!-- donewhen: begin -->", b"<!-- donewhen: end -->"
_JOINED = b"<!-- donewhen: begin, after a line without an end -->"
_IMPORT = b"@AGENTS.md"
_Edited: TypeAlias = Callable[[Path, bytes | None], bytes | None]

RULES = """\
## Work that donewhen checks

The jobs are in `jobs/`. A person has agreed to what each of them requires, and donewhen decides when one is done.

- Find your job with `donewhen next`, begin it with `donewhen start JOB`, and read its plan.
- Show your work with `donewhen run JOB`; `donewhen why JOB` says what is missing.
- You are done when `donewhen complete JOB` prints a promise. Don't write one yourself.
- If you can't go on: `donewhen block JOB --reason "…"` or `donewhen ask JOB --question "…"`, and stop.
- If you were refused and the refusal is wrong: `donewhen dispute JOB --reason "…"`, and stop.
- Don't edit `.donewhen/`, the settings of donewhen, or the fields that donewhen writes into a plan.
"""


def write_agent_rules(root: Path, *, for_claude: bool = False, dry_run: bool = False) -> list[FileChange]:
    """Write the rules into ``AGENTS.md``, and into ``CLAUDE.md`` if there is one or ``for_claude`` is set.

    Writing them again changes nothing; rules of another version are replaced. Raise ConfigError, before anything is
    written, if a file can't be changed.
    """
    return _changed(root, [*_files_with_rules(root, for_claude)], _with_rules, dry_run=dry_run)


def remove_agent_rules(root: Path, *, dry_run: bool = False) -> list[FileChange]:
    """Remove the rules again, and a file that has nothing else in it."""
    present = [root / name for name in (AGENTS_FILE, CLAUDE_FILE) if os.path.lexists(root / name)]
    return _changed(root, _once_each(present), _without_rules, dry_run=dry_run)


def _files_with_rules(root: Path, for_claude: bool) -> Iterator[Path]:
    agents, claude = root / AGENTS_FILE, root / CLAUDE_FILE
    yield agents
    exists = os.path.lexists(claude)
    if (for_claude or exists) and os.path.realpath(claude) != os.path.realpath(agents):
        # A file that imports the other has the rules already.
        lines = (_content(claude) or b"").splitlines() if exists else []
        if not any(line.strip() == _IMPORT for line in lines):
            yield claude


def _once_each(paths: Iterable[Path]) -> list[Path]:
    """One of them may be a link to the other."""
    return [*{os.path.realpath(path): path for path in reversed([*paths])}.values()][::-1]


def _changed(root: Path, paths: Iterable[Path], edited: _Edited, *, dry_run: bool) -> list[FileChange]:
    with ExitStack() as stack:
        if not dry_run:
            try:
                stack.enter_context(locked_folder(root))
            except OSError as error:
                raise ConfigError(f"The folder can't be used: {error.strerror}.", where=str(root)) from error
        changes = [FileChange(path, before := _content(path), edited(path, before)) for path in paths]
        for change in changes:
            if not (dry_run or change.nothing):
                _write(change)
        return changes


def _write(change: FileChange) -> None:
    try:
        if change.after is None:
            # The target of a link, not the link.
            Path(os.path.realpath(change.path)).unlink()
        else:
            write_atomically(change.path, change.after)
    except OSError as error:
        raise ConfigError(f"The file can't be written: {error.strerror}.", where=str(change.path)) from error


def _content(path: Path) -> bytes | None:
    try:
        return read_limited(path, HOOK_FILE)
    except FileNotFoundError:
        if path.is_symlink():
            raise ConfigError("The file is a broken symlink.", where=str(path)) from None
        return None
    except OSError as error:
        reason = "It is a folder" if path.is_dir() else f"The file can't be read: {error.strerror}"
        raise ConfigError(f"{reason}.", where=str(path), next_step="Make it a readable file, or remove it.") from error


def _with_rules(path: Path, before: bytes | None) -> bytes:
    content = before or b""
    end = b"\r\n" if b"\r\n" in content else b"\n"
    found = _block(path, content)
    if found is None:
        joined = bool(content) and not content.endswith(b"\n")
    else:
        joined = content[found.start :].startswith(_JOINED)
    text = RULES.encode().replace(b"\n", end)
    block = (_JOINED if joined else BEGIN) + end + text + END + end
    if found is not None:
        return content[: found.start] + block + content[found.stop :]
    if not content:
        return block
    return content + (end if joined else b"") + end + block


def _without_rules(path: Path, before: bytes | None) -> bytes | None:
    content = before or b""
    found = _block(path, content)
    if found is None:
        return before
    kept = content[: found.start]
    joined = content[found.start :].startswith(_JOINED)
    for _ in range(2 if joined else 1):
        # The line ends that were written before the rules.
        kept = kept[:-2] if kept.endswith(b"\r\n") else kept.removesuffix(b"\n")
    return (kept + content[found.stop :]) or None


def _block(path: Path, content: bytes) -> slice | None:
    """Where the rules stand, with their markers; None if they don't."""
    begins = [place for mark in (BEGIN, _JOINED) for place in _places(content, mark)]
    ends = _places(content, END)
    if not begins and not ends:
        return None
    if len(begins) != 1 or len(ends) != 1 or ends[0] < begins[0]:
        line = content.count(b"\n", 0, min(*begins, *ends, len(content))) + 1
        raise ConfigError(
            f"The markers of donewhen's rules are broken: {len(begins)} at a beginning, {len(ends)} at an end.",
            where=f"{path}:{line}",
            next_step=f"Remove all lines from {BEGIN.decode()} to {END.decode()}, then repeat the command.",
        )
    stop = ends[0] + len(END)
    for line_end in (b"\r\n", b"\n"):
        if content[stop:].startswith(line_end):
            stop += len(line_end)
            break
    return slice(begins[0], stop)


def _places(content: bytes, mark: bytes) -> list[int]:
    places, place = [], content.find(mark)
    while place >= 0:
        places.append(place)
        place = content.find(mark, place + len(mark))
    return places
