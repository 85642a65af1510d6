"""Sentences about rules (rationale, falsifier, analysis), and phrases that rules must not contain."""

from __future__ import annotations

from typing import NamedTuple

from donewhen.models.contrast.grammars import base_language, grammar_of
from donewhen.models.contrast.rules import (
    ChecklistCondition,
    Condition,
    LengthCondition,
    MeasureCondition,
    NumberCondition,
    PhraseCondition,
    Rule,
    SectionCondition,
)
from donewhen.models.contrast.sentences import write_conditions
from donewhen.models.contrast.words import needle

# Rules have two verdicts, so their phrases must not name a verdict, a third state, or a brand. A test compares these
# with the wording of the languages, by which proposals are screened.
_UNFIT_WORDS = (
    "pass", "passes", "passed", "fail", "fails", "failed", "review", "reviewed", "should not", "must not",
    "do not judge", "enough evidence", "brand", "branding", "brands", "doubtful",
    "inadequate", "inconclusive", "indeterminate", "insufficient",
    "pending", "tbc", "tbd", "uncertain",
    "uncertainty", "unclear", "undecidable", "undecided", "undetermined", "unsure",
    "awaiting confirmation", "can't decide", "can't determine", "can't judge", "can't tell", "cannot decide",
    "cannot determine", "cannot judge", "cannot tell", "confirmation needed", "further checks",
    "further confirmation", "further evidence", "further investigation", "further verification", "in doubt",
    "insufficiently proven", "manual check", "manual confirmation", "manual inspection", "manual verification",
    "need confirmation", "needs confirmation", "not certain", "not clear", "not sufficient", "not sure",
    "requires confirmation", "second opinion", "third state", "third verdict",
    "can not decide", "can not determine", "can't be decided", "can't be determined", "can't be judged",
    "cannot be decided", "cannot be determined", "cannot be judged", "couldn't be determined", "hard to say",
    "hard to tell", "impossible to determine", "more evidence needed", "need more evidence", "needs more evidence",
    "not enough information", "to be checked", "to be confirmed", "to be decided", "to be determined",
    "to be verified", "unable to decide", "unable to determine", "unable to judge", "could not be determined",
    "more evidence is needed",
)  # fmt: skip
_UNFIT_CHARACTERS = (
    "通过", "複核", "覆核", "證據不足", "直接", "佐證", "进一步", "進一步", "無法判斷", "判定", "判断", "判為",
    "判为", "佐证", "品牌", "复审", "复核", "存疑", "待定", "待查", "待议", "暂定",
    "暂缓", "不确定", "待商榷", "待复查", "待复检", "待复验", "待审查", "待审核", "待核实",
    "待核对", "待核查", "待确认", "待补充", "待观察", "待评估", "待验证", "拿不准", "暂不判",
    "第三态", "说不准", "转人工", "需人工", "需复查", "需核实", "需核查", "需确认", "不太确定",
    "不能确定", "人工介入", "人工复查", "人工审核", "人工核实", "人工核查", "人工检查", "人工确认", "依据不足",
    "信息不足", "再次确认", "存在疑问", "尚未确定", "建议复查", "无法确定", "无法确认", "未能确定", "缺乏证据",
    "缺乏足够", "证据不够", "证据不足", "证据仍不", "证据尚不", "证据有限", "证据较少", "难以确定", "难以确认",
    "需再确认", "需要人工", "需要复查", "需要核实", "需要核查", "需要确认", "不足以确认", "不足以认定",
    "不足以证明", "依据不充分", "信息不充分", "第三种状态", "第三种结论", "证据不充分", "需要再确认",
    "无法得出结论", "证据并不充分",
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
        case MeasureCondition():
            return "measures"
