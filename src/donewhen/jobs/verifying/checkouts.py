"""Lay out a branch's work with the base branch's contract in temporary folders; the working tree is not touched.

What was agreed (plans, ledger, settings, missions) always comes from the base commit. What judges the work (tests,
scripts named by agreed commands) comes from the base in one folder, and from the branch in another.
"""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple

from donewhen.config.agent_runtimes import PROJECT_HOOK_FILES
from donewhen.config.loader import CONFIG_FILE, PROJECT_FILE
from donewhen.config.state_folder import FOLDER
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.git import CommittedFile, git
from donewhen.jobs.contract.inputs import is_plan
from donewhen.jobs.evidence.test_config import hash_test_config
from donewhen.jobs.evidence.tree_diff import git_blob_hash, resolve_commit
from donewhen.jobs.plan.workspace import Workspace, find_workspace
from donewhen.jobs.verifying.base_branch import Base, BaseError
from donewhen.jobs.verifying.judging_files import JudgingFiles

ChangeKind = Literal["changed", "removed", "added"]

_CACHES = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", FOLDER, ".git"})
_BATCH = 200
_TEST_CONFIG_FILES = (PROJECT_FILE, "tox.ini", "setup.cfg")


class ChangedJudgingFile(NamedTuple):
    """A file that judges the work, and how the branch changed it."""

    name: str
    kind: ChangeKind


def write_contract_folder(base: Base, workspace: Workspace, folder: Path) -> Workspace:
    """Write only the contract of the base."""
    _write_base(base, folder, [name for name in base.files if _is_contract(base, name)])
    for name in _settings_files(base, PROJECT_FILE):
        _write_base(base, folder, [name] if name in base.files else [])
    tree = _workspace_in(base, workspace, folder)
    _write_base(base, folder, _files_of_settings(base, tree))
    return tree


def write_work_folder(
    base: Base,
    workspace: Workspace,
    folder: Path,
    judges: JudgingFiles,
) -> tuple[Workspace, tuple[ChangedJudgingFile, ...]]:
    """Write the branch's work with the base's contract and judging files; return which of these the branch changed."""
    work = write_branch_folder(base, workspace, folder, judges)
    changed: list[ChangedJudgingFile] = []
    settings_files = {*_files_of_settings(base, work)}
    base_names = {name for name in base.files if judges.judges_on_base(name)}
    branch_names = {name for name in _branch_files(base) if judges.judges(name)}
    for name in sorted(base_names | branch_names):
        if _is_contract(base, name) or name in settings_files:
            continue
        if name not in base.files:
            # The branch may add a test that an agreed command names.
            if name not in judges.named:
                _remove(folder, name)
                changed.append(ChangedJudgingFile(name, "added"))
        elif not _is_same(folder, base.files[name]):
            changed.append(ChangedJudgingFile(name, "changed" if os.path.lexists(folder / name) else "removed"))
            _write_base(base, folder, [name])
    changed += _restore_test_config(base, folder, judges.is_work)
    return work, tuple(changed)


def write_branch_folder(
    base: Base, workspace: Workspace, folder: Path, judges: JudgingFiles | None = None
) -> Workspace:
    """Write the branch's work including its tests, with the base's contract. With ``judges``, ignored files that
    configure the tests are left out."""
    _init_repository(base, folder, resolve_commit(base.top) or base.commit)
    for name in _branch_files(base):
        if not _is_contract(base, name) and not _is_compiled(name):
            _copy_file(base.top / name, folder, name)
    _merge_base(base, folder)
    _write_base(base, folder, [name for name in base.files if _is_contract(base, name)])
    for name in _settings_files(base, PROJECT_FILE):
        if _donewhen_table(base.content(name)) != _donewhen_table(_read(folder / name)):
            _remove(folder, name)
            _write_base(base, folder, [name] if name in base.files else [])
    tree = _workspace_in(base, workspace, folder)
    for name in _files_of_settings(base, tree):
        _remove(folder, name)
        _write_base(base, folder, [name] if name in base.files else [])
    missions = f"{base.inside}{PurePosixPath(tree.settings().judge.missions)}/"
    _remove(folder, missions.rstrip("/"))
    _write_base(base, folder, [name for name in base.files if name.startswith(missions)])
    _link_ignored(base, folder, judges)
    return tree


def write_base_folder(base: Base, workspace: Workspace, folder: Path, judges: JudgingFiles) -> Workspace:
    """Write the base itself, with links to what is installed in the working tree."""
    _init_repository(base, folder, base.commit)
    _write_base(base, folder, list(base.files))
    tree = _workspace_in(base, workspace, folder)
    _link_ignored(base, folder, judges)
    return tree


