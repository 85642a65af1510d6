"""A mission is a folder with settings, rules, a language and labelled tickets."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from donewhen.foundation.clock import SYSTEM_CLOCK, Clock
from donewhen.foundation.disk_dict import DiskDict
from donewhen.foundation.errors import ConfigError, DonewhenError
from donewhen.foundation.files import read_text_limited
from donewhen.foundation.size_limits import MISSION
from donewhen.judging.guidance import Guidance, GuidanceError
from donewhen.judging.guidance_store import GuidanceStore, read_initial
from donewhen.judging.labels import LABELLED, current_labels, read_label_log
from donewhen.judging.language import Language, find_language
from donewhen.judging.mission_overrides import NamedOverride, load_overrides, unloaded_overrides
from donewhen.judging.mission_settings import MissionFile, convert_settings, key_location, locate_errors
from donewhen.judging.ticket import Superseded, Ticket, TicketError, group_ids_in, read_each_line, read_tickets
from donewhen.models.roles import Decode

MISSION_FILE = "mission.toml"


@dataclass(frozen=True)
class Mission:
    """A mission, read from its folder."""

    folder: Path
    settings: MissionFile
    language: Language
    overrides: tuple[NamedOverride, ...] = ()
    clock: Clock = SYSTEM_CLOCK

    @property
    def name(self) -> str:
        return self.settings.mission

    @property
    def ticket_files(self) -> tuple[Path, ...]:
        """The files of labelled tickets; the file of review labels, if there is one, is the last."""
        configured = tuple(_path_inside(self.folder, name, "tickets") for name in self.settings.tickets)
        return (*configured, self.reviewed) if self.reviewed.is_file() else configured

    @property
    def reviewed(self) -> Path:
        """The file of tickets that people labelled in reviews; see ``judging.labels``."""
        return self.folder / LABELLED

    def superseded(self) -> Superseded:
        """The groups that people have reviewed: their labels replace those in the other files."""
        groups = frozenset(current_labels(read_label_log(self.folder)))
        # Only groups that the reviewed file contains: a label that is not written there yet must not drop a ticket.
        return Superseded(groups & group_ids_in(self.reviewed), self.reviewed)

    @property
    def decodes(self) -> tuple[Decode, ...]:
        """The sampling settings of every answer to a ticket."""
        temperatures = [row.temperature for row in self.settings.sampler for _ in range(row.samples)]
        # Rows with the same temperature share one count: equal decodes would be the same request with two votes.
        return tuple(Decode(value, temperatures[:index].count(value)) for index, value in enumerate(temperatures))

    @property
    def store(self) -> GuidanceStore:
        return GuidanceStore(self.folder / "guidance.json", self.name, clock=self.clock)

    def tickets(self) -> Iterator[Ticket]:
        """Yield the labelled tickets; raise TicketError at the first bad line."""
        return read_tickets(self.ticket_files, self.name, superseded=self.superseded())

    def initial_guidance(self) -> Guidance:
        """The guidance that the mission started with."""
        return read_initial(_path_inside(self.folder, self.settings.initial_guidance, "initial_guidance"), self.name)

    def able_to_judge(self) -> Mission:
        """A copy with its override functions loaded."""
        return replace(self, overrides=load_overrides(self.settings.overrides, self.folder))

    def guidance(self) -> Guidance:
        """The current guidance, or the initial guidance if nothing was learned yet."""
        return self.store.read() if self.store.exists else self.initial_guidance()


class MissionCheck(NamedTuple):
    """The content of a mission, and all problems found in it."""

    mission: Mission | None
    passes: int
    fails: int
    clusters: int
    guidance: Guidance | None
    problems: tuple[DonewhenError, ...]


def read_mission(folder: Path, *, clock: Clock = SYSTEM_CLOCK, code: bool = True) -> Mission:
    """Read a mission's folder. Tickets are read on demand.

    With ``code=False`` overrides are not imported, so that no code of the mission runs; ``able_to_judge`` loads them.
    """
    path = folder / MISSION_FILE if folder.is_dir() else folder
    try:
        text = read_text_limited(path, MISSION)
    except FileNotFoundError:
        raise ConfigError("No mission found.", where=str(path), next_step="donewhen mission init") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"The mission can't be read: {reason}.", where=str(path)) from error
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"The mission is not valid TOML: {error}.", where=str(path)) from error
    settings = convert_settings(data, MissionFile, text, str(path))
    shares = settings.split.train + settings.split.validation + settings.split.test
    if abs(shares - 1.0) > 0.001:
        raise ConfigError(f"split: the shares add up to {shares:g}, not to 1.", where=key_location(path, text, "split"))
    if settings.trial != "off" and settings.trial.min_tickets > settings.trial.max_tickets:
        raise ConfigError(
            "trial: min_tickets is greater than max_tickets, so no trial could run.",
            where=key_location(path, text, "trial"),
        )
    with locate_errors(path, text, "language"):
        language = find_language(settings.language, path.parent)
    with locate_errors(path, text, "verdict"):
        language = language.with_words(settings.verdict.pass_, settings.verdict.fail)
    with locate_errors(path, text, "overrides"):
        overrides = load_overrides(settings.overrides, path.parent) if code else unloaded_overrides(settings.overrides)
    return Mission(path.parent, settings, language, overrides, clock)


def check_mission(folder: Path) -> MissionCheck:
    """Check every part of a mission and collect all problems."""
    problems: list[DonewhenError] = []
    try:
        mission = read_mission(folder)
    except DonewhenError as error:
        return MissionCheck(None, 0, 0, 0, None, (error,))
    stages: list[Guidance] = []
    for read in (mission.initial_guidance, mission.guidance):
        try:
            stages.append(read())
        except DonewhenError as error:
            if str(error) not in {str(problem) for problem in problems}:
                problems.append(error)
    guidance = stages[-1] if stages else None
    if len(stages) > 1 and stages[0].scaffold != stages[1].scaffold:
        # Learning never changes the scaffold, so one of the two files was edited by hand.
        message = f"The scaffold differs from the one in {mission.settings.initial_guidance}."
        advice = "Restore it; or, to use a different scaffold, delete this file and start again."
        problems.append(GuidanceError(message, where=str(mission.store.path), next_step=advice))
    labels = {"pass": 0, "fail": 0}
    clusters = 0
    try:
        with DiskDict() as known:
            for ticket in read_each_line(mission.ticket_files, mission.name, superseded=mission.superseded()):
                if isinstance(ticket, TicketError):
                    problems.append(ticket)
                elif ticket.label is not None:
                    labels[ticket.label] += 1
                    clusters += known.first(ticket.cluster, "") is None
    except (ConfigError, TicketError) as error:
        problems.append(error)
    for label, count in labels.items():
        if not count:
            where = ", ".join(mission.settings.tickets)
            problems.append(TicketError(f"No ticket is labelled {label}; a judge needs both labels.", where=where))
    return MissionCheck(mission, labels["pass"], labels["fail"], clusters, guidance, tuple(problems))


def _path_inside(folder: Path, name: str, field: str) -> Path:
    path = folder / name
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise ConfigError(f"{field}: {name!r} is outside the mission's folder.", where=str(folder / MISSION_FILE))
    return path
