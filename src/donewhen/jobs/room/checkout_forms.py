"""The agreed files as a checkout has them: with other line ends, another encoding, or the content behind a pointer.

Attributes come from the agreed tree and filter commands from the agreement. The repository's own settings, which an
agent can write, decide nothing.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path, PurePosixPath

from donewhen.foundation.files import read_whole
from donewhen.foundation.git import GitError, git, git_start
from donewhen.foundation.git_objects import LINK, TreeFile, object_name
from donewhen.foundation.plain_text import one_line
from donewhen.foundation.process import run_command
from donewhen.jobs.room.agreed_tree import AgreedFiles
from donewhen.jobs.room.attributes import conversions, converting_parts
from donewhen.jobs.room.blobs import Blobs, DiskBlobs, MissingContentError, StoredBlobs
from donewhen.jobs.room.disk_tree import DiskTree, leads_out, read_file
from donewhen.jobs.room.large_files import LargeFileBlobs, Pointer, has_content, read_pointer, stored_file
from donewhen.jobs.room.own_folders import temporary_folder
from donewhen.jobs.room.temporary_repository import put_files, temporary_repository

_TIMEOUT = 120.0
_FAILED = "external filter"
_WITH_KEYS = frozenset({"git-crypt"})
"""Programs that keep their keys in a folder of their name in the `.git` of the project."""
_MAX_KEY = 1 << 16
_SETTINGS = ("-c", "core.autocrlf=false", "-c", "core.eol=lf", "-c", "core.safecrlf=false", "-c", "core.fileMode=false")


@dataclass(frozen=True)
class SealedFilters:
    """The commands of git's filters as they were agreed."""

    commands: Mapping[str, str]
    """For example `lfs.smudge`."""
    path: str
    """Where their programs are looked up."""

    def of(self, name: str) -> tuple[str, ...]:
        return tuple(command for key, command in self.commands.items() if key.rpartition(".")[0] == name)


@dataclass(frozen=True)
class Unfiltered:
    """Files that a filter should have converted, and could not."""

    filter: str
    names: tuple[str, ...]
    why: str = ""
    """What git said; empty if the filter has no agreed commands."""


@dataclass(frozen=True)
class CheckedOut:
    """The agreed files as a checkout has them."""

    agreed: AgreedFiles
    unmodified: frozenset[str] = frozenset()
    """Files that differ on disk, but that git would store with the agreed content."""
    notes: tuple[str, ...] = ()
    """Why some files can't be compared."""


@dataclass(frozen=True)
class LaidOutForms:
    """The files of commits as a checkout of them has them."""

    files: Mapping[str, TreeFile]
    blobs: Blobs
    unfiltered: tuple[Unfiltered, ...] = ()
    not_fetched: tuple[str, ...] = ()
    """Large files whose content is not on this machine; their pointers are in their place."""


@dataclass
class _Found:
    forms: dict[str, TreeFile] = field(default_factory=dict)
    """The files with another content than the committed one."""
    kept: set[str] = field(default_factory=set)
    """Those of them that git converts back by itself."""
    paths: dict[str, Path] = field(default_factory=dict)
    """Files with downloaded contents, by content name."""
    on_disk: set[str] = field(default_factory=set)
    unmodified: set[str] = field(default_factory=set)
    not_fetched: list[str] = field(default_factory=list)
    unfiltered: list[Unfiltered] = field(default_factory=list)


def checked_out(agreed: AgreedFiles, disk: DiskTree, filters: SealedFilters, stack: ExitStack) -> CheckedOut:
    """The agreed files in the form of a checkout, compared with the disk. Contents can be read until ``stack`` is
    closed."""
    found = _Found()
    store: StoredBlobs | None = None
    for part in converting_parts(agreed):
        if store is None:
            store = StoredBlobs(stack.enter_context(temporary_folder("forms")))
        _Part(agreed, disk.files.get, filters, found, store, *part).convert(compare=True)
    if store is None:
        return CheckedOut(agreed)
    blobs = _FormBlobs(agreed.blobs, store, found, str(agreed.place.top))
    files = {**agreed.files, **found.forms}
    converted = frozenset(found.kept)

    def is_changed(name: str) -> bool:
        now = disk.files.get(name)
        return now is not None and name not in found.unmodified and now.blob != files[name].blob

    return CheckedOut(
        replace(agreed, files=files, blobs=blobs, converted=converted),
        frozenset(found.unmodified),
        tuple(_notes_on_changed(found, is_changed)),
    )


def forms_of_commits(committed: AgreedFiles, filters: SealedFilters, store: StoredBlobs) -> LaidOutForms:
    """The files of commits in the form of a checkout, by the attributes that are among them. ``store`` gets the
    contents that git converts. Of the disk, only large files with the content that the commit names are used."""
    found = _Found()
    top = str(committed.place.top)

    def on_disk(name: str) -> TreeFile | None:
        try:
            return None if leads_out(top, name) else read_file(top, name, committed.like)
        except OSError:
            return None

    for part in converting_parts(committed):
        _Part(committed, on_disk, filters, found, store, *part).convert(compare=False)
    return LaidOutForms(
        {**committed.files, **found.forms},
        _FormBlobs(committed.blobs, store, found, top),
        tuple(found.unfiltered),
        tuple(found.not_fetched),
    )


