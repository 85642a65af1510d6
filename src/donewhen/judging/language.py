"""Languages as data: the words of an answer, the wording that rules may not use, and the prompts."""

from __future__ import annotations

import string
import tomllib
import unicodedata
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from donewhen.foundation.canonical import digest, digest_of
from donewhen.foundation.errors import ConfigError
from donewhen.foundation.files import read_text_limited
from donewhen.foundation.json_parsing import parse_json
from donewhen.foundation.size_limits import MISSION
from donewhen.judging.mission_settings import convert_settings

SHIPPED = Path(__file__).parent / "languages"
_RULES = frozenset({"scaffold", "guidance"})
_WORDS = frozenset({"verdict_label", "reason_label", "pass_word", "fail_word"})
PROMPTS = {
    "rollout": _RULES | _WORDS,
    "decision": _RULES | _WORDS,
    "ops": _RULES | _WORDS | {"g0", "max_length", "max_operations"},
}
"""The fields that each prompt may contain. ``_RULES`` are required: a judge must see the rules."""


class AnswerWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The labels and verdict words of an answer."""

    verdict: str
    reason: str
    pass_: str = msgspec.field(name="pass")
    fail: str


class Wording(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Phrases that a rule may not contain, and words needed to parse rules."""

    third_state: tuple[str, ...]
    no_third_state: tuple[str, ...] = ()
    """Longer words that contain such a phrase and say something else."""
    quoted_verdict: tuple[str, ...] = ()
    """Phrases that give a quoted word as a verdict, with {} for it: "mark it as {}". Other quotes are material.
    "^" before a phrase: only at the start of a clause, or after "then" and "otherwise"."""
    ambiguous_negation: tuple[str, ...] = ()
    negation: tuple[str, ...] = ()
    """Negations of a verdict, with {} for its word. A rule must say what the verdict is, not what it isn't."""
    brand: tuple[str, ...] = ()
    brand_value: tuple[str, ...] = ()
    """Phrases that make a brand a condition, with {} for a word of ``brand``: "the {} is"."""
    brand_state: tuple[str, ...] = ()
    """Words after such a phrase that name no brand: "the vendor is missing"."""
    conclusion: tuple[str, ...] = ()
    """Words that introduce a rule's verdict."""
    condition: tuple[str, ...] = ()
    """Words that begin a condition, up to the next comma: a verdict word after them is part of the condition."""
    then: tuple[str, ...] = ()
    """Words that end a condition and begin its conclusion; without them, those of ``conclusion`` do."""
    condition_end: tuple[str, ...] = ()
    """Words that end a condition before a comma, in languages where they stand behind it."""
    otherwise: tuple[str, ...] = ()
    """Words that end a condition and begin another conclusion."""
    ticket_number: tuple[str, ...] = ()
    """Phrases that name a ticket by its number, with {} for a number or an ID, and {id} for an ID only."""
    no_verdict: tuple[str, ...] = ()
    """Compounds of a verdict word that are no verdict, such as "pass rate"."""
    filler: tuple[str, ...] = ()
    """Words without a meaning of their own: rules that differ only in these say the same."""
    variants: dict[str, str] = {}
    """Variant characters, each with its canonical form."""


class _LanguageFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    title: str
    version: int
    answer: AnswerWords
    wording: Wording


