"""Install our hooks into a runtime's settings file, and remove exactly those again.

Claude Code and Codex share the form: ``{"hooks": {EVENT: [{"matcher": …, "hooks": [{"type": "command", …}]}]}}``.
"""

from __future__ import annotations

import copy
import fcntl
import json
import math
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from donewhen.config.project_hooks import Json, our_hooks
from donewhen.foundation.errors import ConfigError
from donewhen.foundation.files import write_atomically

BACKUP_SUFFIX = ".donewhen-backup"


@dataclass(frozen=True)
class HookEntry:
    """One hook in the file. ``timeout`` is in seconds."""

    event: str
    command: str
    timeout: int
    matcher: str | None = None

    def group(self) -> Json:
        hook = {"type": "command", "command": self.command, "timeout": self.timeout}
        return {"hooks": [hook]} if self.matcher is None else {"matcher": self.matcher, "hooks": [hook]}


@dataclass(frozen=True)
class FileChange:
    """What an install or uninstall does to a file; None means that the file does not exist."""

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def nothing(self) -> bool:
        return self.before == self.after


def install_hooks(
    path: Path, entries: Sequence[HookEntry], *, keep_places: bool = False, dry_run: bool = False
) -> FileChange:
    """Merge ``entries`` into the file: foreign hooks stay as they are, ours are brought up to date.

    ``keep_places`` leaves an empty group where one of ours stood before others, for runtimes that know a hook by
    its position.
    """
    with _locked(path, dry_run):
        before = _content(path)
        data = _parsed(path, before)
        merged = with_hooks(data, entries, str(path), keep_places=keep_places)
        change = FileChange(path, before, before if merged == data else _dumped(merged, before))
        if not (dry_run or change.nothing or change.after is None):
            if before is None:
                _backup(path).unlink(missing_ok=True)
            elif not any(True for _ in our_hooks(data)):
                # It may hold secrets, as the file itself may: no more people may read it.
                write_atomically(_backup(path), before, mode=path.stat().st_mode & 0o777)
            write_atomically(path, change.after)
        return change


def uninstall_hooks(path: Path, *, keep_places: bool = False, dry_run: bool = False) -> FileChange:
    """Remove our hooks, and put back the very bytes that were there before, if nothing else has changed since."""
    with _locked(path, dry_run):
        before = _content(path)
        if before is None:
            return FileChange(path, None, None)
        data = _parsed(path, before)
        original = _content(_backup(path))
        change = FileChange(path, before, _left_over(path, data, before, original, keep_places))
        if not dry_run:
            if change.after is None:
                # What a link leads to, so that the link stays.
                path.resolve().unlink()
            elif not change.nothing:
                write_atomically(path, change.after)
            _backup(path).unlink(missing_ok=True)
        return change


def installed_hooks(path: Path) -> list[HookEntry]:
    """Our hooks in the file."""
    data = _parsed(path, _content(path))
    return [
        HookEntry(event, hook["command"], _seconds(hook.get("timeout")), group.get("matcher"))
        for event, group, hook in our_hooks(data)
    ]


def _seconds(value: object) -> int:
    return value if isinstance(value, int) else 0


def with_hooks(
    data: Json,
    entries: Sequence[HookEntry],
    where: str,
    *,
    keep_places: bool = False,
    reference: Json | None = None,
) -> Json:
    """``data`` with exactly these hooks of ours; a place that we already have in the file is kept.

    What is left empty goes, except where ``reference`` (``data`` itself, unless given) has it empty as well.
    """
    result = copy.deepcopy(data)
    events = _table(result.setdefault("hooks", {}), "hooks", where)
    wanted = list(entries)
    for event in events:
        _groups(events, event, where)
    for event, group, hook in list(our_hooks(result)):
        match = next(
            (entry for entry in wanted if entry.event == event and entry.matcher == group.get("matcher")), None
        )
        if match is None:
            group["hooks"].remove(hook)
        else:
            wanted.remove(match)
            hook.update(match.group()["hooks"][0])
    for entry in wanted:
        # At the end: runtimes that know hooks by their position must find the others where they were.
        _groups(events, entry.event, where).append(entry.group())
    return _tidied(result, data if reference is None else reference, keep_places)


