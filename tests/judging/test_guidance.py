"""What may be changed in guidance, and what nobody can."""

from __future__ import annotations

import itertools
import json
from typing import Any

import msgspec
import pytest

from donewhen.judging.guidance import (
    Guidance,
    GuidanceChange,
    GuidanceError,
    RuleMeta,
    apply_change,
    next_key,
    record_credit,
    roll_back,
    same_text,
    seed_guidance,
    sorted_keys,
)
from sentences import assert_sentences

RULES = {
    "S1": "Only a photo of the whole cabinet counts.",
    "S2": "What can't be seen is not there.",
    "G0": "All that is asked for must be there.",
    "G1": "A torn seal: fail.",
    "G2": "A closed door: pass.",
}
EVIDENCE = ("QC-1::fail", "QC-2::pass")
AT = "2026-02-14T12:00:00Z"


def guidance(**rules: str) -> Guidance:
    return seed_guidance("cabinets", RULES | rules, "2026-01-01T00:00:00Z")


def change(op: Any, **fields: Any) -> GuidanceChange:
    return GuidanceChange(op=op, **({"evidence": EVIDENCE} | fields))


def after(*changes: GuidanceChange, start: Guidance | None = None) -> Guidance:
    now = start or guidance()
    for guidance_change in changes:
        now = apply_change(now, guidance_change, AT)
    return now


def refused(guidance_change: GuidanceChange, start: Guidance | None = None) -> str:
    before = start or guidance()
    frozen = msgspec.json.encode(before)
    with pytest.raises(GuidanceError) as caught:
        apply_change(before, guidance_change, AT)
    assert msgspec.json.encode(before) == frozen
    return caught.value.message


# What a guidance is


def test_scaffold_and_learned_rules_are_ordered_as_numbers() -> None:
    keys = ["G10", "S10", "G2", "S2", "G0", "S1", "G1", "G100"]
    found = seed_guidance("m", dict.fromkeys(keys, "x"), "")
    assert list(found.scaffold) == ["S1", "S2", "S10"]
    assert list(found.learned) == ["G0", "G1", "G2", "G10", "G100"]
    assert list(found.rules) == [*found.scaffold, *found.learned]
    assert list(found.experiences) == list(found.rules)
    for shuffled in itertools.permutations(["G10", "G2", "S1", "G0"]):
        assert sorted_keys(shuffled) == ["S1", "G0", "G2", "G10"]


@pytest.mark.parametrize(
    "key", ["S0", "G01", "g1", "G", "G-1", "G1 ", " G1", "H1", "G1.0", "", "G1\n", "G１", "G1000000", "S١", "step"]
)
def test_keys_are_letters_with_numbers_and_nothing_else(key: str) -> None:
    with pytest.raises(GuidanceError) as caught:
        seed_guidance("m", {"G0": "x", key: "y"}, "", "here.json")
    assert_sentences(caught.value)
    assert caught.value.where == "here.json"


def test_there_is_always_a_first_rule() -> None:
    with pytest.raises(GuidanceError) as caught:
        seed_guidance("m", {"G1": "x", "S1": "y"}, "", "here.json")
    assert_sentences(caught.value)
    assert caught.value.where == "here.json"
    with pytest.raises(GuidanceError) as caught:
        seed_guidance("m", {}, "")
    assert_sentences(caught.value)


@pytest.mark.parametrize(
    "text", ["", "  \n", "\u200b", "x" * 4001, "a\0b", "x\ud800", "x\udfff", None, 5, ["x"], {"text": "x"}]
)
def test_a_rule_is_a_text_that_can_be_read_and_written(text: Any) -> None:
    for key in ("S1", "G0", "G1"):
        with pytest.raises(GuidanceError) as caught:
            seed_guidance("m", {"G0": "x", key: text}, "")
        assert_sentences(caught.value)
    assert_sentences(refused(change("add", text=text)))
    assert_sentences(refused(change("update", key="G1", text=text)))
    assert_sentences(refused(change("merge", key="G1", merged_from=("G2",), text=text)))


