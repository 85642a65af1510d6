"""A branch's work beside a base branch's contract: folders of their own, so that nobody's working tree is touched.

What was agreed (plans, ledger, settings, judges) always comes from the base commit. What judges (tests, scripts that
agreed commands name) comes from the base in one folder, and from the branch in another.
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
from donewhen.jobs.evidence.test_config import test_config_hash
from donewhen.jobs.evidence.tree_diff import blob_name, commit_of
from donewhen.jobs.plan.workspace import Workspace, find_workspace
from donewhen.jobs.verifying.base_branch import Base, BaseError
from donewhen.jobs.verifying.judging_files import JudgingFiles

ChangeKind = Literal["changed", "removed", "added"]

_CACHES = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", FOLDER, ".git"})
_AT_ONCE = 200
_HARNESS = (PROJECT_FILE, "tox.ini", "setup.cfg")


class ChangedJudgingFile(NamedTuple):
    """A file that judges the work, and what the branch did to it."""

    name: str
    kind: ChangeKind


def lay_contract(base: Base, workspace: Workspace, folder: Path) -> Workspace:
    """The contract alone, as it is on the base."""
    _write_base(base, folder, [name for name in base.files if _is_contract(base, name)])
    for name in _settings_files(base, PROJECT_FILE):
        _write_base(base, folder, [name] if name in base.files else [])
    found = _workspace_in(base, workspace, folder)
    _write_base(base, folder, _of_settings(base, found))
    return found


def lay_work(
    base: Base,
    workspace: Workspace,
    folder: Path,
    judges: JudgingFiles,
) -> tuple[Workspace, tuple[ChangedJudgingFile, ...]]:
    """The branch's work with the contract and what judges from the base; and what of that the branch changed."""
    work = lay_branch(base, workspace, folder, judges)
    changed: list[ChangedJudgingFile] = []
    settled = {*_of_settings(base, work)}
    ours = {name for name in base.files if judges.judges_on_base(name)}
    theirs = {name for name in _branch_files(base) if judges.judges(name)}
    for name in sorted(ours | theirs):
        if _is_contract(base, name) or name in settled:
            continue
        if name not in base.files:
            # A new test that an agreed command names is what was asked for.
            if name not in judges.named:
                _remove(folder, name)
                changed.append(ChangedJudgingFile(name, "added"))
        elif not _is_there(folder, base.files[name]):
            changed.append(ChangedJudgingFile(name, "changed" if os.path.lexists(folder / name) else "removed"))
            _write_base(base, folder, [name])
    changed += _harness(base, folder, judges.is_work)
    return work, tuple(changed)


def lay_branch(base: Base, workspace: Workspace, folder: Path, judges: JudgingFiles | None = None) -> Workspace:
    """The branch's work, tests and all, with the contract from the base. With ``judges``, nothing that git ignores
    tells the tests how to run."""
    _repository(base, folder, commit_of(base.top) or base.commit)
    for name in _branch_files(base):
        if not _is_contract(base, name) and not _is_compiled(name):
            _copy(base.top / name, folder, name)
    _catch_up(base, folder)
    _write_base(base, folder, [name for name in base.files if _is_contract(base, name)])
    for name in _settings_files(base, PROJECT_FILE):
        if _own_table(base.content(name)) != _own_table(_read(folder / name)):
            _remove(folder, name)
            _write_base(base, folder, [name] if name in base.files else [])
    found = _workspace_in(base, workspace, folder)
    for name in _of_settings(base, found):
        _remove(folder, name)
        _write_base(base, folder, [name] if name in base.files else [])
    missions = f"{base.inside}{PurePosixPath(found.settings().judge.missions)}/"
    _remove(folder, missions.rstrip("/"))
    _write_base(base, folder, [name for name in base.files if name.startswith(missions)])
    _link_ignored(base, folder, judges)
    return found