def _tidied(data: Json, before: Json, keep_places: bool) -> Json:
    """Without the empty groups, lists and tables that taking hooks out has left; those that were empty before stay."""
    earlier = before.get("hooks", {})
    events: Json = data["hooks"]
    for event in list(events):
        old = earlier.get(event, [])
        empty_before = [group for group in old if _emptied(group)]
        groups, kept = events[event], []
        for place, group in enumerate(groups):
            if _emptied(group):
                if group in empty_before:
                    empty_before.remove(group)
                elif not (keep_places and not all(map(_emptied, groups[place:]))):
                    continue
            kept.append(group)
        events[event] = kept
        if not kept and (event not in earlier or old):
            del events[event]
    if not events and ("hooks" not in before or earlier):
        del data["hooks"]
    return data


def _emptied(group: object) -> bool:
    return isinstance(group, dict) and group.get("hooks") == []


def _left_over(path: Path, data: Json, before: bytes, original: bytes | None, keep_places: bool) -> bytes | None:
    """The file without our hooks: the bytes of the backup where they say the same, None where nothing is left."""
    if "hooks" not in data:
        return before
    try:
        reference = None if original is None else with_hooks(_parsed(path, original), (), str(path))
    except ConfigError:
        reference = None
    if reference is not None:
        rest = with_hooks(data, (), str(path), reference=reference)
        # As text, because 1, 1.0 and true are equal in Python, and the order of keys is the person's.
        if json.dumps(rest) == json.dumps(reference):
            return original
    rest = with_hooks(data, (), str(path), keep_places=keep_places)
    if json.dumps(rest) == json.dumps(data):
        return before
    # Without a backup the file was ours from the start; nothing is left of it when only we were in it.
    return None if not rest and original is None else _dumped(rest, before)


def _table(value: object, name: str, where: str) -> Json:
    if not isinstance(value, dict):
        raise ConfigError(f"{name!r} must be an object, not {type(value).__name__}.", where=where)
    return value


def _groups(events: Json, event: str, where: str) -> list[Any]:
    groups = events.setdefault(event, [])
    if not isinstance(groups, list):
        raise ConfigError(f"'hooks.{event}' must be a list, not {type(groups).__name__}.", where=where)
    return groups


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"The file can't be read: {error.strerror}.", where=str(path)) from error


def _parsed(path: Path, content: bytes | None) -> Json:
    if content is None:
        return {}
    try:
        data = json.loads(content.decode(), object_pairs_hook=_unique, parse_constant=_no_json, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"The file is not valid JSON, so it is left alone: {error}.",
            where=str(path),
            next_step="Repair it, then run the command again.",
        ) from error
    return _table(data, "the whole file", str(path))


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text} is too large to be written again")
    return value


def _no_json(word: str) -> object:
    raise ValueError(f"{word} is not valid JSON")


def _unique(pairs: list[tuple[str, Any]]) -> Json:
    data = dict(pairs)
    if len(data) != len(pairs):
        doubled = sorted({key for key, _ in pairs if [name for name, _ in pairs].count(key) > 1})
        raise ValueError(f"the key {doubled[0]!r} occurs twice; rewriting the file would lose one value")
    return data


def _dumped(data: Json, before: bytes | None) -> bytes:
    """``data`` in the shape that the file has: its indentation and its line ends."""
    text = (before or b"").decode()
    indent = re.match(r'\s*\{\s*?\n([ \t]+)"', text)
    dumped = json.dumps(data, indent=indent[1] if indent else 2, ensure_ascii=False)
    dumped += "\n" if not text or text.endswith("\n") else ""
    # Half of a pair can be written in JSON only by its number.
    dumped = re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", dumped)
    return (dumped.replace("\n", "\r\n") if "\r\n" in text else dumped).encode()


def _backup(path: Path) -> Path:
    return path.with_name(path.name + BACKUP_SUFFIX)


@contextmanager
def _locked(path: Path, dry_run: bool) -> Iterator[None]:
    """One writer at a time in this folder; the folder itself carries the lock, so no lock file is left behind."""
    if dry_run:
        yield
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise ConfigError(f"The folder can't be used: {error.strerror}.", where=str(path.parent)) from error
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