def test_a_rule_may_be_long_but_not_endless() -> None:
    assert after(change("add", text="x" * 4000)).experiences["G3"] == "x" * 4000


def test_a_rule_without_is_the_same_but_for_that_rule() -> None:
    found = guidance().without("G1")
    assert dict(found.experiences) == {key: text for key, text in RULES.items() if key != "G1"}
    assert "G1" in guidance().experiences


def test_the_hash_is_of_what_a_judge_sees() -> None:
    first = guidance()
    assert first.hash == msgspec.structs.replace(first, step=9, updated_at="later").hash
    assert first.hash == record_credit(first, {"G1": (1, 0)}).hash
    assert first.hash == seed_guidance("cabinets", dict(reversed(RULES.items())), "").hash
    assert first.hash != msgspec.structs.replace(first, mission="shelves").hash
    assert len({first.hash, guidance(G1="other").hash, first.without("G1").hash, guidance(S1="other").hash}) == 4


def test_a_file_has_the_agreed_shape() -> None:
    found = after(change("update", key="G1", text="A torn seal or none: fail.", rationale="seen", reflection_id="r1"))
    assert json.loads(json.dumps(found.as_file())) == {
        "cabinets": {
            "step": 1,
            "updated_at": AT,
            "experiences": RULES | {"G1": "A torn seal or none: fail."},
            "metadata": {
                "G1": {
                    "updated_at": AT,
                    "reflection_id": "r1",
                    "sources": ["QC-1::fail", "QC-2::pass"],
                    "rationale": "seen",
                    "hit_count": 0,
                    "miss_count": 0,
                    "confidence": 0.5,
                }
            },
        }
    }


def test_nothing_of_it_can_be_set_from_outside() -> None:
    for struct, field in ((guidance(), "experiences"), (change("add", text="x"), "text"), (RuleMeta(), "hit_count")):
        with pytest.raises(AttributeError):
            setattr(struct, field, {})


# Changes that may be made


def test_an_added_rule_gets_the_next_key_and_its_evidence() -> None:
    found = after(change("add", text="  No label\n at all:   fail. ", rationale="why", reflection_id="r9"))
    assert dict(found.experiences) == RULES | {"G3": "No label at all: fail."}
    assert found.metadata == {"G3": RuleMeta(AT, "r9", EVIDENCE, "why", 0, 0, 0.5)}
    assert (found.step, found.updated_at, found.mission) == (1, AT, "cabinets")


def test_an_updated_rule_keeps_its_evidence_and_loses_what_was_measured() -> None:
    first = record_credit(after(change("add", text="No label: fail.")), {"G3": (5, 1)})
    found = after(change("update", key="G3", text="No name: fail.", evidence=("QC-2::pass", "QC-3::fail")), start=first)
    assert found.experiences["G3"] == "No name: fail."
    assert found.metadata["G3"] == RuleMeta(AT, "", ("QC-1::fail", "QC-2::pass", "QC-3::fail"), "", 0, 0, 0.5)


def test_g0_may_be_updated_and_merged_into() -> None:
    assert after(change("update", key="G0", text="All of it.")).experiences["G0"] == "All of it."
    found = after(change("merge", key="G0", merged_from=("G1", "G2"), text="All."))
    assert dict(found.learned) == {"G0": "All."}


def test_a_deleted_rule_is_gone_and_no_other() -> None:
    found = after(change("delete", key="G1"))
    assert dict(found.experiences) == {key: text for key, text in RULES.items() if key != "G1"}
    assert found.step == 1


def test_merged_rules_are_one_rule() -> None:
    found = after(change("merge", key="G2", merged_from=("G1",), text="Closed and sealed: pass."))
    assert dict(found.learned) == {"G0": RULES["G0"], "G2": "Closed and sealed: pass."}
    assert found.metadata["G2"].sources == EVIDENCE


