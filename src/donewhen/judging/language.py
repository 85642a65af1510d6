"""Languages are data: the words of an answer, the wording that no rule may have, and the prompts."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from donewhen.foundation.canonical import digest, digest_of
from donewhen.foundation.errors import ConfigError
from donewhen.judging.settings import converted

SHIPPED = Path(__file__).parent / "languages"
PROMPTS = ("rollout", "decision", "ops")


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

    @property
    def hashes(self) -> dict[str, str]:
        """The prompts by what is in them; a record that names these can be understood later."""
        return {name: digest(text.encode()) for name, text in sorted(self.prompts.items())}

    def with_words(self, pass_: str | None, fail: str | None) -> Language:
        """The same language with a mission's own words for the two verdicts."""
        words = msgspec.structs.replace(self.answer, pass_=pass_ or self.answer.pass_, fail=fail or self.answer.fail)
        if words.pass_.casefold() == words.fail.casefold():
            raise ConfigError(f"Both verdicts are written {words.pass_!r}, so no answer could be told from the other.")
        return msgspec.structs.replace(self, answer=words)

    @property
    def identity(self) -> str:
        """What changes when the words or the prompts change."""
        return digest_of([self.name, self.version, msgspec.to_builtins(self.answer), self.hashes])


def shipped_languages() -> tuple[str, ...]:
    """The names of the languages that come with the package."""
    return tuple(sorted(one.name for one in SHIPPED.iterdir() if (one / "language.toml").is_file()))


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
    file = converted(data, _File, text, str(path))
    prompts = {one: _text(folder / f"{one}.md") for one in PROMPTS}
    return Language(file.name, file.title, file.version, file.answer, file.wording, prompts)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        told = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"The file of a language can't be read: {told}.", where=str(path)) from error