class Language(msgspec.Struct, frozen=True):
    """One language, with its prompts."""

    name: str
    title: str
    version: int
    answer: AnswerWords
    wording: Wording
    prompts: Mapping[str, str]
    plain: tuple[str, str] = ("pass", "fail")
    """The language's own words for the two verdicts; rules may use them even if a mission has other words."""
    agreed_wording: Mapping[str, Any] | None = None
    """The wording by which agreements know a shipped language: that of its first version."""

    @property
    def hashes(self) -> dict[str, str]:
        """The digest of each prompt; records use it to say which prompt was used."""
        return {name: digest(text.encode()) for name, text in sorted(self.prompts.items())}

    def with_words(self, pass_: str | None, fail: str | None) -> Language:
        """The same language with a mission's own words for the two verdicts."""
        words = msgspec.structs.replace(self.answer, pass_=pass_ or self.answer.pass_, fail=fail or self.answer.fail)
        for word in (words.pass_, words.fail):
            if not fold_word(word) or not word.isprintable():
                raise ConfigError(f"{word!r} can't be the word for a verdict; use a printable word.")
        if fold_word(words.pass_) == fold_word(words.fail):
            raise ConfigError(f"Both verdicts use the word {words.pass_!r}; the two words must differ.")
        return msgspec.structs.replace(self, answer=words)

    @property
    def identity(self) -> str:
        """Digest of the answer words, the wording and the prompts."""
        return self._digest(_wording_data(self.wording))

    @property
    def agreed_identity(self) -> str:
        """The same for agreements. The wording decides which rules can be learned, and no verdict, so that a shipped
        language whose lists have grown is still what people agreed to."""
        return self._digest(_wording_data(self.wording) if self.agreed_wording is None else self.agreed_wording)

    def _digest(self, wording: Mapping[str, Any]) -> str:
        return digest_of([self.name, self.version, msgspec.to_builtins(self.answer), wording, self.hashes])


_FIRST_LISTS = ("third_state", "ambiguous_negation", "negation", "brand", "conclusion", "variants")


def _wording_data(wording: Wording) -> dict[str, Any]:
    """The lists of a wording; those that were added later only if they have something, so that a language without them
    keeps its identity."""
    data: dict[str, Any] = msgspec.to_builtins(wording)
    return {name: value for name, value in data.items() if value or name in _FIRST_LISTS}


def shipped_languages() -> tuple[str, ...]:
    """The names of the languages shipped with the package."""
    return tuple(sorted(path.name for path in SHIPPED.iterdir() if (path / "language.toml").is_file()))


def find_language(name: str, beside: Path | None = None) -> Language:
    """Find a language by name, or by the path of its folder (relative to the mission)."""
    if "/" in name or name in (".", ".."):
        return read_language((beside or Path()) / name)
    if beside is not None and (beside / "languages" / name / "language.toml").is_file():
        return read_language(beside / "languages" / name)
    if name not in shipped_languages():
        raise ConfigError(
            f"Unknown language {name!r}. Known languages: {', '.join(shipped_languages())}.",
            next_step="To add a language, create the folder languages/NAME next to mission.toml.",
        )
    return _shipped(name)


@cache
def _shipped(name: str) -> Language:
    folder = SHIPPED / name
    agreed = folder / "agreed_wording.json"
    wording = parse_json(_read_text(agreed)) if agreed.is_file() else None
    return msgspec.structs.replace(read_language(folder), agreed_wording=wording)


def read_language(folder: Path) -> Language:
    """Read a language's folder: language.toml and three prompts."""
    path = folder / "language.toml"
    text = _read_text(path)
    try:
        data: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"The language is not valid TOML: {error}.", where=str(path)) from error
    file = convert_settings(data, _LanguageFile, text, str(path))
    prompts = {name: _read_prompt(folder / f"{name}.md", fields) for name, fields in PROMPTS.items()}
    own = file.answer.pass_, file.answer.fail
    return Language(file.name, file.title, file.version, file.answer, file.wording, prompts, own)


def fold_word(text: str) -> str:
    """Normalise a word for comparison: ignore width, case and surrounding spaces."""
    return unicodedata.normalize("NFKC", text).casefold().strip()


def _read_prompt(path: Path, fields: frozenset[str]) -> str:
    text = _read_text(path)
    try:
        used = {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}
    except ValueError as error:
        raise ConfigError(
            f"The prompt has an unmatched brace: {error}. Write {{{{ or }}}}.", where=str(path)
        ) from error
    for name in sorted(used - fields):
        raise ConfigError(f"The prompt has an unknown field {{{name}}}.", where=str(path))
    for name in sorted(_RULES - used):
        raise ConfigError(
            f"The prompt lacks the field {{{name}}}, so the judge would not see those rules.", where=str(path)
        )
    return text


def _read_text(path: Path) -> str:
    try:
        return read_text_limited(path, MISSION)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"The language file can't be read: {reason}.", where=str(path)) from error
