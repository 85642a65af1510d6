"""A server on loopback that behaves like GitHub's REST API, as far as a mirror can notice.

It keeps repositories with issues, labels and milestones, asks for a token, answers by pages and with ETags, and can be
told to have a bad moment: ``double.next(...)`` queues what happens to the next requests that it fits.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

TOKEN = "ghs_" + "0123456789abcdefghij"
LONGEST_TITLE = 256
LONGEST_BODY = 65_536
LONGEST_LABEL = 50


@dataclass(frozen=True)
class Asked:
    """One request, as the server saw it."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True)
class Trouble:
    """What happens to a request instead of, or after, its answer."""

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b'{"message": "trouble"}'
    cut: bool = False
    """The connection is lost without an answer; what was asked for is done nevertheless, where ``after``."""
    after: bool = False
    hang: bool = False
    """Nothing more is said until the server ends."""


@dataclass
class Repo:
    """One repository."""

    name: str
    issues: dict[int, dict[str, Any]] = field(default_factory=dict)
    labels: dict[str, dict[str, Any]] = field(default_factory=dict)
    milestones: dict[int, dict[str, Any]] = field(default_factory=dict)
    has_issues: bool = True
    private_to: str | None = None
    """The only token that may see it."""
    may_write: bool = True
    """Whether labels and milestones are taken; without push rights, GitHub drops them and says nothing."""
    deleted: set[int] = field(default_factory=set)
    moved: dict[int, tuple[str, int]] = field(default_factory=dict)