def lay_base(base: Base, workspace: Workspace, folder: Path, judges: JudgingFiles) -> Workspace:
    """The base as it is, with what is installed beside the branch's work."""
    _repository(base, folder, base.commit)
    _write_base(base, folder, list(base.files))
    found = _workspace_in(base, workspace, folder)
    _link_ignored(base, folder, judges)
    return found


def _catch_up(base: Base, folder: Path) -> None:
    """Take over what has changed on the base since the branch left it, and the branch did not touch: a merge would."""
    for name in {*base.files, *base.forked} if base.is_behind else ():
        now, before = base.files.get(name), base.forked.get(name)
        untouched = _is_there(folder, before) if before is not None else not os.path.lexists(folder / name)
        if now != before and untouched and not _is_contract(base, name):
            _remove(folder, name)
            _write_base(base, folder, [name])


def _is_contract(base: Base, name: str) -> bool:
    """Whether a file holds what was agreed, or what happened since: never taken from the branch."""
    if name in _settings_files(base, CONFIG_FILE):
        return True
    if not name.startswith(base.inside):
        return False
    inner = name.removeprefix(base.inside)
    return inner.startswith(f"{FOLDER}/") or is_plan(base.form, inner) or inner in PROJECT_HOOK_FILES


def _is_compiled(name: str) -> bool:
    """Whether Python could run a file in the place of another one whose text is here."""
    return name.endswith((".pyc", ".pyo"))


def _settings_files(base: Base, kind: str) -> list[str]:
    """Where settings may stand: in the project, and in each folder above it up to the repository."""
    parts = base.inside.rstrip("/").split("/") if base.inside else []
    return ["/".join((*parts[:depth], kind)) for depth in range(len(parts), -1, -1)]


def _of_settings(base: Base, found: Workspace) -> list[str]:
    """Files that the settings name, and that count as agreed: baselines, and the missions of the base."""
    settings = found.settings()
    above = Path(os.path.realpath(settings.root)).relative_to(os.path.realpath(_top_of(base, found))).as_posix()
    prefix = "" if above == "." else f"{above}/"
    guards = (settings.stop, settings.subagent_stop, settings.task_completed)
    baselines = [
        guard.tests.baseline for guard in guards if guard.tests is not None and guard.tests.baseline is not None
    ]
    missions = f"{base.inside}{PurePosixPath(settings.judge.missions)}/"
    return [f"{prefix}{baseline}" for baseline in baselines] + [
        name for name in base.files if name.startswith(missions)
    ]


def _top_of(base: Base, found: Workspace) -> Path:
    return found.root.joinpath(*[".."] * base.inside.count("/"))


def _harness(base: Base, folder: Path, is_work: Callable[[str], bool]) -> Iterator[ChangedJudgingFile]:
    """Files of which a part tells the test framework how to run: where that part is another, the file is the base's."""
    for name in sorted({*base.files, *_branch_files(base)}):
        if name.rpartition("/")[2] not in _HARNESS or is_work(name):
            continue
        now = test_config_hash(folder / name) if (folder / name).is_file() else None
        beside = folder / ".git" / "donewhen" / PurePosixPath(name).name
        beside.parent.mkdir(exist_ok=True)
        beside.write_bytes(base.content(name) or b"")
        if now == test_config_hash(beside):
            continue
        yield ChangedJudgingFile(
            name, "added" if name not in base.files else "changed" if (folder / name).exists() else "removed"
        )
        _remove(folder, name)
        _write_base(base, folder, [name] if name in base.files else [])


def _branch_files(base: Base) -> list[str]:
    """What git tracks in the working tree, and is there."""
    listed = git(base.top, "ls-files", "-z", "--recurse-submodules") or b""
    names = dict.fromkeys(os.fsdecode(one) for one in listed.split(b"\0") if one)
    return [name for name in names if os.path.lexists(base.top / name)]


