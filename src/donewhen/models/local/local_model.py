"""A small local model, combined with code where it is weak.

A small model can weigh evidence but can't reliably count or follow rules. So code applies the rules it can read, and
the model judges the rest. Proposals come from comparing accepted and rejected work, plus one idea of the model; the
trial evaluates both alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from donewhen.foundation.binary import Binary
from donewhen.models.chat import Chat, ChatMessage, ChatModel, ChatRequest
from donewhen.models.contrast import Contrast
from donewhen.models.contrast.grammars import base_language
from donewhen.models.contrast.proposer import Proposer
from donewhen.models.roles import Case, Completion, ModelError, ReflectionRequest, RolloutRequest, Usage

_CASES_PER_LABEL = 3
"""Cases of each label in the prompt for an idea."""
_CASE_CHARACTERS = 500
_IDEA_TOKENS = 160
_CONDITION = 90


class LocalModel:
    """Both roles, with a chat model that can compare two words, and rule-based code."""

    free = False
    priced = True
    reads_reasons = False

    def __init__(self, chat: Chat) -> None:
        self.chat = chat
        self._judge = ChatModel(chat)
        self._contrast = Contrast()
        self._proposer = Proposer(self._contrast.features, open_to_others=True)

    @property
    def name(self) -> str:
        return self.chat.name

    async def aclose(self) -> None:
        await self.chat.aclose()

    async def roll(self, request: RolloutRequest) -> Completion:
        """Judge by the rules that code can read; ask the model if they don't decide."""
        if self._contrast.decides(request):
            return await self._contrast.roll(request)
        return await self._judge.roll(request)

    def study(self, cases: Sequence[Case]) -> None:
        """Receive all training cases of an epoch."""
        self._proposer.study(cases)

    async def decide(self, request: ReflectionRequest) -> Completion:
        """Return the cases without evidence for their label, found by counting."""
        return Completion(self._proposer.decide(request))

    async def propose(self, request: ReflectionRequest) -> Completion:
        """Return the proposals of Contrast, and one idea of the model as a hypothesis."""
        completion = Completion(self._proposer.propose(request))
        words = _WORDS.get(base_language(request.language))
        # Asking again would not improve the idea.
        if request.attempt or words is None:
            return completion
        try:
            idea, usage = await self._ask_for_idea(request, words)
        except ModelError:
            return completion
        if idea is None:
            return completion._replace(usage=usage)
        proposed = json.loads(completion.text)
        proposed["hypotheses"].append(idea)
        proposed["has_evidence"] = True
        coverage = proposed["coverage"]
        new = [key for key in idea["evidence"] if key in coverage["uncovered_ticket_keys"]]
        coverage["covered_ticket_keys"] += new
        coverage["uncovered_ticket_keys"] = [key for key in coverage["uncovered_ticket_keys"] if key not in new]
        return Completion(json.dumps(proposed, ensure_ascii=False), usage)

    async def _ask_for_idea(self, request: ReflectionRequest, words: _Words) -> tuple[dict[str, Any] | None, Usage]:
        """Ask the model for one rule, constrained by a schema; None if it names no case that supports it."""
        examples = [*_examples(request.cases, "pass"), *_examples(request.cases, "fail")]
        if len({case.label for case in examples}) < 2:
            return None, Usage()
        cases = "\n\n".join(_case_text(number, case, words) for number, case in enumerate(examples, 1))
        question = ChatRequest(
            (ChatMessage("system", words.task), ChatMessage("user", cases)),
            0.0,
            0,
            _IDEA_TOKENS,
            _schema(len(examples)),
        )
        answer = await self.chat.complete(question)
        if answer.finish_reason != "stop":
            return None, answer.usage
        idea = json.loads(answer.text)
        verdict: Binary = idea["verdict"]
        condition = " ".join(str(idea["condition"]).split()).rstrip(".。 ")
        named = [examples[number - 1] for number in dict.fromkeys(idea["cases"])]
        evidence = [case.ticket_key for case in named if case.label == verdict]
        if not condition or not evidence:
            return None, answer.usage
        return {
            "text": words.rule.format(condition=condition, verdict=words.verdicts[verdict]),
            "dimension": "idea",
            "falsifier": words.falsifier.format(
                condition=condition, other=words.verdicts["pass" if verdict == "fail" else "fail"]
            ),
            "evidence": evidence,
        }, answer.usage


def _examples(cases: Sequence[Case], label: Binary) -> Iterator[Case]:
    """Yield a few cases of a label, wrongly judged ones first."""
    ranked = sorted((case for case in cases if case.label == label), key=lambda case: case.verdict == label)
    yield from ranked[:_CASES_PER_LABEL]


def _case_text(number: int, case: Case, words: _Words) -> str:
    text = "\n".join(case.evidence.values())
    if len(text) > _CASE_CHARACTERS:
        half = _CASE_CHARACTERS // 2
        text = f"{text[:half]} […] {text[-half:]}"
    return words.case.format(number=number, verdict=words.verdicts[case.label], text=text)


def _schema(cases: int) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "condition": {"type": "string", "minLength": 8, "maxLength": _CONDITION},
            "verdict": {"enum": ["pass", "fail"]},
            "cases": {
                "type": "array",
                "items": {"enum": list(range(1, cases + 1))},
                "minItems": 1,
                "maxItems": cases,
            },
        },
        "required": ["condition", "verdict", "cases"],
        "additionalProperties": False,
    }


class _Words(NamedTuple):
    task: str
    case: str
    rule: str
    falsifier: str
    verdicts: dict[Binary, str]


_WORDS = {
    "en": _Words(
        "People accepted some pieces of work (pass) and refused others (fail). Name one thing that sets the refused "
        'apart from the accepted. Answer with JSON: "condition", what a piece of work shows, such as: the report '
        'names no test; "verdict", what follows from it; "cases", the numbers of the cases that show it.',
        "Case {number}, {verdict}:\n{text}",
        "If {condition}, the verdict is {verdict}.",
        "Most tickets where {condition} are labelled {other}.",
        {"pass": "pass", "fail": "fail"},
    ),
    "zh": _Words(
        "有些工作被人接受（通过），有些被拒绝（不通过）。请说出一个把两者区分开的特征。用JSON回答："
        "“condition”是工作中出现的情况，例如：报告没有写明测试；“verdict”是由此得出的判定；“cases”是出现该情况的案例编号。",
        "案例{number}，{verdict}：\n{text}",
        "如果{condition}，则判定为{verdict}。",
        "满足“{condition}”的样本多数标注为{other}。",
        {"pass": "通过", "fail": "不通过"},
    ),
}
