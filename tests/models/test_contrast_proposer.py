"""The reflector: rules that the cases bear out, with evidence that they were shown, the same whenever it is asked."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
from typing import Any

import pytest

from donewhen.models.contrast import Contrast, default_rule
from donewhen.models.contrast.candidates import StudiedCase, candidates_of, case_sets, clusters_in
from donewhen.models.contrast.features import Features
from donewhen.models.contrast.judge import judge_by_rules
from donewhen.models.contrast.rules import (
    ChecklistCondition,
    LengthCondition,
    NumberCondition,
    PhraseCondition,
    Rule,
    SectionCondition,
    condition_subjects,
)
from donewhen.models.contrast.scorecard import Scorer, shifted, state_of
from donewhen.models.contrast.sentences import LONGEST, read_rule
from donewhen.models.roles import Binary, Case, Model, Prompt, ReflectionRequest, Studious

FILLER = ["page", "shows", "search", "list", "item", "button", "menu", "price", "table", "header", "image", "row"]
NOTES = {
    "en": {"fail": ["nothing was saved", "the field stayed empty"], "pass": ["the order is confirmed", "it was saved"]},
    "zh": {"fail": ["页面缺少价格", "没有保存结果"], "pass": ["订单已经确认", "结果保存成功"]},
}


def tickets(count: int, *, noise: float = 0.0, language: str = "en", seed: int = 1) -> list[Case]:
    """Cases whose label follows a hidden rule: the last score, and what the closing note says."""
    chance = random.Random(seed)
    cases = []
    for number in range(count):
        truth: Binary = "fail" if chance.random() < 0.5 else "pass"
        score = chance.choice([1, 2, 3] if truth == "fail" else [4, 5])
        note = chance.choice(NOTES[language][truth])
        words = " ".join(chance.choices(FILLER, k=chance.randint(40, 60)))
        text = f"{words}\nScore: {chance.randint(1, 5)}\n{note}\nScore: {score}\ntask{number % 20}"
        label = truth if chance.random() >= noise else ("pass" if truth == "fail" else "fail")
        cases.append(Case(f"T{number}::{label}", label, {"text": text}, None, "", cluster=f"c{number % 20}"))
    return cases


def judge(cases: list[Case], rules: dict[str, str]) -> list[Case]:
    verdicts = [judge_by_rules(rules, Features(case.evidence)).verdict for case in cases]
    return [case._replace(verdict=verdict) for case, verdict in zip(cases, verdicts, strict=True)]


def wrong(cases: list[Case], rules: dict[str, str]) -> list[Case]:
    return [case for case in judge(cases, rules) if case.verdict != case.label]


def ask(cases: list[Case], rules: dict[str, str], language: str = "en", most: int = 2) -> ReflectionRequest:
    return ReflectionRequest(Prompt("", ""), rules, tuple(cases), language, {}, most)


def proposed(model: Contrast, request: ReflectionRequest) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(asyncio.run(model.propose(request)).text)
    return answer


def decided(model: Contrast, request: ReflectionRequest) -> list[str]:
    answer = json.loads(asyncio.run(model.decide(request)).text)
    assert set(answer) == {"no_evidence_group_ids", "decision_analysis"}
    assert answer["decision_analysis"]
    keys: list[str] = answer["no_evidence_group_ids"]
    return keys


def studied(cases: list[Case]) -> Contrast:
    model = Contrast()
    model.study(cases)
    return model


def accuracy(cases: list[Case], rules: dict[str, str]) -> float:
    return 1 - len(wrong(cases, rules)) / len(cases)


def with_first_rule(model: Contrast, cases: list[Case], language: str = "en") -> dict[str, str]:
    rules = {"G0": default_rule("pass", language)}
    answer = proposed(model, ask(wrong(cases, rules), rules, language, 1))
    return {**rules, "G1": answer["operations"][0]["text"]}


def test_it_is_a_model_that_studies() -> None:
    model: Model = Contrast()
    assert isinstance(model, Studious)
    assert (model.name, model.free) == ("contrast/1", True)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_hidden_rule_is_found_and_holds_on_unseen_tickets(language: str) -> None:
    cases = tickets(200, language=language)
    rules = with_first_rule(studied(cases), cases, language)
    unseen = tickets(200, language=language, seed=2)
    assert accuracy(unseen, {"G0": rules["G0"]}) < 0.6
    assert accuracy(unseen, rules) > 0.9


def test_noise_in_the_labels_does_not_hide_the_rule() -> None:
    cases = tickets(200, noise=0.15)
    assert accuracy(tickets(200, seed=2), with_first_rule(studied(cases), cases)) > 0.9


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_answers_keep_to_the_schema_and_evidence_to_the_cases_that_a_rule_helps(language: str, seed: int) -> None:
    cases = tickets(120, noise=0.2, language=language, seed=seed)
    model = studied(cases)
    for rules in ({"G0": default_rule("pass", language)}, with_first_rule(model, cases, language)):
        shown = wrong(cases, rules)[:16]
        answer = proposed(model, ask(shown, rules, language))
        assert set(answer) == {"has_evidence", "evidence_analysis", "operations", "hypotheses", "coverage"}
        assert answer["has_evidence"] is bool(answer["operations"] or answer["hypotheses"])
        assert len(answer["operations"]) <= 2
        labels = {case.ticket_key: case for case in shown}
        for item in [*answer["operations"], *answer["hypotheses"]]:
            assert item["evidence"]
            assert set(item["evidence"]) <= set(labels)
            if item.get("op") == "delete":
                continue
            assert len(item["text"]) <= LONGEST
            rule = read_rule(item["text"])
            assert isinstance(rule, Rule)
            for key in item["evidence"]:
                assert labels[key].label == rule.verdict
                alone = {"G1": item["text"]}
                assert judge_by_rules(alone, Features(labels[key].evidence)).verdict == labels[key].label
        for hypothesis in answer["hypotheses"]:
            assert hypothesis["falsifier"]
            assert hypothesis["dimension"] in {"terms", "numbers", "sections", "checklist", "length", "several"}
        covered = answer["coverage"]["covered_ticket_keys"]
        assert set(covered) == {
            key for item in [*answer["operations"], *answer["hypotheses"]] for key in item["evidence"]
        }
        assert set(answer["coverage"]["uncovered_ticket_keys"]) == set(labels) - set(covered)


def test_asked_again_it_answers_the_same_and_so_does_another_of_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("donewhen.models.contrast.proposer._REMEMBERED", 2)
    cases = tickets(120, noise=0.2)
    rules = {"G0": default_rule("pass", "en")}
    request = ask(wrong(cases, rules)[:12], rules)
    model = studied(cases)
    first = asyncio.run(model.propose(request)).text
    for number in range(5):  # more than it remembers
        proposed(model, ask(list(request.cases), {**rules, "G1": f"Prose, number {number}."}))
    assert asyncio.run(model.propose(request)).text == first
    assert asyncio.run(studied(cases).propose(request)).text == first
    assert asyncio.run(model.decide(request)) == asyncio.run(studied(cases).decide(request))


def test_a_case_with_no_sign_of_its_label_is_named_in_the_decision_pass() -> None:
    words = {
        "pass": ["good", "fine", "solid", "clean", "bright", "right", "exact", "proper", "neat", "whole"],
        "fail": ["poor", "wrong", "broken", "empty", "missing", "stale", "faulty", "lost", "bare", "weak"],
    }
    labels: tuple[Binary, Binary] = ("pass", "fail")
    cases = []
    for number in range(80):
        label = labels[number % 2]
        text = " ".join(chance(number).sample(words[label], 6))
        cases.append(Case(f"{number}::{label}", label, {"text": text}, None, "", cluster=f"c{number % 10}"))
    odd = cases[1]._replace(ticket_key="odd::pass", label="pass")
    assert decided(studied([*cases, odd]), ask([*cases, odd], {})) == ["odd::pass"]


def chance(seed: int) -> random.Random:
    return random.Random(seed)


HIDDEN = {
    "a missing section": ("# Tests\nall of it ran", "# Other\nall of it ran"),
    "an open box": ("- [x] one\n- [x] two", "- [x] one\n- [ ] two"),
    "a short text": ("word " * 30, "word " * 9),
    "a low number": ("coverage: 93", "coverage: 41"),
    "a phrase": ("the file was written", "could not write the file"),
    "中文": ("文件已经写好", "文件没有写好"),
}


@pytest.mark.parametrize("kind", HIDDEN)
def test_rules_of_every_kind_are_found(kind: str) -> None:
    good, bad = HIDDEN[kind]

    def some(seed: int) -> list[Case]:
        dice = chance(seed)
        return [
            Case(
                f"{number}::{label}",
                label,
                {"text": f"{filler}\n{good if label == 'pass' else bad}"},
                None,
                "",
                cluster=str(number % 15),
            )
            for number in range(60)
            for label in [dice.choice(("pass", "fail"))]
            for filler in [" ".join(dice.choices(FILLER, k=10))]
        ]

    cases = some(1)
    assert accuracy(some(2), with_first_rule(studied(cases), cases)) == 1


def test_texts_that_are_all_alike_teach_nothing() -> None:
    cases = [case._replace(evidence={"text": "the same for all"}) for case in tickets(60)]
    rules = {"G0": default_rule("pass", "en")}
    answer = proposed(studied(cases), ask(wrong(cases, rules)[:10], rules))
    assert answer["operations"] == answer["hypotheses"] == []


def test_one_label_alone_teaches_nothing() -> None:
    cases = [case for case in tickets(60) if case.label == "fail"]
    rules = {"G0": default_rule("pass", "en")}
    answer = proposed(studied(cases), ask(cases[:10], rules))
    assert answer["operations"] == answer["hypotheses"] == []
    assert answer["has_evidence"] is False
    assert decided(studied(cases), ask(cases[:10], rules)) == []


def test_cases_that_were_not_studied_are_compared_among_themselves() -> None:
    cases = tickets(80)
    rules = {"G0": default_rule("pass", "en")}
    answer = proposed(Contrast(), ask(cases, rules, most=1))
    assert accuracy(tickets(100, seed=2), {**rules, "G1": answer["operations"][0]["text"]}) > 0.9


def test_a_rule_that_does_harm_is_to_be_deleted_on_the_evidence_of_those_it_harms() -> None:
    cases = tickets(120)
    rules = {"G0": default_rule("fail", "en"), "G1": 'When "the field stayed empty" occurs, the verdict is pass.'}
    model = studied(cases)
    seen = [
        operation
        for at in range(0, 40, 8)
        for operation in proposed(model, ask(wrong(cases, rules)[at : at + 8], rules))["operations"]
    ]
    deletes = [change for change in seen if change["op"] == "delete"]
    assert deletes
    assert {delete["key"] for delete in deletes} == {"G1"}
    assert all(key.endswith("::fail") for delete in deletes for key in delete["evidence"])


def test_a_poor_rule_is_outweighed_by_a_better_one() -> None:
    cases = tickets(160)
    rules = {"G0": default_rule("pass", "en"), "G1": 'When "nothing was saved" occurs, the verdict is fail.'}
    model = studied(cases)
    missed = wrong(cases, rules)
    seen = [
        operation
        for at in range(0, len(missed) - 6, 6)
        for operation in proposed(model, ask(missed[at : at + 6], rules))["operations"]
    ]
    additions = [change for change in seen if change["op"] == "add"]
    assert additions
    for addition in additions:
        assert accuracy(cases, {**rules, "G2": addition["text"]}) > accuracy(cases, rules)


def test_the_other_default_is_proposed_where_the_silent_cases_have_the_other_label() -> None:
    cases = tickets(120)
    low = 'When the last "score" is below 4, the verdict is fail.'
    for prose in ("", "Judge the order. "):
        rules = {"G0": prose + default_rule("fail", "en"), "G1": low}
        answer = proposed(studied(cases), ask(wrong(cases, rules)[:20], rules))
        found = [operation["text"] for operation in answer["operations"] if operation.get("key") == "G0"]
        assert found == [f"{prose}Unless a rule says otherwise, the verdict is pass (points: +1)."]


def test_prose_too_long_to_stand_beside_a_default_is_left_alone() -> None:
    cases = tickets(120)
    rules = {"G0": "Judge. " * 25, "G1": 'When the last "score" is below 4, the verdict is fail.'}
    answer = proposed(studied(cases), ask(wrong(cases, rules)[:20], rules))
    assert "G0" not in [operation.get("key") for operation in answer["operations"]]


def test_a_rule_that_stands_among_prose_is_never_changed() -> None:
    cases = tickets(120)
    rules = {
        "G0": default_rule("pass", "en"),
        "G1": 'Mind this. When "the field stayed empty" occurs, the verdict is pass.',
    }
    for at in range(0, 30, 10):
        answer = proposed(studied(cases), ask(wrong(cases, rules)[at : at + 10], rules))
        assert "G1" not in [operation.get("key") for operation in answer["operations"]]


def test_the_order_of_the_studied_cases_does_not_matter() -> None:
    cases = tickets(100, noise=0.1)
    rules = {"G0": default_rule("pass", "en")}
    request = ask(wrong(cases, rules)[:10], rules)
    assert proposed(studied(cases), request) == proposed(studied(cases[::-1]), request)


def test_the_scaffold_is_never_a_target_and_what_it_decides_is_left_alone() -> None:
    cases = tickets(120)
    rules = {
        "S1": 'When the last "score" is below 4, the verdict is pass.',
        "S2": 'When the last "score" is at least 4, the verdict is pass.',
        "G0": default_rule("pass", "en"),
    }
    answer = proposed(studied(cases), ask(wrong(cases, rules)[:10], rules))
    assert answer["operations"] == answer["hypotheses"] == []


def test_no_operations_are_proposed_when_none_are_allowed() -> None:
    cases = tickets(120)
    rules = {"G0": default_rule("pass", "en")}
    answer = proposed(studied(cases), ask(wrong(cases, rules)[:10], rules, most=0))
    assert answer["operations"] == []
    assert answer["hypotheses"]


def test_the_words_of_one_cluster_make_no_rule() -> None:
    cases = [
        StudiedCase(Features({"text": f"plain words {'zebra' if number < 10 else 'horse'}"}), label, f"c{number // 10}")
        for number in range(60)
        for label in ["fail" if number < 10 else "pass"]
    ]
    field = case_sets(cases)
    found = [candidate.condition for candidate in candidates_of(cases, field, lambda _: False)]
    assert not any(isinstance(condition, PhraseCondition) and "zebra" in condition.phrases for condition in found)
    assert clusters_in(field.failing, field) == 1


def test_identifiers_and_unfit_words_make_no_rule() -> None:
    cases = [
        StudiedCase(
            Features({"text": f"result {'AB12 review broken' if number % 2 else 'fine fine fine'} here"}),
            label,
            f"c{number}",
        )
        for number in range(40)
        for label in ["fail" if number % 2 else "pass"]
    ]
    found = candidates_of(cases, case_sets(cases), lambda phrase: "review" in phrase)
    phrases = {
        phrase
        for answer in found
        if isinstance(answer.condition, PhraseCondition)
        for phrase in answer.condition.phrases
    }
    assert phrases
    assert not any("ab12" in phrase or "review" in phrase for phrase in phrases)


def test_a_number_whose_label_is_unfit_makes_no_rule() -> None:
    cases = [
        StudiedCase(Features({"text": f"balance: {number - 20}\nreview: {number - 20}"}), label, f"c{number}")
        for number in range(40)
        for label in ["fail" if number < 20 else "pass"]
    ]
    found = [
        candidate.condition for candidate in candidates_of(cases, case_sets(cases), lambda phrase: "review" in phrase)
    ]
    labels = {condition.label for condition in found if isinstance(condition, NumberCondition)}
    assert labels == {"balance"}
    assert NumberCondition("balance", "first", at_least=True, threshold=0) in found


def test_signs_that_look_at_the_same_are_not_independent() -> None:
    assert condition_subjects(PhraseCondition(("does not",))) & condition_subjects(PhraseCondition(("not shown",)))
    assert condition_subjects(ChecklistCondition(checked=True)) == condition_subjects(ChecklistCondition(checked=False))
    assert condition_subjects(LengthCondition("words", at_least=True, amount=3)) == condition_subjects(
        LengthCondition("lines", at_least=False, amount=3)
    )
    assert not condition_subjects(SectionCondition("score", present=True)) & condition_subjects(
        NumberCondition("score", "last", at_least=True, threshold=1)
    )


def test_the_same_cases_have_the_same_additions() -> None:
    cases = [StudiedCase(Features(ticket.evidence), ticket.label, ticket.cluster) for ticket in tickets(100, noise=0.1)]
    field = case_sets(cases)
    state = state_of({"G0": default_rule("pass", "en")}, cases)
    first, second = (
        Scorer(cases, field).additions(state, candidates_of(cases, field, lambda _: False)) for _ in range(2)
    )
    assert first == second
    assert first[0].rule.points > 0


def test_a_state_adds_up_points_and_leaves_out_what_the_scaffold_decides() -> None:
    cases = [StudiedCase(Features({"text": text}), "fail", text) for text in ("a", "b", "c", "a unsafe")]
    rules = {
        "S1": 'When "unsafe" occurs, the verdict is fail.',
        "G0": "Unless a rule says otherwise, the verdict is pass (points: +1).",
        "G1": 'When "a" occurs, the verdict is pass (points: +3).',
        "G2": 'When "b" occurs, the verdict is fail (points: -2).',
    }
    now = state_of(rules, cases)
    assert (now.base, now.levels) == (1, {4: 0b0001, -1: 0b0010, 1: 0b0100})
    assert (now.masks["G1"], now.passed()) == (0b0001, 0b0101)
    assert shifted(now, 0b0110, -1).levels == {4: 0b0001, -2: 0b0010, 0: 0b0100}


def test_the_base_that_fits_is_the_logarithm_of_the_odds() -> None:
    cases = [StudiedCase(Features({"text": str(n)}), "pass" if n < 80 else "fail", str(n)) for n in range(100)]
    scorer = Scorer(cases, case_sets(cases))
    assert scorer.best_base(state_of({}, cases))[0] == 4


def test_points_of_a_rule_that_weighs_too_little_are_raised_on_the_evidence_of_verdicts_that_change() -> None:
    cases = tickets(160)
    rules = {
        "G0": "Unless a rule says otherwise, the verdict is pass (points: +3).",
        "G1": 'When the last "score" is below 4, the verdict is fail (points: -1).',
    }
    missed = wrong(cases, rules)
    model = studied(cases)
    answers = [proposed(model, ask(missed[at : at + 6], rules, most=1)) for at in range(0, len(missed), 6)]
    update = next(change for answer in answers for change in answer["operations"] if change.get("key") == "G1")
    assert update["op"] == "update"
    assert accuracy(cases, {**rules, "G1": update["text"]}) > accuracy(cases, rules)
    turned = {case.ticket_key for case in missed} - {
        case.ticket_key for case in wrong(cases, {**rules, "G1": update["text"]})
    }
    assert set(update["evidence"]) <= turned


def test_another_process_answers_the_same() -> None:
    script = (
        "import runpy, sys; found = runpy.run_path(sys.argv[1]); cases = found['tickets'](60, noise=0.1)\n"
        "rules = {'G0': found['default_rule']('pass', 'en')}\n"
        "print(found['proposed'](found['studied'](cases), found['ask'](found['wrong'](cases, rules)[:10], rules)))"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", script, __file__],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(answers) == 1
    assert "'op': 'add'" in answers.pop()
