"""What a check could load on this machine besides the files of its room, and whether a person has accepted it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from donewhen.environments.differences import differences
from donewhen.environments.explaining import shortened, unexplained
from donewhen.environments.inventory import Listed, Wanted, list_environment
from donewhen.environments.listing import Listing, listing_bytes, read_listing
from donewhen.environments.manifests import declared_changes, is_lock_of_store, is_manifest, locked_packages
from donewhen.environments.plugins import is_asked_for
from donewhen.foundation.git_objects import LINK
from donewhen.foundation.notices import notify
from donewhen.isolation.levels import is_weaker, network_at
from donewhen.jobs.evidence.started_programs import (
    DECIDE_VERSIONS,
    checks_of,
    judging_contents,
    reach_of_checks,
    search_path,
    started_by_checks,
)
from donewhen.jobs.evidence.store import EvidenceStore, evidence_store
from donewhen.jobs.ledger.entry_content import AgreedEnvironment, RoomRun
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.room.basis import RoomBasis
from donewhen.jobs.room.confining import usable_level
from donewhen.jobs.room.nested_commands import commands_in
from donewhen.jobs.room.reading import RoomReading
from donewhen.jobs.room.surroundings import Surroundings, changed_variables, current_places, machine_name
from donewhen.jobs.room.tool_folders import used_stores

_MAX_LISTED = 20
_MANY = 20_000
"""Files from which on it is reported what listing them has cost."""
_FIND_ENVIRONMENTS = frozenset({"uv", "uvx", "poetry", "pdm", "hatch", "pipenv", "rye", "pixi", "tox", "nox"})
"""Programs that look for an environment in the project by themselves."""
_NAME = re.compile(r"[A-Za-z0-9_][\w.+-]*")
_DATA = (".json", ".toml", ".yaml", ".yml", ".cfg", ".ini", ".txt")
"""Files that have more words in them than commands."""
_MAX_SCRIPT = 1 << 18
_FIRST_HERE = "it is the first run on this machine, whose programs and packages nobody has accepted yet"


@dataclass(frozen=True)
class EnvironmentNow:
    """What is around the checks of a job here."""

    places: AgreedEnvironment
    """With the isolation that works here, and the name of the listing."""
    differs: tuple[str, ...] = ()
    """How it differs from what a person has accepted, apart from what the work declares; empty if it does not."""
    listed: Listed | None = field(default=None, repr=False)

    @property
    def cost(self) -> str:
        """What was listed for it, as a sentence."""
        return "" if self.listed is None else self.listed.summary

    @property
    def is_still_true(self) -> bool:
        """Whether nothing of it was changed meanwhile, not even for a moment."""
        return self.listed is None or self.listed.is_still_true

    @property
    def record(self) -> RoomRun:
        """What is recorded about it."""
        places = self.places
        return RoomRun(
            isolation=places.isolation,
            # What was agreed to is not what a weaker level gives.
            network=network_at(places.isolation, "host" if places.network == "host" else "own"),
            machine=places.machine,
            environment=places.hash,
            differs=[*self.differs],
        )

    def is_same_as(self, run: RoomRun | None) -> bool:
        """Whether a check that ran then would find the same now, and was kept apart as well as it would be now."""
        if run is None:
            return False
        now = self.record
        if (run.environment, run.machine) != (now.environment, now.machine) or is_weaker(run.isolation, now.isolation):
            return False
        return not now.differs or run.differs == now.differs


@dataclass(frozen=True)
class EnvironmentHere:
    """What is around the checks of a job here, and what it cost to find out."""

    places: AgreedEnvironment
    listed: Listed


_SHARED: ContextVar[dict[Wanted, Listed] | None] = ContextVar("donewhen_listings", default=None)


@contextmanager
def listing_once() -> Iterator[None]:
    """Meanwhile, jobs whose checks could load the same share one listing: they are shown to a person together."""
    token = _SHARED.set({})
    try:
        yield
    finally:
        _SHARED.reset(token)


def environment_to_agree(
    workspace: Workspace, reading: RoomReading, surroundings: Surroundings, before: Listing | None = None
) -> EnvironmentHere:
    """What is around the checks of a job here, for a person to agree to. The listing is stored.

    With the accepted listing, virtual environments that were made since then, and that no check uses, are left out.
    """
    places = current_places(workspace)
    listed = _list(_wanted(workspace, reading, surroundings, before))
    if listed.files >= _MANY:
        notify(listed.summary)
    return EnvironmentHere(
        msgspec.structs.replace(
            places,
            isolation=usable_level(surroundings.isolation, surroundings.network),
            network=surroundings.network,
            listing=evidence_store(workspace).put(listing_bytes(listed.listing)),
        ),
        listed,
    )


def environment_now(workspace: Workspace, reading: RoomReading, surroundings: Surroundings) -> EnvironmentNow:
    """What is around the checks of a job here, compared with what a person has accepted. Contents are hashed."""
    agreed = reading.basis.environment
    if agreed is None:
        return EnvironmentNow(environment_to_agree(workspace, reading, surroundings).places)
    accepted = reading.basis.environment_on(machine_name())
    before = _read(evidence_store(workspace), (accepted or agreed).listing)
    here = environment_to_agree(workspace, reading, surroundings, before)
    differs = tuple(_differences(reading, accepted or agreed, before, here))
    if accepted is None and differs:
        differs = (_FIRST_HERE, *differs)
    more = len(differs) - _MAX_LISTED
    if more > 0:
        differs = (*differs[:_MAX_LISTED], f"and {more} more differences")
    return EnvironmentNow(here.places, differs, here.listed)


def environment_problems(basis: RoomBasis, run: RoomRun) -> tuple[str, ...]:
    """Why a person has to accept what was around a check when it ran; empty if nobody has to."""
    accepted = basis.environment_on(run.machine)
    same = accepted is not None and accepted.hash == run.environment
    problems = () if same else tuple(run.differs)
    # On another machine, checks are kept apart as well as on the machine of the agreement, until a person accepts less.
    expected = accepted or basis.environment
    if expected is not None and is_weaker(run.isolation, expected.isolation):
        weaker = f"it was kept apart by {run.isolation or 'nothing'}, and {expected.isolation} was accepted"
        return (weaker, *problems)
    return problems


def _differences(
    reading: RoomReading, accepted: AgreedEnvironment, before: Listing | None, here: EnvironmentHere
) -> Iterator[str]:
    now = here.places
    for name in changed_variables(accepted, now):
        yield f"the variable {name} has another value than the accepted one"
    if accepted.listing == now.listing:
        return
    if before is None:
        yield "the list of accepted programs and packages is missing or damaged, so nothing can be compared"
        return
    after = here.listed.listing
    found = differences(before, after)
    if found:
        # What a manifest of the work declares is part of the work.
        declared = declared_changes(*_manifests(reading))
        words = _words_of_commands(reading)
        folders = _folders_of(after, reading)

        def is_asked(where: str, group: str, own: Collection[str]) -> bool:
            return is_asked_for(group, folders.values(), own)

        shown = unexplained(found, declared, before, after, words=words, is_asked_for=is_asked)
        yield from (difference.sentence for difference in shown)
        if shown:
            yield from shortened(here.listed.unreadable)


def _wanted(workspace: Workspace, reading: RoomReading, surroundings: Surroundings, before: Listing | None) -> Wanted:
    """What the checks start and use."""
    root = reading.agreed.place.top
    agreed, work = _contents(reading, is_lock_of_store)
    names = (*reading.agreed.files, *reading.plan.agreed)
    checks = checks_of(reading, workspace.root)
    used = tuple(_used_environments(reading, before))
    started = started_by_checks(checks, surroundings.variables)
    reach = reach_of_checks(replace(checks, environments=used), surroundings)
    return Wanted(
        root=root,
        home=Path.home(),
        programs=started.programs,
        started=started.names,
        words=frozenset(_words_in_scripts(reading)),
        path=search_path(surroundings.variables),
        environments=tuple(root / name for name in used),
        others=reach.others,
        stores=used_stores(surroundings.stores, names),
        locked=locked_packages(agreed) | locked_packages(work),
        variables=tuple(
            sorted((name, surroundings.variables[name]) for name in DECIDE_VERSIONS & {*surroundings.variables})
        ),
    )


def _used_environments(reading: RoomReading, before: Listing | None) -> Iterator[str]:
    """The folders with packages that checks can use: the accepted ones, and those that commands name or find."""
    words = _words_of_commands(reading)
    parts = {part for word in words for part in word.split("/")}
    for name in reading.disk.environments:
        last = name.rpartition("/")[2]
        known = before is None or f"./{name}" in before.python
        if known or last in ("node_modules", *parts) or words & _FIND_ENVIRONMENTS:
            yield name


def _list(wanted: Wanted) -> Listed:
    shared = _SHARED.get()
    if shared is None:
        return list_environment(wanted)
    if wanted not in shared:
        shared[wanted] = list_environment(wanted)
    return shared[wanted]


def _words_in_scripts(reading: RoomReading) -> set[str]:
    """Words that can be names of programs, in the agreed files that checks run."""
    commands = (*reading.basis.commands, *reading.basis.prepare)
    found = {word for command in commands for word in command if _NAME.fullmatch(word)}
    for name, content in judging_contents(reading):
        lines = [" ".join(command) for command in commands_in(name, content)]
        text = "\n".join(lines) if name.endswith(_DATA) else content[:_MAX_SCRIPT].decode("utf-8", "replace")
        found.update(_NAME.findall(text))
    return found


def _words_of_commands(reading: RoomReading) -> frozenset[str]:
    """The words of the commands that check the work: they are what it is checked by."""
    commands = [*reading.basis.commands, *reading.basis.prepare]
    commands += [command for name, content in judging_contents(reading) for command in commands_in(name, content)]
    words = {word for command in commands for word in command if "=" not in word}
    return frozenset({*words, *(word.rpartition("/")[2] for word in words)})


def _folders_of(listing: Listing, reading: RoomReading) -> dict[str, str]:
    places = {".": os.path.realpath(reading.agreed.place.top), "~": os.path.realpath(Path.home())}
    return {
        where: f"{places.get(where.partition('/')[0], where.partition('/')[0])}/{where.partition('/')[2]}"
        for where in listing.python
    }


def _manifests(reading: RoomReading) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The files that declare dependencies: as they were agreed, and with the work."""
    return _contents(reading, is_manifest)


def _contents(reading: RoomReading, is_wanted: Callable[[str], bool]) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Files of the agreed tree, and of that tree with the work."""
    both = []
    for tree in (reading.agreed.files, reading.plan.agreed):
        files = [(name, file.blob) for name, file in sorted(tree.items()) if is_wanted(name) and file.mode != LINK]
        both.append(dict(zip((name for name, _ in files), reading.blobs.contents(files), strict=True)))
    return both[0], both[1]


def _read(store: EvidenceStore, name: str | None) -> Listing | None:
    content = None if name is None else store.get(name)
    return None if content is None else read_listing(content)
