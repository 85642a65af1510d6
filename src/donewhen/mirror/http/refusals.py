"""What a refusal means, in a sentence, and what to do next. A server's words are cleaned before they are shown."""

from __future__ import annotations

import json
from typing import Any

from donewhen.foundation.plain_text import one_line
from donewhen.foundation.secrets import REDACTED, redact_secrets
from donewhen.mirror.http.address import Address
from donewhen.mirror.http.errors import GoneError, MirrorError, RefusedError
from donewhen.mirror.http.transport import HttpResponse


def refusal_error(answer: HttpResponse, method: str, path: str, address: Address) -> MirrorError:
    """The error for an answer that is a refusal."""
    told = _said(answer, address)
    where = f"{address.host}{one_line(path, 160)}"
    match answer.status:
        case 401:
            return MirrorError(
                f"The server does not accept the token{told}.",
                where=where,
                next_step="Make a new one that may write issues, and set it in the environment.",
            )
        case 403:
            return MirrorError(
                f"The token may not do this{told}.",
                where=where,
                next_step="Give it the right to read and write issues of this repository.",
            )
        case 404:
            return GoneError(
                f"It is not there, or the token may not see it{told}.",
                where=where,
                next_step="Look at github_repo in the project's plan, and at what the token may see.",
            )
        case 410:
            return GoneError(
                f"It is gone{told}.",
                where=where,
                next_step="If issues are switched off, switch them on in the repository's settings.",
            )
        case _:
            return RefusedError(f"The server refuses {method} with status {answer.status}{told}.", where=where)


def _said(answer: HttpResponse, address: Address) -> str:
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
