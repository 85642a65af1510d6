"""What the files of a room contain: those of commits, in the form that a checkout of them has."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from donewhen.foundation.executables import safe_path
from donewhen.foundation.git import CommittedFile
from donewhen.foundation.git_objects import FILE, LINK, TreeFile
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.room.agreed_tree import AgreedFiles, Place
from donewhen.jobs.room.blobs import Blobs, StoredBlobs
from donewhen.jobs.room.checkout_forms import LaidOutForms, SealedFilters, forms_of_commits
from donewhen.jobs.room.disk_tree import link_leads_out
from donewhen.jobs.verifying.base_branch import Base


@dataclass(frozen=True)
class BaseBlobs:
    """The contents of the files of both commits."""

    base: Base

    def contents(self, files: Sequence[tuple[str, str]]) -> Iterator[bytes]:
        return self.base.contents([CommittedFile(name, FILE, blob) for name, blob in files])


def committed_files(base: Base, files: Mapping[str, TreeFile]) -> AgreedFiles:
    """Some files of the commits, as they are stored."""
    place = Place(base.top, base.inside, has_git=True)
    submodules = {folder.rstrip("/"): "" for folder in base.repositories}
    return AgreedFiles(place, files, BaseBlobs(base), base.head, submodules, files)


@dataclass(frozen=True)
class RoomContent:
    """The files that a room has."""

    files: Mapping[str, TreeFile] = field(repr=False)
    """Those that git would write, with the names of their contents there, and those of the record as committed."""
    blobs: Blobs = field(repr=False)
    forms: LaidOutForms = field(repr=False)
    links_out: tuple[str, ...] = ()
    """Links that lead out of the repository; they are absent."""


def room_content(
    base: Base,
    live: Workspace,
    store: Path,
    files: Mapping[str, CommittedFile],
    filters: Mapping[str, str],
    is_record: Callable[[str], bool],
) -> RoomContent:
    """The content of a room with these files. The attributes among them decide what git converts, and the agreement
    what the filters are; what donewhen writes, and files that are in no commit, are as they are."""
    kept = _without_conflicts(files.values())
    as_stored = {name: file for name, file in kept.items() if is_record(name) or base.working.get(name) == file.blob}
    committed = committed_files(base, {name: file for name, file in kept.items() if name not in as_stored})
    forms = forms_of_commits(committed, SealedFilters(filters, safe_path(live.root)), StoredBlobs(store))
    links_out = _links_out(committed)
    every = {name: forms.files.get(name, file) for name, file in kept.items() if name not in links_out}
    return RoomContent(every, forms.blobs, replace(forms, files={}), tuple(sorted(links_out)))


def _without_conflicts(files: Iterable[CommittedFile]) -> dict[str, TreeFile]:
    """The files without those that are in the way of a later one: a file or link where that has a folder, or the other
    way round."""
    kept: dict[str, TreeFile] = {}
    folders: set[str] = set()
    for name, mode, blob in files:
        for parent in _parents(name):
            kept.pop(parent, None)
            folders.add(parent)
        if name in folders:
            for inner in [other for other in kept if other.startswith(f"{name}/")]:
                del kept[inner]
        kept.pop(name, None)
        kept[name] = TreeFile(mode, blob)
    return kept


def _links_out(committed: AgreedFiles) -> set[str]:
    links = [(name, file.blob) for name, file in committed.files.items() if file.mode == LINK]
    targets = {
        name: os.fsdecode(target) for (name, _), target in zip(links, committed.blobs.contents(links), strict=True)
    }
    return {name for name in targets if link_leads_out(targets.get, name)}


def _parents(name: str) -> Iterator[str]:
    position = name.find("/")
    while position >= 0:
        yield name[:position]
        position = name.find("/", position + 1)