def _link_ignored(base: Base, folder: Path, judges: JudgingFiles | None) -> None:
    """What was installed or built beside the work, such as an environment, serves here, too; caches do not."""
    listed = git(base.top, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory") or b""
    for raw in listed.split(b"\0"):
        name = os.fsdecode(raw).rstrip("/")
        parts = name.split("/")
        if not name or _CACHES.intersection(parts) or _is_compiled(name) or os.path.lexists(folder / name):
            continue
        if judges is not None and judges.steers(name):
            continue
        _make_room(folder, name)
        (folder / name).symlink_to(base.top / name)


def _repository(base: Base, folder: Path, head: str) -> None:
    """A repository that borrows the objects of the first, so that git answers here as it does there."""
    kind = (git(base.top, "rev-parse", "--show-object-format") or b"sha1").decode().strip()
    shared = git(base.top, "rev-parse", "--path-format=absolute", "--git-path", "objects")
    shallow = git(base.top, "rev-parse", "--path-format=absolute", "--git-path", "shallow")
    made = git(folder, "init", "--quiet", "--template=", f"--object-format={kind}", ".")
    if made is None or shared is None:
        raise BaseError("git can't make a repository to work in.", where=str(folder), next_step="git --version")
    (folder / ".git" / "objects" / "info").mkdir(exist_ok=True)
    (folder / ".git" / "objects" / "info" / "alternates").write_bytes(shared)
    if shallow is not None and (old := Path(os.fsdecode(shallow.rstrip(b"\n")))).is_file():
        shutil.copyfile(old, folder / ".git" / "shallow")
    git(folder, "update-ref", "--no-deref", "HEAD", head)
    git(folder, "read-tree", head)


def _write_base(base: Base, folder: Path, names: Sequence[str]) -> None:
    files = [base.files[name] for name in names if name in base.files]
    # Some at a time, because they are held in memory.
    for some in (files[at : at + _AT_ONCE] for at in range(0, len(files), _AT_ONCE)):
        found = list(base.contents(some))
        if len(found) != len(some):
            raise BaseError(f"git can't read the files of {base.ref}.", where=str(base.top), next_step="git fsck")
        for one, content in zip(some, found, strict=True):
            path = _make_room(folder, one.name)
            if one.mode == "120000":
                path.symlink_to(os.fsdecode(content))
            else:
                path.write_bytes(content)
                path.chmod(0o755 if one.mode == "100755" else 0o644)


def _copy(source: Path, folder: Path, name: str) -> None:
    path = _make_room(folder, name)
    if source.is_symlink():
        path.symlink_to(os.readlink(source))  # noqa: PTH115
    elif source.is_file():
        shutil.copy2(source, path)


def _make_room(folder: Path, name: str) -> Path:
    """The place of a file. A link on the way to it would lead out, so whatever is no folder there makes room."""
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


def _is_there(folder: Path, file: CommittedFile) -> bool:
    """Whether a file is that of the commit, by its content; what a folder leads to that is a link is not."""
    path = folder / file.name
    if any(above.is_symlink() for above in path.parents if above.is_relative_to(folder)):
        return False
    if path.is_symlink() or file.mode == "120000":
        link = os.fsencode(os.readlink(path)) if path.is_symlink() else None  # noqa: PTH115
        return file.mode == "120000" and blob_name(link, file.blob) == file.blob
    found = _read(path)
    if found is None or (file.mode == "100755") != bool(path.stat().st_mode & 0o100):
        return False
    # The one thing that git itself may do to a text on its way out.
    return file.blob in (blob_name(found, file.blob), blob_name(found.replace(b"\r\n", b"\n"), file.blob))


def _read(path: Path) -> bytes | None:
    try:
        return None if path.is_symlink() else path.read_bytes()
    except OSError:
        return None


def _own_table(raw: bytes | None) -> Any:
    """The settings in a pyproject.toml; a file that can't be read has some that nobody knows."""
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
        found = find_workspace(root, clock=workspace.clock)
    except DonewhenError as error:
        raise BaseError(f"There are no jobs on {base.ref}: {error.message}") from error
    if found.root != root:
        raise BaseError(f"There are no jobs on {base.ref} at this place.", where=base.inside.rstrip("/"))
    # What the branch adds beside it must not make another form of it.
    return Workspace(root, base.form, workspace.clock)
