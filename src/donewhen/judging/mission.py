"""A mission is a folder: what is judged, in which words, by which rules, and the tickets that people have labelled."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from donewhen.foundation.clock import SYSTEM_CLOCK, Clock
from donewhen.foundation.disk_dict import DiskDict
from donewhen.foundation.errors import ConfigError, DonewhenError
from donewhen.judging.guidance import Guidance, GuidanceError
from donewhen.judging.guidance_store import GuidanceStore, read_initial
from donewhen.judging.labels import LABELLED, current_labels, read_label_log
from donewhen.judging.language import Language, find_language
from donewhen.judging.mission_overrides import NamedOverride, load_overrides, unloaded_overrides
from donewhen.judging.mission_settings import MissionFile, convert_settings, key_location, locate_errors
from donewhen.judging.ticket import Superseded, Ticket, TicketError, group_ids_in, read_each_line, read_tickets
from donewhen.models.roles import Decode

MISSION_FILE = "mission.toml"


class Mission(NamedTuple):
    """A mission as its folder has it."""

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
        """The files of labelled tickets; what people said in reviews is the last, where there is something."""
        named = tuple(_inside(self.folder, ticket, "tickets") for ticket in self.settings.tickets)
        return (*named, self.reviewed) if self.reviewed.is_file() else named

    @property
    def reviewed(self) -> Path:
        """The tickets that people have labelled in reviews; see ``judging.labels``."""
        return self.folder / LABELLED

    def superseded(self) -> Superseded:
        """The works that people have looked at since: what the other files say of them does not hold any more."""
        groups = frozenset(current_labels(read_label_log(self.folder)))
        # Only what stands in the other file: nobody is dropped because a label has not come that far yet.
        return Superseded(groups & group_ids_in(self.reviewed), self.reviewed)

    @property
    def decodes(self) -> tuple[Decode, ...]:
        """Every answer that is asked for on a ticket."""
        temperatures = [row.temperature for row in self.settings.sampler for _ in range(row.samples)]
        # Two rows of one temperature go on counting: the same decode would be the same question, with two votes.
        return tuple(Decode(one, temperatures[:at].count(one)) for at, one in enumerate(temperatures))

    @property
    def store(self) -> GuidanceStore:
        return GuidanceStore(self.folder / "guidance.json", self.name, clock=self.clock)

    def tickets(self) -> Iterator[Ticket]:
        """The labelled tickets; the first bad line is an error."""
        return read_tickets(self.ticket_files, self.name, superseded=self.superseded())

    def initial_guidance(self) -> Guidance:
        """What the mission began with."""
        return read_initial(_inside(self.folder, self.settings.initial_guidance, "initial_guidance"), self.name)

    def able_to_judge(self) -> Mission:
        """The same with the code of its overrides loaded."""
        return self._replace(overrides=load_overrides(self.settings.overrides, self.folder))

    def guidance(self) -> Guidance:
        """What was learned so far, or what it began with."""
        return self.store.read() if self.store.exists else self.initial_guidance()


class MissionCheck(NamedTuple):
    """What is in a mission, and everything that is wrong with it."""

    mission: Mission | None
    passes: int
    fails: int
    clusters: int
    guidance: Guidance | None
    problems: tuple[DonewhenError, ...]


def read_mission(folder: Path, *, clock: Clock = SYSTEM_CLOCK, code: bool = True) -> Mission:
    """Read a mission's folder. Tickets are read when they are needed.

    Without ``code``, its overrides are known by their names alone, so that a look runs nothing; ``able_to_judge`` loads
    them.
    """
    path = folder / MISSION_FILE if folder.is_dir() else folder
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError("There is no mission here.", where=str(path), next_step="donewhen mission init") from None
    except (OSError, UnicodeDecodeError) as error:
        told = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"The mission can't be read: {told}.", where=str(path)) from error
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
            "trial: min_tickets is more than max_tickets, so no trial could ever be held.",
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
    """Look at all of a mission, and go on whatever is found."""
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
        # No change by evidence does that, so somebody has edited one of the two files.
        message = f"The scaffold is not that of {mission.settings.initial_guidance}, by which the mission began."
        begin = "Put it back; or, for another scaffold, begin anew without this file."
        problems.append(GuidanceError(message, where=str(mission.store.path), next_step=begin))
    labels = {"pass": 0, "fail": 0}
    clusters = 0
    try:
        with DiskDict() as known:
            for one in read_each_line(mission.ticket_files, mission.name, superseded=mission.superseded()):
                if isinstance(one, TicketError):
                    problems.append(one)
                elif one.label is not None:
                    labels[one.label] += 1
                    clusters += known.first(one.cluster, "") is None
    except (ConfigError, TicketError) as error:
        problems.append(error)
    for label, count in labels.items():
        if not count:
            where = ", ".join(mission.settings.tickets)
            problems.append(TicketError(f"No ticket is labelled {label}; a judge learns from both.", where=where))
    return MissionCheck(mission, labels["pass"], labels["fail"], clusters, guidance, tuple(problems))


def _inside(folder: Path, name: str, field: str) -> Path:
    path = folder / name
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise ConfigError(f"{field}: {name!r} leads out of the mission.", where=str(folder / MISSION_FILE))
    return path
