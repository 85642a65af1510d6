"""How strong the evidence for a criterion is, in one word and with the reasons: the one place that decides it.

Pure: it gets facts that were recorded, and looks at nothing. Each fact that limits evidence has a line in
``strength_rules.py``; the level is the lowest of them, and without any, evidence of a command is strong. A fact that is
missing, because an older version or another test runner did not record it, is such a line, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from donewhen.foundation.plain_text import one_line
from donewhen.jobs.evidence.probe_record import ProbeRecord
from donewhen.jobs.gates.strength_rules import LIMITS, MAX_SURVIVING, SUPPORTS
from donewhen.jobs.ledger.evidence_levels import LEVEL_WORDS, LEVELS, EvidenceLevel, level_rank
from donewhen.mutation.doubt import STRONG_BELOW

_MAX_WHY = 300


class StrengthReason(NamedTuple):
    """A fact that says how strong evidence is."""

    code: str
    text: str
    at_most: EvidenceLevel | None = None
    """The highest level that is possible with it; None if it speaks for the evidence."""


@dataclass(frozen=True)
class Strength:
    """How strong evidence is, and why."""

    level: EvidenceLevel
    reasons: tuple[StrengthReason, ...]

    @property
    def word(self) -> str:
        return LEVEL_WORDS[self.level]

    @property
    def limits(self) -> tuple[StrengthReason, ...]:
        """What keeps it from the next level."""
        return tuple(reason for reason in self.reasons if reason.at_most == self.level)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Every reason, those that limit it first."""
        first = [reason.text for reason in self.limits]
        return (*first, *(reason.text for reason in self.reasons if reason.text not in first))

    @property
    def better(self) -> tuple[str, ...]:
        """What makes it stronger."""
        found = (LIMITS[reason.code].better for reason in self.limits if reason.code in LIMITS)
        return tuple(dict.fromkeys(text for text in found if text))

    @property
    def is_up_to_agent(self) -> bool:
        """Whether an agent can make it stronger with other work or tests."""
        limits = [LIMITS[reason.code].who for reason in self.limits if reason.code in LIMITS]
        return bool(limits) and all(who == "agent" for who in limits)

    def is_at_least(self, level: str | None) -> bool:
        return level_rank(self.level) >= level_rank(level)


@dataclass(frozen=True)
class CommandFacts:
    """What is recorded about a command that has passed."""

    in_room: bool = False
    isolation: str = ""
    network: str = ""
    environment: bool = False
    """Whether a person has agreed to what it found around it."""
    provisional: bool = False
    tests: int | None = None
    """None if it lists none."""
    agreed_tests: int = 0
    controls: str = ""
    """``held``, ``none``, or empty if nothing is recorded."""
    why_no_controls: str = ""
    probes: ProbeRecord | None = None


@dataclass(frozen=True)
class FileFacts:
    """What is known about a file check that is met."""

    reads_content: bool
    signed_off_by: str = ""
    """The person who signed off these outputs, for this criterion or another one."""


@dataclass(frozen=True)
class JudgeFacts:
    """The votes of a judge that passed the work."""

    passes: int = 0
    votes: int = 0


@dataclass(frozen=True)
class PersonFacts:
    """A person who decided, and how that is known."""

    name: str
    kind: str
    """``person`` at a terminal, ``key`` or ``ci``."""


@dataclass(frozen=True)
class CommandsOfJob:
    """The evidence of the commands that decide a criterion without a check of its own."""

    commands: tuple[Strength, ...]


@dataclass(frozen=True)
class NothingChecked:
    """What passes because the contract has the truth gate switched off."""


StrengthFacts: TypeAlias = CommandFacts | FileFacts | JudgeFacts | PersonFacts | CommandsOfJob | NothingChecked


def strength_of(facts: StrengthFacts) -> Strength:
    """How strong evidence with these facts is."""
    match facts:
        case CommandsOfJob(commands):
            return min(
                commands, key=lambda strength: level_rank(strength.level), default=_strength([_limit("claimed")])
            )
        case CommandFacts():
            return _strength([*_command(facts)])
        case FileFacts():
            return _strength([_file(facts)])
        case JudgeFacts():
            return _strength([_limit("judged", f"A judge passed it, with {facts.passes} of {facts.votes} votes.")])
        case PersonFacts():
            return _strength([_limit("signed_off", f"{_person(facts)} decided; no check can be run again.")])
        case NothingChecked():
            return _strength([_limit("claimed")])


def _strength(reasons: Sequence[StrengthReason]) -> Strength:
    lowest = min((level_rank(reason.at_most) for reason in reasons if reason.at_most is not None), default=None)
    return Strength("strong" if lowest is None else LEVELS[lowest], tuple(reasons))


