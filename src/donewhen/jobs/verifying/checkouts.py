"""Which file comes from the base and which from the judged commit, and the temporary folders made of them.

What was agreed (plans, ledger, settings, missions) always comes from the base commit. What judges the work (tests,
scripts named by agreed commands) comes from the base in one folder, and from the branch in another. Everything is
read from git objects; of the working tree, only installed environments and agreed outputs that git ignores are used.
"""

from __future__ import annotations

import os
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple

from donewhen.config.agent_runtimes import PROJECT_HOOK_FILES, PROJECT_HOOK_SCRIPTS
from donewhen.config.loader import CONFIG_FILE, PROJECT_FILE
from donewhen.config.state_folder import FOLDER
from donewhen.foundation.errors import ConfigError, DonewhenError
from donewhen.foundation.git import CommittedFile
from donewhen.jobs.contract.inputs import is_plan
from donewhen.jobs.evidence.test_config import hash_test_config
from donewhen.jobs.plan.workspace import Workspace, find_workspace
from donewhen.jobs.verifying.base_branch import Base, BaseError
from donewhen.jobs.verifying.judging_files import JudgingFiles
from donewhen.jobs.verifying.laying_out import init_repository, write_files

ChangeKind = Literal["changed", "removed", "added"]
Files = dict[str, CommittedFile]
"""The files of a folder by name. Where a file and a folder have the same name, the later entry wins."""

_TEST_CONFIG_FILES = (PROJECT_FILE, "tox.ini", "setup.cfg")


class ChangedJudgingFile(NamedTuple):
    """A file that judges the work, and how the branch changed it."""

    name: str
    kind: ChangeKind


def branch_files(base: Base, contract: Workspace) -> Files:
    """The files of the judged commit including its tests, with the base's contract. Files that the branch did not
    change are those of the base, as after a merge."""
    files = {name: file for name, file in base.work.items() if not is_compiled(name)}
    for name in sorted({*base.files, *base.forked}) if base.is_behind else ():
        before, now = base.forked.get(name), base.files.get(name)
        if now != before and base.work.get(name) == before:
            _put(files, name, now)
    missions = _missions_folder(base, contract)
    agreed = {name for name in (*files, *base.files) if _is_contract(base, name) or f"{name}/".startswith(missions)}
    agreed |= {*_files_of_settings(base, contract)}
    for name in _settings_files(base, PROJECT_FILE):
        if _donewhen_table(base.content(name)) != _donewhen_table(base.content_of(files.get(name))):
            agreed.add(name)
    for name in sorted(agreed):
        _put(files, name, base.files.get(name))
    return files


def work_files(base: Base, contract: Workspace, judges: JudgingFiles) -> tuple[Files, tuple[ChangedJudgingFile, ...]]:
    """The same with the base's judging files; and which of these the branch changed."""
    files = branch_files(base, contract)
    changed: list[ChangedJudgingFile] = []
    settings_files = {*_files_of_settings(base, contract)}
    base_names = {name for name in base.files if judges.judges_on_base(name)}
    for name in sorted(base_names | {name for name in files if judges.judges(name)}):
        if _is_contract(base, name) or name in settings_files:
            continue
        agreed, found = base.files.get(name), files.get(name)
        # The branch may add a test that an agreed command names.
        if found == agreed or (agreed is None and name in judges.named):
            continue
        changed.append(ChangedJudgingFile(name, _kind_of(agreed, found)))
        _put(files, name, agreed)
    changed += _restore_test_config(base, files, judges.is_work)
    return files, tuple(changed)


def write_contract_folder(base: Base, workspace: Workspace, folder: Path) -> Workspace:
    """Write only the contract of the base."""
    names = [name for name in base.files if _is_contract(base, name)]
    names += [name for name in _settings_files(base, PROJECT_FILE) if name in base.files]
    write_files(base, folder, [base.files[name] for name in names])
    tree = project_in(base, workspace, folder)
    _require_jobs(base, tree)
    write_files(base, folder, [base.files[name] for name in _files_of_settings(base, tree) if name in base.files])
    return tree


