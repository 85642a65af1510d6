"""Install our hooks into a runtime's settings file, and remove exactly those again.

Claude Code and Codex use the same format: ``{"hooks": {EVENT: [{"matcher": …, "hooks": [{"type": "command", …}]}]}}``.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from donewhen.config.hook_line import is_own_line
from donewhen.config.project_hooks import Json, our_hooks
from donewhen.foundation.errors import ConfigError
from donewhen.foundation.files import read_limited, write_atomically
from donewhen.foundation.json_parsing import parse_json
from donewhen.foundation.locks import locked_folder
from donewhen.foundation.size_limits import HOOK_FILE

BACKUP_SUFFIX = ".donewhen-backup"
_TEXTS = ("name", "description", "statusMessage")
"""Keys of an entry that a person may have added: they change nothing."""


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
    """The change of a file by install or uninstall; None means that the file does not exist."""

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def nothing(self) -> bool:
        return self.before == self.after


def install_hooks(
    path: Path,
    entries: Sequence[HookEntry],
    *,
    header: Mapping[str, Any] | None = None,
    keep_places: bool = False,
    dry_run: bool = False,
) -> FileChange:
    """Merge ``entries`` into the file: other hooks are not changed, ours are updated.

    ``header`` is what the runtime expects in the file besides the hooks.

    ``keep_places`` leaves an empty group in place of a removed hook that has others after it, for runtimes that
    identify a hook by its position.
    """
    with _locked(path, dry_run):
        return _installed(path, entries, header, keep_places, dry_run)


def uninstall_hooks(
    path: Path, *, header: Mapping[str, Any] | None = None, keep_places: bool = False, dry_run: bool = False
) -> FileChange:
    """Remove our hooks. If nothing else has changed since they were installed, restore the original bytes."""
    with _locked(path, dry_run):
        return _uninstalled(path, header, keep_places, dry_run)


def install_with_script(
    path: Path,
    entries: Sequence[HookEntry],
    script: Path,
    content: bytes,
    *,
    header: Mapping[str, Any] | None = None,
    keep_places: bool = False,
    dry_run: bool = False,
) -> tuple[FileChange, FileChange]:
    """Merge ``entries`` into the file and write the ``script`` that they start, which is below the file's folder.

    Both change under one lock, so that hooks never start a script that somebody else has just removed.
    """
    with _locked(path, dry_run):
        # A settings file that can't be changed is an error before anything is written, and the script is written
        # before the hooks that start it.
        _installed(path, entries, header, keep_places, dry_run=True)
        script_change = FileChange(script, _content(script), content)
        if not (dry_run or script_change.nothing):
            _write_script(script, content)
        return _installed(path, entries, header, keep_places, dry_run), script_change


def uninstall_with_script(
    path: Path,
    script: Path,
    *,
    header: Mapping[str, Any] | None = None,
    keep_places: bool = False,
    dry_run: bool = False,
) -> tuple[FileChange, FileChange]:
    """Remove our hooks, then the ``script``, and its folder if nothing else is in it."""
    with _locked(path, dry_run):
        change = _uninstalled(path, header, keep_places, dry_run)
        script_change = FileChange(script, _content(script), None)
        if not (dry_run or script_change.nothing):
            script.unlink()
            with suppress(OSError):
                script.parent.rmdir()
        return change, script_change


def installed_hooks(path: Path) -> list[HookEntry]:
    """Return our hooks in the file."""
    data = _parsed(path, _content(path))
    return [
        HookEntry(event, hook["command"], _seconds(hook.get("timeout")), group.get("matcher"))
        for event, group, hook in our_hooks(data)
    ]


def read_settings(path: Path) -> Json:
    """Return the content of a settings file; an empty object if it does not exist."""
    return _parsed(path, _content(path))


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
    """Return ``data`` with exactly these hooks of ours; those that are in the file already keep their position.

    Entries of ours are repaired: what install does not write in them is removed, apart from texts for people.
    Empty groups, lists and tables are removed, unless they are empty in ``reference`` (default: ``data``) as well.
    """
    result = copy.deepcopy(data)
    events = _table(result.setdefault("hooks", {}), "hooks", where)
    wanted = list(entries)
    for event in events:
        groups = _groups(events, event, where)
        # An entry that is not in a group is one that the runtime does not find.
        groups[:] = [group for group in groups if not _is_stray(group)]
    for event, group, hook in list(our_hooks(result)):
        match = next(
            (entry for entry in wanted if entry.event == event and entry.matcher == group.get("matcher")), None
        )
        if match is None:
            group["hooks"].remove(hook)
        else:
            wanted.remove(match)
            repaired = {key: value for key, value in hook.items() if key in _TEXTS} | match.group()["hooks"][0]
            ordered = {key: repaired[key] for key in (*hook, *repaired) if key in repaired}
            hook.clear()
            hook.update(ordered)
    for entry in wanted:
        # Append, so that other hooks keep their position: some runtimes identify hooks by position.
        _groups(events, entry.event, where).append(entry.group())
    return _tidied(result, data if reference is None else reference, keep_places)


def _with_header(data: Json, header: Mapping[str, Any] | None) -> Json:
    """The content with what the runtime expects in it, which comes first unless it is there already."""
    header = header or {}
    return {**header, **data, **header}


def _is_stray(group: object) -> bool:
    return isinstance(group, dict) and "hooks" not in group and is_own_line(str(group.get("command", "")))


def _tidied(data: Json, before: Json, keep_places: bool) -> Json:
    """Remove the groups, lists and tables that have become empty; those that were empty before are kept."""
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


def _left_over(
    path: Path, data: Json, before: bytes, original: bytes | None, keep_places: bool, header: Mapping[str, Any]
) -> bytes | None:
    """Return the file without our hooks: the bytes of the backup if its content is equal, None if nothing is left."""
    if "hooks" not in data:
        return before
    try:
        reference = (
            None if original is None else with_hooks(_with_header(_parsed(path, original), header), (), str(path))
        )
    except ConfigError:
        reference = None
    if reference is not None:
        rest = with_hooks(data, (), str(path), reference=reference)
        # Compare as text: 1, 1.0 and true are equal in Python, and the order of keys matters to people.
        if json.dumps(rest) == json.dumps(reference):
            return original
    rest = with_hooks(data, (), str(path), keep_places=keep_places)
    if json.dumps(rest) == json.dumps(data):
        return before
    # Without a backup we created the file, so it is deleted if nothing else is in it.
    return None if rest in ({}, header) and original is None else _dumped(rest, before)


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
        return read_limited(path, HOOK_FILE)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"The file can't be read: {error.strerror}.", where=str(path)) from error


def _parsed(path: Path, content: bytes | None) -> Json:
    if content is None:
        return {}
    try:
        data = parse_json(content.decode())
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"The file is not valid JSON, so it is left alone: {error}.",
            where=str(path),
            next_step="Repair it, and remove comments if it has any. Then run the command again.",
        ) from error
    return _table(data, "the whole file", str(path))


def _dumped(data: Json, before: bytes | None) -> bytes:
    """Serialize ``data`` with the indentation and the line endings of the file."""
    text = (before or b"").decode()
    indent = re.match(r'\s*\{\s*?\n([ \t]+)"', text)
    dumped = json.dumps(data, indent=indent[1] if indent else 2, ensure_ascii=False)
    dumped += "\n" if not text or text.endswith("\n") else ""
    # A lone surrogate can't be encoded as UTF-8, so it is written as an escape sequence.
    dumped = re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", dumped)
    return (dumped.replace("\n", "\r\n") if "\r\n" in text else dumped).encode()


def _installed(
    path: Path, entries: Sequence[HookEntry], header: Mapping[str, Any] | None, keep_places: bool, dry_run: bool
) -> FileChange:
    before = _content(path)
    data = _parsed(path, before)
    merged = with_hooks(_with_header(data, header), entries, str(path), keep_places=keep_places)
    change = FileChange(path, before, before if merged == data else _dumped(merged, before))
    if not (dry_run or change.nothing or change.after is None):
        if before is None:
            _backup(path).unlink(missing_ok=True)
        elif not any(True for _ in our_hooks(data)):
            # The backup may contain secrets, so it gets the same permissions as the file.
            write_atomically(_backup(path), before, mode=path.stat().st_mode & 0o777)
        write_atomically(path, change.after)
    return change


def _uninstalled(path: Path, header: Mapping[str, Any] | None, keep_places: bool, dry_run: bool) -> FileChange:
    before = _content(path)
    if before is None:
        return FileChange(path, None, None)
    data = _parsed(path, before)
    original = _content(_backup(path))
    left = _left_over(path, data, before, original, keep_places, header or {})
    change = FileChange(path, before, left)
    if not dry_run:
        if change.after is None:
            # Delete the target of a symbolic link, not the link.
            path.resolve().unlink()
        elif not change.nothing:
            write_atomically(path, change.after)
        _backup(path).unlink(missing_ok=True)
    return change


def _write_script(script: Path, content: bytes) -> None:
    try:
        script.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(script, content, mode=0o755)
    except OSError as error:
        raise ConfigError(f"The script can't be written: {error.strerror}.", where=str(script)) from error


def _backup(path: Path) -> Path:
    return path.with_name(path.name + BACKUP_SUFFIX)


@contextmanager
def _locked(path: Path, dry_run: bool) -> Iterator[None]:
    """Allow one writer at a time. The lock is on the folder itself, so no lock file is left behind."""
    if dry_run:
        yield
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            stack.enter_context(locked_folder(path.parent))
            unlock = stack.pop_all()
    except OSError as error:
        raise ConfigError(f"The folder can't be used: {error.strerror}.", where=str(path.parent)) from error
    with unlock:
        yield
