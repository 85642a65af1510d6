"""Maps a server's error response to: retry, omit an option, skip this question, or stop."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import NoReturn

from donewhen.foundation.clock import SYSTEM_CLOCK
from donewhen.foundation.errors import ConfigError
from donewhen.foundation.plain_text import one_line
from donewhen.foundation.retrying import retry_after_seconds
from donewhen.foundation.secrets import redact_secrets
from donewhen.models.remote.pacing import RetryLater
from donewhen.models.roles import ModelError

_TOO_MUCH = frozenset({429, 503, 529})
_MAY_PASS = frozenset({408, 409, 425, *_TOO_MUCH})
_HOPELESS = frozenset({401, 403, 404, 407})
_NO_MONEY = ("insufficient_quota", "billing", "credit balance", "spend limit")
_TOO_LONG = ("context length", "context window", "too long")


class UnsupportedOption(Exception):  # noqa: N818 - what a server asks for
    """The server does not support an option; without it, the call may succeed."""

    def __init__(self, option: str) -> None:
        super().__init__(option)
        self.option = option


def raise_for_refusal(
    status: int, message: str, headers: Mapping[str, str], server: str, options: Collection[str]
) -> NoReturn:
    """Raise the exception for an error response."""
    reason = one_line(redact_secrets(message), 300)
    rejected = next(
        (option for option in options if re.search(rf"\b{re.escape(option)}(?:ing)?\b", message, re.IGNORECASE)), None
    )
    # A ticket that is too long is no problem of the options, even if the message names one.
    too_long = any(phrase in message.casefold() for phrase in _TOO_LONG)
    # 403, too: some models forbid log-probabilities.
    if status in (400, 403, 422) and rejected is not None and not too_long:
        raise UnsupportedOption(rejected)
    if status in _HOPELESS or (status == 429 and any(phrase in message.casefold() for phrase in _NO_MONEY)):
        # Every other call would be rejected as well, so stop.
        raise ConfigError(f"The model's server rejected the request: {reason} (status {status}).", where=server)
    if status in _MAY_PASS or status >= 500:
        after = retry_after_seconds(headers.get("retry-after"), SYSTEM_CLOCK.now().timestamp())
        raise RetryLater(f"{reason} (status {status})", after=after, slow_down=status in _TOO_MUCH)
    raise ModelError(f"The model's server rejected this question: {reason} (status {status}).")


def token_count(value: object) -> int:
    """Return a token count; 0 for anything that is not a positive integer."""
    return value if isinstance(value, int) and value > 0 else 0
