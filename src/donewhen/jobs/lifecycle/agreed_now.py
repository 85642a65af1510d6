"""What would be agreed to besides the terms: the files as they are now, the work that has begun, and the tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import msgspec

from donewhen.foundation.cancellation import raise_if_cancelled
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.git import filter_commands, git
from donewhen.foundation.process import CommandNotRunnableError
from donewhen.jobs.contract.terms import job_terms, project_terms
from donewhen.jobs.evidence.baselines import recorded_baseline
from donewhen.jobs.evidence.bytecode import compiled_sources
from donewhen.jobs.evidence.commands import evidence_name, reports_tests
from donewhen.jobs.evidence.environment import EnvironmentHere, environment_to_agree
from donewhen.jobs.evidence.requirements import requirements_of
from donewhen.jobs.evidence.room_session import RoomSession, room_session
from donewhen.jobs.evidence.store import evidence_store
from donewhen.jobs.evidence.tree_diff import resolve_commit
from donewhen.jobs.ledger.entry_content import AgreedBaseline, AgreedEnvironment, AgreedTree
from donewhen.jobs.lifecycle.overlapping import open_jobs
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.room.agreed_tree import SHA256, Place, agreed_files, place_of, store_files
from donewhen.jobs.room.attributes import named_filters
from donewhen.jobs.room.basis import RoomBasis, area_of_job, basis_for
from donewhen.jobs.room.disk_tree import read_disk
from donewhen.jobs.room.done_work import files_of_done_jobs
from donewhen.jobs.room.names import matches_pattern
from donewhen.jobs.room.reading import RoomReading, read_rooms
from donewhen.jobs.room.surroundings import Surroundings, current_places, surroundings_in, surroundings_of
from donewhen.jobs.room.upstream import upstream_of


@dataclass(frozen=True)
class AgreedNow:
    """The files that an agreement would be about."""

    tree: AgreedTree
    begun: tuple[str, ...] = ()
    """Files in the work area that differ from the commit: work that has begun."""
    uncommitted: tuple[str, ...] = ()
    """Files outside of it that differ from the commit, so that the agreement can't be about them."""
    ahead: tuple[str, ...] = ()
    """Files outside of it that differ from the server's branch; those that judge come first."""
    judged_inside: tuple[str, ...] = field(default=(), repr=False)
    """Files in the work area that stay as they are agreed, because a check names them."""
    of_others: tuple[str, ...] = ()
    """Uncommitted files of other jobs: they are not part of the agreement."""
    untracked: tuple[str, ...] = ()
    """New files outside the area that were never committed and judge nothing: they are not part of it either."""
    notes: tuple[str, ...] = ()
    """Why some files can't be compared with the commit."""
    environment: AgreedEnvironment | None = None
    """The programs and packages that the checks find here."""


def agreed_now(workspace: Workspace, job: Job) -> AgreedNow:
    """The files as they are now, for an agreement about a job, or about the project."""
    place = place_of(workspace)
    if not place.has_git:
        tree = _stored_tree(workspace, place)
        with read_rooms(workspace, job, basis=_basis(workspace, job, tree)) as reading:
            here = None if reading is None else _environment(workspace, job, reading)
        return AgreedNow(tree) if here is None else _with_environment(AgreedNow(tree), here)
    commit = resolve_commit(place.top) or ""
    tree = AgreedTree(commit=commit, upstream=upstream_of(place.top))
    with agreed_files(workspace, tree, job) as agreed:
        tree = msgspec.structs.replace(tree, filters=filter_commands(place.top, named_filters(agreed)))
    with read_rooms(workspace, job, basis=_basis(workspace, job, tree)) as reading:
        if reading is None:  # pragma: no cover - a basis was given
            return AgreedNow(tree)
        present = _present(reading)
        tree = msgspec.structs.replace(tree, present=present)
        notes = reading.notes
        begun, uncommitted, others, untracked = [], [], [], []
        areas = [area_of_job(workspace, other, place.inside) for other in open_jobs(workspace, job)]
        done = files_of_done_jobs(workspace, job, reading.plan, reading.judges) if reading.plan.outside else {}
        for change in reading.plan.changes:
            name = change.name
            if change.kind in ("work", "tests") and reading.area.has(name):
                begun.append(name)
            elif name in present:
                continue
            elif name in done or any(area.has(name) for area in areas):
                others.append(name)
            elif change.how == "added" and change.kind == "outside" and name not in reading.judges.named:
                # A note, a key, a scratch file: it judges nothing, and is in no room.
                untracked.append(name)
            else:
                uncommitted.append(name)
        judged = [
            name
            for name in reading.agreed.files
            if name in reading.judges.named and reading.area.has(name) and not reading.is_writable(name)
        ]
        ahead = _ahead_of_server(workspace, job, reading, tree) if tree.upstream is not None else ()
        here = _environment(workspace, job, reading)
    now = AgreedNow(
        tree,
        tuple(begun),
        tuple(uncommitted),
        tuple(ahead),
        tuple(judged),
        tuple(others),
        tuple(untracked),
        notes,
    )
    return _with_environment(now, here)


