"""Which format a source is in, and the files of it that count. Links are not followed, and nothing large is read."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from donewhen.foundation.errors import UsageError
from donewhen.foundation.files import read_regular
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.imports import backlog
from donewhen.jobs.imports.items import NAMES, ImportFinding, Kind, SourceText, not_understood_finding

LARGEST = 1_000_000
"""Bytes of a Markdown file: whoever writes more into one task does not mean a task."""
LARGEST_LIST = 64_000_000
LARGEST_SOURCE = 256_000_000
MOST_FILES = 200_000
_FEATURES = "feature_list.json"
_SPEC_KIT_TASK = re.compile(r"^[ \t]*[-*+][ \t]+\[[ xX]?\][ \t]*\*{0,2}\[?T[0-9]", re.MULTILINE)
_OPENSPEC_FILES = ("proposal.md", "tasks.md", "design.md")


class GatheredSource(NamedTuple):
    """A source, recognised and read."""

    kind: Kind
    root: Path
    texts: tuple[SourceText, ...]
    findings: tuple[ImportFinding, ...]
    scope: str | None
    """What the keys begin with of which the source has all; None where it is a part, and others may exist."""


class _Candidate(NamedTuple):
    """Where a kind of source would begin, and whether it is a single part of one."""

    kind: Kind
    root: Path
    scope: str | None
    only: str | None = None
    """The one file that is meant."""


def gather_source(source: Path, wanted: Kind | None) -> GatheredSource:
    """Find out what the source is, and read it. Where it could be two things, the caller has to say which."""
    try:
        return _read(_chosen(source, wanted), source)
    except OSError as error:
        place = one_line(str(error.filename or source), 300)
        raise UsageError(f"The source can't be read: {error.strerror}.", where=place) from error


def _chosen(source: Path, wanted: Kind | None) -> _Candidate:
    # The person named it, so a link is followed here, and only here.
    path = Path(os.path.realpath(source))
    found = [one for one in (_in_folder(path) if path.is_dir() else _in_file(path)) if wanted in (None, one.kind)]
    if len(found) == 1:
        return found[0]
    if found:
        kinds = ", ".join(one.kind for one in found)
        next_step = f"Say which: --from {found[0].kind}"
        raise UsageError(f"It could be {len(found)} things: {kinds}.", where=str(source), next_step=next_step)
    if wanted is not None:
        raise UsageError(f"There are no {NAMES[wanted]} in it.", where=str(source))
    raise UsageError(
        "There is nothing in it that can be imported.",
        where=str(source),
        next_step="Looked for: backlog/tasks/, specs/*/tasks.md, openspec/changes/, feature_list.json, or such a file.",
    )


def _in_file(path: Path) -> Iterator[_Candidate]:
    if not path.exists():
        raise UsageError("There is no such file or folder.", where=str(path))
    if path.suffix == ".json":
        yield _Candidate("feature-list", path.parent, "feature-list:", path.name)
    elif path.name == "tasks.md":
        folder = path.parent
        if _SPEC_KIT_TASK.search(_text_of(path, LARGEST)):
            yield _Candidate("spec-kit", folder.parent, f"spec-kit:{folder.name}/", folder.name)
        else:
            yield _change(folder)
    elif backlog.TASK_FILE.fullmatch(path.name):
        yield _Candidate("backlog", path.parent, None, path.name)


def _in_folder(path: Path) -> Iterator[_Candidate]:
    for root in (path / "backlog", path / ".backlog", path):
        if (root / "tasks").is_dir() and (root != path or _is_backlog(root)):
            yield _Candidate("backlog", root, "backlog:")
            break
    else:
        if any(backlog.TASK_FILE.fullmatch(name) for name in _names(path)):
            yield _Candidate("backlog", path, None)
    yield from _spec_kit(path)
    yield from _openspec(path)
    if (path / _FEATURES).is_file():
        yield _Candidate("feature-list", path, "feature-list:", _FEATURES)


def _is_backlog(root: Path) -> bool:
    beside = any((root / one).exists() for one in (*backlog.CONFIGS, "completed", "drafts", "archive"))
    return beside or any(backlog.TASK_FILE.fullmatch(name) for name in _names(root / "tasks"))


def _spec_kit(path: Path) -> Iterator[_Candidate]:
    if (path / "tasks.md").is_file() and _SPEC_KIT_TASK.search(_text_of(path / "tasks.md", LARGEST)):
        yield _Candidate("spec-kit", path.parent, f"spec-kit:{path.name}/", path.name)
        return
    for root in (path / "specs", path / ".specify" / "specs", path):
        if any(_is_feature(root / name) for name in _names(root)):
            yield _Candidate("spec-kit", root, "spec-kit:")
            return


def _is_feature(folder: Path) -> bool:
    tasks = folder / "tasks.md"
    return tasks.is_file() and not tasks.is_symlink() and _SPEC_KIT_TASK.search(_text_of(tasks, LARGEST)) is not None


def _openspec(path: Path) -> Iterator[_Candidate]:
    for root in (path / "openspec" / "changes", path / "changes", path):
        if root.name == "changes" and root.is_dir() and (root != path / "changes" or _has_change(root)):
            yield _Candidate("openspec", root, "openspec:")
            return
    if _is_change(path):
        yield _change(path)


def _has_change(root: Path) -> bool:
    return any(_is_change(root / name) for name in _names(root)) or (root / "archive").is_dir()


def _is_change(folder: Path) -> bool:
    if (folder / "proposal.md").is_file():
        return True
    tasks = folder / "tasks.md"
    deltas = (folder / "specs").is_dir()
    return deltas and tasks.is_file() and not _SPEC_KIT_TASK.search(_text_of(tasks, LARGEST))


def _change(folder: Path) -> _Candidate:
    archived = folder.parent.name == "archive"
    root = folder.parent.parent if archived else folder.parent
    return _Candidate("openspec", root, None, f"archive/{folder.name}" if archived else folder.name)


def _read(candidate: _Candidate, source: Path) -> GatheredSource:
    findings: list[ImportFinding] = []
    texts: list[SourceText] = []
    size = 0
    limit = LARGEST_LIST if candidate.kind == "feature-list" else LARGEST
    for name in _FILES[candidate.kind](candidate):
        if len(texts) >= MOST_FILES or size > LARGEST_SOURCE:
            message = f"more than {MOST_FILES:,} files or {LARGEST_SOURCE:,} characters"
            raise UsageError(f"There are {message} in it.", where=str(source), next_step="Import it in parts.")
        path = candidate.root / name
        where = one_line(_shown(path), 300)
        try:
            texts.append(SourceText(name, where, _text_of(path, limit)))
            size += len(texts[-1].text)
        except UsageError as error:
            if candidate.kind == "feature-list":
                raise UsageError(error.message, where=where) from error
            findings.append(not_understood_finding(f"{error.message} It was left out.", where))
    return GatheredSource(candidate.kind, candidate.root, tuple(texts), tuple(findings), candidate.scope)


def _backlog_files(candidate: _Candidate) -> Iterator[str]:
    if candidate.only is not None:
        yield candidate.only
        return
    root = candidate.root
    yield from (one for one in backlog.CONFIGS if (root / one).is_file())
    if candidate.scope is None:
        yield from _markdown(root, "")
        return
    for folder in ("tasks/", "completed/", "drafts/", "archive/tasks/", "archive/drafts/"):
        yield from _markdown(root, folder)


def _markdown(root: Path, folder: str) -> Iterator[str]:
    names = [name for name in _names(root / folder) if name.endswith(".md") and name.casefold() != "readme.md"]
    yield from (f"{folder}{name}" for name in sorted(names, key=_by_number))


def _by_number(name: str) -> tuple[tuple[int, ...], str]:
    """``task-2`` stands before ``task-10``."""
    found = backlog.TASK_FILE.fullmatch(name)
    numbers = re.findall(r"[0-9]{1,9}", found["id"]) if found else []
    return tuple(map(int, numbers)), name


def _spec_kit_files(candidate: _Candidate) -> Iterator[str]:
    folders = [candidate.only] if candidate.only is not None else sorted(_names(candidate.root))
    for folder in folders:
        for name in ("tasks.md", "spec.md"):
            if os.path.lexists(candidate.root / folder / name):
                yield f"{folder}/{name}"


def _openspec_files(candidate: _Candidate) -> Iterator[str]:
    root = candidate.root
    if candidate.only is not None:
        folders = [candidate.only]
    else:
        folders = [name for name in sorted(_names(root)) if name != "archive" and (root / name).is_dir()]
        folders += [
            f"archive/{name}" for name in sorted(_names(root / "archive")) if (root / "archive" / name).is_dir()
        ]
    for folder in folders:
        if (root / folder).is_symlink():
            # Named, so that it is told that it was left out.
            yield folder
            continue
        yield from (f"{folder}/{one}" for one in _OPENSPEC_FILES if os.path.lexists(root / folder / one))
        for name in sorted(_names(root / folder / "specs")):
            if os.path.lexists(root / folder / "specs" / name / "spec.md"):
                yield f"{folder}/specs/{name}/spec.md"


def _only(candidate: _Candidate) -> Iterator[str]:
    yield candidate.only or _FEATURES


_FILES: dict[Kind, Callable[[_Candidate], Iterator[str]]] = {
    "backlog": _backlog_files,
    "spec-kit": _spec_kit_files,
    "openspec": _openspec_files,
    "feature-list": _only,
}


def _names(folder: Path) -> list[str]:
    """The names in a folder that are not hidden. A folder that is a link is empty, one that can't be read an error."""
    if folder.is_symlink():
        return []
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if not entry.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _text_of(path: Path, limit: int) -> str:
    try:
        size = path.lstat().st_size
        raw = b"" if size > limit else read_regular(path)
    except OSError as error:
        told = "It is a link, and links are not followed" if error.errno == errno.ELOOP else None
        told = told or (
            "It is a folder" if isinstance(error, IsADirectoryError) else f"It can't be read: {error.strerror}"
        )
        raise UsageError(f"{told}.", where=str(path)) from error
    if size > limit:
        raise UsageError(f"It is larger than {limit:,} bytes.", where=str(path))
    if b"\x00" in raw:
        raise UsageError("It is no text: there is a NUL byte in it.", where=str(path))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UsageError(f"It is not UTF-8 text, in line {line}.", where=str(path)) from error


def _shown(path: Path) -> str:
    """A file's name for people: from where they stand, if it is below."""
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(path)
