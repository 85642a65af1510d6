"""Errors for HTTP error statuses, with a next step. Server messages are redacted before they are shown."""

from __future__ import annotations

import json
from typing import Any

from donewhen.foundation.plain_text import one_line
from donewhen.foundation.secrets import REDACTED, redact_secrets
from donewhen.mirror.http.address import Address
from donewhen.mirror.http.errors import GoneError, MirrorError, RefusedError
from donewhen.mirror.http.transport import HttpResponse


def refusal_error(answer: HttpResponse, method: str, path: str, address: Address) -> MirrorError:
    """Return the error for a response with an error status."""
    message = _server_message(answer, address)
    where = f"{address.host}{one_line(path, 160)}"
    match answer.status:
        case 401:
            return MirrorError(
                f"The server rejected the token{message}.",
                where=where,
                next_step="Create a token that can write issues, and set it in the environment.",
            )
        case 403:
            return MirrorError(
                f"The token lacks permission{message}.",
                where=where,
                next_step="Give it permission to read and write issues of this repository.",
            )
        case 404:
            return GoneError(
                f"Not found, or the token has no access{message}.",
                where=where,
                next_step="Check github_repo in the project's plan and the token's access.",
            )
        case 410:
            return GoneError(
                f"Gone{message}.",
                where=where,
                next_step="If issues are disabled, enable them in the repository's settings.",
            )
        case _:
            return RefusedError(f"The server rejected {method} with status {answer.status}{message}.", where=where)


def _server_message(answer: HttpResponse, address: Address) -> str:
    try:
        data: Any = json.loads(answer.body)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        return ""
    parts = [str(data.get("message") or "")]
    errors = data.get("errors")
    for error in errors[:5] if isinstance(errors, list) else ():
        if isinstance(error, dict):
            parts.append(" ".join(str(error[name]) for name in ("field", "code", "message") if error.get(name)))
        else:
            parts.append(str(error))
    text = "; ".join(part for part in parts if part).replace(address.token, REDACTED)
    return f": {one_line(redact_secrets(text), 300)}".rstrip(".") if text else ""