def agreed_baselines(
    workspace: Workspace,
    job: Job,
    now: AgreedNow,
    *,
    known: dict[str, AgreedBaseline],
    on_progress: Callable[[str], None] = lambda _: None,
) -> dict[str, AgreedBaseline]:
    """The tests of the agreed tree, for each command of the job that reports tests. Each distinct command runs once:
    ``known`` has those that have run, and gets the others."""
    commands = {
        evidence_name(requirement.evidence): requirement.check.argv
        for requirement in requirements_of(job)
        if requirement.check.kind == "run" and reports_tests(requirement.check.argv)
    }
    missing = {name: argv for name, argv in commands.items() if name not in known}
    if missing:
        basis = _basis(workspace, job, now.tree, now.environment)
        with room_session(workspace, job, basis=basis) as session:
            for name, argv in missing.items():
                on_progress(name)
                try:
                    if session is None:  # pragma: no cover - a basis was given
                        continue
                    around = surroundings_in(workspace, basis)
                    known[name] = _baseline(workspace, session, argv, around)
                except (CommandNotRunnableError, DonewhenError) as error:
                    known[name] = AgreedBaseline(why=error.message)
    return {name: known[name] for name in commands if name in known}


def _baseline(
    workspace: Workspace, session: RoomSession, argv: Sequence[str], surroundings: Surroundings
) -> AgreedBaseline:
    """The tests that a command runs in the agreed tree, and the installed modules that it has to compile for that."""
    sources: set[str] = set()
    around = replace(surroundings, on_bytecode=lambda cache: sources.update(compiled_sources(cache, session.reading)))
    run = session.run_agreed(argv, around, workspace.settings().jobs.command_timeout)
    raise_if_cancelled()
    found = recorded_baseline(evidence_store(workspace), run, argv, session.reading.agreed.files)
    with suppress(CommandNotRunnableError, DonewhenError):
        # Without them, each check takes longer.
        compiled = session.compile_installed(argv, sorted(sources), surroundings)
        return msgspec.structs.replace(found, compiled=compiled)
    return found


def _with_environment(now: AgreedNow, here: EnvironmentHere) -> AgreedNow:
    return replace(now, environment=here.places)


def _environment(workspace: Workspace, job: Job, reading: RoomReading) -> EnvironmentHere:
    places = msgspec.structs.replace(current_places(workspace), network=job.network)
    return environment_to_agree(workspace, reading, surroundings_of(workspace, places))


def _basis(workspace: Workspace, job: Job, tree: AgreedTree, environment: AgreedEnvironment | None = None) -> RoomBasis:
    whole = job.path == workspace.project_file
    terms = project_terms(workspace.project(), workspace.settings()) if whole else job_terms(job)
    return basis_for(workspace, job, tree, terms, {}, environment)


def _stored_tree(workspace: Workspace, place: Place) -> AgreedTree:
    disk = read_disk(place.top, {}, (), is_generated=lambda name: place.is_generated(workspace, name), like=SHA256)
    return AgreedTree(list=store_files(workspace, place, disk, SHA256))


def _present(reading: RoomReading) -> dict[str, str | None]:
    patterns = reading.basis.present(reading.agreed.place.inside)
    return {
        name: file.blob
        for name, file in reading.disk.files.items()
        if name not in reading.agreed.files and any(matches_pattern(name, pattern) for pattern in patterns)
    }


def _ahead_of_server(workspace: Workspace, job: Job, reading: RoomReading, tree: AgreedTree) -> Sequence[str]:
    """The committed files outside the area that the server's branch does not have like this, also those that it has
    and the commit has not."""
    top = reading.agreed.place.top
    branch = tree.upstream.branch if tree.upstream is not None else ""
    ref = git(top, "rev-parse", "--verify", "--quiet", f"refs/remotes/origin/{branch}^{{commit}}")
    listed = git(top, "diff", "--name-only", "-z", "--no-renames", ref.decode().strip(), "HEAD") if ref else None
    names = [name for name in (listed or b"").decode("utf-8", "surrogateescape").split("\0") if name]
    is_record = reading.agreed.place.record_of_others(workspace, job)
    outside = [name for name in names if not is_record(name) and not reading.area.has(name)]
    return sorted(outside, key=lambda name: (not reading.judges.judges(name), name))