def _notes_on_changed(found: _Found, is_changed: Callable[[str], bool]) -> Iterator[str]:
    """Say of changed files why they could not be compared, if that is so."""
    for name in found.not_fetched:
        if is_changed(name):
            yield f"The agreed content of {_shown(name)} is not on this machine; fetch it: git lfs fetch"
    for unfiltered in found.unfiltered:
        example = next((_shown(name) for name in unfiltered.names if is_changed(name)), None)
        shown = _shown(unfiltered.filter)
        if example is not None and unfiltered.why:
            yield f"The filter {shown} failed, so {example} counts as changed: {unfiltered.why}"
        elif example is not None:
            yield f"The filter {shown} is not part of the agreement, so {example} is compared as it is."


class _FormBlobs:
    """Contents of files as a checkout has them; all others from where they come otherwise."""

    def __init__(self, others: Blobs, store: StoredBlobs, found: _Found, top: str) -> None:
        self._others = others
        self._found = found
        self._disk = DiskBlobs(top)
        self._downloaded = LargeFileBlobs(found.paths)
        self._store = store

    def contents(self, files: Sequence[tuple[str, str]]) -> Iterator[bytes]:
        for source, group in groupby(files, key=lambda file: self._source(*file)):
            yield from source.contents([*group])

    def _source(self, name: str, blob: str) -> Blobs:
        form = self._found.forms.get(name)
        if form is None or form.blob != blob:
            return self._others
        if name in self._found.on_disk:
            return self._disk
        return self._downloaded if blob in self._found.paths else self._store


