"""The gate that asks whether what stands there was agreed to."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from donewhen.jobs.contract.agreement import Agreement, AgreementState
from donewhen.jobs.contract.terms import ChangeKind, TermsChange
from donewhen.jobs.gates.agreement_gate import agreement_gate
from donewhen.jobs.gates.facts import Facts
from donewhen.jobs.ledger.gate_results import GateCode
from sentences import assert_sentences

MakeFacts = Callable[..., Facts]
AGREED = Agreement("agreed", {}, None)
STATES: list[tuple[AgreementState, GateCode]] = [
    ("proposed", GateCode.NOT_AGREED_YET),
    ("unsealed", GateCode.AGREEMENT_UNSEALED),
    ("voided", GateCode.AGREEMENT_VOIDED),
]
IDS = [state for state, _ in STATES]
ID = "WI-20260214-001"


def voided(kind: ChangeKind, field: str, before: str | None, after: str | None) -> Agreement:
    return Agreement("voided", {}, None, (TermsChange(kind, field, before, after),))


def test_the_gate_is_open_when_project_and_job_are_agreed(make_facts: MakeFacts) -> None:
    found = agreement_gate(make_facts())
    assert (found.gate, found.passed, found.reasons, found.next) == ("agreement", True, (), None)


def test_what_was_added_or_tightened_since_keeps_the_gate_open(make_facts: MakeFacts) -> None:
    more = (
        TermsChange("added", "criteria", None, "It is quick."),
        TermsChange("tightened", "reward_target", "80", "90"),
    )
    assert agreement_gate(make_facts(agreement=Agreement("agreed", {}, None, more))).passed


@pytest.mark.parametrize(("state", "code"), STATES, ids=IDS)
def test_a_job_that_is_not_agreed_closes_the_gate_with_its_own_code(
    make_facts: MakeFacts, state: AgreementState, code: GateCode
) -> None:
    found = agreement_gate(make_facts(agreement=Agreement(state, {}, None)))
    assert [reason.code for reason in found.reasons] == [code]
    assert str(state) in found.reasons[0].message
    assert_sentences(found.reasons[0].message)
    assert not found.passed


@pytest.mark.parametrize(("state", "code"), STATES, ids=IDS)
def test_a_project_that_is_not_agreed_closes_the_gate_for_an_agreed_job(
    make_facts: MakeFacts, state: AgreementState, code: GateCode
) -> None:
    found = agreement_gate(make_facts(project_agreement=Agreement(state, {}, None)))
    assert [reason.code for reason in found.reasons] == [code]
    assert_sentences([reason.message for reason in found.reasons])


def test_the_project_is_named_before_the_job(make_facts: MakeFacts) -> None:
    nobody = Agreement("proposed", {}, None)
    found = agreement_gate(make_facts(agreement=nobody, project_agreement=nobody))
    assert [reason.message.split()[0] for reason in found.reasons] == ["PJ-20260214-001", "WI-20260214-001"]


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        (
            voided("removed", "criteria", "The log is parsed.", None),
            "criteria was removed since it was agreed: The log is parsed. → nothing.",
        ),
        (
            voided("loosened", "reward_target", "80", "0"),
            "reward_target was loosened since it was agreed: 80 → 0.",
        ),
        (
            voided("loosened", "exemptions.execution_log_exemption_reason", None, "no time"),
            "exemptions.execution_log_exemption_reason was loosened since it was agreed: no time.",
        ),
    ],
    ids=["removed", "loosened", "added-exemption"],
)
def test_a_voided_agreement_names_what_was_loosened(make_facts: MakeFacts, change: Agreement, detail: str) -> None:
    (reason,) = agreement_gate(make_facts(agreement=change)).reasons
    assert (reason.code, reason.message) == (GateCode.AGREEMENT_VOIDED, f"WI-20260214-001: {detail}")


def test_every_loosened_field_is_a_reason_and_what_was_tightened_is_none(make_facts: MakeFacts) -> None:
    several = (
        TermsChange("loosened", "reward_target", "80", "0"),
        TermsChange("tightened", "max_iterations", "3", "2"),
        TermsChange("removed", "outputs", "a.md", None),
    )
    found = agreement_gate(make_facts(agreement=Agreement("voided", {}, None, several)))
    assert [reason.message.split()[1] for reason in found.reasons] == ["reward_target", "outputs"]


def test_the_next_command_is_to_agree_where_nobody_has(make_facts: MakeFacts) -> None:
    for state in ("proposed", "unsealed"):
        assert agreement_gate(make_facts(agreement=Agreement(state, {}, None))).next == f"donewhen agree {ID}"


def test_the_next_command_is_to_look_at_the_difference_where_something_was_loosened(make_facts: MakeFacts) -> None:
    loosened = voided("loosened", "reward_target", "80", "0")
    assert agreement_gate(make_facts(agreement=loosened)).next == f"donewhen contract diff {ID}"
    both = make_facts(agreement=loosened, project_agreement=Agreement("proposed", {}, None))
    assert agreement_gate(both).next == f"donewhen contract diff {ID}"


def test_a_void_project_is_looked_at_as_a_whole(make_facts: MakeFacts) -> None:
    loosened = voided("loosened", "settings.approval.ci", "no", "yes")
    assert agreement_gate(make_facts(project_agreement=loosened)).next == "donewhen contract diff"
