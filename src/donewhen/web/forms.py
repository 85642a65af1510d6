"""The forms: giving a verdict, signing in and out. Every form is validated before it has an effect."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from donewhen.web.access_middleware import SESSION, cookie
from donewhen.web.access_rules import LONGEST_BODY, constant_time_equal
from donewhen.web.review_pages import submit_verdict
from donewhen.web.reviewers import SESSION_COOKIE, ReviewerSession
from donewhen.web.server_state import ServerState

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

Fields = Mapping[str, str]
_FORM = "application/x-www-form-urlencoded"


def form_handler(
    site: ServerState, act: Callable[[ServerState, Request, Fields], Awaitable[Response]]
) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that validates a form's type, size and CSRF token, and then calls ``act``."""

    async def answer(request: Request) -> Response:
        from starlette.exceptions import HTTPException

        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
            raise HTTPException(415, "A form must be sent as application/x-www-form-urlencoded.")
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > LONGEST_BODY:
                raise HTTPException(413, "The form is too large.")
        try:
            fields = dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=20))
        except ValueError:
            raise HTTPException(400, "The form can't be read.") from None
        session: ReviewerSession | None = request.scope[SESSION]
        if session is not None and not constant_time_equal(fields.get("csrf", ""), session.csrf):
            raise HTTPException(
                403, "The form does not belong to your session, so nothing was changed. Reload the page."
            )
        return await act(site, request, fields)

    return answer


async def post_verdict(site: ServerState, request: Request, fields: Fields) -> Response:
    """Record a person's verdict on a review item."""
    from starlette.exceptions import HTTPException
    from starlette.responses import RedirectResponse

    session: ReviewerSession | None = request.scope[SESSION]
    if session is None:
        raise HTTPException(403, site.people.why_not or "Sign in first. The link is printed in the server's terminal.")
    item = request.path_params["item"]
    notice = await asyncio.to_thread(submit_verdict, site.place.jobs(), item, fields, session.by)
    return RedirectResponse(f"{session.base}/review?notice={site.leave_note(notice)}", 303)


async def sign_in(site: ServerState, request: Request, fields: Fields) -> Response:
    """Sign in with a one-time link. Its secret protects against forms on other sites."""
    from starlette.exceptions import HTTPException
    from starlette.responses import RedirectResponse

    session = site.people.sign_in(fields.get("as", ""), fields.get("secret", ""))
    if session is None:
        raise HTTPException(403, site.people.why_not or "This link is no longer valid.")
    again = f"{site.url}{site.people.link(session.by.name)}"
    await site.tell(f"{session.by.name} signed in. One-time link for another browser: {again}")
    answer = RedirectResponse(f"{session.base}/review", 303)
    answer.headers.append("set-cookie", cookie(SESSION_COOKIE, session.secret, session.base))
    return answer


async def sign_out(site: ServerState, request: Request, fields: Fields) -> Response:
    """End a session."""
    from starlette.responses import RedirectResponse

    session: ReviewerSession | None = request.scope[SESSION]
    if session is not None:
        site.people.sign_out(session)
    return RedirectResponse("/", 303)
