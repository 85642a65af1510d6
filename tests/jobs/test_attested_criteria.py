"""How a criterion was shown, told by the chain alone: nothing is taken for shown that the chain does not show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.plan.criteria import Criterion, parse_check
from donewhen.jobs.receipts.attested_criteria import (
    AttestedRecord,
    NoEvidenceError,
    attested_command,
    attested_criterion,
)
from sentences import assert_sentences

Make = Callable[..., Entry]
PERSON = Actor("ada", "person")
VERDICT = {"what": "judge", "evidence": "judge It convinces.", "mission": "reports", "passed": True, "settled": True}


def criterion(check: str | None, text: str = "It convinces.") -> Criterion:
    return Criterion("AC-1", text, None if check is None else parse_check(check, "here"), 1)


def record(make: Make, *before: Entry, commands: tuple[str, ...] = (), **data: Any) -> AttestedRecord:
    completed = make("completed", 9, **{"truth_mode": "strict", **data})
    return AttestedRecord("WI-20260214-001", before, completed, Policy(), commands)


def ran(make: Make, evidence: str, seq: int = 1, **data: Any) -> Entry:
    about = {"what": "command", "evidence": evidence, "passed": True, "settled": True, "exit_code": 0}
    return make("ran", seq, **(about | data))


def test_a_command_is_shown_by_its_newest_run(make_entry: Make) -> None:
    good = ran(make_entry, "make test")
    assert attested_command(record(make_entry, good), "make test")["entry"] == good.hash
    for newest in ({"passed": False}, {"settled": False}):
        with pytest.raises(NoEvidenceError, match="`make test`"):
            attested_command(record(make_entry, good, ran(make_entry, "make test", 2, **newest)), "make test")
    for other in (ran(make_entry, "make test", what="file"), ran(make_entry, "make")):
        with pytest.raises(NoEvidenceError):
            attested_command(record(make_entry, other), "make test")


def test_prose_is_covered_by_all_commands_or_by_none(make_entry: Make) -> None:
    one, two = ran(make_entry, "a", 1), ran(make_entry, "b", 2)
    shown = attested_criterion(record(make_entry, one, two, commands=("a", "b")), criterion(None))
    assert shown == {"how": "verified", "what": "verification", "entries": [one.hash, two.hash]}
    with pytest.raises(NoEvidenceError) as caught:
        attested_criterion(record(make_entry, one, commands=("a", "b")), criterion(None))
    assert_sentences(caught.value)


def test_prose_without_commands_takes_a_person(make_entry: Make) -> None:
    value = {"text": "It convinces."}
    signed = make_entry("decided", 1, PERSON, decision="sign_off", value=value)
    assert attested_criterion(record(make_entry, signed), criterion(None))["how"] == "signed_off"
    for other in (
        make_entry("decided", 1, decision="sign_off", value=value),
        make_entry("decided", 1, PERSON, decision="cancel", value=value),
        make_entry("decided", 1, PERSON, decision="sign_off", value={"text": "Another."}),
        make_entry("agreed", 1, PERSON, decision="sign_off", value=value),
    ):
        with pytest.raises(NoEvidenceError):
            attested_criterion(record(make_entry, other), criterion(None))


def test_a_word_counts_only_as_a_pass_of_a_person_on_the_very_words(make_entry: Make) -> None:
    word = {"text": "It convinces.", "verdict": "pass"}
    asked = criterion("file a.md")
    good = make_entry("overridden", 1, PERSON, **word)
    assert attested_criterion(record(make_entry, good), asked)["by"] == {"name": "ada", "kind": "person"}
    for other in (
        make_entry("overridden", 1, **word),
        make_entry("overridden", 1, PERSON, **(word | {"verdict": "fail"})),
        make_entry("overridden", 1, PERSON, **(word | {"text": "Another."})),
        make_entry("decided", 1, PERSON, **word),
    ):
        with pytest.raises(NoEvidenceError):
            attested_criterion(record(make_entry, other), asked)
    with pytest.raises(NoEvidenceError):
        attested_criterion(record(make_entry, good), criterion("manual"))


def test_a_judges_verdict_counts_where_the_completion_names_it(make_entry: Make) -> None:
    verdict = make_entry("ran", 3, **VERDICT, votes={"pass": 3}, agreement=1.0, guidance_step=2, model="m")
    named = {"AC-1": {"state": "passed", "entry": verdict.hash}}
    shown = attested_criterion(record(make_entry, verdict, judged=named), criterion("judge reports"))
    assert shown == {
        "how": "judged", "entry": verdict.hash, "at": verdict.at, "mission": "reports", "model": "m",
        "guidance_step": 2, "votes": {"pass": 3}, "agreement": 1.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    "judged",
    [
        {}, {"AC-2": {"state": "passed", "entry": f"sha256:{3:064x}"}},
        {"AC-1": {"state": "failed", "entry": f"sha256:{3:064x}"}}, {"AC-1": {"state": "passed"}},
        {"AC-1": {"state": "passed", "entry": "sha256:nobody"}},
    ],
)  # fmt: skip
def test_a_verdict_that_the_completion_does_not_name_shows_nothing(make_entry: Make, judged: Any) -> None:
    with pytest.raises(NoEvidenceError):
        attested_criterion(
            record(make_entry, make_entry("ran", 3, **VERDICT), judged=judged), criterion("judge reports")
        )


@pytest.mark.parametrize(
    "other",
    [
        {"what": "command"}, {"evidence": "judge Another."}, {"mission": "others"}, {"passed": False},
    ],
)  # fmt: skip
def test_another_verdict_than_the_one_that_is_asked_for_shows_nothing(make_entry: Make, other: dict[str, Any]) -> None:
    verdict = make_entry("ran", 3, **(VERDICT | other))
    named = {"AC-1": {"state": "passed", "entry": verdict.hash}}
    with pytest.raises(NoEvidenceError):
        attested_criterion(record(make_entry, verdict, judged=named), criterion("judge reports"))


def test_without_strict_truth_everything_is_asserted(make_entry: Make) -> None:
    for mode in ("off", "", "Strict"):
        loose = record(make_entry, ran(make_entry, "a"), commands=("a",), truth_mode=mode)
        assert attested_command(loose, "a") == {"how": "asserted"}
        assert attested_criterion(loose, criterion("run a")) == {"how": "asserted"}
