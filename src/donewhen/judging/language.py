"""Languages are data: the words of an answer, the wording that no rule may have, and the prompts."""

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
from donewhen.judging.mission_settings import convert_settings

SHIPPED = Path(__file__).parent / "languages"
_RULES = frozenset({"scaffold", "guidance"})
_WORDS = frozenset({"verdict_label", "reason_label", "pass_word", "fail_word"})
PROMPTS = {
    "rollout": _RULES | _WORDS,
    "decision": _RULES | _WORDS,
    "ops": _RULES | _WORDS | {"g0", "max_length", "max_operations"},
}
"""Each with the fields that may stand in it. The rules must: a scaffold that is not shown binds nobody."""


class AnswerWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the two lines of an answer are written."""

    verdict: str
    reason: str
    pass_: str = msgspec.field(name="pass")
    fail: str


class Wording(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the text of a rule may not say."""

    third_state: tuple[str, ...]
    ambiguous_negation: tuple[str, ...] = ()
    negation: tuple[str, ...] = ()
    """How a verdict is negated, with {} for its word: who says what it is not has not said what it is."""
    brand: tuple[str, ...] = ()
    conclusion: tuple[str, ...] = ()
    """What comes before a rule's verdict."""
    variants: dict[str, str] = {}
    """Characters that are written in more than one way, each with the one that counts."""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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
    """The language's own words for the two verdicts, which rules may use whatever a mission calls them."""

    @property
    def hashes(self) -> dict[str, str]:
        """The prompts by what is in them; a record that names these can be understood later."""
        return {name: digest(text.encode()) for name, text in sorted(self.prompts.items())}

    def with_words(self, pass_: str | None, fail: str | None) -> Language:
        """The same language with a mission's own words for the two verdicts."""
        words = msgspec.structs.replace(self.answer, pass_=pass_ or self.answer.pass_, fail=fail or self.answer.fail)
        for word in (words.pass_, words.fail):
            if not fold_word(word) or not word.isprintable():
                raise ConfigError(f"A verdict can't be written {word!r}; a printable word belongs there.")
        if fold_word(words.pass_) == fold_word(words.fail):
            raise ConfigError(f"Both verdicts are written {words.pass_!r}, so no answer could be told from the other.")
        return msgspec.structs.replace(self, answer=words)

    @property
    def identity(self) -> str:
        """What changes when the words, the wording that is refused, or the prompts change."""
        words = [msgspec.to_builtins(one) for one in (self.answer, self.wording)]
        return digest_of([self.name, self.version, *words, self.hashes])


def shipped_languages() -> tuple[str, ...]:
    """The names of the languages that come with the package."""
    return tuple(sorted(path.name for path in SHIPPED.iterdir() if (path / "language.toml").is_file()))


def find_language(name: str, beside: Path | None = None) -> Language:
    """A language by its name, or by the path of its folder (relative to the mission)."""
    if "/" in name or name in (".", ".."):
        return read_language((beside or Path()) / name)
    if beside is not None and (beside / "languages" / name / "language.toml").is_file():
        return read_language(beside / "languages" / name)
    if name not in shipped_languages():
        raise ConfigError(
            f"There is no language {name!r}; there are {', '.join(shipped_languages())}.",
            next_step="A mission brings its own in a folder languages/NAME beside mission.toml.",
        )
    return _shipped(name)


@cache
def _shipped(name: str) -> Language:
    return read_language(SHIPPED / name)


def read_language(folder: Path) -> Language:
    """Read a language's folder: language.toml and three prompts."""
    path = folder / "language.toml"
    text = _text(path)
    try:
        data: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"The language is not valid TOML: {error}.", where=str(path)) from error
    file = convert_settings(data, _File, text, str(path))
    prompts = {one: _prompt(folder / f"{one}.md", fields) for one, fields in PROMPTS.items()}
    own = file.answer.pass_, file.answer.fail
    return Language(file.name, file.title, file.version, file.answer, file.wording, prompts, own)


def fold_word(text: str) -> str:
    """A word as answers are compared: whatever its width and case."""
    return unicodedata.normalize("NFKC", text).casefold().strip()


def _prompt(path: Path, fields: frozenset[str]) -> str:
    text = _text(path)
    try:
        found = {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}
    except ValueError as error:
        raise ConfigError(f"The prompt has a loose brace: {error}. Write {{{{ or }}}}.", where=str(path)) from error
    for name in sorted(found - fields):
        raise ConfigError(f"The prompt has a field {{{name}}}, which nothing fills.", where=str(path))
    for name in sorted(_RULES - found):
        raise ConfigError(f"The prompt has no field {{{name}}}, so no judge would see those rules.", where=str(path))
    return text


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        told = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"The file of a language can't be read: {told}.", where=str(path)) from error