def test_g10_comes_after_g2_when_it_is_added() -> None:
    found = after(*[change("add", text=f"Rule number {number}: fail.") for number in range(3, 11)])
    assert list(found.learned) == [f"G{number}" for number in range(11)]
    assert list(found.as_file()["cabinets"]["experiences"]) == ["S1", "S2", *found.learned]
    assert next_key(found) == "G11"


def test_the_key_of_a_rule_that_is_gone_is_never_given_to_another() -> None:
    deleted = after(change("add", text="Three."), change("delete", key="G3"), change("add", text="Four."))
    assert list(deleted.learned) == ["G0", "G1", "G2", "G4"]
    seed = after(change("delete", key="G2"), change("add", text="Three."))
    assert list(seed.learned) == ["G0", "G1", "G3"]
    merged = after(change("merge", key="G1", merged_from=("G2",), text="Both."), change("add", text="Three."))
    assert list(merged.learned) == ["G0", "G1", "G3"]
    again = after(change("delete", key="G3"), change("delete", key="G1"), change("add", text="Four."), start=merged)
    assert list(again.learned) == ["G0", "G4"]


def test_the_key_of_a_rule_that_was_rolled_back_is_never_given_to_another() -> None:
    start = guidance()
    later = after(change("add", text="Three."), change("add", text="Four."), start=start)
    back = roll_back(later, start, AT)
    assert list(after(change("add", text="Five."), start=back).learned) == ["G0", "G1", "G2", "G5"]


def test_the_key_of_a_rule_that_nobody_recorded_is_not_given_away_by_a_rollback() -> None:
    back = roll_back(guidance(G7="By hand."), guidance(), AT)
    assert list(after(change("add", text="New."), start=back).learned) == ["G0", "G1", "G2", "G8"]


def test_there_is_an_end_of_keys_and_it_is_said() -> None:
    assert_sentences(refused(change("add", text="One more."), guidance(G999999="The last.")))


# Evidence


@pytest.mark.parametrize("evidence", [(), ("",), ("QC-1::fail", ""), (" ",)])
@pytest.mark.parametrize(
    "fields",
    [
        {"op": "add", "text": "New."},
        {"op": "update", "key": "G1", "text": "New."},
        {"op": "delete", "key": "G1"},
        {"op": "merge", "key": "G1", "merged_from": ("G2",), "text": "New."},
    ],
    ids=lambda change: change["op"],
)
def test_no_change_is_made_without_tickets_that_support_it(fields: dict[str, Any], evidence: tuple[str, ...]) -> None:
    assert_sentences(refused(GuidanceChange(**fields, evidence=evidence)))
    assert apply_change(guidance(), GuidanceChange(**fields, evidence=EVIDENCE), AT).step == 1


@pytest.mark.parametrize("field", ["rationale", "reflection_id", "evidence"])
def test_what_no_file_can_hold_is_refused_before_it_is_written(field: str) -> None:
    value: Any = ("QC-1\udc00::fail",) if field == "evidence" else "half a \ud83d"
    assert_sentences(refused(change("add", text="New.", **{field: value})))


# The scaffold, attacked