def _merge_base(base: Base, folder: Path) -> None:
    """Apply changes of the base since the fork point to files that the branch did not change, as a merge would."""
    for name in {*base.files, *base.forked} if base.is_behind else ():
        now, before = base.files.get(name), base.forked.get(name)
        untouched = _is_same(folder, before) if before is not None else not os.path.lexists(folder / name)
        if now != before and untouched and not _is_contract(base, name):
            _remove(folder, name)
            _write_base(base, folder, [name])


def _is_contract(base: Base, name: str) -> bool:
    """Whether a file belongs to the contract or the record, which are never taken from the branch."""
    if name in _settings_files(base, CONFIG_FILE):
        return True
    if not name.startswith(base.inside):
        return False
    inner = name.removeprefix(base.inside)
    return inner.startswith(f"{FOLDER}/") or is_plan(base.form, inner) or inner in PROJECT_HOOK_FILES


def _is_compiled(name: str) -> bool:
    """Whether it is bytecode, which Python could run instead of the source."""
    return name.endswith((".pyc", ".pyo"))


def _settings_files(base: Base, kind: str) -> list[str]:
    """The possible settings files: in the project, and in each parent folder up to the repository."""
    parts = base.inside.rstrip("/").split("/") if base.inside else []
    return ["/".join((*parts[:depth], kind)) for depth in range(len(parts), -1, -1)]


def _files_of_settings(base: Base, workspace: Workspace) -> list[str]:
    """Files named by the settings that count as agreed: baselines, and the missions of the base."""
    settings = workspace.settings()
    inner = (
        Path(os.path.realpath(settings.root))
        .relative_to(os.path.realpath(_repository_root(base, workspace)))
        .as_posix()
    )
    prefix = "" if inner == "." else f"{inner}/"
    guards = (settings.stop, settings.subagent_stop, settings.task_completed)
    baselines = [
        guard.tests.baseline for guard in guards if guard.tests is not None and guard.tests.baseline is not None
    ]
    missions = f"{base.inside}{PurePosixPath(settings.judge.missions)}/"
    return [f"{prefix}{baseline}" for baseline in baselines] + [
        name for name in base.files if name.startswith(missions)
    ]


def _repository_root(base: Base, workspace: Workspace) -> Path:
    return workspace.root.joinpath(*[".."] * base.inside.count("/"))


def _restore_test_config(base: Base, folder: Path, is_work: Callable[[str], bool]) -> Iterator[ChangedJudgingFile]:
    """Restore files whose test configuration differs from the base, and yield them."""
    for name in sorted({*base.files, *_branch_files(base)}):
        if name.rpartition("/")[2] not in _TEST_CONFIG_FILES or is_work(name):
            continue
        now = hash_test_config(folder / name) if (folder / name).is_file() else None
        base_copy = folder / ".git" / "donewhen" / PurePosixPath(name).name
        base_copy.parent.mkdir(exist_ok=True)
        base_copy.write_bytes(base.content(name) or b"")
        if now == hash_test_config(base_copy):
            continue
        yield ChangedJudgingFile(
            name, "added" if name not in base.files else "changed" if (folder / name).exists() else "removed"
        )
        _remove(folder, name)
        _write_base(base, folder, [name] if name in base.files else [])


def _branch_files(base: Base) -> list[str]:
    """The tracked files that exist in the working tree."""
    listed = git(base.top, "ls-files", "-z", "--recurse-submodules") or b""
    names = dict.fromkeys(os.fsdecode(raw) for raw in listed.split(b"\0") if raw)
    return [name for name in names if os.path.lexists(base.top / name)]


