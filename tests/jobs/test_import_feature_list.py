"""Lists of features: the form that harnesses share, the forms in which they differ, and JSON that is meant to hurt."""

from __future__ import annotations

import json
from typing import Any

import pytest

from donewhen.foundation.errors import UsageError
from donewhen.jobs.imports.feature_list import read_feature_list
from donewhen.jobs.imports.items import ImportItem, ReadSource, SourceClaim, SourceText
from donewhen.jobs.ledger.finding_codes import FindingCode
from sentences import assert_sentences

FEATURE: dict[str, Any] = {
    "category": "functional",
    "description": "A guest can borrow a boat",
    "steps": ["Go to the pier", "Press the bell", "See that a boat comes"],
    "passes": False,
}


def text(data: object) -> SourceText:
    return SourceText("feature_list.json", "feature_list.json", data if isinstance(data, str) else json.dumps(data))


def read_feature(**fields: Any) -> ReadSource:
    return read_feature_list([text([{**FEATURE, **fields}])])


def only(imported: ReadSource) -> ImportItem:
    assert not imported.findings, imported.findings
    (item,) = imported.items
    return item


def test_a_feature_is_one_criterion_with_its_steps() -> None:
    item = only(read_feature())
    assert item.title == "A guest can borrow a boat"
    assert item.criteria == (
        "A guest can borrow a boat. Steps: (1) Go to the pier (2) Press the bell (3) See that a boat comes",
    )
    assert item.objective == ""
    assert item.notes == ("Category: functional",)
    assert item.claim == SourceClaim("passes: false", done=False)
    assert item.where == "feature_list.json [0]"


def test_without_an_id_its_words_are_its_name_wherever_it_stands() -> None:
    other = {**FEATURE, "description": "The oars are dry"}
    first, second = read_feature_list([text([FEATURE, other])]).items
    assert [item.key for item in read_feature_list([text([other, FEATURE])]).items] == [second.key, first.key]
    assert only(read_feature(steps=[])).key == first.key
    assert only(read_feature(steps=[])).hash != first.hash


def test_the_same_words_twice_are_told_apart_by_their_order() -> None:
    first, second, third = read_feature_list([text([FEATURE, FEATURE, FEATURE])]).items
    assert (second.key, third.key) == (f"{first.key}-2", f"{first.key}-3")


@pytest.mark.parametrize("value", [True, "true", "pass"])
def test_what_passes_is_a_claim(value: object) -> None:
    assert only(read_feature(passes=value)).claim == SourceClaim(f"passes: {json.dumps(value)}", done=True)
    assert only(read_feature(passes=value)).hash == only(read_feature()).hash


def test_a_word_for_the_state_is_a_claim_too() -> None:
    assert only(read_feature(status="Done")).claim == SourceClaim("passes: false, status Done", True, "Done")
    begun = SourceClaim("passes: false, status not_started", False, "not_started")
    assert only(read_feature(state="not_started")).claim == begun
    assert not only(read_feature(passes={"by": "me"})).claim.done


@pytest.mark.parametrize("name", ["features", "userStories", "tests"])
def test_the_list_may_stand_in_an_object(name: str) -> None:
    assert read_feature_list([text({"project": "Pier", name: [FEATURE]})]).items == read_feature().items


@pytest.mark.parametrize("name", ["acceptance", "acceptance_criteria", "acceptanceCriteria"])
def test_criteria_of_its_own_come_before_steps(name: str) -> None:
    item = only(read_feature(id="F1", title="Boats", **{name: ["There is a boat", "It floats"]}))
    assert item.key == "feature-list:F1"
    assert item.title == "Boats"
    assert item.criteria == ("There is a boat", "It floats")
    assert item.objective.startswith("A guest can borrow a boat\n\nSteps:\n1. Go to the pier\n2.")


def test_other_fields_have_their_places() -> None:
    item = only(read_feature(id=7, priority="high", phase="P2", area="pier", dependencies=["F1", 3]))
    assert item.key == "feature-list:7"
    assert (item.priority, item.wave) == (1, "P2")
    assert item.depends_on == ("feature-list:F1", "feature-list:3")
    assert item.notes == ("Category: functional", "Area: pier")
    assert only(read_feature(priority=12)).priority == 12
    assert only(read_feature(depends_on="F1")).depends_on == ("feature-list:F1",)


def test_an_unknown_priority_is_told() -> None:
    for value in (-1, "soon", True, 1.5):
        imported = read_feature(priority=value)
        assert imported.items[0].priority == 2
        assert [finding.code for finding in imported.findings] == [FindingCode.IMPORT_NOT_UNDERSTOOD]


def test_a_command_is_told_and_is_no_check() -> None:
    imported = read_feature(verification_command="sh -c 'rm -rf /'")
    assert [finding.code for finding in imported.findings] == [FindingCode.IMPORT_COMMAND]
    assert imported.items[0].criteria == read_feature().items[0].criteria
    assert_sentences(imported.items[0].notes[-1])


@pytest.mark.parametrize("entry", ["text", 3, None, [], {}, {"title": ""}, {"title": 1e999}, {**FEATURE, "id": []}])
def test_what_is_no_feature_is_left_out_and_told(entry: object) -> None:
    data = json.dumps([entry, FEATURE]).replace("Infinity", "true")
    imported = read_feature_list([text(data)])
    assert len(imported.items) == 1
    assert [(finding.code, finding.where) for finding in imported.findings] == [
        (FindingCode.IMPORT_NOT_UNDERSTOOD, "feature_list.json [0]")
    ]


def test_an_id_that_is_there_twice_is_told() -> None:
    imported = read_feature_list([text([{**FEATURE, "id": "F1"}, {**FEATURE, "id": "F1", "description": "Other"}])])
    assert len(imported.items) == 1
    assert_sentences(imported.findings[0].message)


def test_a_step_that_is_no_text_is_told() -> None:
    imported = read_feature(steps=["Go", {"then": "stop"}, None])
    assert imported.items[0].criteria == ("A guest can borrow a boat. Steps: (1) Go",)
    assert len(imported.findings) == 2


@pytest.mark.parametrize(
    "data",
    [
        "[",
        "",
        '[{"a": 1,}]',
        "[" * 100_000,
        '{"features": [], "features": []}',
        "[NaN]",
        "[" + "9" * 5000 + "]",
        '"text"',
        "{}",
        '{"features": {}}',
        '{"features": [], "tests": []}',
    ],
)
def test_json_that_is_no_list_of_features_is_refused_with_its_place(data: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_feature_list([text(data)])
    assert_sentences(caught.value.message)
    assert (caught.value.where or "").startswith("feature_list.json")


def test_a_mistake_has_its_line() -> None:
    with pytest.raises(UsageError) as caught:
        read_feature_list([text('[\n  {"description": }\n]')])
    assert caught.value.where == "feature_list.json:2:19"


def test_hidden_characters_do_not_arrive() -> None:
    item = only(read_feature(description="Boat\ud800s \x1b[31mare\u202e here\u2028now"))
    assert item.title == "Boats [31mare here\nnow"