def _limit(code: str, text: str = "") -> StrengthReason:
    return StrengthReason(code, one_line(text, _MAX_WHY) or LIMITS[code].means, LIMITS[code].at_most)


def _support(code: str, text: str = "") -> StrengthReason:
    return StrengthReason(code, text or SUPPORTS[code])


def _person(facts: PersonFacts) -> str:
    how = {"key": "signed with a key", "ci": "CI", "person": "at a terminal"}.get(facts.kind, facts.kind)
    return f"{one_line(facts.name, 80)} ({one_line(how, 80)})"


def _file(facts: FileFacts) -> StrengthReason:
    if not facts.reads_content:
        return _limit("file_exists")
    if facts.signed_off_by:
        name = one_line(facts.signed_off_by, 80)
        return _limit("file_signed_off", f"{name} looked at the files, besides the check of the content.")
    return _limit("file_content")


def _command(facts: CommandFacts) -> Iterator[StrengthReason]:
    if not facts.in_room:
        yield _limit("work_tree")
    else:
        yield _support("clean_room")
        yield from _apart(facts)
    if facts.tests is None:
        yield _limit("no_tests_listed")
    elif facts.controls == "held":
        yield _support("controls")
    else:
        why = facts.why_no_controls or "nothing is recorded about them"
        yield _limit("no_controls", f"There were no controls in the run: {why}.")
    if facts.tests is not None:
        yield from _tests(facts, facts.probes)


def _apart(facts: CommandFacts) -> Iterator[StrengthReason]:
    if facts.isolation != "namespaces":
        how = f"only by {facts.isolation}" if facts.isolation else "in no known way"
        yield _limit("isolation", f"It was kept apart {how}, so it could reach more than its room.")
    elif facts.network != "own":
        yield _limit("network")
    else:
        yield _support("kept_apart")
    yield _support("environment") if facts.environment else _limit("environment_unknown")
    if facts.provisional:
        yield _limit("provisional")


def _tests(facts: CommandFacts, probes: ProbeRecord | None) -> Iterator[StrengthReason]:
    red = _red(probes)
    if facts.agreed_tests:
        number = "1 test" if facts.agreed_tests == 1 else f"{facts.agreed_tests} tests"
        yield _support("agreed_tests", f"The command ran with {number} that a person agreed to.")
    elif red == "yes":
        yield _limit("new_tests_only")
    else:
        yield _limit("tests_of_work")
    if probes is None:
        yield _limit("not_probed")
        return
    if red == "yes":
        yield _support("red_before")
    elif red == "no":
        yield _limit("not_red")
    else:
        why = probes.red_before.why
        yield _limit("red_unknown", f"Whether a test fails without the work is not known: {why}." if why else "")
    yield from _probed(probes)


def _red(probes: ProbeRecord | None) -> Literal["yes", "no", "unknown"]:
    """Whether tests fail without the work. Tests that can't even be collected without it are red, too."""
    if probes is None:
        return "unknown"
    found = probes.red_before
    if found.outcome in ("yes", "could_not_run") or found.undoing_noticed == "yes":
        return "yes"
    return "unknown" if found.outcome == "unknown" and found.undoing_noticed == "unknown" else "no"


def _probed(probes: ProbeRecord) -> Iterator[StrengthReason]:
    alone, order, mutants = probes.alone, probes.other_order, probes.mutants
    dependent = len({*alone.only_in_company, *order.failing})
    if dependent:
        number = "1 test passes" if dependent == 1 else f"{dependent} tests pass"
        yield _limit("needs_company", f"{number} only together with others, or only in the usual order.")
    elif alone.tried or order.tried:
        yield _support("independent")
    else:
        yield _limit("alone_unknown", _because(LIMITS["alone_unknown"].means, alone.why or order.why))
    if not mutants.tried:
        yield _limit("mutants_unknown", _because(LIMITS["mutants_unknown"].means, mutants.why))
    else:
        # A change that gives the same answers as before can't be noticed.
        missed = mutants.survived if mutants.differing is None else mutants.differing
        counted = f"{mutants.tried - missed} of {mutants.tried} small changes of the work were noticed."
        noticed = missed <= MAX_SURVIVING * mutants.tried
        yield _support("mutants_noticed", counted) if noticed else _limit("mutants_survive", f"Only {counted}")
    if probes.code.doubt is not None and probes.code.doubt >= STRONG_BELOW:
        yield _limit("doubtful")


def _because(sentence: str, why: str) -> str:
    return f"{sentence.rstrip('.')}: {why}." if why else sentence
