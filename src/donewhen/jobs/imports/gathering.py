"""Detect the format of a source and read its files. Links are not followed, and large files are refused."""

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
from donewhen.jobs.imports.items import KIND_LABELS, ImportFinding, Kind, SourceText, not_understood_finding

MAX_FILE_BYTES = 1_000_000
"""Maximum size of a Markdown file in bytes; a larger file is hardly a task."""
MAX_LIST_BYTES = 64_000_000
MAX_SOURCE_CHARACTERS = 256_000_000
MAX_FILES = 200_000
_FEATURES = "feature_list.json"
_SPEC_KIT_TASK = re.compile(r"^[ \t]*[-*+][ \t]+\[[ xX]?\][ \t]*\*{0,2}\[?T[0-9]", re.MULTILINE)
_OPENSPEC_FILES = ("proposal.md", "tasks.md", "design.md")


class GatheredSource(NamedTuple):
    """A source with its detected format and its texts."""

    kind: Kind
    root: Path
    texts: tuple[SourceText, ...]
    findings: tuple[ImportFinding, ...]
    scope: str | None
    """The prefix of the keys for which the source is complete; None if it is only a part."""


class _Candidate(NamedTuple):
    """A possible format of the source, with its root folder."""

    kind: Kind
    root: Path
    scope: str | None
    only: str | None = None
    """The only file or folder to read, if one was given."""


def gather_source(source: Path, wanted: Kind | None) -> GatheredSource:
    """Detect the format of the source and read it. Raises UsageError if it is ambiguous."""
    try:
        return _read_candidate(_choose_candidate(source, wanted), source)
    except OSError as error:
        place = one_line(str(error.filename or source), 300)
        raise UsageError(f"The source can't be read: {error.strerror}.", where=place) from error


def _choose_candidate(source: Path, wanted: Kind | None) -> _Candidate:
    # A link is followed only here, because the user named it.
    path = Path(os.path.realpath(source))
    candidates = [
        candidate
        for candidate in (_candidates_in_folder(path) if path.is_dir() else _candidates_in_file(path))
        if wanted in (None, candidate.kind)
    ]
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        kinds = ", ".join(candidate.kind for candidate in candidates)
        next_step = f"Choose a format: --from {candidates[0].kind}"
        raise UsageError(
            f"The source matches {len(candidates)} formats: {kinds}.", where=str(source), next_step=next_step
        )
    if wanted is not None:
        raise UsageError(f"The source has no {KIND_LABELS[wanted]}.", where=str(source))
    raise UsageError(
        "Nothing to import was found: no backlog/tasks/, specs/*/tasks.md, openspec/changes/ or feature_list.json.",
        where=str(source),
        next_step="Give the path of such a file or folder.",
    )


def _candidates_in_file(path: Path) -> Iterator[_Candidate]:
    if not path.exists():
        raise UsageError("There is no such file or folder.", where=str(path))
    if path.suffix == ".json":
        yield _Candidate("feature-list", path.parent, "feature-list:", path.name)
    elif path.name == "tasks.md":
        folder = path.parent
        if _SPEC_KIT_TASK.search(_read_text(path, MAX_FILE_BYTES)):
            yield _Candidate("spec-kit", folder.parent, f"spec-kit:{folder.name}/", folder.name)
        else:
            yield _change_candidate(folder)
    elif backlog.TASK_FILE.fullmatch(path.name):
        yield _Candidate("backlog", path.parent, None, path.name)


def _candidates_in_folder(path: Path) -> Iterator[_Candidate]:
    for root in (path / "backlog", path / ".backlog", path):
        if (root / "tasks").is_dir() and (root != path or _is_backlog(root)):
            yield _Candidate("backlog", root, "backlog:")
            break
    else:
        if any(backlog.TASK_FILE.fullmatch(name) for name in _visible_names(path)):
            yield _Candidate("backlog", path, None)
    yield from _spec_kit_candidates(path)
    yield from _openspec_candidates(path)
    if (path / _FEATURES).is_file():
        yield _Candidate("feature-list", path, "feature-list:", _FEATURES)


def _is_backlog(root: Path) -> bool:
    has_marker = any((root / name).exists() for name in (*backlog.CONFIGS, "completed", "drafts", "archive"))
    return has_marker or any(backlog.TASK_FILE.fullmatch(name) for name in _visible_names(root / "tasks"))


def _spec_kit_candidates(path: Path) -> Iterator[_Candidate]:
    if (path / "tasks.md").is_file() and _SPEC_KIT_TASK.search(_read_text(path / "tasks.md", MAX_FILE_BYTES)):
        yield _Candidate("spec-kit", path.parent, f"spec-kit:{path.name}/", path.name)
        return
    for root in (path / "specs", path / ".specify" / "specs", path):
        if any(_is_feature(root / name) for name in _visible_names(root)):
            yield _Candidate("spec-kit", root, "spec-kit:")
            return


def _is_feature(folder: Path) -> bool:
    tasks = folder / "tasks.md"
    return (
        tasks.is_file()
        and not tasks.is_symlink()
        and _SPEC_KIT_TASK.search(_read_text(tasks, MAX_FILE_BYTES)) is not None
    )


def _openspec_candidates(path: Path) -> Iterator[_Candidate]:
    for root in (path / "openspec" / "changes", path / "changes", path):
        if root.name == "changes" and root.is_dir() and (root != path / "changes" or _has_change(root)):
            yield _Candidate("openspec", root, "openspec:")
            return
    if _is_change(path):
        yield _change_candidate(path)