def write_claim_folder(base: Base, workspace: Workspace, folder: Path) -> Workspace:
    """Write contract and record as the judged commit has them, to compare them with the base's. They may be broken."""
    init_repository(base, folder, base.head)
    names = {name for name in base.work if _is_contract(base, name)} | {*_settings_files(base, PROJECT_FILE)}
    write_files(base, folder, [base.work[name] for name in names if name in base.work])
    tree = project_in(base, workspace, folder)
    tree.root.mkdir(parents=True, exist_ok=True)
    with suppress(ConfigError):
        claimed = base._replace(files=base.work)
        more = _files_of_settings(claimed, tree)
        write_files(base, folder, [base.work[name] for name in more if name in base.work])
    return tree


def project_in(base: Base, workspace: Workspace, folder: Path) -> Workspace:
    """The project in a folder with files of a commit. Files that the branch adds don't change its form."""
    return Workspace(Path(os.path.realpath(folder / base.inside)), base.form, workspace.clock)


def _put(files: Files, name: str, file: CommittedFile | None) -> None:
    files.pop(name, None)
    if file is not None:
        files[name] = file


def _kind_of(agreed: CommittedFile | None, found: CommittedFile | None) -> ChangeKind:
    return "added" if agreed is None else "changed" if found is not None else "removed"


def _is_contract(base: Base, name: str) -> bool:
    """Whether a file belongs to the contract or the record, which are never taken from the branch."""
    if name in _settings_files(base, CONFIG_FILE):
        return True
    if not name.startswith(base.inside):
        return False
    inner = name.removeprefix(base.inside)
    return (
        inner.startswith(f"{FOLDER}/")
        or is_plan(base.form, inner)
        or inner in (*PROJECT_HOOK_FILES, *PROJECT_HOOK_SCRIPTS)
    )


def is_compiled(name: str) -> bool:
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
    missions = _missions_folder(base, workspace)
    return [f"{prefix}{baseline}" for baseline in baselines] + [
        name for name in base.files if name.startswith(missions)
    ]


def _missions_folder(base: Base, workspace: Workspace) -> str:
    return f"{base.inside}{PurePosixPath(workspace.settings().judge.missions)}/"


def _repository_root(base: Base, workspace: Workspace) -> Path:
    return workspace.root.joinpath(*[".."] * base.inside.count("/"))


def _restore_test_config(base: Base, files: Files, is_work: Callable[[str], bool]) -> Iterator[ChangedJudgingFile]:
    """Restore files whose test configuration differs from the base, and yield them."""
    for name in sorted({*base.files, *files}):
        agreed, found = base.files.get(name), files.get(name)
        if name.rpartition("/")[2] not in _TEST_CONFIG_FILES or is_work(name) or found == agreed:
            continue
        if _test_config(base, found) != _test_config(base, agreed):
            yield ChangedJudgingFile(name, _kind_of(agreed, found))
            _put(files, name, agreed)


def _test_config(base: Base, file: CommittedFile | None) -> str | None:
    if file is None or file.mode == "120000":
        # A link could lead to other settings; it is never the same as a file.
        return None if file is None else f"link {file.blob}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / PurePosixPath(file.name).name
        path.write_bytes(base.content_of(file) or b"")
        return hash_test_config(path)


def _donewhen_table(raw: bytes | None) -> Any:
    """The donewhen settings in a pyproject.toml; the raw content if it can't be parsed."""
    if raw is None:
        return None
    try:
        tools = tomllib.loads(raw.decode()).get("tool")
    except (ValueError, RecursionError):
        return raw
    return tools.get("donewhen") if isinstance(tools, dict) else None


def _require_jobs(base: Base, tree: Workspace) -> None:
    try:
        found_workspace = find_workspace(tree.root)
    except DonewhenError as error:
        raise BaseError(f"There are no jobs on {base.ref}: {error.message}") from error
    if found_workspace.root != tree.root:
        raise BaseError(f"There are no jobs on {base.ref} in this folder.", where=base.inside.rstrip("/"))
