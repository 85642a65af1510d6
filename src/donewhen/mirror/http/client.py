"""REST client with retries and rate-limit waits. It never sends the token to another server."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

from donewhen import __version__
from donewhen.foundation.clock import SYSTEM_CLOCK, Clock
from donewhen.mirror.http.address import Address
from donewhen.mirror.http.errors import UnavailableError, UncertainError
from donewhen.mirror.http.refusals import refusal_error
from donewhen.mirror.http.response_cache import CachedResponse, ResponseCache
from donewhen.mirror.http.retry import ATTEMPTS, RetryWait, next_page, wait_after_failure, wait_before_retry
from donewhen.mirror.http.transport import HttpResponse, HttpTransport, NoResponse, Transport

API_VERSION = "2022-11-28"
MAX_WAIT = 300.0
_MOST_REDIRECTS = 5
_MOST_PAGES = 2000
# Shorter waits are not reported.
_REPORT_WAIT_FROM = 2.0


@dataclass
class Client:
    """Client of one server. ``max_wait`` limits the total seconds spent waiting for rate limits."""

    address: Address
    transport: Transport | None = None
    cache: ResponseCache | None = None
    clock: Clock = SYSTEM_CLOCK
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random
    on_progress: Callable[[str], None] = lambda _: None
    max_wait: float = MAX_WAIT
    _waited: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        if self.transport is None:
            self.transport = HttpTransport(direct=self.address.loopback)

    def get(self, path: str, **query: str | int) -> Any:
        """Return one resource."""
        return self._read(self._url(path, query))[0]

    def pages(self, path: str, **query: str | int) -> Iterator[Any]:
        """Yield the items of a list, page by page. A next page on another server is never requested."""
        url: str | None = self._url(path, {**query, "per_page": 100})
        seen: set[str] = set()
        while url is not None:
            if url in seen or len(seen) >= _MOST_PAGES:
                raise UnavailableError("Too many pages in the server's list.", where=self.address.host)
            seen.add(url)
            data, link = self._read(url)
            if not isinstance(data, list):
                raise self._bad_response("with something that is not a list")
            yield from data
            following = next_page({"link": link})
            url = None if following is None else self._check_same_server(urljoin(url, following))

    def create(self, path: str, values: Mapping[str, Any]) -> Any:
        """Create a resource. Never retried: raises UncertainError if it is unknown whether it was created."""
        return self._parse(self._ask("POST", self._url(path, {}), values, repeatable=False))

    def change(self, path: str, values: Mapping[str, Any]) -> Any:
        """Update a resource (idempotent)."""
        return self._parse(self._ask("PATCH", self._url(path, {}), values))

    def add(self, path: str, values: Mapping[str, Any]) -> Any:
        """Add to a set (idempotent)."""
        return self._parse(self._ask("POST", self._url(path, {}), values))

    def remove(self, path: str) -> None:
        self._ask("DELETE", self._url(path, {}), None)

    def pause(self, attempt: int) -> None:
        """Sleep before the next attempt."""
        self.sleep(wait_after_failure(attempt, self.jitter()))

    def _url(self, path: str, query: Mapping[str, str | int]) -> str:
        return f"{self.address.api}{path}{f'?{urlencode(query)}' if query else ''}"

    def _read(self, url: str) -> tuple[Any, str]:
        """Return the content of a URL and its Link header."""
        cached = self.cache.get(url) if self.cache is not None else None
        answer = self._ask("GET", url, None, etag=cached.etag if cached else None)
        if answer.status == 304 and cached is not None:
            return self._load_json(cached.body.encode()), cached.link
        data, link = self._parse(answer), answer.headers.get("link", "")
        etag = answer.headers.get("etag")
        if self.cache is not None and etag is not None and answer.status == 200:
            self.cache.put(url, CachedResponse(etag, link, answer.body.decode("utf-8", "replace")))
        return data, link

    def _ask(
        self,
        method: str,
        url: str,
        values: Mapping[str, Any] | None,
        *,
        repeatable: bool = True,
        etag: str | None = None,
    ) -> HttpResponse:
        attempt = redirects = 0
        while True:
            attempt += 1
            try:
                answer = self._send(method, url, values, etag)
            except NoResponse as failure:
                self._wait_after_failure(failure, attempt, repeatable=repeatable)
                continue
            if answer.status in (301, 302, 307, 308) and "location" in answer.headers:
                redirects += 1
                if redirects > _MOST_REDIRECTS or (method != "GET" and answer.status in (301, 302)):
                    raise UnavailableError("Too many redirects.", where=self.address.host)
                url, attempt = self._check_same_server(urljoin(url, answer.headers["location"])), 0
                continue
            wait = wait_before_retry(answer, attempt, self.clock.now().timestamp(), self.jitter())
            if wait is None:
                if answer.status >= 400:
                    raise refusal_error(answer, method, urlsplit(url).path, self.address)
                return answer
            if not wait.limited and not repeatable:
                raise UncertainError(f"Unknown whether it was created: {wait.why}.", where=self.address.host)
            self._wait(wait, attempt)

    def _send(self, method: str, url: str, values: Mapping[str, Any] | None, etag: str | None) -> HttpResponse:
        assert self.transport is not None  # noqa: S101 - made in __post_init__
        headers = {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {self.address.token}",
            "User-Agent": f"donewhen/{__version__}",
            "X-GitHub-Api-Version": API_VERSION,
        }
        if etag is not None:
            headers["If-None-Match"] = etag
        if values is not None:
            headers["Content-Type"] = "application/json"
        return self.transport.send(method, url, headers, None if values is None else json.dumps(values).encode())

    def _wait_after_failure(self, failure: NoResponse, attempt: int, *, repeatable: bool) -> None:
        where = self.address.host
        if failure.sent and not repeatable:
            raise UncertainError(f"Unknown whether it was created: {failure.why}.", where=where) from failure
        if failure.hopeless or attempt >= ATTEMPTS:
            step = "Check the address (GITHUB_API_URL, github.api_url) and the network, then retry: nothing is lost."
            raise UnavailableError(f"The request failed: {failure.why}.", where=where, next_step=step) from failure
        self.sleep(wait_after_failure(attempt, self.jitter()))

    def _wait(self, wait: RetryWait, attempt: int) -> None:
        if not wait.limited:
            if attempt >= ATTEMPTS:
                raise UnavailableError(
                    f"Gave up after {attempt} attempts: {wait.why}.",
                    where=self.address.host,
                    next_step="Run it again later: completed steps are kept.",
                )
            self.sleep(wait.seconds)
            return
        until = datetime.fromtimestamp(self.clock.now().timestamp() + wait.seconds, UTC)
        when = until.strftime("%Y-%m-%d %H:%M:%S UTC")
        if self._waited + wait.seconds > self.max_wait:
            raise UnavailableError(
                f"Stopped: {wait.why}. The wait until {when} exceeds the limit of {self.max_wait:g} seconds.",
                where=self.address.host,
                next_step=f"Run it again after {when}, or raise --max-wait: completed steps are kept.",
            )
        self._waited += wait.seconds
        if wait.seconds >= _REPORT_WAIT_FROM:
            self.on_progress(f"Waiting until {when}: {wait.why}.")
        self.sleep(wait.seconds)

    def _check_same_server(self, url: str) -> str:
        """Return a URL that the server sent if it is on the same server; the token must not go elsewhere."""
        ours, theirs = urlsplit(self.address.api), urlsplit(url)
        if (theirs.scheme, theirs.netloc) != (ours.scheme, ours.netloc):
            raise UnavailableError(
                "The server redirects to another server, and the token is not sent there.",
                where=self.address.host,
                next_step="If the server has moved, set GITHUB_API_URL or github.api_url to its new address.",
            )
        return url

    def _parse(self, answer: HttpResponse) -> Any:
        return self._load_json(answer.body)

    def _load_json(self, body: bytes) -> Any:
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise self._bad_response("with something that is not JSON") from error

    def _bad_response(self, what: str) -> UnavailableError:
        step = "Check that the address is the API's: https://HOST/api/v3 on an Enterprise server."
        return UnavailableError(f"The server answered {what}.", where=self.address.host, next_step=step)
