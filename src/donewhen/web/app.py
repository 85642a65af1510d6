"""The routes, and the page for each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from donewhen.dashboard.header import Server, page_header
from donewhen.dashboard.page import serve_dashboard
from donewhen.foundation.errors import DonewhenError, MissingExtraError, UsageError
from donewhen.web.access_middleware import SESSION, AccessMiddleware
from donewhen.web.board_page import SCRIPTS, LiveBoard, live_board, no_jobs_page
from donewhen.web.event_stream import EventStream
from donewhen.web.file_watch import TOPICS, Topic, Versions
from donewhen.web.forms import form_handler, post_verdict, sign_in, sign_out
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
    # The dashboard, or where there are no jobs yet, how to begin.
    "/": View(no_jobs_page, ("jobs",)),
    # Outputs and inputs of a job can be any file, so these pages are not cached.
    "/jobs/{job}": View(job_page, ("jobs", "missions"), keep=False),
    "/review": View(queue_page, ("jobs", "missions"), keep=False),
    "/review/{item}": View(item_page, ("jobs", "missions"), keep=False),
    "/missions": View(missions_page, ("jobs", "missions", "runs")),
    "/missions/{mission}": View(mission_page, ("jobs", "missions")),
    "/missions/{mission}/runs/{run}": View(run_page, ("missions", "runs")),
}
_MESSAGES = {
    404: "Page not found.",
    405: "This method is not allowed here.",
    500: "Internal error. Details are in the server's terminal.",
}


def application(site: ServerState) -> Application:
    """The ASGI application."""
    try:
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.routing import Route
    except ImportError:
        raise MissingExtraError("The page", "web") from None
    render_template("plain.html", {"status": 200, "message": "Templates are available."})
    handlers = {path: _page_handler(site, path, view) for path, view in VIEWS.items()}
    handlers["/"] = _board_handler(site, handlers["/"])
    routes = [Route(path, handler, methods=["GET"]) for path, handler in handlers.items()]
    routes += [
        Route("/board.json", _data_handler(site), methods=["GET"]),
        Route("/review/{item}", form_handler(site, post_verdict), methods=["POST"]),
        Route("/sign-in", _sign_in_handler(site), methods=["GET"]),
        Route("/sign-in", form_handler(site, sign_in), methods=["POST"]),
        Route("/sign-out", form_handler(site, sign_out), methods=["POST"]),
        Route("/static/{name}", _static_handler(static_files()), methods=["GET"]),
        Route("/events", EventStream(site)),
    ]

    async def refused(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        return _answer(site, request, _error_page(error, status))

    app = Starlette(routes=routes, exception_handlers=dict.fromkeys((HTTPException, DonewhenError, Exception), refused))
    app.router.redirect_slashes = False
    return AccessMiddleware(site, app)


def _board_handler(site: ServerState, otherwise: Answer) -> Answer:
    """Return a handler for the dashboard's page, and for another page while there are no jobs."""

    async def answer(request: Request) -> Response:
        from starlette.responses import HTMLResponse, Response

        if site.place.workspace is None:
            return await otherwise(request)
        if request.headers.get("hx-request") == "true":
            # The page that said how to begin is replaced as a whole.
            return Response(headers={"Vary": "HX-Request", "HX-Refresh": "true"})
        live, mark = await _live_board(site, request)
        server = _server(site, request.scope[SESSION], mark)
        headers = {"Vary": "HX-Request", "X-Donewhen-Mark": mark}
        return HTMLResponse(serve_dashboard(live.board, live.data, server), headers=headers)

    return answer


def _data_handler(site: ServerState) -> Answer:
    """Return a handler for the data of the dashboard, with which the page updates itself."""

    async def answer(request: Request) -> Response:
        from starlette.responses import Response

        live, mark = await _live_board(site, request)
        return Response(live.data, headers={"Content-Type": "application/json", "X-Donewhen-Mark": mark})

    return answer


async def _live_board(site: ServerState, request: Request) -> tuple[LiveBoard, str]:
    """Return the board now, made once for all who ask until something changes, and the mark of its version."""
    versions, mark = await _versions(site)
    page_request = PageRequest(site.place, {}, {}, versions, site.surveys, request.scope[SESSION])
    version = versions[TOPICS.index("jobs")]
    return await site.pages.get_or_make("board", version, lambda: live_board(page_request)), mark


