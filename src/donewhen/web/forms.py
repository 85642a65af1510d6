"""What a browser may send: a verdict, and signing in and out. Everything is looked at before anything is done."""

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
    """Read a form that was sent: small, of the one kind that forms have, and from the session that it was made for."""

    async def answer(request: Request) -> Response:
        from starlette.exceptions import HTTPException

        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
            raise HTTPException(415, "A form is sent as application/x-www-form-urlencoded.")
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > LONGEST_BODY:
                raise HTTPException(413, "That is more than a form of this page holds.")
        try:
            fields = dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=20))
        except ValueError:
            raise HTTPException(400, "The form can't be read.") from None
        session: ReviewerSession | None = request.scope[SESSION]
        if session is not None and not constant_time_equal(fields.get("csrf", ""), session.csrf):
            raise HTTPException(403, "The form is not from your session, so nothing was done. Reload the page.")
        return await act(site, request, fields)

    return answer


async def post_verdict(site: ServerState, request: Request, fields: Fields) -> Response:
    """A person's verdict on something in the queue."""
    from starlette.exceptions import HTTPException
    from starlette.responses import RedirectResponse

    session: ReviewerSession | None = request.scope[SESSION]
    if session is None:
        raise HTTPException(403, site.people.why_not or "Sign in first: the terminal of the server shows the link.")
    item = request.path_params["item"]
    told = await asyncio.to_thread(submit_verdict, site.place.jobs(), item, fields, session.by)
    return RedirectResponse(f"{session.base}/review?told={site.leave_note(told)}", 303)


async def sign_in(site: ServerState, request: Request, fields: Fields) -> Response:
    """Use a link up. Its secret is what a form elsewhere can't know."""
    from starlette.exceptions import HTTPException
    from starlette.responses import RedirectResponse

    session = site.people.sign_in(fields.get("as", ""), fields.get("secret", ""))
    if session is None:
        raise HTTPException(403, site.people.why_not or "This link does not work any more.")
    again = f"{site.url}{site.people.link(session.by.name)}"
    await site.tell(f"{session.by.name} signed in. For another browser, once: {again}")
    answer = RedirectResponse(f"{session.base}/review", 303)
    answer.headers.append("set-cookie", cookie(SESSION_COOKIE, session.secret, session.base))
    return answer


async def sign_out(site: ServerState, request: Request, fields: Fields) -> Response:
    """Forget a session."""
    from starlette.responses import RedirectResponse

    session: ReviewerSession | None = request.scope[SESSION]
    if session is not None:
        site.people.sign_out(session)
    return RedirectResponse("/", 303)
