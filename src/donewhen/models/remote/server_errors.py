"""What a server's refusal means: try again, leave something out, give this question up, or stop altogether."""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Collection, Mapping
from typing import NoReturn

from donewhen.foundation.errors import ConfigError
from donewhen.foundation.plain_text import one_line
from donewhen.foundation.secrets import redact_secrets
from donewhen.models.remote.pacing import RetryLater
from donewhen.models.roles import ModelError

_TOO_MUCH = frozenset({429, 503, 529})
_MAY_PASS = frozenset({408, 409, 425, *_TOO_MUCH})
_HOPELESS = frozenset({401, 403, 404, 407})
_NO_MONEY = ("insufficient_quota", "billing", "credit balance", "spend limit")
_TOO_LONG = ("context length", "context window", "too long")


class UnsupportedOption(Exception):  # noqa: N818 - what a server asks for
    """The server does not know one of the things that it was told; without it, it may answer."""

    def __init__(self, option: str) -> None:
        super().__init__(option)
        self.option = option


def raise_for_refusal(
    status: int, message: str, headers: Mapping[str, str], server: str, options: Collection[str]
) -> NoReturn:
    """Turn an answer that is none into what follows from it."""
    told = one_line(redact_secrets(message), 300)
    named = next(
        (option for option in options if re.search(rf"\b{re.escape(option)}(?:ing)?\b", message, re.IGNORECASE)), None
    )
    # One ticket that is too long says nothing about the options, whichever it names.
    too_long = any(one in message.casefold() for one in _TOO_LONG)
    # Forbidden, too: some models may not be asked for log-probabilities.
    if status in (400, 403, 422) and named is not None and not too_long:
        raise UnsupportedOption(named)
    if status in _HOPELESS or (status == 429 and any(one in message.casefold() for one in _NO_MONEY)):
        # Everything else that is asked would be refused as well, so that there is no point in going on.
        raise ConfigError(f"The model's server refuses: {told} (status {status}).", where=server)
    if status in _MAY_PASS or status >= 500:
        raise RetryLater(f"{told} (status {status})", after=retry_after_seconds(headers), slow_down=status in _TOO_MUCH)
    raise ModelError(f"The model's server refuses this question: {told} (status {status}).")


def token_count(said: object) -> int:
    """A number of tokens; what is none counts as not told."""
    return said if isinstance(said, int) and said > 0 else 0


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """The seconds that a server asks one to wait: as a number, or as a time."""
    said = headers.get("retry-after", "")
    try:
        return max(0.0, float(said))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(said).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