def _has_change(root: Path) -> bool:
    return any(_is_change(root / name) for name in _visible_names(root)) or (root / "archive").is_dir()


def _is_change(folder: Path) -> bool:
    if (folder / "proposal.md").is_file():
        return True
    tasks = folder / "tasks.md"
    deltas = (folder / "specs").is_dir()
    return deltas and tasks.is_file() and not _SPEC_KIT_TASK.search(_read_text(tasks, MAX_FILE_BYTES))


def _change_candidate(folder: Path) -> _Candidate:
    archived = folder.parent.name == "archive"
    root = folder.parent.parent if archived else folder.parent
    return _Candidate("openspec", root, None, f"archive/{folder.name}" if archived else folder.name)


def _read_candidate(candidate: _Candidate, source: Path) -> GatheredSource:
    findings: list[ImportFinding] = []
    texts: list[SourceText] = []
    size = 0
    limit = MAX_LIST_BYTES if candidate.kind == "feature-list" else MAX_FILE_BYTES
    for name in _FILES[candidate.kind](candidate):
        if len(texts) >= MAX_FILES or size > MAX_SOURCE_CHARACTERS:
            message = f"more than {MAX_FILES:,} files or {MAX_SOURCE_CHARACTERS:,} characters"
            raise UsageError(f"The source has {message}.", where=str(source), next_step="Import it in parts.")
        path = candidate.root / name
        where = one_line(_display_name(path), 300)
        try:
            texts.append(SourceText(name, where, _read_text(path, limit)))
            size += len(texts[-1].text)
        except UsageError as error:
            if candidate.kind == "feature-list":
                raise UsageError(error.message, where=where) from error
            findings.append(not_understood_finding(f"{error.message} It was skipped.", where))
    return GatheredSource(candidate.kind, candidate.root, tuple(texts), tuple(findings), candidate.scope)


def _backlog_files(candidate: _Candidate) -> Iterator[str]:
    if candidate.only is not None:
        yield candidate.only
        return
    root = candidate.root
    yield from (name for name in backlog.CONFIGS if (root / name).is_file())
    if candidate.scope is None:
        yield from _markdown_files(root, "")
        return
    for folder in ("tasks/", "completed/", "drafts/", "archive/tasks/", "archive/drafts/"):
        yield from _markdown_files(root, folder)


def _markdown_files(root: Path, folder: str) -> Iterator[str]:
    names = [name for name in _visible_names(root / folder) if name.endswith(".md") and name.casefold() != "readme.md"]
    yield from (f"{folder}{name}" for name in sorted(names, key=_number_order))


def _number_order(name: str) -> tuple[tuple[int, ...], str]:
    """Sort key that puts ``task-2`` before ``task-10``."""
    match = backlog.TASK_FILE.fullmatch(name)
    numbers = re.findall(r"[0-9]{1,9}", match["id"]) if match else []
    return tuple(map(int, numbers)), name


def _spec_kit_files(candidate: _Candidate) -> Iterator[str]:
    folders = [candidate.only] if candidate.only is not None else sorted(_visible_names(candidate.root))
    for folder in folders:
        for name in ("tasks.md", "spec.md"):
            if os.path.lexists(candidate.root / folder / name):
                yield f"{folder}/{name}"


def _openspec_files(candidate: _Candidate) -> Iterator[str]:
    root = candidate.root
    if candidate.only is not None:
        folders = [candidate.only]
    else:
        folders = [name for name in sorted(_visible_names(root)) if name != "archive" and (root / name).is_dir()]
        folders += [
            f"archive/{name}" for name in sorted(_visible_names(root / "archive")) if (root / "archive" / name).is_dir()
        ]
    for folder in folders:
        if (root / folder).is_symlink():
            # Yielded, so that reading it reports that it was skipped.
            yield folder
            continue
        yield from (f"{folder}/{name}" for name in _OPENSPEC_FILES if os.path.lexists(root / folder / name))
        for name in sorted(_visible_names(root / folder / "specs")):
            if os.path.lexists(root / folder / "specs" / name / "spec.md"):
                yield f"{folder}/specs/{name}/spec.md"


def _feature_list_files(candidate: _Candidate) -> Iterator[str]:
    yield candidate.only or _FEATURES


_FILES: dict[Kind, Callable[[_Candidate], Iterator[str]]] = {
    "backlog": _backlog_files,
    "spec-kit": _spec_kit_files,
    "openspec": _openspec_files,
    "feature-list": _feature_list_files,
}


def _visible_names(folder: Path) -> list[str]:
    """The names in a folder that are not hidden. A linked folder counts as empty; an unreadable one raises OSError."""
    if folder.is_symlink():
        return []
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if not entry.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _read_text(path: Path, limit: int) -> str:
    try:
        size = path.lstat().st_size
        raw = b"" if size > limit else read_regular(path)
    except OSError as error:
        problem = "The file is a link, and links are not followed" if error.errno == errno.ELOOP else None
        problem = problem or (
            "It is a folder, not a file"
            if isinstance(error, IsADirectoryError)
            else f"The file can't be read: {error.strerror}"
        )
        raise UsageError(f"{problem}.", where=str(path)) from error
    if size > limit:
        raise UsageError(f"The file is larger than {limit:,} bytes.", where=str(path))
    if b"\x00" in raw:
        raise UsageError("The file is not text: it contains a NUL byte.", where=str(path))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UsageError(f"The file is not UTF-8 text, see line {line}.", where=str(path)) from error


def _display_name(path: Path) -> str:
    """A file's name for messages: relative to the current folder if it is below it."""
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(path)