@dataclass(frozen=True)
class _Part:
    """The converted files of one repository: the project's or a submodule."""

    agreed: AgreedFiles
    on_disk: Callable[[str], TreeFile | None]
    filters: SealedFilters
    found: _Found
    store: StoredBlobs
    folder: str
    files: Mapping[str, TreeFile]
    rules: Mapping[str, TreeFile]

    def convert(self, *, compare: bool) -> None:
        """Find the forms of the files, and with ``compare`` those on disk that git would store as agreed."""
        with temporary_repository(self.rules, self.agreed.blobs, self.agreed.like, inside=self.folder) as place:
            regular = [name for name, file in self.files.items() if file.mode != LINK]
            converted = conversions(place, regular)
            if not converted:
                return
            pointers = self._read_raw(place, converted)
            for name, pointer in pointers.items():
                self._add_large_file(name, pointer)
            rest = {name: named for name, named in converted.items() if name not in pointers}
            put_files(place, self._program_files(set(rest.values())), self.agreed.blobs, inside=self.folder)
            for named in set(rest.values()):
                self._copy_keys(place, named)
            # One filter after the other: git stops at a file whose filter fails.
            for named in sorted({*rest.values()}):
                self._add_converted(place, named, [name for name, other in rest.items() if other == named], compare)

    def _read_raw(self, place: Path, converted: Mapping[str, str]) -> dict[str, Pointer]:
        """Put the committed contents into the repository, except those that are pointers: return these."""
        pointers: dict[str, Pointer] = {}
        raw = place / ".git" / "donewhen"
        raw.mkdir()
        names = [*converted]
        written: list[Path] = []
        contents = self.agreed.blobs.contents([(f"{self.folder}{name}", self.files[name].blob) for name in names])
        for number, (name, content) in enumerate(zip(names, contents, strict=True)):
            pointer = read_pointer(content) if converted[name] else None
            if pointer is not None:
                pointers[name] = pointer
                continue
            path = raw / str(number)
            path.write_bytes(content)
            written.append(path)
        if written:
            given = b"".join(os.fsencode(path) + b"\n" for path in written)
            _git(place, "hash-object", "-w", "--no-filters", "--stdin-paths", given=given)
        return pointers

    def _add_large_file(self, name: str, pointer: Pointer) -> None:
        full, file = f"{self.folder}{name}", self.files[name]
        top = self.agreed.place.top
        now = self.on_disk(full)
        if now is not None and now.mode != LINK and has_content(top / full, now.blob, pointer):
            self.found.forms[full] = TreeFile(file.mode, now.blob)
            self.found.on_disk.add(full)
            return
        stored = stored_file(top / self.folder, pointer, file.blob)
        if stored is not None:
            self.found.forms[full] = TreeFile(file.mode, stored.blob)
            self.found.paths[stored.blob] = stored.path
            if now is not None and now.blob == file.blob:
                self.found.unmodified.add(full)
        else:
            self.found.not_fetched.append(full)

    def _add_converted(self, place: Path, named: str, names: Sequence[str], compare: bool) -> None:
        entries = b"".join(
            f"{self.files[name].mode} {self.files[name].blob}\t".encode() + os.fsencode(name) + b"\0" for name in names
        )
        _git(place, "read-tree", "--empty")
        _git(place, "update-index", "-z", "--index-info", given=entries)
        output = self._run(place, "checkout-index", "--all", "--force", "--index", "--quiet")
        differing: list[str] = []
        for name in names:
            full, file = f"{self.folder}{name}", self.files[name]
            blob = file.blob
            # A filter that took too long has left files out; then the committed content is all there is.
            with suppress(OSError):
                content = read_whole(place / name)
                blob = object_name(content, "blob", file.blob)
            if blob != file.blob:
                self.store.put(content, file.blob)
                self.found.forms[full] = TreeFile(file.mode, blob)
                if not named:
                    self.found.kept.add(full)
            now = self.on_disk(full) if compare else None
            if now is not None and now.blob == file.blob:
                self.found.unmodified.add(full)
            elif now is not None and now.blob != blob and now.mode != LINK:
                differing.append(name)
        if differing:
            output += self._clean(place, differing)
        self._add_unfiltered(named, names, output)

    def _clean(self, place: Path, names: Sequence[str]) -> str:
        """Find out which files on disk git would store with the agreed content."""
        reader = DiskBlobs(str(self.agreed.place.top))
        for name in names:
            full = f"{self.folder}{name}"
            now = self.on_disk(full)
            with suppress(MissingContentError):
                content = b"" if now is None else next(iter([*reader.contents([(full, now.blob)])]))
                (place / name).unlink(missing_ok=True)
                (place / name).write_bytes(content)
        output = self._run(place, "add", "--update", ".")
        listed = _git(place, "ls-files", "--stage", "-z").split(b"\0")
        stored = {os.fsdecode(row.partition(b"\t")[2]): row.split()[1].decode() for row in listed if row}
        self.found.unmodified |= {f"{self.folder}{name}" for name in names if stored.get(name) == self.files[name].blob}
        return output

    def _add_unfiltered(self, named: str, names: Sequence[str], output: str) -> None:
        if not named:
            return
        every = tuple(f"{self.folder}{name}" for name in names)
        if not self.filters.of(named):
            self.found.unfiltered.append(Unfiltered(named, every))
        elif _FAILED in output or "fatal:" in output:
            lines = output.strip().splitlines()
            why = next((line for line in lines if _FAILED in line), lines[-1] if lines else "")
            self.found.unfiltered.append(Unfiltered(named, every, one_line(why, 200)))

    def _program_files(self, named: Collection[str]) -> dict[str, TreeFile]:
        """The agreed files that commands of filters name, with those beside and below them."""
        found: dict[str, TreeFile] = {}
        for command in (command for name in named for command in self.filters.of(name)):
            for word in _words(command):
                name = os.path.normpath(word)
                if name in self.files:
                    folder = name.rpartition("/")[0]
                    beside = (other for other in self.files if folder and other.startswith(f"{folder}/"))
                    found |= {other: self.files[other] for other in (name, *beside)}
        return {name: file for name, file in found.items() if name not in self.rules}

    def _copy_keys(self, place: Path, named: str) -> None:
        """Give a filter that decrypts files its keys, which are in the repository of the project.

        Another key does no harm: these programs compare what they have decrypted with a hash in the agreed content.
        """
        programs = {PurePosixPath(words[0]).name for words in map(_words, self.filters.of(named)) if words}
        top = self.agreed.place.top / self.folder
        for program in programs & _WITH_KEYS:
            found = git(top, "rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir")
            for folder in (Path(os.fsdecode(line)) for line in (found or b"").splitlines()):
                _copy_small_files(folder / program, place / ".git" / program)

    def _run(self, place: Path, *arguments: str) -> str:
        """Run git with the sealed filters, and return what it says."""
        start = git_start(place, *_SETTINGS, *arguments)
        if start is None:
            raise GitError("git can't be started in a temporary repository.", where=str(place))
        settings = {f"filter.{key}": command for key, command in self.filters.commands.items()}
        environment = {**start.environment, "PATH": self.filters.path, "GIT_CONFIG_COUNT": str(len(settings))}
        for number, (key, command) in enumerate(settings.items()):
            environment |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": command}
        result = run_command(start.argv, cwd=place, timeout=_TIMEOUT, env=environment)
        return result.output if result.ending == "exited" else f"{_FAILED}s took longer than {_TIMEOUT:.0f} seconds"


def _git(place: Path, *arguments: str, given: bytes | None = None) -> bytes:
    output = git(place, *_SETTINGS, *arguments, given=given)
    if output is None:
        raise GitError(f"git {arguments[0]} failed in a temporary repository.", where=str(place))
    return output


def _copy_small_files(source: Path, target: Path) -> None:
    for folder, _, names in os.walk(source):
        inner = target / os.path.relpath(folder, source)
        inner.mkdir(parents=True, exist_ok=True)
        for name in names:
            path = Path(folder) / name
            with suppress(OSError):
                if not path.is_symlink() and path.is_file() and path.stat().st_size <= _MAX_KEY:
                    shutil.copyfile(path, inner / name)


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _shown(name: str) -> str:
    return one_line(name, 200)
