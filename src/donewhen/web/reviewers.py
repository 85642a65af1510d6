"""Whose verdict it is: links that are shown on a person's terminal, and the sessions that they open.

A cookie does not know ports: every server on this machine gets to see those of all others, also one that an agent has
started. So the cookie of a session is bound to a path that nobody else knows, and browsers keep it to that path.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlencode

from donewhen.foundation.canonical import digest
from donewhen.jobs.ledger.ledger import Actor
from donewhen.web.access_rules import constant_time_equal

SESSION_COOKIE = "donewhen_session"
_MOST_SESSIONS = 100


class ReviewerSession(NamedTuple):
    """Somebody who has signed in."""

    id: str
    by: Actor
    secret: str

    @property
    def base(self) -> str:
        """What stands before every address of theirs."""
        return f"/as/{self.id}"

    @property
    def csrf(self) -> str:
        """What a form of theirs has to carry: made from their secret, and of no use without it."""
        return digest(f"csrf {self.secret}".encode()).partition(":")[2]


class Reviewers:
    """Those who may give a verdict here. Each has one link at a time, which works once."""

    def __init__(self, named: tuple[Actor, ...], why_not: str = "") -> None:
        self.named = named
        self.why_not = why_not
        """Why nobody may, where nobody may."""
        self._links = {one.name: secrets.token_urlsafe(24) for one in named}
        self._sessions: dict[str, ReviewerSession] = {}

    def link(self, name: str) -> str:
        """The part of the address that signs somebody in, once."""
        return f"/sign-in?{urlencode({'as': name, 'secret': self._links[name]})}"

    def fits(self, name: str, secret: str) -> bool:
        """Whether a link is the one that was shown last."""
        return name in self._links and constant_time_equal(secret, self._links[name])

    def sign_in(self, name: str, secret: str) -> ReviewerSession | None:
        """Use a link up."""
        by = next((one for one in self.named if one.name == name), None)
        if by is None or not self.fits(name, secret):
            return None
        self._links[name] = secrets.token_urlsafe(24)
        session = ReviewerSession(secrets.token_urlsafe(24), by, secrets.token_urlsafe(32))
        while len(self._sessions) >= _MOST_SESSIONS:
            self._sessions.pop(next(iter(self._sessions)))
        self._sessions[session.id] = session
        return session

    def session(self, identifier: str, cookies: Mapping[str, str]) -> ReviewerSession | None:
        """The session of an address, if the browser has its cookie."""
        found = self._sessions.get(identifier)
        return (
            found if found is not None and constant_time_equal(cookies.get(SESSION_COOKIE, ""), found.secret) else None
        )

    def sign_out(self, session: ReviewerSession) -> None:
        self._sessions.pop(session.id, None)