class GitHubDouble:
    """The server. Use it as a context; its address is ``api``."""

    def __init__(self, *repos: str, token: str = TOKEN) -> None:
        self.token = token
        self.repos = {repo: Repo(repo) for repo in repos or ("octo/demo",)}
        self.renamed: dict[str, str] = {}
        self.log: list[Asked] = []
        self.page_size: int | None = None
        self.prefix = ""
        """What stands before every path; an Enterprise server has /api/v3."""
        self.author = {"login": "ada", "type": "User"}
        self.association = "MEMBER"
        self.closing = threading.Event()
        self._troubles: list[tuple[str, str, Trouble]] = []
        self._lock = threading.RLock()
        self._http = _Server(self)

    @property
    def api(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def repo(self) -> Repo:
        return next(iter(self.repos.values()))

    @property
    def writes(self) -> list[tuple[str, str]]:
        """What was asked for that changes something."""
        return [(request.method, request.path) for request in self.log if request.method != "GET"]

    def asked(self, method: str, pattern: str) -> list[Asked]:
        return [request for request in self.log if request.method == method and re.fullmatch(pattern, request.path)]

    def next(self, trouble: Trouble, times: int = 1, *, method: str = ".*", path: str = ".*") -> None:
        """The next requests that fit have this trouble."""
        self._troubles += [(method, path, trouble)] * times

    def open_issue(self, title: str, body: str = "", **values: Any) -> dict[str, Any]:
        """Somebody opens an issue by hand."""
        number = max([*self.repo.issues, *self.repo.deleted, 0]) + 1
        issue = {
            "number": number,
            "title": title,
            "body": body,
            "state": "open",
            "state_reason": None,
            "labels": [],
            "milestone": None,
            "assignees": [],
            "author_association": self.association,
            "user": dict(self.author),
            "repository_url": f"{self.api}/repos/{self.repo.name}",
            "html_url": f"https://example.invalid/{self.repo.name}/issues/{number}",
            **values,
        }
        self.repo.issues[number] = issue
        return issue

    def answer(self, asked: Asked) -> tuple[int, dict[str, str], Any, Trouble | None]:
        with self._lock:
            self.log.append(asked)
            trouble = self._trouble(asked)
            if trouble is not None and not trouble.after:
                return trouble.status, dict(trouble.headers), trouble.body, trouble
            status, headers, data = self._answered(asked)
            return status, headers, copy.deepcopy(data), trouble

    def _trouble(self, asked: Asked) -> Trouble | None:
        for number, (method, path, trouble) in enumerate(self._troubles):
            if re.fullmatch(method, asked.method) and re.fullmatch(path, asked.path):
                del self._troubles[number]
                return trouble
        return None

    def _answered(self, asked: Asked) -> tuple[int, dict[str, str], Any]:
        if asked.headers.get("authorization") != f"Bearer {self.token}":
            return 401, {}, {"message": "Bad credentials"}
        if asked.headers.get("x-github-api-version") != "2022-11-28" or not asked.headers.get("user-agent"):
            return 403, {}, {"message": "Request forbidden by administrative rules."}
        if asked.method in ("POST", "PATCH") and not isinstance(asked.body, dict):
            return 400, {}, {"message": "Problems parsing JSON"}
        if not asked.path.startswith(self.prefix):
            return 404, {}, {"message": "Not Found"}
        parts = re.fullmatch(re.escape(self.prefix) + r"/(?:repos/([^/]+/[^/]+)|repositories/(\d+))(/.*)?", asked.path)
        if parts is None:
            return 404, {}, {"message": "Not Found"}
        if parts[2] is not None:
            name = [*self.repos][int(parts[2]) - 1]
        else:
            name = next((entry for entry in self.repos if entry.casefold() == parts[1].casefold()), parts[1])
            if name in self.renamed:
                there = f"{self.api}/repositories/{[*self.repos].index(self.renamed[name]) + 1}{parts[3] or ''}"
                query = f"?{urlencode(asked.query)}" if asked.query else ""
                code = 301 if asked.method == "GET" else 307
                return code, {"location": there + query}, {"message": "Moved Permanently", "url": there}
        repo = self.repos.get(name)
        if repo is None or (repo.private_to is not None and repo.private_to != self.token):
            return 404, {}, {"message": "Not Found", "documentation_url": "…"}
        status, headers, data = self._in_repo(repo, asked, parts[3] or "")
        if asked.method == "GET" and status == 200:
            etag = f'W/"{hashlib.sha256(json.dumps([data, headers]).encode()).hexdigest()}"'
            if asked.headers.get("if-none-match") == etag:
                return 304, {"etag": etag}, None
            headers["etag"] = etag
        return status, headers, data

    def _in_repo(self, repo: Repo, asked: Asked, path: str) -> tuple[int, dict[str, str], Any]:
        if path == "" and asked.method == "GET":
            return 200, {}, {"full_name": repo.name, "has_issues": repo.has_issues}
        if path.startswith("/issues") and not repo.has_issues:
            return 410, {}, {"message": "Issues are disabled for this repo"}
        routes: tuple[tuple[str, str, Callable[..., tuple[int, dict[str, str], Any]]], ...] = (
            ("GET", r"/issues", self._list_issues),
            ("POST", r"/issues", self._make_issue),
            ("GET", r"/issues/(\d+)", self._get_issue),
            ("PATCH", r"/issues/(\d+)", self._change_issue),
            ("POST", r"/issues/(\d+)/labels", self._add_labels),
            ("DELETE", r"/issues/(\d+)/labels/([^/]+)", self._remove_label),
            ("GET", r"/labels", self._list_labels),
            ("POST", r"/labels", self._make_label),
            ("GET", r"/milestones", self._list_milestones),
            ("POST", r"/milestones", self._make_milestone),
            ("PATCH", r"/milestones/(\d+)", self._change_milestone),
        )
        for method, pattern, route in routes:
            found = re.fullmatch(pattern, path)
            if method == asked.method and found is not None:
                return route(repo, asked, *found.groups())
        return 404, {}, {"message": "Not Found"}

    def _list_issues(self, repo: Repo, asked: Asked) -> tuple[int, dict[str, str], Any]:
        state = asked.query.get("state", "open")
        shown = [issue for issue in repo.issues.values() if state in ("all", issue["state"])]
        newest_first = asked.query.get("direction", "desc") == "desc"
        return self._page(asked, sorted(shown, key=lambda value: value["number"], reverse=newest_first))

    def _get_issue(self, repo: Repo, asked: Asked, number: str) -> tuple[int, dict[str, str], Any]:
        if int(number) in repo.moved:
            name, other = repo.moved[int(number)]
            return 301, {"location": f"{self.api}/repos/{name}/issues/{other}"}, {"message": "Moved Permanently"}
        if int(number) in repo.deleted:
            return 410, {}, {"message": "This issue was deleted"}
        issue = repo.issues.get(int(number))
        return (404, {}, {"message": "Not Found"}) if issue is None else (200, {}, issue)

    def _make_issue(self, repo: Repo, asked: Asked) -> tuple[int, dict[str, str], Any]:
        refused = self._invalid_issue(repo, asked.body, new=True)
        if refused is not None:
            return refused
        issue = self.open_issue(asked.body["title"], asked.body.get("body") or "")
        if repo.may_write:
            issue["labels"] = self._labelled(repo, asked.body.get("labels", []))
            issue["milestone"] = self._milestone(repo, asked.body.get("milestone"))
        return 201, {}, issue

    def _change_issue(self, repo: Repo, asked: Asked, number: str) -> tuple[int, dict[str, str], Any]:
        issue = repo.issues.get(int(number))
        if issue is None:
            return (
                (410, {}, {"message": "Gone"}) if int(number) in repo.deleted else (404, {}, {"message": "Not Found"})
            )
        refused = self._invalid_issue(repo, asked.body, new=False)
        if refused is not None:
            return refused
        for name in ("title", "body"):
            if name in asked.body:
                issue[name] = asked.body[name]
        if "milestone" in asked.body and repo.may_write:
            issue["milestone"] = self._milestone(repo, asked.body["milestone"])
        if "labels" in asked.body and repo.may_write:
            issue["labels"] = self._labelled(repo, asked.body["labels"])
        if "state" in asked.body:
            was = issue["state"]
            issue["state"] = asked.body["state"]
            reason = asked.body.get("state_reason")
            issue["state_reason"] = (
                (reason or "completed") if issue["state"] == "closed" else "reopened" if was == "closed" else None
            )
        return 200, {}, issue

    def _invalid_issue(
        self, repo: Repo, body: Mapping[str, Any], *, new: bool
    ) -> tuple[int, dict[str, str], Any] | None:
        if (new or "title" in body) and not str(body.get("title") or "").strip():
            return _invalid("Issue", "title", "missing_field")
        if len(str(body.get("title") or "")) > LONGEST_TITLE:
            return _invalid("Issue", "title", "custom", f"title is too long (maximum is {LONGEST_TITLE} characters)")
        if len(str(body.get("body") or "")) > LONGEST_BODY:
            return _invalid("Issue", "body", "custom", f"body is too long (maximum is {LONGEST_BODY} characters)")
        if body.get("milestone") is not None and body["milestone"] not in repo.milestones:
            return _invalid("Issue", "milestone", "invalid")
        if any(len(label) > LONGEST_LABEL for label in body.get("labels", ())):
            return _invalid("Label", "name", "custom", f"name is too long (maximum is {LONGEST_LABEL} characters)")
        if body.get("state", "open") not in ("open", "closed"):
            return _invalid("Issue", "state", "invalid")
        if body.get("state_reason") not in (None, "completed", "not_planned", "reopened", "duplicate"):
            return _invalid("Issue", "state_reason", "invalid")
        return None

    def _labelled(self, repo: Repo, names: list[str]) -> list[dict[str, Any]]:
        """Labels that nobody made are made on the way, in grey."""
        for name in names:
            repo.labels.setdefault(name.casefold(), {"name": name, "color": "ededed", "description": None})
        return [repo.labels[name.casefold()] for name in dict.fromkeys(entry.casefold() for entry in names)]

    def _milestone(self, repo: Repo, number: int | None) -> dict[str, Any] | None:
        return None if number is None else repo.milestones[number]

    def _add_labels(self, repo: Repo, asked: Asked, number: str) -> tuple[int, dict[str, str], Any]:
        issue = repo.issues.get(int(number))
        if issue is None:
            return 404, {}, {"message": "Not Found"}
        if not repo.may_write:
            return 403, {}, {"message": "Must have admin rights to Repository."}
        names = [label["name"] for label in issue["labels"]] + asked.body["labels"]
        issue["labels"] = self._labelled(repo, names)
        return 200, {}, issue["labels"]

    def _remove_label(self, repo: Repo, asked: Asked, number: str, name: str) -> tuple[int, dict[str, str], Any]:
        issue = repo.issues[int(number)]
        wanted = unquote(name).casefold()
        if wanted not in [label["name"].casefold() for label in issue["labels"]]:
            return 404, {}, {"message": "Label does not exist"}
        issue["labels"] = [label for label in issue["labels"] if label["name"].casefold() != wanted]
        return 200, {}, issue["labels"]

    def _list_labels(self, repo: Repo, asked: Asked) -> tuple[int, dict[str, str], Any]:
        return self._page(asked, [*repo.labels.values()])

    def _make_label(self, repo: Repo, asked: Asked) -> tuple[int, dict[str, str], Any]:
        name = asked.body.get("name", "")
        if name.casefold() in repo.labels:
            return _invalid("Label", "name", "already_exists")
        if not name or len(name) > LONGEST_LABEL or not re.fullmatch("[0-9a-f]{6}", asked.body.get("color", "")):
            return _invalid("Label", "name", "invalid")
        if not repo.may_write:
            return 403, {}, {"message": "Resource not accessible by integration"}
        repo.labels[name.casefold()] = {
            "name": name,
            "color": asked.body["color"],
            "description": asked.body.get("description"),
        }
        return 201, {}, repo.labels[name.casefold()]

    def _list_milestones(self, repo: Repo, asked: Asked) -> tuple[int, dict[str, str], Any]:
        return self._page(asked, [*repo.milestones.values()])

    def _make_milestone(self, repo: Repo, asked: Asked) -> tuple[int, dict[str, str], Any]:
        title = asked.body.get("title", "")
        if title in [milestone["title"] for milestone in repo.milestones.values()]:
            return _invalid("Milestone", "title", "already_exists")
        number = max(repo.milestones, default=0) + 1
        repo.milestones[number] = {
            "number": number,
            "title": title,
            "state": "open",
            "due_on": _by_the_day(asked.body.get("due_on")),
        }
        return 201, {}, repo.milestones[number]

    def _change_milestone(self, repo: Repo, asked: Asked, number: str) -> tuple[int, dict[str, str], Any]:
        found = repo.milestones.get(int(number))
        if found is None:
            return 404, {}, {"message": "Not Found"}
        found["title"] = asked.body.get("title", found["title"])
        if "due_on" in asked.body:
            found["due_on"] = _by_the_day(asked.body["due_on"])
        return 200, {}, found

    def _page(self, asked: Asked, rows: list[Any]) -> tuple[int, dict[str, str], Any]:
        size = self.page_size or min(100, int(asked.query.get("per_page", 30)))
        page = int(asked.query.get("page", 1))
        headers: dict[str, str] = {}
        if page * size < len(rows):
            query = {**asked.query, "page": page + 1}
            last = {**asked.query, "page": -(-len(rows) // size)}
            base = f"{self.api}{quote(asked.path)}"
            headers["link"] = f'<{base}?{urlencode(query)}>; rel="next", <{base}?{urlencode(last)}>; rel="last"'
        return 200, headers, rows[(page - 1) * size : page * size]

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()


def _by_the_day(due: str | None) -> str | None:
    """GitHub keeps the day, and an hour of its own."""
    return None if due is None else f"{due[:10]}T08:00:00Z"


def _invalid(resource: str, name: str, code: str, message: str = "") -> tuple[int, dict[str, str], Any]:
    error = {"resource": resource, "field": name, "code": code} | ({"message": message} if message else {})
    return 422, {}, {"message": "Validation Failed", "errors": [error]}


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, double: GitHubDouble) -> None:
        self.double = double
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client may hang up whenever it likes."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = 60.0

    def _answer(self) -> None:
        self.close_connection = True
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        parts = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            body = json.loads(raw) if raw else None
        except ValueError:
            body = None
        double = self.server.double
        status, sent, data, trouble = double.answer(Asked(self.command, parts.path, query, headers, body))
        if trouble is not None and trouble.hang:
            double.closing.wait()
            return
        if trouble is not None and trouble.cut:
            # Without a farewell: the client gets a reset.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            return
        if trouble is not None and trouble.after:
            status, sent, data = trouble.status, dict(trouble.headers), trouble.body
        content = data if isinstance(data, bytes) else b"" if data is None else json.dumps(data).encode()
        self.send_response(status)
        sent.setdefault("content-length", str(len(content)))
        for name, value in {"content-type": "application/json; charset=utf-8", "connection": "close", **sent}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = _answer  # noqa: N815 - found by name

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """The record is the log."""
