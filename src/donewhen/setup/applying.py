"""Writes what was proposed: all of it, or nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from donewhen.adapters.hook_files import BACKUP_SUFFIX, FileChange
from donewhen.config.state_folder import FOLDER, prepare_state_folder
from donewhen.foundation.errors import UsageError
from donewhen.foundation.files import read_whole, write_atomically
from donewhen.foundation.locks import locked_folder
from donewhen.jobs.plan.creating import create_project
from donewhen.jobs.plan.workspace import Workspace
from donewhen.setup.proposal import Proposal, install_target
from donewhen.setup.record import SetupRecord, WrittenText, encode_record, merged, read_record, record_path


def apply(proposal: Proposal, environ: Mapping[str, str]) -> Workspace | None:
    """Write the changes, and the project if one is created. After any error everything is as it was."""
    root = proposal.root
    if not os.access(root, os.W_OK | os.X_OK):
        raise UsageError("This folder can't be written to, so nothing was set up.", where=str(root))
    before = read_record(root)
    targets = [(target, pair) for target, pair in proposal.hooks if not all(change.nothing for change in pair)]
    hook_files = [
        path
        for target, _ in targets
        for settings in [target.path("project", root, environ)]
        for path in (
            settings,
            settings.with_name(settings.name + BACKUP_SUFFIX),
            target.script("project", root, environ),
        )
    ]
    texts = (*proposal.files, *proposal.rules)
    paths = [*(change.path for change in texts), *hook_files, record_path(root)]
    with locked_folder(root), _restored_on_error(root, paths) as new_folders:
        prepare_state_folder(root)
        record = merged(before, SetupRecord(tuple(_texts(proposal.files, root)), tuple(new_folders)))
        # Before the files: whoever is killed in between can still take them back.
        write_atomically(record_path(root), encode_record(record))
        for change in texts:
            change.path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(change.path, change.after or b"", mode=_mode(change.path))
        workspace = create_project(root, proposal.choice.title) if proposal.creates_project else None
        for target, _ in targets:
            install_target(target, root, environ, dry_run=False)
        return workspace


def _texts(files: Iterable[FileChange], root: Path) -> Iterator[WrittenText]:
    for change in files:
        before, after = change.before or b"", change.after or b""
        added = after[len(before) :].decode()
        yield WrittenText(change.path.relative_to(root).as_posix(), added, created=change.before is None)


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777 if path.exists() else 0o644


@contextmanager
def _restored_on_error(root: Path, paths: Iterable[Path]) -> Iterator[list[str]]:
    """Put files and folders back as they were if anything goes wrong, Ctrl-C included.

    Yields the folders that are missing now, relative to ``root``.
    """
    kept = {path: (read_whole(path), _mode(path)) if path.exists() else None for path in paths}
    folders = _missing_folders(root, kept)
    own = not (root / FOLDER).exists()
    try:
        yield [folder.relative_to(root).as_posix() for folder in folders if folder != root / FOLDER]
    except BaseException:
        for path, content in kept.items():
            if content is not None:
                write_atomically(path, content[0], mode=content[1])
            else:
                with suppress(OSError):
                    path.unlink()
        if own:
            _remove_own_folder(root / FOLDER)
        for folder in reversed(folders):
            with suppress(OSError):
                folder.rmdir()
        raise


def _missing_folders(root: Path, paths: Iterable[Path]) -> list[Path]:
    """Folders that don't exist yet, the outermost first."""
    found: dict[Path, None] = {}
    for path in paths:
        for folder in reversed(path.relative_to(root).parents):
            if not (root / folder).exists():
                found[root / folder] = None
    return list(found)


def _remove_own_folder(folder: Path) -> None:
    for name in (".gitignore", ".gitattributes"):
        with suppress(OSError):
            (folder / name).unlink()
    with suppress(OSError):
        folder.rmdir()
