"""Redacts secrets from text before it is stored or shown."""

from __future__ import annotations

import re
from collections.abc import Mapping

from donewhen.foundation.caller_variables import CALLER_VARIABLES

REDACTED = "[redacted]"

_SECRET_NAME = re.compile(
    r"(?:(?:^|_)(?:TOKEN|CREDENTIALS?|KEY|PAT|AUTH|DSN)|SECRET|PASSWORD|PASSWD|PASSPHRASE)(?:$|_)",
    re.IGNORECASE,
)
_MIN_LENGTH = 6
_PATTERNS = (
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    r"\b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{16,}",
    r"\bgithub_pat_[A-Za-z0-9_]{20,}",
    r"\bglpat-[A-Za-z0-9_-]{16,}",
    r"\bsk-[A-Za-z0-9_-]{16,}",
    r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bAIza[A-Za-z0-9_-]{30,}",
    r"\bpypi-[A-Za-z0-9_-]{16,}",
    r"\bnpm_[A-Za-z0-9]{30,}",
    r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]*",
)
# Here only a part is secret; its name stays. No pattern starts with a repetition: on a long line that would take
# quadratic time.
_NAMED = (
    (
        r"(?i)(\b(?:authorization|proxy-authorization)['\"]?\s*[:=]\s*['\"]?"
        r"(?:(?:bearer|basic|token|apikey|digest|negotiate)\s+)?+)[^\s,;'\"]{6,}"
    ),
    r"(?i)(\bbearer\s+)[A-Za-z0-9._~+/=-]{12,}",
    r"(://[^\s/:@]*+:)[^\s/@]++(?=@)",
    (
        r"(?i)((?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?token|auth[_-]?token)"
        r"['\"]?\s*[:=]\s*['\"]?)(?!\[redacted\])[^\s'\",;&]{4,}"
    ),
)


def redact_secrets(text: str, environ: Mapping[str, str] = CALLER_VARIABLES) -> str:
    """Replace what looks like a secret, and the values of environment variables that are named like secrets."""
    if not text.strip():
        return text
    for value in sorted(_secret_values(environ), key=len, reverse=True):
        text = text.replace(value, REDACTED)
    for pattern in _PATTERNS:
        text = re.sub(pattern, REDACTED, text)
    for pattern in _NAMED:
        text = re.sub(pattern, rf"\1{REDACTED}", text)
    return text


def is_secret_name(name: str) -> bool:
    """Whether a variable is named like one that holds a secret."""
    return _SECRET_NAME.search(name) is not None


def _secret_values(environ: Mapping[str, str]) -> set[str]:
    return {value for name, value in environ.items() if is_secret_name(name) and len(value) >= _MIN_LENGTH}
