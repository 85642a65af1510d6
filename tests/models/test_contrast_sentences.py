"""The language of rules: what is written is read back, in both languages, and prose is not guessed at."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from donewhen.models.contrast import default_rule
from donewhen.models.contrast.grammars import GRAMMARS, grammar_of
from donewhen.models.contrast.rules import (
    ChecklistCondition,
    Condition,
    DefaultRule,
    LengthCondition,
    NumberCondition,
    PhraseCondition,
    Rule,
    SectionCondition,
)
from donewhen.models.contrast.sentences import read_rule, sentences_of, write_rule
from donewhen.models.contrast.wording import falsifier_sentence, is_unfit_phrase, rule_dimension
from donewhen.models.contrast.words import normalise_label

phrases = (
    st.text("abcxyzß没有结果 and or'-3", min_size=1, max_size=20)
    .map(normalise_label)
    .filter(lambda value: value != "" and normalise_label(value) == value)
)
amounts = st.one_of(st.integers(-1000, 100_000).map(float), st.floats(0.001, 1e6, allow_nan=False))
wheres = st.sampled_from(["text", "start", "end"])
conditions: st.SearchStrategy[Condition] = st.one_of(
    st.builds(
        PhraseCondition,
        st.lists(phrases, min_size=1, max_size=3).map(tuple),
        wheres,
        st.booleans(),
        amounts,
        st.booleans(),
    ),
    st.builds(
        NumberCondition,
        phrases,
        st.sampled_from(["first", "last", "highest", "lowest", "mean"]),
        st.booleans(),
        amounts,
    ),
    st.builds(SectionCondition, phrases, st.booleans()),
    st.builds(ChecklistCondition, st.booleans()),
    st.builds(LengthCondition, st.sampled_from(["words", "lines", "sections"]), st.booleans(), amounts),
)


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    some = tuple(draw(st.lists(conditions, min_size=1, max_size=4)))
    verdict = draw(st.sampled_from(["pass", "fail"]))
    strength = draw(st.sampled_from(["weak", "plain", "strong"]))
    return Rule(some, verdict, strength, draw(st.integers(0, len(some))))


@given(rules(), st.sampled_from(["en", "zh"]))
def test_what_is_written_is_read_back(rule: Rule, language: str) -> None:
    assert read_rule(write_rule(rule, language)) == rule


@given(rules(), st.sampled_from(["en", "zh"]))
def test_a_written_rule_is_one_sentence(rule: Rule, language: str) -> None:
    text = write_rule(rule, language)
    assert sentences_of(text) == [text]


@given(st.text(max_size=200))
def test_reading_never_breaks_whatever_the_text(text: str) -> None:
    rule = read_rule(text)
    assert rule is None or isinstance(rule, Rule | DefaultRule)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("verdict", ["pass", "fail"])
def test_a_default_is_a_sentence_too(language: str, verdict: str) -> None:
    assert read_rule(default_rule(verdict, language)) == DefaultRule(verdict)


def test_rules_read_as_people_would_write_them() -> None:
    below = Rule((NumberCondition("score", "last", at_least=False, threshold=4),), "fail")
    assert write_rule(below, "en") == 'When the last "score" is below 4, the verdict is fail.'
    assert read_rule("If the last “Score” is below 4, then the verdict is FAIL") == below
    assert write_rule(below, "zh") == "若末个“score”低于4，则判定不通过。"
    assert read_rule("如果末个「Score」低于4，判定为不通过") == below


def test_a_list_says_how_many_of_its_items_are_enough() -> None:
    rule = Rule(
        (
            LengthCondition("lines", at_least=True, amount=70),
            PhraseCondition(("transfer",), at_least=False),
            PhraseCondition(("amount",), "end", amount=2),
        ),
        "fail",
        "weak",
        enough=2,
    )
    text = write_rule(rule, "en")
    assert text == 'With 2+ of: 70+ lines; no "transfer"; 2+ late "amount", the verdict is fail (weak sign).'
    assert read_rule(text) == rule


def test_more_than_all_items_can_never_be_enough_so_it_is_no_rule() -> None:
    assert read_rule('With 2+ of: "a", the verdict is fail.') is None


@pytest.mark.parametrize(
    "prose",
    [
        "Be strict about missing tests.",
        "When it looks bad, the verdict is fail.",
        'When "a" occurs and the moon is full, the verdict is fail.',
        'When "..." occurs, the verdict is fail.',
        'When "a" occurs, the verdict is unclear.',
        "",
    ],
)
def test_prose_is_not_guessed_at(prose: str) -> None:
    assert read_rule(prose) is None


def test_words_in_quotation_marks_join_and_separate_nothing() -> None:
    text = 'When "salt and pepper" occurs and "now or never" never occurs, the verdict is pass.'
    rule = read_rule(text)
    assert isinstance(rule, Rule)
    assert [condition.phrases for condition in rule.conditions if isinstance(condition, PhraseCondition)] == [
        ("salt and pepper",),
        ("now or never",),
    ]


def test_a_text_may_hold_prose_and_rules() -> None:
    text = 'Judge the task. See "a. b" first. Unless a rule says otherwise, the verdict is pass.'
    assert sentences_of(text) == ["Judge the task.", 'See "a. b" first.', default_rule("pass", "en")]
    assert sentences_of("先看全文。若无规则另述，则判定通过。") == ["先看全文。", default_rule("pass", "zh")]


def test_a_region_has_the_grammar_of_its_language_and_others_have_english() -> None:
    assert grammar_of("zh-CN") is GRAMMARS["zh"]
    assert grammar_of("zh_TW") is GRAMMARS["zh"]
    assert grammar_of("fi") is GRAMMARS["en"]


def test_a_falsifier_names_the_condition_and_the_other_label() -> None:
    rule = Rule((PhraseCondition(("没有",)),), "fail")
    assert falsifier_sentence(rule, "en") == 'Most tickets where "没有" occurs are labelled pass.'
    assert falsifier_sentence(rule, "zh") == "满足“文中出现「没有」”的样本多数标注为通过。"


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        (PhraseCondition(("a",)), "terms"),
        (NumberCondition("a", "last", at_least=True, threshold=1), "numbers"),
        (SectionCondition("a", present=True), "sections"),
        (ChecklistCondition(checked=True), "checklist"),
        (LengthCondition("words", at_least=True, amount=3), "length"),
    ],
)
def test_a_rule_has_the_dimension_of_what_it_looks_at(condition: Condition, kind: str) -> None:
    assert rule_dimension(Rule((condition,), "pass")) == kind
    assert (
        rule_dimension(Rule((condition, PhraseCondition(("b",)), ChecklistCondition(checked=False)), "pass"))
        == "several"
    )


@pytest.mark.parametrize(
    "phrase", ["fail", "checks passed", "still pending", "is unclear", "brand", "未通过", "需复核", "无法判断"]
)
def test_words_that_would_make_a_third_verdict_are_unfit_for_rules(phrase: str) -> None:
    assert is_unfit_phrase(phrase)


@pytest.mark.parametrize("phrase", ["failure", "bypass", "depending", "没有结果"])
def test_words_that_only_look_alike_are_fit(phrase: str) -> None:
    assert not is_unfit_phrase(phrase)
