"""Sentences about rules (rationale, falsifier, analysis), and phrases that rules must not contain."""

from __future__ import annotations

from typing import NamedTuple

from donewhen.models.contrast.features import needle
from donewhen.models.contrast.grammars import base_language, grammar_of
from donewhen.models.contrast.rules import (
    ChecklistCondition,
    Condition,
    LengthCondition,
    NumberCondition,
    PhraseCondition,
    Rule,
    SectionCondition,
)
from donewhen.models.contrast.sentences import write_conditions

# Rules have two verdicts, so their phrases must not name a verdict, a third state, or a brand.
_UNFIT_WORDS = (
    "pass", "passes", "passed", "fail", "fails", "failed", "pending", "unclear", "inconclusive",
    "review", "insufficient evidence", "enough evidence", "to be determined", "cannot determine",
    "can not determine", "further confirmation", "should not", "must not", "do not judge",
    "brand", "brands", "branding",
)  # fmt: skip
_UNFIT_CHARACTERS = (
    "通过", "复核", "複核", "覆核", "证据不足", "證據不足", "待定", "直接", "佐证", "佐證", "进一步", "進一步",
    "第三态", "无法判断", "無法判斷", "判定", "判断", "判為", "判为", "品牌",
)  # fmt: skip
_UNFIT_NEEDLES = tuple(map(needle, _UNFIT_WORDS))


def is_unfit_phrase(phrase: str) -> bool:
    """Whether a rule must not contain this phrase."""
    searched = needle(phrase)
    joined = searched.replace(" ", "")
    return any(word in searched for word in _UNFIT_NEEDLES) or any(part in joined for part in _UNFIT_CHARACTERS)


class RuleSentences(NamedTuple):
    """The sentences about rules in one language."""

    no_rule: str
    unread: str
    add: str
    update: str
    delete: str
    default: str
    falsifier: str
    proposed: str
    nothing: str
    decided: str
    all_shown: str


_SENTENCES = {
    "en": RuleSentences(
        "No rule decides, so the default holds.",
        "Unsupported rule syntax: {keys}.",
        "Of {n} studied tickets it turns {right} to the right verdict and {wrong} to the wrong one.",
        "Of {n} studied tickets it judges {right} more right than the rule it replaces, and {wrong} more wrong.",
        "Of {n} studied tickets {right} are judged right without it, and {wrong} wrong.",
        "Of {n} studied tickets that no rule speaks of, {right} are labelled so.",
        "Most tickets where {conditions} are labelled {other}.",
        "{n} tickets were compared; {count} changes would bring the guidance closer to their labels.",
        "{n} tickets were compared; no change would bring the guidance closer to their labels.",
        "{n} of {cases} cases show none of the signs that go with their label in the {studied} studied tickets.",
        "Each of {cases} cases shows signs that go with its label in the {studied} studied tickets.",
    ),
    "zh": RuleSentences(
        "没有规则作出决定，采用默认判定。",
        "以下规则的写法无法读取：{keys}。",
        "在{n}份样本中，它使{right}份改为正确，{wrong}份改为错误。",
        "在{n}份样本中，与所替换的规则相比，多判对{right}份，多判错{wrong}份。",
        "在{n}份样本中，去掉它后{right}份改为正确，{wrong}份改为错误。",
        "在没有规则涉及的{n}份样本中，{right}份的标注如此。",
        "满足“{conditions}”的样本多数标注为{other}。",
        "比较了{n}份样本，有{count}处改动使指导更接近标注。",
        "比较了{n}份样本，没有改动能使指导更接近标注。",
        "{cases}例中有{n}例，在{studied}份样本里与其标注相伴的信号一个也没有出现。",
        "{cases}例中每一例都带有在{studied}份样本里与其标注相伴的信号。",
    ),
}


def rule_sentences(language: str) -> RuleSentences:
    """Return the sentences of a language; English if it has none."""
    return _SENTENCES.get(base_language(language), _SENTENCES["en"])


def falsifier_sentence(rule: Rule, language: str) -> str:
    """Return the falsifier of a rule: most of its tickets have the other label."""
    grammar = grammar_of(language)
    conditions = write_conditions(rule, language).replace("“", "「")
    other = grammar.verdicts["pass" if rule.verdict == "fail" else "fail"]
    return rule_sentences(language).falsifier.format(conditions=conditions.replace("”", "」"), other=other)


def rule_dimension(rule: Rule) -> str:
    """Return the kind of condition of a rule."""
    kinds = {_kind(condition) for condition in rule.conditions}
    return kinds.pop() if len(kinds) == 1 else "several"


def _kind(condition: Condition) -> str:
    match condition:
        case PhraseCondition():
            return "terms"
        case NumberCondition():
            return "numbers"
        case SectionCondition():
            return "sections"
        case ChecklistCondition():
            return "checklist"
        case LengthCondition():
            return "length"
