"""Takes back what `donewhen init` has written."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from donewhen.adapters.agent_rules import remove_agent_rules
from donewhen.adapters.hook_files import BACKUP_SUFFIX, installed_hooks, uninstall_with_script
from donewhen.adapters.hook_targets import HOOK_TARGETS
from donewhen.config import CONFIG_FILE, PROJECT_FILE
from donewhen.config.state_folder import FOLDER
from donewhen.foundation.errors import ConfigError
from donewhen.foundation.files import read_whole, write_atomically
from donewhen.foundation.locks import locked_folder
from donewhen.jobs.plan.ids import id_in
from donewhen.jobs.plan.workspace import WorkspaceError, find_workspace
from donewhen.setup.ci_files import CI_FILES
from donewhen.setup.record import RECORD, SetupRecord, WrittenText, read_record, record_path
from donewhen.setup.test_commands import is_valid_toml

_FILES = frozenset({CONFIG_FILE, PROJECT_FILE, ".gitignore", *CI_FILES.values()})
"""The files that a record may name: it lies in the project, where anybody can write."""
_REBUILT = frozenset({".gitignore", ".gitattributes", "state", "cache", RECORD})
"""What is in donewhen's own folder if there have never been jobs."""


@dataclass
class Removal:
    """What is removed, and what stays with the reason."""

    removed: list[str] = field(default_factory=list)
    kept: list[tuple[str, str]] = field(default_factory=list)


def remove_setup(root: Path, environ: Mapping[str, str], *, purge: bool, dry_run: bool = False) -> Removal:
    """Remove hooks, settings and lines as they were written; what somebody has changed since stays.

    ``purge`` also removes jobs, the ledger and the evidence.
    """
    removal = Removal()
    _remove_rules(root, removal, dry_run)
    with locked_folder(root):
        record = read_record(root) or SetupRecord()
        _remove_hooks(root, environ, removal, dry_run)
        for file in record.files:
            _remove_text(root, file, removal, dry_run)
        _remove_jobs(root, removal, purge=purge, dry_run=dry_run)
        _remove_state(root, removal, purge=purge, dry_run=dry_run)
        if not dry_run:
            for name in sorted(record.folders, key=len, reverse=True):
                if _is_inside(name):
                    with suppress(OSError):
                        (root / name).rmdir()
    return removal


def _remove_rules(root: Path, removal: Removal, dry_run: bool) -> None:
    try:
        changes = remove_agent_rules(root, dry_run=dry_run)
    except ConfigError as error:
        removal.kept.append((error.where or str(root), error.message))
        return
    removal.removed += [
        f"{_name(change.path, root)}{'' if change.after is None else ' (the rules for agents)'}"
        for change in changes
        if not change.nothing
    ]


def _remove_hooks(root: Path, environ: Mapping[str, str], removal: Removal, dry_run: bool) -> None:
    for target in HOOK_TARGETS.values():
        path, script = target.path("project", root, environ), target.script("project", root, environ)
        if not (path.exists() or script.exists()):
            continue
        try:
            if not (installed_hooks(path) or script.exists() or _backup(path).exists()):
                continue
            changes = uninstall_with_script(
                path, script, header=target.header, keep_places=target.positions_matter, dry_run=dry_run
            )
        except ConfigError as error:
            removal.kept.append((_name(path, root), error.message))
            continue
        removal.removed += [
            f"{_name(change.path, root)}{'' if change.after is None else ' (the hooks)'}"
            for change in changes
            if not change.nothing
        ]


def _remove_text(root: Path, file: WrittenText, removal: Removal, dry_run: bool) -> None:
    path = root / file.path
    if file.path not in _FILES:
        removal.kept.append((file.path, "init does not write this file"))
        return
    try:
        content = read_whole(path).decode()
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        removal.kept.append((file.path, f"it can't be read: {error}"))
        return
    left = _without(content, file)
    if left is None:
        removal.kept.append((file.path, "it was changed after init"))
        return
    removal.removed.append(file.path if left == "" and file.created else f"{file.path} (the lines of init)")
    if dry_run:
        return
    if left == "" and file.created:
        path.resolve().unlink()
    else:
        write_atomically(path, left.encode(), mode=path.stat().st_mode & 0o777)


def _without(content: str, file: WrittenText) -> str | None:
    """The content without the text; None if that can't be said."""
    if not file.text or content.count(file.text) != 1:
        return None
    left = content.replace(file.text, "")
    return left if not file.path.endswith(".toml") or is_valid_toml(left) else None


def _remove_jobs(root: Path, removal: Removal, *, purge: bool, dry_run: bool) -> None:
    try:
        workspace = find_workspace(root)
    except WorkspaceError:
        return
    if workspace.root != root:
        return
    if not purge:
        removal.kept.append((_name(workspace.project_file.parent, root), "jobs stay; --purge removes them"))
        return
    if workspace.form == "big":
        removal.kept.append((str(root), "this folder is the project; delete it yourself"))
        return
    jobs = workspace.project_file.parent
    ours = [path for path in jobs.iterdir() if path == workspace.project_file or id_in(path.name) or _is_view(path)]
    removal.removed += sorted(_name(path, root) for path in ours)
    if not dry_run:
        for path in ours:
            _delete(path)
        with suppress(OSError):
            jobs.rmdir()
    left = [] if dry_run or not jobs.exists() else sorted(path.name for path in jobs.iterdir())
    removal.kept += [(f"{jobs.name}/{name}", "it is not donewhen's") for name in left]


def _is_view(path: Path) -> bool:
    """Whether donewhen writes this from the jobs."""
    return path.name == "outputs" and path.is_dir() and all(map(_is_own_output, path.iterdir()))


def _is_own_output(path: Path) -> bool:
    return path.name in ("dashboard.html", "dashboard.json", ".gitignore") or path.name.endswith("-task-tracker.csv")


def _remove_state(root: Path, removal: Removal, *, purge: bool, dry_run: bool) -> None:
    folder = root / FOLDER
    if not folder.is_dir() or folder.is_symlink():
        return
    foreign = [path.name for path in folder.iterdir() if path.name not in _REBUILT and not _is_index(path.name)]
    if purge or not foreign:
        removal.removed.append(FOLDER)
        if not dry_run:
            shutil.rmtree(folder)
        return
    removal.kept.append((FOLDER, "the ledger and the evidence stay; --purge removes them"))
    if not dry_run:
        record_path(root).unlink(missing_ok=True)


def _is_index(name: str) -> bool:
    return name.startswith(("index.sqlite", ".donewhen-"))


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def _backup(path: Path) -> Path:
    return path.with_name(path.name + BACKUP_SUFFIX)


def _name(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
