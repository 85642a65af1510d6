"""The addresses, and the page that is made for each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from donewhen.foundation.errors import DonewhenError, MissingExtraError, UsageError
from donewhen.web.access_middleware import SESSION, AccessMiddleware
from donewhen.web.board_page import board_page
from donewhen.web.event_stream import EventStream
from donewhen.web.file_watch import TOPICS, Topic
from donewhen.web.forms import form_handler, post_verdict, sign_in, sign_out
from donewhen.web.graph_page import graph_page
from donewhen.web.job_page import job_page
from donewhen.web.mission_pages import mission_page, missions_page
from donewhen.web.page_request import PageRequest, View
from donewhen.web.project_folder import PageNotFoundError
from donewhen.web.rendering import PageContent, render_template
from donewhen.web.review_pages import item_page, queue_page
from donewhen.web.reviewers import ReviewerSession
from donewhen.web.run_page import run_page
from donewhen.web.server_state import Application, ServerState
from donewhen.web.static_files import TYPES, static_files

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

Answer = Callable[["Request"], Awaitable["Response"]]

VIEWS: dict[str, View] = {
    "/": View(board_page, ("jobs",)),
    # What a job has put out and what it is built on can be any file, so that these are looked at anew.
    "/jobs/{job}": View(job_page, ("jobs", "missions"), keep=False),
    "/graph": View(graph_page, ("jobs",)),
    "/review": View(queue_page, ("jobs", "missions"), keep=False),
    "/review/{item}": View(item_page, ("jobs", "missions"), keep=False),
    "/missions": View(missions_page, ("jobs", "missions", "runs")),
    "/missions/{mission}": View(mission_page, ("jobs", "missions")),
    "/missions/{mission}/runs/{run}": View(run_page, ("missions", "runs")),
}
_TOLD = {
    404: "There is nothing under this address.",
    405: "That can't be done with this address.",
    500: "Something went wrong. The terminal of the server says what.",
}


def application(site: ServerState) -> Application:
    """The ASGI application."""
    try:
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.routing import Route
    except ImportError:
        raise MissingExtraError("The page", "web") from None
    render_template("plain.html", {"status": 200, "told": "Templates can be had."})
    routes = [Route(path, _shows(site, path, view), methods=["GET"]) for path, view in VIEWS.items()]
    routes += [
        Route("/review/{item}", form_handler(site, post_verdict), methods=["POST"]),
        Route("/sign-in", _shows_sign_in(site), methods=["GET"]),
        Route("/sign-in", form_handler(site, sign_in), methods=["POST"]),
        Route("/sign-out", form_handler(site, sign_out), methods=["POST"]),
        Route("/static/{name}", _gives(static_files()), methods=["GET"]),
        Route("/events", EventStream(site)),
    ]

    async def refused(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        return _answer(site, request, _error_page(error, status))

    app = Starlette(routes=routes, exception_handlers=dict.fromkeys((HTTPException, DonewhenError, Exception), refused))
    app.router.redirect_slashes = False
    return AccessMiddleware(site, app)


def _shows(site: ServerState, path: str, view: View) -> Answer:
    """A page, made once for all who ask for the same."""

    async def answer(request: Request) -> Response:
        versions = await site.watch.look()
        session: ReviewerSession | None = request.scope[SESSION]
        query = dict(request.query_params)
        told = site.note(query.pop("told", ""))
        names = request.path_params
        asked = PageRequest(site.place, names, query, versions, site.surveys, session)
        watched = tuple(one for topic, one in zip(TOPICS, versions, strict=True) if topic in view.topics)
        key = (path, *sorted(names.items()), *sorted(query.items()), session.id if session else "")

        def make() -> tuple[PageContent, str]:
            shown = view.make(asked)
            return shown, _content(site, session, shown)

        shown, content = await site.memory.made(key, watched, make, keep=view.keep)
        return _answer(site, request, shown, content, view.topics, told)

    return answer


def _shows_sign_in(site: ServerState) -> Answer:
    async def answer(request: Request) -> Response:
        name, secret = request.query_params.get("as", ""), request.query_params.get("secret", "")
        if not site.people.fits(name, secret):
            message = "This link was used already, or is of an earlier start. The terminal shows the one that works."
            raise UsageError(site.people.why_not or message)
        # Looking at the link changes nothing; the button does.
        return _answer(site, request, PageContent("sign_in.html", "Sign in", {"name": name, "secret": secret}))

    return answer


def _gives(files: Mapping[str, Path]) -> Answer:
    async def answer(request: Request) -> Response:
        from starlette.exceptions import HTTPException
        from starlette.responses import Response

        path = files.get(request.path_params["name"])
        if path is None:
            raise HTTPException(404)
        return Response(path.read_bytes(), headers={"Content-Type": TYPES[path.suffix]})

    return answer


def _answer(
    site: ServerState,
    request: Request,
    shown: PageContent,
    content: str | None = None,
    topics: tuple[Topic, ...] = (),
    told: str = "",
) -> Response:
    """A page as it is sent: whole, or only what changes of it where the page itself asks."""
    from markupsafe import Markup
    from starlette.responses import HTMLResponse

    session: ReviewerSession | None = request.scope[SESSION]
    inner = Markup(_content(site, session, shown) if content is None else content)  # noqa: S704 - rendered by us
    headers = {"Vary": "HX-Request", "X-Donewhen-Mark": site.watch.mark}
    if request.headers.get("hx-request") == "true":
        return HTMLResponse(inner, shown.status, headers)
    values = {
        **_about(site, session),
        "content": inner,
        "title": shown.title,
        "room": shown.room,
        "topics": topics,
        "mark": site.watch.mark,
        "told": told,
        "folder": site.place.root.name,
    }
    return HTMLResponse(render_template("shell.html", values), shown.status, headers)


def _content(site: ServerState, session: ReviewerSession | None, shown: PageContent) -> str:
    return render_template(shown.template, {**_about(site, session), **shown.values})


def _about(site: ServerState, session: ReviewerSession | None) -> dict[str, Any]:
    """What every template may ask: whose page it is."""
    return {
        "base": session.base if session else "",
        "csrf": session.csrf if session else "",
        "person": session.by.name if session else "",
        "why_not": site.people.why_not,
    }


def _error_page(error: Exception, status: int) -> PageContent:
    """What went wrong, as a sentence; no more of it than is meant for people."""
    values: dict[str, Any] = {"where": None, "next": None}
    if isinstance(error, DonewhenError):
        status = 404 if isinstance(error, PageNotFoundError) else 400 if isinstance(error, UsageError) else 500
        values |= {"told": error.message, "where": error.where, "next": error.next_step}
    else:
        values["told"] = _TOLD.get(status) or str(getattr(error, "detail", "Something went wrong."))
    return PageContent("error.html", "Not shown", {**values, "code": status}, status=status)
