"""The judge does what the rules say: signs are weighed, the scaffold binds first, nothing is random."""

from __future__ import annotations

import asyncio

import pytest

from donewhen.models.contrast import Contrast, default_rule, unreadable_rules
from donewhen.models.contrast.features import Features
from donewhen.models.contrast.judge import judge_by_rules
from donewhen.models.roles import AnswerForm, Decode, Prompt, RolloutRequest
from sentences import assert_sentences

FORMS = {"zh": AnswerForm("判定", "理由", "通过", "不通过")}
PASS, FAIL = default_rule("pass", "en"), default_rule("fail", "en")


def verdict(rules: dict[str, str], text: str, temperature: float = 0.1) -> str:
    return judge_by_rules(rules, Features({"text": text}), temperature).verdict


def roll(rules: dict[str, str], text: str, language: str = "en", temperature: float = 0.1) -> str:
    request = RolloutRequest(
        Prompt("", ""), rules, {"text": text}, Decode(temperature), language, FORMS.get(language, AnswerForm())
    )
    return asyncio.run(Contrast().roll(request)).text


def says(word: str, verdict: str, strength: str = "") -> str:
    return f'When "{word}" occurs, the verdict is {verdict}{strength}.'


def test_the_default_speaks_where_no_rule_does() -> None:
    assert verdict({"G0": PASS}, "text") == "pass"
    assert verdict({"G0": FAIL}, "text") == "fail"


def test_without_a_default_it_is_a_fail() -> None:
    assert verdict({}, "text") == "fail"
    assert verdict({"G0": "Judge with care."}, "text") == "fail"


def test_a_rule_that_applies_decides() -> None:
    rules = {"G0": PASS, "G1": says("broken", "fail")}
    assert verdict(rules, "it is broken") == "fail"
    assert verdict(rules, "it works") == "pass"


def test_signs_are_added_up_by_their_strength() -> None:
    rules = {
        "G0": FAIL,
        "G1": says("a", "fail"),
        "G2": says("b", "pass", " (weak sign)"),
        "G3": says("c", "pass", " (strong sign)"),
    }
    assert verdict(rules, "a b") == "fail"
    assert verdict(rules, "a c") == "pass"
    assert verdict(rules, "b") == "pass"


def test_signs_in_balance_leave_it_to_the_default() -> None:
    rules = {"G1": says("a", "fail"), "G2": says("b", "pass")}
    assert verdict({"G0": PASS, **rules}, "a b") == "pass"
    assert verdict({"G0": FAIL, **rules}, "a b") == "fail"


def test_the_scaffold_overrides_whatever_was_learned() -> None:
    rules = {
        "G0": PASS,
        "G1": says("good", "pass", " (strong sign)"),
        "G2": says("fine", "pass", " (strong sign)"),
        "S1": says("unsafe", "fail", " (weak sign)"),
    }
    assert verdict(rules, "good fine unsafe") == "fail"
    assert verdict(rules, "good fine") == "pass"


def test_the_default_of_the_scaffold_comes_before_that_of_the_guidance() -> None:
    assert verdict({"G0": PASS, "S1": FAIL}, "text") == "fail"


def test_weak_signs_are_left_out_at_high_temperature_and_nothing_else_changes() -> None:
    weak = {"G0": PASS, "G1": says("a", "fail", " (weak sign)")}
    assert [verdict(weak, "a", temperature) for temperature in (0.1, 0.4, 0.7)] == ["fail", "fail", "pass"]
    plain = {"G0": PASS, "G1": says("a", "fail")}
    assert [verdict(plain, "a", temperature) for temperature in (0.1, 0.4, 0.7)] == ["fail", "fail", "fail"]


def test_the_margin_says_how_far_the_signs_are_from_balance() -> None:
    rules = {"G0": PASS, "G1": says("a", "fail", " (strong sign)"), "G2": says("b", "pass")}
    assert judge_by_rules(rules, Features({"text": "a b"})).margin == 2
    assert judge_by_rules(rules, Features({"text": "c"})).margin == 0


def test_a_list_applies_when_enough_of_it_holds() -> None:
    rules = {"G0": PASS, "G1": 'With 2+ of: "a"; "b"; no "c", the verdict is fail.'}
    assert verdict(rules, "a b c") == "fail"
    assert verdict(rules, "a") == "fail"
    assert verdict(rules, "c a") == "pass"


def test_prose_is_ignored_and_told() -> None:
    rules = {"G0": f"Judge the task. {PASS}", "G1": "Be kind.", "G2": says("a", "fail")}
    assert unreadable_rules(rules) == ("G0", "G1")
    assert verdict(rules, "b") == "pass"
    assert_sentences(roll(rules, "b"))


def test_an_answer_is_two_lines_in_the_words_of_the_language() -> None:
    rules = {"G0": PASS, "G1": says("bad", "fail")}
    assert roll(rules, "bad") == 'Verdict: fail\nReason: G1: When "bad" occurs, the verdict is fail.'
    assert roll({"G0": PASS}, "x").startswith("Verdict: pass\nReason: ")
    assert_sentences(roll({"G0": PASS}, "x"))


def test_a_chinese_mission_is_judged_and_answered_in_chinese() -> None:
    rules = {"G0": default_rule("pass", "zh"), "G1": "若文中出现“缺少”，则判定不通过。", "G2": "要仔细。"}
    answer = roll(rules, "截图缺少价格", "zh")
    assert answer.splitlines()[0] == "判定: 不通过"
    assert answer.splitlines()[1] == "理由: G1: 若文中出现“缺少”，则判定不通过。 以下规则的写法无法读取：G2。"
    assert roll(rules, "截图完整", "zh").startswith("判定: 通过\n理由: 没有规则作出决定")


def test_a_language_without_words_of_its_own_gets_english() -> None:
    assert roll({"G0": PASS}, "x", "fi").startswith("Verdict: pass\nReason: ")


def test_a_rule_over_several_lines_is_still_one_line_of_reason() -> None:
    rules = {"G0": PASS, "G1": 'When "a"\noccurs, the verdict is fail.'}
    assert roll(rules, "a").count("\n") == 1


@pytest.mark.parametrize("temperature", [0.0, 0.4, 1.0])
def test_the_same_question_has_the_same_answer(temperature: float) -> None:
    rules = {"G0": PASS, "G1": says("a", "fail", " (weak sign)"), "G2": says("b", "pass")}
    assert len({roll(rules, "a b", temperature=temperature) for _ in range(3)}) == 1


def test_old_tickets_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("donewhen.models.contrast._REMEMBERED", 10)
    model = Contrast()
    first = model.features({"text": "12345678"})
    assert model.features({"text": "12345678"}) is first
    model.features({"text": "abcdefgh"})
    assert model.features({"text": "12345678"}) is not first
