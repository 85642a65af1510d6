"""Which levels of evidence can't be reached with the checks of a job, on this machine; said when it is agreed to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import msgspec

from donewhen.foundation.errors import DonewhenError
from donewhen.jobs.evidence.commands import evidence_name, reports_tests
from donewhen.jobs.evidence.probe_record import MutantsTried, OtherOrder, ProbeRecord, RedBefore, TestsAlone
from donewhen.jobs.evidence.requirements import VERIFICATION, Requirement, requirements_of
from donewhen.jobs.gates.strength import (
    CommandFacts,
    CommandsOfJob,
    FileFacts,
    JudgeFacts,
    NothingChecked,
    Strength,
    strength_of,
)
from donewhen.jobs.gates.weighing import default_need_from_now
from donewhen.jobs.ledger.entry_content import AgreedBaseline, AgreedEnvironment
from donewhen.jobs.ledger.evidence_levels import LEVEL_WORDS, NeededLevel, higher_level
from donewhen.jobs.plan.job import Job
from donewhen.test_reports.test_runners import runner_of

_FLAWLESS = ProbeRecord(
    red_before=RedBefore(outcome="yes", undoing_noticed="yes"),
    alone=TestsAlone(tried=1),
    other_order=OtherOrder(tried=1),
    mutants=MutantsTried(possible=1, tried=1),
)
"""The probes of tests that miss nothing."""
_WITHOUT_SINGLE_TESTS = msgspec.structs.replace(_FLAWLESS, alone=TestsAlone(), other_order=OtherOrder())
"""The same where only the whole command can be run."""
_WITH_CONTROLS = ("pytest", "unittest", "node")


def unreachable_levels(
    job: Job, baselines: Mapping[str, AgreedBaseline], environment: AgreedEnvironment | None
) -> Iterator[str]:
    """A sentence for each criterion whose checks can't give evidence as strong as it needs, whatever the work is.

    ``baselines`` are the tests of the commands as they are now, as far as they are known, and ``environment`` is what
    is around them. A criterion that a person decides needs no level.
    """
    default = default_need_from_now(job)
    with suppress(DonewhenError):
        requirements = requirements_of(job)
        commands = [
            _best_of_command(requirement, baselines, environment)
            for requirement in requirements
            if requirement.name == VERIFICATION and requirement.check.kind == "run"
        ]
        for requirement in requirements:
            needed = higher_level(requirement.needs, default)
            if needed is None or requirement.name == VERIFICATION or requirement.check.kind == "manual":
                continue
            best = _best(job, requirement, commands, baselines, environment)
            if not best.is_at_least(needed):
                yield _sentence(requirement, needed, best)


def _sentence(requirement: Requirement, needed: NeededLevel, best: Strength) -> str:
    limits = " ".join(reason.text for reason in best.limits)
    return (
        f"{requirement.name} needs {needed} evidence, but its check can reach at most {LEVEL_WORDS[best.level]} here, "
        f"so a person has to accept it in the end. {limits}"
    )


def _best(
    job: Job,
    requirement: Requirement,
    commands: Sequence[Strength],
    baselines: Mapping[str, AgreedBaseline],
    environment: AgreedEnvironment | None,
) -> Strength:
    """How strong the evidence can be at best."""
    if job.truth_mode == "off":
        return strength_of(NothingChecked())
    match requirement.check.kind:
        case "verification":
            return strength_of(CommandsOfJob(tuple(commands)))
        case "file":
            return strength_of(FileFacts(requirement.check.reads_content, "A person"))
        case "judge":
            return strength_of(JudgeFacts(1, 1))
        case _:
            return _best_of_command(requirement, baselines, environment)


def _best_of_command(
    requirement: Requirement, baselines: Mapping[str, AgreedBaseline], environment: AgreedEnvironment | None
) -> Strength:
    argv = requirement.check.argv
    baseline = baselines.get(evidence_name(requirement.evidence))
    lists_tests = reports_tests(argv) or (baseline is not None and baseline.tests > 0)
    known = "" if baseline is None else baseline.controls
    held = known == "held" or (not known and runner_of(argv).kind in _WITH_CONTROLS)
    # Without a list of the agreed tests, there may be some.
    none_agreed = baseline is not None and not baseline.tests and not baseline.why
    return strength_of(
        CommandFacts(
            in_room=True,
            isolation="" if environment is None else environment.isolation,
            network="" if environment is None else environment.network,
            environment=environment is not None,
            tests=1 if lists_tests else None,
            agreed_tests=0 if none_agreed else 1,
            controls="held" if held else "none",
            why_no_controls=known or "its test runner takes none",
            probes=_FLAWLESS if runner_of(argv).kind == "pytest" else _WITHOUT_SINGLE_TESTS,
        )
    )