def attacks() -> list[tuple[str, GuidanceChange]]:
    rewritten = "Anything goes: pass."
    same = RULES["S1"]
    return [
        ("update", change("update", key="S1", text=rewritten)),
        ("update with its own text", change("update", key="S1", text=same)),
        ("delete", change("delete", key="S1")),
        ("merge into", change("merge", key="S1", merged_from=("G1",), text=rewritten)),
        ("merge from", change("merge", key="G1", merged_from=("S1",), text=rewritten)),
        ("merge from, among others", change("merge", key="G1", merged_from=("G2", "S2"), text=rewritten)),
        ("merge of the scaffold", change("merge", key="S1", merged_from=("S2",), text=rewritten)),
        ("add under its key", change("add", key="S1", text=rewritten)),
        ("add a new one", change("add", key="S3", text=rewritten)),
        ("add under a learned key", change("add", key="G1", text=rewritten)),
        ("add the same text", change("add", text=same)),
        ("add the same text, shouted", change("add", text=f"  {same.upper().rstrip('.')} !! ")),
        ("add the same text, wide", change("add", text=same.replace("a", "ａ"))),
        ("add the same text, with nothing in it", change("add", text=same.replace(" ", "\u200b "))),
        ("update a rule to its text", change("update", key="G1", text=same)),
        ("merge to its text", change("merge", key="G1", merged_from=("G2",), text=same)),
        ("update one that is not there", change("update", key="S3", text=rewritten)),
        ("update s1", change("update", key="s1", text=rewritten)),
        ("update S1 with a space", change("update", key="S1 ", text=rewritten)),
        ("update S01", change("update", key="S01", text=rewritten)),
        ("update in full width", change("update", key="Ｓ1", text=rewritten)),
        ("roll back by a change", change("rollback", key="S1")),
    ]


@pytest.mark.parametrize("attack", [attack for _, attack in attacks()], ids=[name for name, _ in attacks()])
def test_no_operation_touches_the_scaffold(attack: GuidanceChange) -> None:
    assert refused(attack)


def test_no_credit_is_written_for_the_scaffold() -> None:
    with pytest.raises(GuidanceError) as caught:
        record_credit(guidance(), {"G1": (1, 0), "S1": (1, 0)})
    assert_sentences(caught.value)


@pytest.mark.parametrize(
    "rules",
    [
        {"S1": "Anything goes."},
        {"S3": "One more."},
        {"S1": RULES["S1"] + " "},
    ],
)
def test_no_rollback_brings_another_scaffold(rules: dict[str, str]) -> None:
    with pytest.raises(GuidanceError) as caught:
        roll_back(guidance(), guidance(**rules), AT)
    assert_sentences(caught.value)


def test_no_rollback_takes_the_scaffold_or_g0_away() -> None:
    for key in ("S1", "S2", "G0"):
        with pytest.raises(GuidanceError):
            roll_back(guidance(), guidance().without(key), AT)


def test_no_rollback_brings_the_rules_of_another_mission() -> None:
    with pytest.raises(GuidanceError):
        roll_back(guidance(), seed_guidance("shelves", RULES, ""), AT)


def test_changes_of_all_kinds_leave_the_scaffold_as_it_was() -> None:
    found = after(
        change("add", text="Three."),
        change("update", key="G0", text="Nought."),
        change("merge", key="G1", merged_from=("G2", "G3"), text="One."),
        change("delete", key="G1"),
    )
    assert found.scaffold == {"S1": RULES["S1"], "S2": RULES["S2"]}
    assert (dict(found.learned), found.step) == ({"G0": "Nought."}, 4)


def test_guidance_that_lost_its_first_rule_elsewhere_is_not_carried_on() -> None:
    with pytest.raises(GuidanceError) as caught:
        apply_change(guidance().without("G0"), change("add", text="New."), AT)
    assert_sentences(caught.value)


# G0, attacked


@pytest.mark.parametrize(
    "attack",
    [
        change("delete", key="G0"),
        change("merge", key="G1", merged_from=("G0",), text="x"),
        change("merge", key="G1", merged_from=("G2", "G0"), text="x"),
    ],
    ids=["delete", "merge", "merge among others"],
)
def test_g0_is_never_removed(attack: GuidanceChange) -> None:
    assert_sentences(refused(attack))


# What makes no sense


