"""Render prompts. The part that all tickets share comes first and is byte-identical, so that it can be cached."""

from __future__ import annotations

import re
from collections.abc import Mapping

from donewhen.foundation.plain_text import visible_text
from donewhen.judging.guidance import Guidance
from donewhen.judging.language import Language
from donewhen.models.roles import Prompt

_BLOCK_TAG = re.compile(r"<(?=\s*+/?+\s*+(?:scaffold|guidance|evidence|case|ticket)\b)", re.IGNORECASE)
_NO_RULES = "-"


def shared_prompt_part(guidance: Guidance, language: Language, prompt: str = "rollout", **extra: object) -> str:
    """The instructions with the two blocks of rules."""
    return language.prompts[prompt].format(
        scaffold=rules_block(guidance.scaffold),
        guidance=rules_block(guidance.learned),
        verdict_label=language.answer.verdict,
        reason_label=language.answer.reason,
        pass_word=language.answer.pass_,
        fail_word=language.answer.fail,
        **extra,
    )


def rollout_prompt(shared: str, evidence: Mapping[str, str]) -> Prompt:
    """The prompt for one ticket, without its label."""
    return Prompt(shared, f"\n{evidence_block(evidence)}\n")


def evidence_block(evidence: Mapping[str, str], limit: int | None = None) -> str:
    """A ticket's texts, each under its name, escaped so that they can't close the block."""
    parts = [f"[{escape_block(name)}]\n{escape_block(text)}" for name, text in evidence.items()]
    joined = "\n\n".join(parts)
    if limit is not None and len(joined) > limit:
        half = max(1, limit // 2)
        joined = f"{joined[:half]}\n[… {len(joined) - 2 * half} characters left out …]\n{joined[-half:]}"
    return f"<evidence>\n{joined}\n</evidence>"


def rules_block(rules: Mapping[str, str]) -> str:
    """The rules with their keys, one per line."""
    return "\n".join(f"[{key}] {' '.join(escape_block(text).split())}" for key, text in rules.items()) or _NO_RULES


def escape_block(text: str) -> str:
    """Escape untrusted text so that it can't open or close one of the prompt's blocks."""
    return _BLOCK_TAG.sub("‹", visible_text(text))
