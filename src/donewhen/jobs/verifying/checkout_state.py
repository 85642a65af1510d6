"""What the checkout has besides the judged commit: uncommitted changes, ignored files, installed environments."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from donewhen.config.state_folder import FOLDER
from donewhen.foundation.git import CommittedFile, git
from donewhen.foundation.git_objects import folders_of, object_name
from donewhen.jobs.evidence.tree_diff import git_blob_hash, resolve_commit
from donewhen.jobs.verifying.base_branch import Base, read_unfollowed
from donewhen.jobs.verifying.laying_out import clear_path
from donewhen.jobs.verifying.work_outputs import WorkOutputs

_CACHES = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", FOLDER, ".git"})
_CONVERTED = ("filter", "ident", "working-tree-encoding")


def uncommitted_names(base: Base) -> list[str]:
    """Files of the checkout that differ from the judged commit. Files that git converts in more than their line ends
    are left out, since their content says nothing.

    Empty if the checkout has another commit, whose differences mean nothing.
    """
    if base.head != resolve_commit(base.top):
        return []
    names = changed_names(base)
    converted = _converted(base, [name for name in names if name in base.work and os.path.lexists(base.top / name)])
    return [name for name in names if name not in converted]


def changed_names(base: Base) -> list[str]:
    """New, changed and removed files of the checkout, by content, so that no flag of the index hides one."""
    listed = git(base.top, "ls-files", "-z", "--cached", "--others", "--exclude-standard") or b""
    modules = {folder.rstrip("/") for folder in base.repositories} | {*base.unreadable}
    present = {os.fsdecode(raw).rstrip("/") for raw in listed.split(b"\0") if raw}
    new = [
        name for name in present if name not in base.work and name not in modules and os.path.lexists(base.top / name)
    ]
    below_links = {folder for folder in {(base.top / name).parent for name in base.work} if _is_linked(folder)}
    changed = [
        name for name, file in base.work.items() if (base.top / name).parent in below_links or not _is_same(base, file)
    ]
    sparse = _left_out_by_git(base) if changed else set()
    return sorted({*new, *(name for name in changed if name not in sparse or os.path.lexists(base.top / name))})


def with_working_files(base: Base) -> Base:
    """The same with the files of the checkout as the work; those that git ignores are left out."""
    work, working = dict(base.work), dict[str, str]()
    for name in changed_names(base):
        work.pop(name, None)
        path = base.top / name
        content = read_unfollowed(path)
        blob = git_blob_hash(content, base.head)
        if content is None or blob is None or _is_linked(path.parent):
            continue
        mode = "120000" if path.is_symlink() else "100755" if path.stat().st_mode & 0o100 else "100644"
        work[name] = CommittedFile(name, mode, blob)
        working[name] = blob
    return base._replace(work=work, working=working)


def left_out_names(base: Base, linked: Sequence[str]) -> list[str]:
    """Ignored files and folders of the checkout, without caches and the linked environments."""
    inside = {f"{name}/" for name in linked}
    return [name for name in _ignored(base) if not any(f"{name}/".startswith(folder) for folder in inside)]


def environments_for(base: Base, files: Collection[str], steers: Callable[[str], bool]) -> tuple[str, ...]:
    """The ignored environments that a room with these files gets: commands need them, and no commit has them."""
    found = [*dict.fromkeys(environment_names(base))]
    taken = {*files, *folders_of(files)} if found else set()
    # A folder that only looks like an environment could be imported instead of a module of the same name.
    return tuple(name for name in found if name not in taken and not steers(f"{name}/pyvenv.cfg"))


def copy_ignored_outputs(base: Base, folder: Path, outputs: WorkOutputs) -> tuple[str, ...]:
    """Copy agreed outputs that git ignores, since no commit can have them, and return their names."""
    if not outputs.patterns:
        return ()
    pathspecs = [f":(top,glob){'/'.join(pattern)}" for pattern in outputs.patterns]
    pathspecs += [f"{pathspec}/**" for pathspec in pathspecs]
    options = ("-z", "--others", "--ignored", "--exclude-standard")
    listed = git(base.top, "ls-files", *options, "--", *pathspecs) or b""
    copied: list[str] = []
    for raw in listed.split(b"\0"):
        name = os.fsdecode(raw)
        source = base.top / name
        if not name or not outputs.has(name) or os.path.lexists(folder / name) or _is_linked(source):
            continue
        with suppress(OSError):
            # Git lists no special files, so this can't block.
            content = source.read_bytes()
            path = clear_path(folder, name)
            path.write_bytes(content)
            path.chmod(source.stat().st_mode & 0o777)
            copied.append(name)
    return tuple(copied)


def copy_present(base: Base, folder: Path, present: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Copy ignored files that were agreed to be there, and return the names of those copied and of those that the
    checkout lacks or has with another content."""
    copied: list[str] = []
    missing: list[str] = []
    for name, blob in sorted(present.items()):
        source = base.top / name
        content = None if _is_linked(source) or not source.is_file() else read_unfollowed(source)
        if content is None or object_name(content, "blob", blob) != blob:
            missing.append(name)
        elif not os.path.lexists(folder / name):
            path = clear_path(folder, name)
            path.write_bytes(content)
            path.chmod(source.stat().st_mode & 0o777)
            copied.append(name)
    return tuple(copied), tuple(missing)


def _is_linked(path: Path) -> bool:
    """Whether a path of the checkout is a link, or below one."""
    return os.path.realpath(path) != str(path)


def _ignored(base: Base) -> Iterator[str]:
    listed = git(base.top, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory") or b""
    for raw in listed.split(b"\0"):
        name = os.fsdecode(raw).rstrip("/")
        if name and not _CACHES.intersection(name.split("/")) and not name.endswith((".pyc", ".pyo")):
            yield name


def environment_names(base: Base) -> Iterator[str]:
    """Ignored virtual environments and ``node_modules``; of an ignored folder, also those directly in it."""
    for name in _ignored(base):
        place = base.top / name
        if place.is_symlink() or not place.is_dir():
            continue
        if _is_environment(place):
            yield name
            continue
        with suppress(OSError):
            yield from sorted(f"{name}/{inner.name}" for inner in place.iterdir() if _is_environment(inner))


def _is_environment(place: Path) -> bool:
    if place.is_symlink() or not place.is_dir():
        return False
    return place.name == "node_modules" or (place / "pyvenv.cfg").is_file()


def _is_same(base: Base, file: CommittedFile) -> bool:
    """Whether the checkout has a file as it was committed, or as git would have converted its line ends."""
    path = base.top / file.name
    content = read_unfollowed(path)
    if content is None or path.is_symlink() != (file.mode == "120000"):
        return False
    return file.blob in (git_blob_hash(content, file.blob), git_blob_hash(content.replace(b"\r\n", b"\n"), file.blob))


def _left_out_by_git(base: Base) -> set[str]:
    """The files that a sparse checkout leaves out."""
    listed = git(base.top, "ls-files", "-z", "-t", "--cached") or b""
    return {os.fsdecode(row[2:]) for row in listed.split(b"\0") if row.startswith(b"S ")}


def _converted(base: Base, names: Sequence[str]) -> set[str]:
    """The files that git converts in other ways, so that their content says nothing."""
    if not names:
        return set()
    given = b"\0".join(os.fsencode(name) for name in names) + b"\0"
    listed = git(base.top, "check-attr", "-z", "--stdin", *_CONVERTED, given=given) or b""
    fields = listed.split(b"\0")
    values = zip(fields[::3], fields[2::3], strict=False)
    return {os.fsdecode(name) for name, value in values if value not in (b"unspecified", b"unset")}