@pytest.mark.parametrize(
    "guidance_change",
    [
        change("update", text="x"),
        change("update", key="G7", text="x"),
        change("update", key="", text="x"),
        change("delete"),
        change("delete", key="G7"),
        change("merge", key="G1", text="x"),
        change("merge", key="G1", merged_from=("G2", "G2"), text="x"),
        change("merge", key="G1", merged_from=("G1",), text="x"),
        change("merge", key="G1", merged_from=("G7",), text="x"),
        change("merge", key="G999", merged_from=("G1",), text="x"),
        change("merge", merged_from=("G1",), text="x"),
        change("add", key="G3", text="x"),
        change("add", text="A torn seal: fail."),
        change("add", text="a TORN seal — fail"),
        change("rollback"),
    ],
)
def test_a_change_that_can_not_be_meant_is_refused_and_says_why(guidance_change: GuidanceChange) -> None:
    assert_sentences(refused(guidance_change))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("A torn seal: fail.", "a torn seal fail"),
        ("若柜门未关，则判定不通过。", "若柜门未关,则判定不通过"),
        ("ＰＡＳＳ it", "pass it"),
        ("two  words\n", "two words"),
        ("ﬁne", "fine"),
        ("at most 3, then pass.", "at most 3 then pass"),
    ],
)
def test_texts_are_the_same_whatever_their_width_case_spaces_and_punctuation(first: str, second: str) -> None:
    assert same_text(first, second)
    assert same_text(second, first)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("则判定通过", "则判定不通过"),
        ("at least 1.5 m: pass", "at least 15 m: pass"),
        ("below -5 degrees: fail", "below 5 degrees: fail"),
        ("more than 50%: pass", "more than 50: pass"),
        ("a < b: pass", "a > b: pass"),
        ("3 or more: pass", "3 or more: fail"),
        ("10-20 screws: pass", "1020 screws: pass"),
    ],
)
def test_texts_that_say_something_else_are_not_the_same(first: str, second: str) -> None:
    assert not same_text(first, second)
    found = after(change("add", text=first), change("add", text=second))
    assert [found.experiences["G3"], found.experiences["G4"]] == [first, second]


# Credit and rollback


def test_credit_is_what_was_measured_and_no_step() -> None:
    start = after(change("add", text="Three.", rationale="why"))
    found = record_credit(start, {"G3": (3, 1), "G0": (0, 3)})
    assert (found.step, found.experiences, found.updated_at) == (start.step, start.experiences, start.updated_at)
    assert found.metadata["G3"] == msgspec.structs.replace(
        start.metadata["G3"], hit_count=3, miss_count=1, confidence=0.6667
    )
    assert found.metadata["G0"] == RuleMeta(hit_count=0, miss_count=3, confidence=0.2)
    assert record_credit(found, {"G3": (0, 0)}).metadata["G3"].confidence == 0.5
    assert start.metadata["G3"].hit_count == 0


def test_a_rule_falls_below_the_clean_up_only_by_what_was_measured() -> None:
    found = record_credit(guidance(), {"G1": (1, 3), "G2": (0, 2)})
    assert (found.metadata["G1"].confidence, found.metadata["G2"].confidence) == (0.3333, 0.25)


@pytest.mark.parametrize("key", ["G7", "S1", "", "x"])
def test_credit_for_what_is_no_learned_rule_is_refused_and_none_is_written(key: str) -> None:
    start = guidance()
    with pytest.raises(GuidanceError):
        record_credit(start, {"G1": (1, 1), key: (1, 1)})
    assert start.metadata == {}


def test_a_rollback_is_a_new_step_with_the_old_rules() -> None:
    start = after(change("add", text="Three."))
    later = after(change("update", key="G3", text="Drei."), change("delete", key="G1"), start=start)
    back = roll_back(later, start, "2026-03-01T00:00:00Z")
    assert back.experiences == start.experiences
    assert back.metadata["G3"] == start.metadata["G3"]
    assert (back.step, back.updated_at, back.hash) == (4, "2026-03-01T00:00:00Z", start.hash)


def test_a_change_says_in_few_words_what_it_is() -> None:
    assert (change("delete", key="G1").label, change("add", text="x").label) == ("delete G1", "add")
