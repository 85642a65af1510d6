"""How strong evidence is: one table, from facts alone."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

import donewhen
from donewhen.jobs.evidence.probe_record import (
    ChangedCode,
    MutantsTried,
    OtherOrder,
    ProbeRecord,
    RedBefore,
    TestsAlone,
)
from donewhen.jobs.gates.strength import (
    CommandFacts,
    CommandsOfJob,
    FileFacts,
    JudgeFacts,
    NothingChecked,
    PersonFacts,
    Strength,
    strength_of,
)
from donewhen.jobs.gates.strength_rules import LIMITS, SUPPORTS
from donewhen.jobs.gates.weighing import command_facts
from donewhen.jobs.ledger.entry_content import Agreed, AgreedBaseline, CommandRun, RoomRun, RunControls, TestCounts
from donewhen.jobs.ledger.evidence_levels import LEVELS, NEEDED, higher_level, level_rank
from donewhen.mutation.doubt import STRONG_BELOW

PROBES = ProbeRecord(
    red_before=RedBefore(outcome="yes", undoing_noticed="yes"),
    alone=TestsAlone(tried=4),
    other_order=OtherOrder(tried=4),
    mutants=MutantsTried(possible=9, tried=9, survived=2),
    code=ChangedCode(files=1, lines=3, doubt=0.0),
)
BEST = CommandFacts(
    in_room=True,
    isolation="namespaces",
    network="own",
    environment=True,
    tests=4,
    agreed_tests=3,
    controls="held",
    probes=PROBES,
)


def probes(**parts: object) -> CommandFacts:
    return replace(BEST, probes=msgspec.structs.replace(PROBES, **parts))


def codes(strength: Strength) -> set[str]:
    return {reason.code for reason in strength.limits}


def test_evidence_without_a_limit_is_strong_and_says_why() -> None:
    strength = strength_of(BEST)
    assert (strength.level, strength.word, strength.limits, strength.better) == ("strong", "strong", (), ())
    assert {reason.code for reason in strength.reasons} == set(SUPPORTS)


@pytest.mark.parametrize(
    ("facts", "level", "limits"),
    [
        (replace(BEST, in_room=False), "weak", {"work_tree"}),
        (replace(BEST, isolation="landlock", network="host"), "fair", {"isolation"}),
        (replace(BEST, isolation="copy", network="host"), "fair", {"isolation"}),
        (replace(BEST, isolation=""), "fair", {"isolation"}),
        (replace(BEST, network="host"), "fair", {"network"}),
        (replace(BEST, environment=False), "fair", {"environment_unknown"}),
        (replace(BEST, provisional=True), "fair", {"provisional"}),
        (replace(BEST, tests=None), "fair", {"no_tests_listed"}),
        (replace(BEST, controls="none", why_no_controls="its test runner takes none"), "fair", {"no_controls"}),
        (replace(BEST, controls=""), "fair", {"no_controls"}),
        (replace(BEST, probes=None), "fair", {"not_probed"}),
        (replace(BEST, agreed_tests=0), "fair", {"new_tests_only"}),
        (replace(BEST, agreed_tests=0, probes=None), "weak", {"tests_of_work"}),
        (replace(probes(red_before=RedBefore(outcome="no")), agreed_tests=0), "weak", {"tests_of_work"}),
        (replace(probes(red_before=RedBefore()), agreed_tests=0), "weak", {"tests_of_work"}),
        (probes(red_before=RedBefore(outcome="no")), "fair", {"not_red"}),
        (probes(red_before=RedBefore(outcome="nothing_new", undoing_noticed="no")), "fair", {"not_red"}),
        (probes(red_before=RedBefore(outcome="nothing_new", undoing_noticed="yes")), "strong", set()),
        (probes(red_before=RedBefore(outcome="could_not_run")), "strong", set()),
        (probes(red_before=RedBefore(why="no time")), "fair", {"red_unknown"}),
        (probes(alone=TestsAlone(tried=4, only_in_company=("a",))), "fair", {"needs_company"}),
        (probes(other_order=OtherOrder(tried=4, failing=("a", "b"))), "fair", {"needs_company"}),
        (probes(alone=TestsAlone(why="no time"), other_order=OtherOrder()), "fair", {"alone_unknown"}),
        (probes(mutants=MutantsTried(why="another language")), "fair", {"mutants_unknown"}),
        (probes(mutants=MutantsTried(tried=3, survived=1)), "strong", set()),
        (probes(mutants=MutantsTried(tried=3, survived=2)), "fair", {"mutants_survive"}),
        (probes(mutants=MutantsTried(tried=3, survived=2, differing=1)), "strong", set()),
        (probes(code=ChangedCode(doubt=STRONG_BELOW - 0.01)), "strong", set()),
        (probes(code=ChangedCode(doubt=STRONG_BELOW)), "fair", {"doubtful"}),
        (probes(code=ChangedCode(doubt=None)), "strong", set()),
        (CommandFacts(), "weak", {"work_tree"}),
        (FileFacts(reads_content=False), "weak", {"file_exists"}),
        (FileFacts(reads_content=False, signed_off_by="ada"), "weak", {"file_exists"}),
        (FileFacts(reads_content=True), "weak", {"file_content"}),
        (FileFacts(reads_content=True, signed_off_by="ada"), "fair", {"file_signed_off"}),
        (JudgeFacts(passes=3, votes=3), "fair", {"judged"}),
        (JudgeFacts(), "fair", {"judged"}),
        (PersonFacts("ada", "person"), "fair", {"signed_off"}),
        (PersonFacts("ada", "key"), "fair", {"signed_off"}),
        (NothingChecked(), "asserted", {"claimed"}),
        (CommandsOfJob(()), "asserted", {"claimed"}),
        (CommandsOfJob((strength_of(BEST),)), "strong", set()),
        (CommandsOfJob((strength_of(BEST), strength_of(CommandFacts()))), "weak", {"work_tree"}),
    ],
)
def test_each_fact_limits_evidence(facts: object, level: str, limits: set[str]) -> None:
    strength = strength_of(facts)  # type: ignore[arg-type]
    assert (strength.level, codes(strength)) == (level, limits)
    # What limits it comes first, and each sentence ends as one.
    assert all(sentence.endswith(".") for sentence in strength.sentences)
    assert strength.sentences[: len(strength.limits)] == tuple(reason.text for reason in strength.limits)


def test_old_evidence_and_other_runners_have_reasons_and_no_error() -> None:
    """Entries of older versions have none of the fields."""
    run = CommandRun(evidence="make test", passed=True, settled=True)
    assert strength_of(command_facts(run, None, None)).level == "weak"
    roomed = msgspec.structs.replace(run, room=RoomRun(tree="x"))
    strength = strength_of(command_facts(roomed, None, None))
    assert (strength.level, codes(strength)) == ("fair", {"isolation", "environment_unknown", "no_tests_listed"})


def test_facts_are_those_that_were_recorded() -> None:
    run = CommandRun(
        evidence="pytest",
        report=TestCounts(passed=4),
        room=RoomRun(isolation="namespaces", network="own", environment="x", before=1, provisional=True),
        controls=RunControls(held="none", why="the tests run in a container"),
    )
    # Tests that fail in the agreed tree are agreed tests, too.
    agreed = Agreed(baselines={"pytest": AgreedBaseline(tests=3), "other": AgreedBaseline(tests=9)})
    assert command_facts(run, agreed, PROBES) == replace(
        BEST, provisional=True, controls="none", why_no_controls="the tests run in a container"
    )
    coverage_alone = msgspec.structs.replace(run, report=TestCounts(coverage=90.0))
    assert command_facts(coverage_alone, agreed, None).tests is None


def test_who_attested_is_said() -> None:
    assert "ada (at a terminal)" in strength_of(PersonFacts("ada", "person")).sentences[0]
    assert "ada (signed with a key)" in strength_of(PersonFacts("ada", "key")).sentences[0]
    assert "robot (CI)" in strength_of(PersonFacts("robot", "ci")).sentences[0]


def test_untrusted_text_is_one_line() -> None:
    strength = strength_of(replace(BEST, controls="none", why_no_controls="a\nb\x1b[31m"))
    assert all("\n" not in text and "\x1b" not in text for text in strength.sentences)


def test_what_an_agent_can_do_about_it_is_said() -> None:
    survive = strength_of(probes(mutants=MutantsTried(tried=3, survived=3)))
    assert survive.is_up_to_agent
    assert survive.better == (LIMITS["mutants_survive"].better,)
    assert not strength_of(replace(BEST, provisional=True)).is_up_to_agent
    assert not strength_of(BEST).is_up_to_agent


def test_the_table_goes_from_the_weakest_to_the_strongest() -> None:
    ranks = [level_rank(limit.at_most) for limit in LIMITS.values()]
    assert ranks == sorted(ranks)
    assert "strong" not in {limit.at_most for limit in LIMITS.values()}


def test_levels_are_ordered() -> None:
    assert [level_rank(level) for level in (None, *LEVELS)] == [-1, 0, 1, 2, 3]
    assert set(NEEDED) < set(LEVELS)
    assert (higher_level(None, None), higher_level(None, "fair"), higher_level("strong", "fair")) == (
        None,
        "fair",
        "strong",
    )
    assert strength_of(BEST).is_at_least("strong") and not strength_of(NothingChecked()).is_at_least("fair")


def test_levels_are_decided_in_one_place() -> None:
    """Whatever shows a level got it from there: nothing else builds one, or reads the table of limits."""
    source = Path(donewhen.__file__).parent / "jobs"
    decides = re.compile(r"(?<![\w\"'])Strength\(|import.*\b(?:LIMITS|SUPPORTS)\b")
    found = {path.name for path in source.rglob("*.py") if decides.search(path.read_text(encoding="utf-8"))}
    assert found == {"strength.py"}
