"""What of an answer is taken: each operation and each hypothesis by itself, with a reason for whatever is not."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from learning_kit import CHINESE, add, answer, case, guess, guidance_of, mentions, read, terms_of

from donewhen.judging.guidance import Guidance, GuidanceChange, GuidanceError, apply_change
from donewhen.learning.reflection.answer_schemas import DECISION_SCHEMA, OPS_SCHEMA
from donewhen.learning.reflection.proposals import DecisionPass, ReadingTerms, read_decision, read_proposal
from donewhen.learning.reflection.rejections import MEANINGS, AnswerReason, ItemReason
from donewhen.learning.reflection.strict_json import UnusableAnswer

A, B = "QC-1::fail", "QC-2::pass"
CASES = (case(A, "it shows a captcha on the page"), case(B, "it shows a receipt on the page"))
FULL = guidance_of(
    G1='When it mentions "captcha", the verdict is fail.',
    G2="When a seal is torn and the box is open, the verdict is fail.",
    G10="When nobody has signed, the verdict is fail.",
)


def terms(guidance: Guidance = FULL, **more: Any) -> ReadingTerms:
    return terms_of(CASES, guidance, **more)


def reasons(said: object, under: ReadingTerms | None = None) -> list[str]:
    return [rejection.reason for rejection in read(said, under or terms()).rejections]


def one_operation(**fields: Any) -> list[str]:
    proposal = read(answer([fields]), terms())
    assert bool(proposal.operations) != bool(proposal.rejections)
    assert proposal.covered == (frozenset(fields["evidence"]) if proposal.operations else frozenset())
    return [rejection.reason for rejection in proposal.rejections]


def test_the_four_operations_are_taken_as_they_stand() -> None:
    said = answer(
        [
            add(mentions("timeout"), [A]),
            {"op": "update", "key": "G1", "text": mentions("puzzle"), "rationale": "r", "evidence": [B]},
            {"op": "delete", "key": "G10", "rationale": "r", "evidence": [B, A, B]},
            {"op": "merge", "key": "G0", "merged_from": ["G2"], "text": mentions("seal"), "evidence": [A]},
        ]
    )
    proposal = read(said, terms())
    assert proposal.rejections == ()
    assert [
        (operation.op, operation.key, operation.text, operation.merged_from, operation.evidence)
        for operation in proposal.operations
    ] == [
        ("add", None, mentions("timeout"), (), (A,)),
        ("update", "G1", mentions("puzzle"), (), (B,)),
        ("delete", "G10", None, (), (B, A)),
        ("merge", "G0", mentions("seal"), ("G2",), (A,)),
    ]
    assert {operation.reflection_id for operation in proposal.operations} == {"1.1.1"}
    assert proposal.covered == {A, B}
    assert proposal.analysis == "looked at"


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        ({"op": "update", "key": "S1", "text": mentions("x")}, "scaffold_target"),
        ({"op": "delete", "key": "S1"}, "scaffold_target"),
        ({"op": "merge", "key": "S1", "merged_from": ["G1"], "text": mentions("x")}, "scaffold_target"),
        ({"op": "merge", "key": "G1", "merged_from": ["S1"], "text": mentions("x")}, "scaffold_target"),
        ({"op": "merge", "key": "G1", "merged_from": ["G2", "S1"], "text": mentions("x")}, "scaffold_target"),
        ({"op": "update", "key": "S99", "text": mentions("x")}, "scaffold_target"),
        ({"op": "update", "key": " S1", "text": mentions("x")}, "unknown_rule"),
        ({"op": "update", "key": "s1", "text": mentions("x")}, "unknown_rule"),
        ({"op": "update", "key": "Ｓ1", "text": mentions("x")}, "unknown_rule"),
        ({"op": "update", "key": "G01", "text": mentions("x")}, "unknown_rule"),
        ({"op": "update", "key": "G7", "text": mentions("x")}, "unknown_rule"),
        ({"op": "delete", "key": "G0"}, "g0_removal"),
        ({"op": "merge", "key": "G1", "merged_from": ["G0"], "text": mentions("x")}, "g0_removal"),
        ({"op": "merge", "key": "G1", "merged_from": ["G2", "G0"], "text": mentions("x")}, "g0_removal"),
        ({"op": "merge", "key": "G1", "merged_from": [], "text": mentions("x")}, "bad_merge"),
        ({"op": "merge", "key": "G1", "merged_from": "G2", "text": mentions("x")}, "bad_merge"),
        ({"op": "merge", "key": "G1", "merged_from": ["G2", "G2"], "text": mentions("x")}, "bad_merge"),
        ({"op": "merge", "key": "G1", "merged_from": ["G1"], "text": mentions("x")}, "bad_merge"),
        ({"op": "merge", "key": "G1", "merged_from": [{"G2": 1}], "text": mentions("x")}, "unknown_rule"),
        ({"op": "rollback", "key": "G1"}, "unknown_op"),
        ({"op": ["add"], "text": mentions("x")}, "unknown_op"),
        ({"text": mentions("x")}, "unknown_op"),
        ({"op": "add", "key": "S1", "text": mentions("x")}, "malformed_item"),
        ({"op": "add", "key": "G1", "text": mentions("x")}, "malformed_item"),
        ({"op": "add", "text": mentions("x"), "priority": 1}, "malformed_item"),
        ({"op": "add"}, "malformed_item"),
        ({"op": "add", "text": None}, "malformed_item"),
        ({"op": "add", "text": [mentions("x")]}, "malformed_item"),
        ({"op": "add", "text": mentions("x"), "rationale": 3}, "malformed_item"),
        ({"op": "update", "key": 1, "text": mentions("x")}, "malformed_item"),
        ({"op": "delete", "key": "G1", "text": "why"}, "malformed_item"),
        ({"op": "add", "text": "Only what the page shows counts."}, "no_verdict"),
        ({"op": "add", "text": '  when it MENTIONS "captcha" the verdict is fail'}, "duplicate"),
        ({"op": "update", "key": "G2", "text": mentions("captcha")}, "duplicate"),
        ({"op": "add", "text": "Wait for it."}, "no_verdict"),
        ({"op": "add", "text": " "}, "empty_text"),
        ({"op": "add", "text": f"Fail if {'so ' * 60}"}, "too_long"),
        ({"op": "add", "text": "Pass or fail."}, "both_verdicts"),
        ({"op": "add", "text": "It is pending: fail."}, "third_state"),
        ({"op": "add", "text": "QC-1 is a fail."}, "sample_id"),
        ({"op": "add", "text": "it shows a captcha on the page today: fail."}, None),
        ({"op": "add", "text": "Fail: it shows a captcha on the page."}, None),
    ],
)
def test_an_operation_that_may_not_be_is_rejected(operation: dict[str, Any], reason: str | None) -> None:
    assert one_operation(**{"evidence": [A], **operation}) == ([] if reason is None else [reason])


@pytest.mark.parametrize("item", [None, "add", 3, ["add"], True])
def test_an_item_that_is_no_object_is_malformed(item: object) -> None:
    assert reasons(answer([item], [item])) == ["malformed_item", "malformed_item"]


EVIDENCE = [
    ([], "no_evidence"),
    (None, "malformed_item"),
    ("QC-1::fail", "malformed_item"),
    ({A: 1}, "malformed_item"),
    (["QC-9::fail"], "evidence_not_learnable"),
    (["QC-1::pass"], "evidence_not_learnable"),
    (["QC-1"], "evidence_not_learnable"),
    ([A, "QC-9::fail"], "evidence_not_learnable"),
    ([A, 3], "evidence_not_learnable"),
    ([A, None], "evidence_not_learnable"),
    ([[A]], "evidence_not_learnable"),
    ([""], "evidence_not_learnable"),
]


@pytest.mark.parametrize(("evidence", "reason"), EVIDENCE)
@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "text": mentions("x")},
        {"op": "update", "key": "G1", "text": mentions("x")},
        {"op": "delete", "key": "G1"},
        {"op": "merge", "key": "G1", "merged_from": ["G2"], "text": mentions("x")},
    ],
    ids=lambda change: str(change["op"]),
)
def test_every_operation_needs_evidence_from_the_cases_that_were_shown(
    operation: dict[str, Any], evidence: object, reason: str
) -> None:
    proposal = read(answer([{**operation, "evidence": evidence}]), terms())
    assert [rejection.reason for rejection in proposal.rejections] == [reason]
    assert proposal.covered == frozenset()


@pytest.mark.parametrize(("evidence", "reason"), EVIDENCE)
def test_so_does_every_hypothesis(evidence: object, reason: str) -> None:
    proposal = read(answer([], [{**guess(mentions("x"), []), "evidence": evidence}]), terms())
    assert [(rejection.what, rejection.reason) for rejection in proposal.rejections] == [("hypothesis", reason)]
    assert proposal.covered == frozenset()


def test_evidence_that_is_left_out_is_not_filled_in() -> None:
    said = answer([{"op": "delete", "key": "G1"}], [{"text": mentions("x"), "falsifier": "f"}])
    proposal = read(said, terms())
    assert [rejection.reason for rejection in proposal.rejections] == ["no_evidence", "no_evidence"]
    assert proposal.covered == frozenset()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"falsifier": ""}, "no_falsifier"),
        ({"falsifier": "  \n"}, "no_falsifier"),
        ({"falsifier": None}, "no_falsifier"),
        ({"falsifier": 5}, "malformed_item"),
        ({"dimension": "brand"}, "brand"),
        ({"dimension": "Brand name"}, "brand"),
        ({"dimension": 7}, "malformed_item"),
        ({"confidence": 0.9}, "malformed_item"),
        ({"text": None}, "malformed_item"),
        ({"text": "It needs review: fail."}, "third_state"),
        ({"text": "It must not pass."}, "ambiguous_negation"),
        ({"text": "See QC-2: pass."}, "sample_id"),
        ({"text": mentions("captcha")}, "duplicate"),
        ({"dimension": "global_local"}, None),
        ({"dimension": ""}, None),
    ],
)
def test_a_hypothesis_is_binary_general_and_falsifiable(change: dict[str, Any], reason: str | None) -> None:
    proposal = read(answer([], [guess(mentions("x"), [A]) | change]), terms())
    assert [rejection.reason for rejection in proposal.rejections] == ([] if reason is None else [reason])
    assert len(proposal.hypotheses) == (reason is None)


def test_a_hypothesis_without_a_falsifier_is_none() -> None:
    assert reasons(answer([], [{"text": mentions("x"), "evidence": [A]}])) == ["no_falsifier"]


def test_one_bad_hypothesis_does_not_discard_good_operations_nor_the_other_way_round() -> None:
    bad_hypothesis = read(answer([add(mentions("x"), [A])], [guess("pending: fail", [B])]), terms())
    assert [operation.text for operation in bad_hypothesis.operations] == [mentions("x")]
    assert bad_hypothesis.covered == {A}
    bad_operation = read(answer([add("pending: fail", [A])], [guess(mentions("x"), [B])]), terms())
    assert [hypothesis.text for hypothesis in bad_operation.hypotheses] == [mentions("x")]
    assert bad_operation.covered == {B}
    between = read(answer([add(mentions("x"), [A]), {"op": "no"}, add(mentions("y"), [B])]), terms())
    assert [operation.text for operation in between.operations] == [mentions("x"), mentions("y")]


def test_an_operation_over_a_cap_covers_nobody() -> None:
    said = answer([add(mentions("x"), [A]), add(mentions("y"), [B])])
    for under, reason in (
        (terms(max_operations=1), "operation_cap"),
        (terms(changes_left=1), "change_cap"),
        (terms(max_rules=5), "rule_cap"),
    ):
        proposal = read(said, under)
        assert [operation.text for operation in proposal.operations] == [mentions("x")]
        assert [rejection.reason for rejection in proposal.rejections] == [reason]
        assert proposal.covered == {A}
    assert reasons(said, terms(max_operations=0)) == ["operation_cap", "operation_cap"]
    assert reasons(said, terms(changes_left=0)) == ["change_cap", "change_cap"]


def test_a_full_guidance_can_still_be_changed() -> None:
    said = answer([{"op": "delete", "key": "G1", "evidence": [A]}, add(mentions("y"), [B])])
    proposal = read(said, terms(max_rules=4))
    assert [operation.op for operation in proposal.operations] == ["delete"]


def test_who_says_that_there_is_no_evidence_proposes_nothing() -> None:
    proposal = read(answer([add(mentions("x"), [A])], [guess(mentions("y"), [B])], has_evidence=False), terms())
    assert [rejection.reason for rejection in proposal.rejections] == ["has_evidence_false"] * 2
    assert proposal.covered == frozenset()


def test_coverage_as_a_model_tells_it_is_only_its_opinion() -> None:
    coverage = {"learnable_ticket_keys": [], "covered_ticket_keys": [A, B], "uncovered_ticket_keys": []}
    proposal = read(answer([add(mentions("x"), [A])], coverage=coverage), terms())
    assert proposal.covered == {A}


def test_hypotheses_may_be_left_out() -> None:
    said = answer([add(mentions("x"), [A])])
    del said["hypotheses"]
    assert read(said, terms()).hypotheses == ()


def test_what_is_said_twice_counts_once() -> None:
    twice = [add(mentions("x"), [A]), add(mentions("x").upper().replace("FAIL", "fail"), [B])]
    assert reasons(answer(twice)) == ["duplicate"]
    assert reasons(answer([add(mentions("x"), [A])], [guess(mentions("x"), [B])])) == ["duplicate"]
    assert reasons(answer([], [guess(mentions("x"), [A]), guess(mentions("x"), [B])])) == ["duplicate"]


def test_two_operations_on_one_rule_are_one_too_many() -> None:
    first = {"op": "update", "key": "G1", "text": mentions("x"), "evidence": [A]}
    assert reasons(answer([first, {"op": "delete", "key": "G1", "evidence": [A]}])) == ["duplicate"]
    merge = {"op": "merge", "key": "G2", "merged_from": ["G1"], "text": mentions("y"), "evidence": [A]}
    assert reasons(answer([first, merge])) == ["duplicate"]
    assert reasons(answer([merge, first])) == ["duplicate"]


LONG = "When a seal is torn and the box is open, the verdict is {}."


def test_an_added_rule_that_nearly_says_the_same_updates_the_old_one() -> None:
    near = "When a seal is torn and its box is open, the verdict is fail."
    [found] = read(answer([add(near, [A])]), terms()).operations
    assert (found.op, found.key, found.text) == ("update", "G2", near)


def test_an_added_pass_rule_never_overwrites_the_fail_rule_that_it_looks_like() -> None:
    [found] = read(answer([add(LONG.format("pass"), [A])]), terms()).operations
    assert (found.op, found.key) == ("add", None)
    after = apply_change(FULL, found, "")
    assert after.experiences["G2"] == LONG.format("fail")
    assert after.experiences["G11"] == LONG.format("pass")


def test_nor_does_a_chinese_one_whatever_the_likeness() -> None:
    old = "若设备左侧标签清晰完整并且编号与照片一致，则判定不通过"
    guidance = guidance_of(G1=old)
    under = terms_of(CASES, guidance, language=CHINESE, similar=0.5)
    [found] = read(answer([add(old.replace("不通过", "通过"), [A])]), under).operations
    assert found.op == "add"
    [found] = read(answer([add(old.replace("编号", "号码"), [A])]), under).operations
    assert (found.op, found.key) == ("add", None)
    [found] = read(answer([add(old.replace("标签清晰", "标签的清晰"), [A])]), under).operations
    assert (found.op, found.key) == ("update", "G1")


def test_rules_that_differ_in_a_number_or_a_quoted_word_are_two_rules() -> None:
    guidance = guidance_of(G1='When at least 3 of the "red" boxes on the page are open, the verdict is fail.')
    for text in (
        'When at least 4 of the "red" boxes on the page are open, the verdict is fail.',
        'When at least 3 of the "rod" boxes on the page are open, the verdict is fail.',
    ):
        [found] = read(answer([add(text, [A])]), terms_of(CASES, guidance)).operations
        assert found.op == "add"


def test_an_added_rule_never_takes_the_place_of_the_first_or_of_the_scaffold() -> None:
    guidance = guidance_of(S2=LONG.format("fail"), G0="When a seal is torn and a box is open, the verdict is fail.")
    near = "When a seal is torn and one box is open, the verdict is fail."
    [found] = read(answer([add(near, [A])]), terms_of(CASES, guidance)).operations
    assert (found.op, found.key) == ("add", None)
    assert reasons(answer([add(LONG.format("FAIL"), [A])]), terms_of(CASES, guidance)) == ["duplicate"]


def test_what_is_taken_can_be_made_and_the_scaffold_stays() -> None:
    """The store would refuse it as well; whoever gets past the one meets the other."""
    for op in ("update", "delete", "merge"):
        item = {"op": op, "key": "S1", "text": mentions("x"), "merged_from": ["G1"], "evidence": [A]}
        proposal = read(answer([item]), terms())
        assert proposal.operations == ()
    for change in (
        GuidanceChange(op="update", key="S1", text="x", evidence=(A,)),
        GuidanceChange(op="delete", key="S1", evidence=(A,)),
        GuidanceChange(op="merge", key="G1", merged_from=("S1",), text="x", evidence=(A,)),
        GuidanceChange(op="merge", key="S1", merged_from=("G1",), text="x", evidence=(A,)),
        GuidanceChange(op="add", text="only what the page shows  counts", evidence=(A,)),
        GuidanceChange(op="update", key="G1", text="Only what the page shows counts.", evidence=(A,)),
        GuidanceChange(op="delete", key="G0", evidence=(A,)),
        GuidanceChange(op="merge", key="G1", merged_from=("G0",), text="x", evidence=(A,)),
        GuidanceChange(op="delete", key="G1"),
    ):
        with pytest.raises(GuidanceError):
            apply_change(FULL, change, "")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("certainly!", "not_json"),
        ("[]", "not_an_object"),
        ('{"operations": [], "operations": []}', "duplicate_key"),
        ('{"has_evidence": true, "evidence_analysis": ""}', "missing_field"),
        ('{"has_evidence": true, "operations": []}', "missing_field"),
        ('{"evidence_analysis": "", "operations": []}', "missing_field"),
        ('{"has_evidence": true, "evidence_analysis": "", "operations": [], "notes": 1}', "unknown_field"),
        ('{"has_evidence": 1, "evidence_analysis": "", "operations": []}', "wrong_type"),
        ('{"has_evidence": true, "evidence_analysis": null, "operations": []}', "wrong_type"),
        ('{"has_evidence": true, "evidence_analysis": "", "operations": {}}', "wrong_type"),
        ('{"has_evidence": true, "evidence_analysis": "", "operations": [], "hypotheses": null}', "wrong_type"),
    ],
)
def test_an_answer_that_is_not_of_the_schema_is_unusable_as_a_whole(said: str, reason: str) -> None:
    found = read_proposal(said, terms())
    assert isinstance(found, UnusableAnswer)
    assert found.reason == reason


def decision(**fields: Any) -> DecisionPass | UnusableAnswer:
    return read_decision(json.dumps({"no_evidence_group_ids": [], "decision_analysis": ""} | fields), CASES)


def test_a_decision_names_tickets_that_were_asked_about() -> None:
    found = decision(no_evidence_group_ids=[B, A, B], decision_analysis="they\nsay  nothing")
    assert found == DecisionPass((B, A), "they say nothing", ())


@pytest.mark.parametrize("key", ["QC-1", "QC-1::pass", "QC-9::fail", "", 3, None, [A], {"a": A}])
def test_a_decision_about_somebody_else_is_rejected_and_the_rest_counts(key: object) -> None:
    found = decision(no_evidence_group_ids=[key, A])
    assert isinstance(found, DecisionPass)
    assert found.no_evidence == (A,)
    assert [(rejection.what, rejection.reason, rejection.item) for rejection in found.rejections] == [
        ("ticket", "unknown_ticket_key", key)
    ]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("{}", "missing_field"),
        ('{"no_evidence_group_ids": []}', "missing_field"),
        ('{"no_evidence_group_ids": {}, "decision_analysis": ""}', "wrong_type"),
        ('{"no_evidence_group_ids": [], "decision_analysis": "", "x": 1}', "unknown_field"),
        ('{"no_evidence_group_ids": [], "decision_analysis": ""} ok', "not_json"),
    ],
)
def test_a_decision_that_is_not_of_the_schema_is_unusable(said: str, reason: str) -> None:
    found = read_decision(said, CASES)
    assert isinstance(found, UnusableAnswer)
    assert found.reason == reason


def test_every_reason_has_a_sentence() -> None:
    assert all(sentence.endswith(".") for sentence in MEANINGS.values())
    assert set(MEANINGS) == {*get_args(AnswerReason), *get_args(ItemReason)}


def test_the_schemas_that_models_are_held_to_take_good_answers_and_no_others() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    good = answer([add(mentions("x"), [A])], [guess(mentions("y"), [B], dimension="d")], coverage={})
    jsonschema.validate(good, OPS_SCHEMA)
    jsonschema.validate({"no_evidence_group_ids": [A], "decision_analysis": ""}, DECISION_SCHEMA)
    for bad in (answer([add(mentions("x"), [])]), answer(notes=1), answer([{"op": "add"}]), {"has_evidence": True}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, OPS_SCHEMA)
