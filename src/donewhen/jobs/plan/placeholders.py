"""Text that was never written: the words of a template, blanks, and answers that say nothing.

A text is read as words in one spelling. Words of templates and of empty answers are taken away, and enough has to be
left. So what decides is what a text says, not a list of everything that says nothing.

Gates and stop hooks ask this of every criterion and many lines, so nothing is compiled for an ordinary text.
"""

from __future__ import annotations

import re
from functools import cache

from donewhen.foundation.plain_text import plain_text
from donewhen.jobs.plan import filler_words as filler
from donewhen.jobs.plan.content_words import content_of, participles
from donewhen.jobs.plan.folded_words import fold, split_words

_CLOSING = {"<": ">", "[": "]", "{": "}"}
_AROUND = "*_~`'\"‘’“”«» \t.。!:"
# Verbs that begin an instruction to the writer, if one of the other words follows.
_INSTRUCTIONS = frozenset({"describe", "explain", "state", "outline", "summarize", "summarise"})
_AFTER_INSTRUCTION = frozenset({"the", "a", "an", "your", "how", "what", "why", "which", "who", "this", "these", "all"})
_BLANK_VERBS = frozenset({"describe", "insert"})
_ENOUGH_IN_INSTRUCTION = 3
_ENOUGH_ANYWHERE = 4


def is_placeholder(text: str) -> bool:
    """Whether a text says nothing: it is empty, template text, or only words of templates and of empty answers."""
    text = _without_markup(text)
    folded = fold(text)
    return _is_template(text, folded) or content_of(folded).is_filler


def is_weak(text: str) -> bool:
    """Whether a text says too little to be checked: a placeholder, or a single word such as `ok`."""
    text = _without_markup(text)
    folded = fold(text)
    return _is_template(text, folded) or not content_of(folded).is_enough


def is_unedited(text: str) -> bool:
    """Whether a text is exactly that of a template, or nothing at all. This is all that is refused beside a check."""
    text = _without_markup(text)
    words = split_words(fold(text))
    if not words or "".join(words) in _unedited():
        return True
    inner = _inside_brackets(text)
    return inner is not None and (is_unedited(inner) or _is_instruction(inner, fold(inner)) or _is_blank(inner))


def written_lines(text: str) -> list[str]:
    """The lines of a Markdown text that are no placeholders, without list markers. Comments are left out."""
    if "<!--" in text:
        text = re.sub(r"<!--.*?(?:-->|\Z)", "", text, flags=re.DOTALL)
    lines = (_without_marker(line) for line in text.splitlines() if line.strip())
    return [line for line in lines if not is_placeholder(line)]


def describes_verification(text: str) -> bool:
    """Whether the text of a plan's *Verification* says how to verify something. Headings alone say nothing."""
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    return any(not is_weak(line) for line in written_lines(lines))


def _without_marker(line: str) -> str:
    """A line without the marker of a heading, a quote, a list item or a checkbox."""
    line = line.strip().lstrip("#>").lstrip()
    marker, space, rest = line.partition(" ")
    if space and (marker in ("-", "*", "+") or (marker[-1] in ".)" and marker[:-1].isdecimal())):
        line = rest.lstrip()
    return line[3:].lstrip() if line[:1] == "[" and line[2:3] == "]" and line[1:2] in (" ", "x", "X") else line


def _without_markup(text: str) -> str:
    """The text without what a page doesn't show: comments, tags that only format, and character references. They are no
    words of its author. Code is kept."""
    if "<" not in text and "&" not in text:
        return text
    return _markup().sub(lambda found: found[1] or " ", text)


def _is_template(text: str, folded: str) -> bool:
    words = split_words(folded)
    if not words or "".join(words) in _unedited() or _is_instruction(text, folded):
        return True
    if any(bracket in text for bracket in _CLOSING) and (_is_bracketed(text) or _has_blank(text)):
        return True
    return ":" in folded and _is_label(folded)


def _is_instruction(text: str, folded: str) -> bool:
    """Whether a text tells its writer what to write, or when; a number or a name in it is from a writer."""
    words = split_words(folded)
    if words[:2] == ["to", "be"] and words[2:3] and words[2] in participles():
        rest = folded.partition(words[2])[2]
        begins = "," not in rest
    else:
        begins = len(words) > 1 and words[0] in _INSTRUCTIONS and words[1] in _AFTER_INSTRUCTION
    return begins and not _is_specific(text) and len(content_of(folded).real) < _ENOUGH_IN_INSTRUCTION


def _is_specific(text: str) -> bool:
    """Whether a text has a number, code, an option or the name of a file in it."""
    if "`" in text.strip(_AROUND) or any(letter.isdecimal() for letter in text):
        return True
    if any(word.startswith("--") and word[2:3].isalpha() for word in text.split()):
        return True
    parts = (word.strip(".,;:()").rpartition(".") for word in text.split())
    return any(len(name) > 1 and len(suffix) > 1 for name, _, suffix in parts)


def _is_label(folded: str) -> bool:
    """Whether a text is a label without its text, such as `Command: TBD`."""
    head, _, tail = folded.rpartition(":")
    rest = content_of(tail)
    if rest.real or rest.template or rest.objects or rest.answers or rest.numbers or rest.states:
        return False
    return content_of(head).says < _ENOUGH_ANYWHERE


def _inside_brackets(text: str) -> str | None:
    """What is in the brackets, if all of a text is in one pair of them."""
    bare = plain_text(text).strip(_AROUND)
    closing = _CLOSING.get(bare[:1])
    if closing is None or bare[-1:] != closing:
        return None
    inner = bare[1:-1]
    if inner[:1] == bare[0] and inner[-1:] == closing:
        inner = inner[1:-1]
    return None if bare[0] in inner or closing in inner else inner


def _is_bracketed(text: str) -> bool:
    if _inside_brackets(text) is None:
        return False
    from donewhen.jobs.plan.short_data import is_data

    return not is_data(plain_text(text).strip(_AROUND))


def _has_blank(text: str) -> bool:
    """Whether a blank of a template, such as `[to be decided]`, was left in a short sentence; not in code."""
    text = _code().sub(" ", plain_text(text))
    blanks = [inner for inner in _blank().findall(text) if _is_blank(inner)]
    return bool(blanks) and content_of(fold(_blank().sub(" ", text))).says < _ENOUGH_ANYWHERE


def _is_blank(inner: str) -> bool:
    words = split_words(fold(inner))
    if len(words) > 1 and words[0] in _BLANK_VERBS:
        return True
    content = content_of(fold(inner))
    return content.open and not (content.says or content.states)


@cache
def _unedited() -> frozenset[str]:
    """The texts of templates, without spaces."""
    to_be = (f"to be {participle}" for participle in participles())
    return frozenset("".join(split_words(fold(text))) for text in (*filler.UNEDITED, *to_be))


@cache
def _blank() -> re.Pattern[str]:
    return re.compile(r"(?<!\S)[<\[{]{1,2}([^<>\[\]{}]*)[>\]}]{1,2}")


@cache
def _markup() -> re.Pattern[str]:
    tags = "br|hr|wbr|em|strong|sub|sup|small|span|div|font|center|mark|del|ins"
    return re.compile(rf"(`[^`]*`)|<!--.*?(?:-->|\Z)|</?(?:{tags})\b[^<>]*>|&#?\w{{1,32}};", re.DOTALL | re.IGNORECASE)


@cache
def _code() -> re.Pattern[str]:
    return re.compile(r"`[^`]*`")