async def _versions(site: ServerState) -> tuple[Versions, str]:
    """Return the versions now and their mark, to be taken before a page is made: a later change is not in the page."""
    versions = await site.watch.refresh()
    return versions, site.watch.mark


def _page_handler(site: ServerState, path: str, view: View) -> Answer:
    """Return a handler that renders a page, shared by all equal requests."""

    async def answer(request: Request) -> Response:
        versions, mark = await _versions(site)
        session: ReviewerSession | None = request.scope[SESSION]
        query = dict(request.query_params)
        notice = site.note(query.pop("notice", ""))
        names = request.path_params
        page_request = PageRequest(site.place, names, query, versions, site.surveys, session)
        watched = tuple(version for topic, version in zip(TOPICS, versions, strict=True) if topic in view.topics)
        key = (path, *sorted(names.items()), *sorted(query.items()), session.id if session else "")

        def make() -> tuple[PageContent, str]:
            page = view.make(page_request)
            return page, _content(site, session, page)

        page, content = await site.pages.get_or_make(key, watched, make, keep=view.keep)
        return _answer(site, request, page, content, view.topics, notice, mark)

    return answer


def _sign_in_handler(site: ServerState) -> Answer:
    async def answer(request: Request) -> Response:
        name, secret = request.query_params.get("as", ""), request.query_params.get("secret", "")
        if not site.people.fits(name, secret):
            message = "This link was used already or is outdated. The server's terminal shows a new link."
            raise UsageError(site.people.why_not or message)
        # Opening the link changes nothing; the button does.
        return _answer(site, request, PageContent("sign_in.html", "Sign in", {"name": name, "secret": secret}))

    return answer


def _static_handler(files: Mapping[str, bytes]) -> Answer:
    async def answer(request: Request) -> Response:
        from starlette.exceptions import HTTPException
        from starlette.responses import Response

        name = request.path_params["name"]
        if name not in files:
            raise HTTPException(404)
        return Response(files[name], headers={"Content-Type": TYPES[Path(name).suffix]})

    return answer


def _answer(
    site: ServerState,
    request: Request,
    page: PageContent,
    content: str | None = None,
    topics: tuple[Topic, ...] = (),
    notice: str = "",
    mark: str = "",
) -> Response:
    """Return the response: the whole page, or only its content for an htmx request."""
    from markupsafe import Markup
    from starlette.responses import HTMLResponse

    session: ReviewerSession | None = request.scope[SESSION]
    inner = Markup(_content(site, session, page) if content is None else content)  # noqa: S704 - rendered by us
    mark = mark or site.watch.mark
    headers = {"Vary": "HX-Request", "X-Donewhen-Mark": mark}
    if request.headers.get("hx-request") == "true":
        return HTMLResponse(inner, page.status, headers)
    values = {
        **_about(site, session),
        "top": Markup(page_header(_server(site, session), page.room)),  # noqa: S704 - escaped where it is made
        "content": inner,
        "title": page.title,
        "topics": topics,
        "mark": mark,
        "notice": notice,
        "folder": site.place.root.name,
    }
    return HTMLResponse(render_template("shell.html", values), page.status, headers)


def _content(site: ServerState, session: ReviewerSession | None, page: PageContent) -> str:
    return render_template(page.template, {**_about(site, session), **page.values})


def _server(site: ServerState, session: ReviewerSession | None, mark: str = "") -> Server:
    """Return what the header and the dashboard need to know about this server and the reader."""
    about = _about(site, session)
    return Server(about["base"], mark, render_template("_account.html", about), scripts=SCRIPTS)


def _about(site: ServerState, session: ReviewerSession | None) -> dict[str, Any]:
    """Return the values for every template: the session and the reviewer."""
    return {
        "base": session.base if session else "",
        "csrf": session.csrf if session else "",
        "person": session.by.name if session else "",
        "why_not": site.people.why_not,
    }


def _error_page(error: Exception, status: int) -> PageContent:
    """Return the error page, with the public message only."""
    values: dict[str, Any] = {"where": None, "next": None}
    if isinstance(error, DonewhenError):
        status = 404 if isinstance(error, PageNotFoundError) else 400 if isinstance(error, UsageError) else 500
        values |= {"message": error.message, "where": error.where, "next": error.next_step}
    else:
        values["message"] = _MESSAGES.get(status) or str(getattr(error, "detail", "Internal error."))
    return PageContent("error.html", "Error", {**values, "code": status}, status=status)
