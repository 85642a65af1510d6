"""Sentence templates of rules in each language, one per form of condition.

In the items of a list ``early`` and ``late`` stand for the start and the end of the text, and a percentage for how many
occurrences there are in 100 words.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from donewhen.foundation.binary import Binary
from donewhen.models.contrast.features import Where
from donewhen.models.contrast.measures import Measure
from donewhen.models.contrast.rules import Statistic, Strength, Unit

Form = Literal[
    "occurs", "never", "often", "seldom", "dense", "sparse",
    "below", "at_least", "missing", "present", "unchecked", "checked", "long", "short",
    "more", "less",
]  # fmt: skip


class Grammar(NamedTuple):
    """The templates of one language."""

    forms: dict[Form, str]
    items: dict[Form, str]
    """The same conditions, shorter, as items of a list."""
    places: dict[Where, str]
    short_places: dict[Where, str]
    statistics: dict[Statistic, str]
    units: dict[Unit, str]
    measures: dict[Measure, str]
    verdicts: dict[Binary, str]
    strengths: dict[Strength, str]
    points: str
    """The points of a rule, with the sign of its verdict, in place of a strength."""
    rule: str
    counted: str
    default: str
    other_defaults: tuple[str, ...]
    """Patterns of other common wordings of the default. *Otherwise* is not among them: it is the other half of a rule,
    which may have other rules after it."""
    default_clauses: tuple[str, ...]
    """Patterns of how it is said that no rule applies."""
    fail_wording: str
    """Pattern of what a rule in free wording says if it leads to *fail*."""
    open_wording: str
    """Pattern of what leaves it open, where ``FAILS`` stands for what the pattern of *fail* has found."""
    also: str
    next: str
    """Separator between the items of a list."""
    either: str
    quotes: tuple[str, str]
    lenient: tuple[tuple[str, str], ...]
    """Patterns of alternative spellings, and their replacements."""


ENGLISH = Grammar(
    forms={
        "occurs": "{phrases} occurs{where}",
        "never": "{phrases} never occurs{where}",
        "often": "{phrases} occurs {amount}+ times{where}",
        "seldom": "{phrases} occurs under {amount} times{where}",
        "dense": "{phrases} occurs {amount}+ times per 100 words{where}",
        "sparse": "{phrases} occurs under {amount} times per 100 words{where}",
        "below": "the {statistic} {label} is below {amount}",
        "at_least": "the {statistic} {label} is at least {amount}",
        "missing": "the section {label} is missing",
        "present": "the section {label} is present",
        "unchecked": "a box is unchecked",
        "checked": "every box is checked",
        "long": "the text has {amount}+ {unit}",
        "short": "the text has under {amount} {unit}",
        "more": "{measure} is at least {amount}",
        "less": "{measure} is below {amount}",
    },
    items={
        "occurs": "{where}{phrases}",
        "never": "no {where}{phrases}",
        "often": "{amount}+ {where}{phrases}",
        "seldom": "under {amount} {where}{phrases}",
        "dense": "{amount}%+ {where}{phrases}",
        "sparse": "under {amount}% {where}{phrases}",
        "below": "{statistic} {label} under {amount}",
        "at_least": "{statistic} {label} {amount}+",
        "missing": "no section {label}",
        "present": "a section {label}",
        "unchecked": "an unchecked box",
        "checked": "every box checked",
        "long": "{amount}+ {unit}",
        "short": "under {amount} {unit}",
        "more": "{measure} {amount}+",
        "less": "{measure} under {amount}",
    },
    places={"text": "", "start": " at the start", "end": " at the end"},
    short_places={"text": "", "start": "early ", "end": "late "},
    statistics={
        "first": "first",
        "last": "last",
        "recent": "recent",
        "highest": "highest",
        "lowest": "lowest",
        "mean": "mean",
        "trend": "rise of",
        "count": "number of",
    },
    units={"words": "words", "lines": "lines", "sections": "sections"},
    measures={
        "negations": "the percentage of negations",
        "negations_end": "the percentage of negations at the end",
        "contrasts_end": "the percentage of words like however at the end",
        "task_terms": "the number of terms in the task",
        "covered": "the percentage of task terms in the answer",
        "covered_end": "the percentage of task terms at the end",
        "numbers_missing": "the number of task numbers missing in the answer",
        "repeated": "the percentage of repeated blocks",
        "failed_runs": "the number of failed runs",
        "claims_despite_failure": "the number of claims of success despite failed runs",
        "changed_files": "the number of changed files",
        "changed_tests": "the number of changed test files",
        "added_lines": "the number of added lines",
        "removed_lines": "the number of removed lines",
        "suppressions": "the number of added suppressions",
        "named_files": "the number of changed files named in the task",
        "shared_identifiers": "the number of task identifiers in the diff",
    },
    verdicts={"pass": "pass", "fail": "fail"},
    strengths={"weak": " (weak sign)", "plain": "", "strong": " (strong sign)"},
    points=" (points: {points})",
    rule="When {conditions}, the verdict is {verdict}{strength}.",
    counted="With {enough}+ of: {conditions}, the verdict is {verdict}{strength}.",
    default="Unless a rule says otherwise, the verdict is {verdict}{strength}.",
    other_defaults=(
        r"(?:{clause}),? (?:then )?the verdict is {verdict}\.?",
        r"the verdict is {verdict},? (?:{clause})\.?",
        r"(?:the )?default(?: verdict)?(?: is|:) {verdict}\.?",
    ),
    default_clauses=(
        r"(?:unless|except if) (?:a|another|any other) rule (?:says otherwise|applies|decides)",
        r"(?:if|when|where) no (?:other )?rules? (?:says? otherwise|appl(?:y|ies)|decides?)",
        r"(?:if|when|where) none of the (?:other )?rules appl(?:y|ies)",
        r"by default",
    ),
    fail_wording=(
        r"\bfail(?:s|ed|ing)?\b|\breject(?:s|ed)?\b"
        r"|(?:\b(?:must|may|can|shall|should|will|do|does) ?(?:not|never)|\bcannot|n't|\bnever)"
        r" (?:be )?(?:pass|accept|approve|release)(?:e?[sd])?\b"
    ),
    open_wording=(
        r"\bpass|\baccept|\bapprov|\breleas|\bunless\b|\bexcept|\botherwise\b|\bonly\b"
        r"|(?:\bnot|n't|\bnever|\bno longer|\bwithout)\b[^,;:]{0,20}FAILS"
    ),
    also=" and ",
    next="; ",
    either=" or ",
    quotes=('"', '"'),
    lenient=((r"^if\b", "When"), (r", then the verdict\b", ", the verdict"), (r"(?<![.])$", ".")),
)

CHINESE = Grammar(
    forms={
        "occurs": "{where}出现{phrases}",
        "never": "{where}未出现{phrases}",
        "often": "{where}出现{phrases}至少{amount}次",
        "seldom": "{where}出现{phrases}少于{amount}次",
        "dense": "{where}每百字出现{phrases}至少{amount}次",
        "sparse": "{where}每百字出现{phrases}少于{amount}次",
        "below": "{statistic}{label}低于{amount}",
        "at_least": "{statistic}{label}不低于{amount}",
        "missing": "缺少{label}部分",
        "present": "含有{label}部分",
        "unchecked": "有未勾选项",
        "checked": "各项均已勾选",
        "long": "全文至少{amount}{unit}",
        "short": "全文少于{amount}{unit}",
        "more": "{measure}不低于{amount}",
        "less": "{measure}低于{amount}",
    },
    items={
        "occurs": "{where}有{phrases}",
        "never": "{where}无{phrases}",
        "often": "{where}{phrases}至少{amount}次",
        "seldom": "{where}{phrases}少于{amount}次",
        "dense": "{where}每百字{phrases}至少{amount}次",
        "sparse": "{where}每百字{phrases}少于{amount}次",
        "below": "{statistic}{label}低于{amount}",
        "at_least": "{statistic}{label}不低于{amount}",
        "missing": "缺少{label}部分",
        "present": "含有{label}部分",
        "unchecked": "有未勾选项",
        "checked": "各项均已勾选",
        "long": "至少{amount}{unit}",
        "short": "少于{amount}{unit}",
        "more": "{measure}不低于{amount}",
        "less": "{measure}低于{amount}",
    },
    places={"text": "文中", "start": "开头", "end": "结尾"},
    short_places={"text": "", "start": "开头", "end": "结尾"},
    statistics={
        "first": "首个",
        "last": "末个",
        "recent": "近期",
        "highest": "最高",
        "lowest": "最低",
        "mean": "平均",
        "trend": "升幅",
        "count": "个数",
    },
    units={"words": "字", "lines": "行", "sections": "部分"},
    measures={
        "negations": "否定词百分比",
        "negations_end": "结尾否定词百分比",
        "contrasts_end": "结尾转折词百分比",
        "task_terms": "任务用词数",
        "covered": "答复覆盖任务用词百分比",
        "covered_end": "结尾覆盖任务用词百分比",
        "numbers_missing": "答复缺少的任务数字数",
        "repeated": "重复段落百分比",
        "failed_runs": "失败运行数",
        "claims_despite_failure": "运行失败却声称成功的次数",
        "changed_files": "改动文件数",
        "changed_tests": "改动测试文件数",
        "added_lines": "新增行数",
        "removed_lines": "删除行数",
        "suppressions": "新增屏蔽标记数",
        "named_files": "任务提到的改动文件数",
        "shared_identifiers": "改动中出现的任务标识符数",
    },
    verdicts={"pass": "通过", "fail": "不通过"},
    strengths={"weak": "（弱信号）", "plain": "", "strong": "（强信号）"},
    points="（{points}分）",
    rule="若{conditions}，则判定{verdict}{strength}。",
    counted="若以下至少{enough}项成立：{conditions}，则判定{verdict}{strength}。",
    default="若无规则另述，则判定{verdict}{strength}。",
    other_defaults=(
        r"(?:{clause})(?:时|的情况下|的)?[,，]?(?:则|就)?(?:判定|判断|判)?为?{verdict}。?",
        r"默认(?:情况下|判定|判断|结论|结果)?[,，:：]?(?:则|就)?(?:判定|判断|判)?[为是]?{verdict}。?",
    ),
    default_clauses=(
        r"(?:若|如果|如|当|在)?(?:无|没有)(?:任何)?(?:其[他它])?规则(?:另述|适用|另有规定|另有说明|作出决定)",
        r"(?:若|如果|如|当|在)?(?:其[他它]|所有)?规则[均都]不适用",
        r"除非(?:其[他它])?规则(?:另述|另有规定|另有说明|适用)",
    ),
    fail_wording=(
        r"(?:不|禁止|严禁)(?:能|得|可|予|应|许|准|允许|可以|应该|应当)?(?:判定|判断|判)?为?(?:通过|放行|合格|验收)"
        r"|拒绝|驳回|拒收"
    ),
    open_wording=(
        r"通过|放行|合格|验收|除非|否则|除外|例外|只有|才"
        r"|(?:不|勿|别|无需|无须)(?:要|应|得|能|可|必|用|该)?(?:直接|一律)?(?:判定|判断|判|算|视|记)?[为作]?FAILS"
    ),
    also="，且",
    next="；",
    either="或",
    quotes=("“", "”"),
    lenient=(
        (r"^(?:如果|当|如)", "若"),
        (r"[,，]\s*(?:则)?(?:判定|判断|判)为?(?=不?通过)", "，则判定"),
        (r"[,，]\s*且", "，且"),
        (r"\((弱信号|强信号|[+−-]\d+分)\)", r"（\1）"),
        (r"(?<!。)$", "。"),
    ),
)

GRAMMARS: dict[str, Grammar] = {"en": ENGLISH, "zh": CHINESE}


def base_language(language: str) -> str:
    """Return a language without its region: zh for zh-CN."""
    return language.replace("_", "-").partition("-")[0].lower()


def grammar_of(language: str) -> Grammar:
    """Return the grammar of a language; English if it has none."""
    return GRAMMARS.get(base_language(language), ENGLISH)
