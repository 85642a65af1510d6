"""Price table: the cost of an answer. Models that are not in the table have no price."""

from __future__ import annotations

import os
import tomllib
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Annotated

import msgspec

from donewhen.foundation.errors import ConfigError
from donewhen.foundation.files import read_text_limited
from donewhen.foundation.size_limits import MISSION
from donewhen.models.roles import Usage

SHIPPED = Path(__file__).with_name("prices.toml")
VARIABLE = "DONEWHEN_PRICES"

Dollars = Annotated[float, msgspec.Meta(ge=0.0)]


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """US dollars per million tokens. ``model`` is a name or a pattern with ``*``."""

    model: str
    input: Dollars
    output: Dollars
    cached: Dollars | None = None

    def of(self, usage: Usage) -> float:
        """Return the cost of an answer with this usage."""
        cached_price = self.input if self.cached is None else self.cached
        fresh = max(0, usage.prompt_tokens - usage.cached_tokens)
        return (
            fresh * self.input + usage.cached_tokens * cached_price + usage.completion_tokens * self.output
        ) / 1_000_000


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    price: tuple[Price, ...] = ()


def price_of(model: str) -> Price | None:
    """Return the first matching price; the user's table comes before the shipped one."""
    own = os.environ.get(VARIABLE)
    tables = ((_read(Path(own)),) if own else ()) + (_read(SHIPPED),)
    return next((price for table in tables for price in table if fnmatchcase(model, price.model)), None)


@cache
def _read(path: Path) -> tuple[Price, ...]:
    try:
        return msgspec.convert(tomllib.loads(read_text_limited(path, MISSION)), _File).price
    except OSError as error:
        raise ConfigError(f"The price table can't be read: {error.strerror}.", where=str(path)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise ConfigError(f"The price table is invalid: {error}.", where=str(path)) from error