def _link_ignored(base: Base, folder: Path, judges: JudgingFiles | None) -> None:
    """Link ignored files such as environments and build results; caches are left out."""
    listed = git(base.top, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory") or b""
    for raw in listed.split(b"\0"):
        name = os.fsdecode(raw).rstrip("/")
        parts = name.split("/")
        if not name or _CACHES.intersection(parts) or _is_compiled(name) or os.path.lexists(folder / name):
            continue
        if judges is not None and judges.steers(name):
            continue
        _clear_path(folder, name)
        (folder / name).symlink_to(base.top / name)


def _init_repository(base: Base, folder: Path, head: str) -> None:
    """Create a repository that shares the objects of the original, so that git gives the same answers."""
    kind = (git(base.top, "rev-parse", "--show-object-format") or b"sha1").decode().strip()
    shared = git(base.top, "rev-parse", "--path-format=absolute", "--git-path", "objects")
    shallow = git(base.top, "rev-parse", "--path-format=absolute", "--git-path", "shallow")
    initialised = git(folder, "init", "--quiet", "--template=", f"--object-format={kind}", ".")
    if initialised is None or shared is None:
        raise BaseError("git can't create a temporary repository.", where=str(folder), next_step="git --version")
    (folder / ".git" / "objects" / "info").mkdir(exist_ok=True)
    (folder / ".git" / "objects" / "info" / "alternates").write_bytes(shared)
    if shallow is not None and (old := Path(os.fsdecode(shallow.rstrip(b"\n")))).is_file():
        shutil.copyfile(old, folder / ".git" / "shallow")
    git(folder, "update-ref", "--no-deref", "HEAD", head)
    git(folder, "read-tree", head)


def _write_base(base: Base, folder: Path, names: Sequence[str]) -> None:
    files = [base.files[name] for name in names if name in base.files]
    # In batches, because the contents are held in memory.
    for batch in (files[start : start + _BATCH] for start in range(0, len(files), _BATCH)):
        contents = list(base.contents(batch))
        if len(contents) != len(batch):
            raise BaseError(f"git can't read the files of {base.ref}.", where=str(base.top), next_step="git fsck")
        for file, content in zip(batch, contents, strict=True):
            path = _clear_path(folder, file.name)
            if file.mode == "120000":
                path.symlink_to(os.fsdecode(content))
            else:
                path.write_bytes(content)
                path.chmod(0o755 if file.mode == "100755" else 0o644)


def _copy_file(source: Path, folder: Path, name: str) -> None:
    path = _clear_path(folder, name)
    if source.is_symlink():
        path.symlink_to(os.readlink(source))  # noqa: PTH115
    elif source.is_file():
        shutil.copy2(source, path)


def _clear_path(folder: Path, name: str) -> Path:
    """Return the path of a new file. Links and files on the way are replaced by folders, since links could lead out."""
    place = folder
    for part in name.split("/")[:-1]:
        place = place / part
        if place.is_symlink() or not place.is_dir():
            place.unlink(missing_ok=True)
            place.mkdir()
    _remove(folder, name)
    return folder / name


def _remove(folder: Path, name: str) -> None:
    place = folder
    for part in name.split("/")[:-1]:
        place = place / part
        if place.is_symlink():
            return
    path = folder / name
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        with suppress(FileNotFoundError, NotADirectoryError):
            path.unlink()


def _is_same(folder: Path, file: CommittedFile) -> bool:
    """Whether a file has the content of the commit; a file below a linked folder does not count."""
    path = folder / file.name
    if any(parent.is_symlink() for parent in path.parents if parent.is_relative_to(folder)):
        return False
    if path.is_symlink() or file.mode == "120000":
        link = os.fsencode(os.readlink(path)) if path.is_symlink() else None  # noqa: PTH115
        return file.mode == "120000" and git_blob_hash(link, file.blob) == file.blob
    content = _read(path)
    if content is None or (file.mode == "100755") != bool(path.stat().st_mode & 0o100):
        return False
    # Git may convert line ends when it checks out a text file.
    return file.blob in (git_blob_hash(content, file.blob), git_blob_hash(content.replace(b"\r\n", b"\n"), file.blob))


def _read(path: Path) -> bytes | None:
    try:
        return None if path.is_symlink() else path.read_bytes()
    except OSError:
        return None


def _donewhen_table(raw: bytes | None) -> Any:
    """The donewhen settings in a pyproject.toml; the raw content if it can't be parsed."""
    if raw is None:
        return None
    try:
        tools = tomllib.loads(raw.decode()).get("tool")
    except (ValueError, RecursionError):
        return raw
    return tools.get("donewhen") if isinstance(tools, dict) else None


def _workspace_in(base: Base, workspace: Workspace, folder: Path) -> Workspace:
    root = Path(os.path.realpath(folder / base.inside))
    try:
        found_workspace = find_workspace(root, clock=workspace.clock)
    except DonewhenError as error:
        raise BaseError(f"There are no jobs on {base.ref}: {error.message}") from error
    if found_workspace.root != root:
        raise BaseError(f"There are no jobs on {base.ref} in this folder.", where=base.inside.rstrip("/"))
    # Files that the branch adds must not change the form of the workspace.
    return Workspace(root, base.form, workspace.clock)
