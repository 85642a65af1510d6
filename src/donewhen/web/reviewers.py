"""Reviewer sign-in: one-time links printed on the terminal, and the sessions that they open.

Cookies are not separated by port: every server on this machine receives them, including one started by an agent.
So the session cookie is bound to a secret path, and browsers send it only there.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlencode

from donewhen.foundation.canonical import digest
from donewhen.jobs.ledger.entries import Actor
from donewhen.web.access_rules import constant_time_equal

SESSION_COOKIE = "donewhen_session"
_MOST_SESSIONS = 100


class ReviewerSession(NamedTuple):
    """The session of a signed-in reviewer."""

    id: str
    by: Actor
    secret: str

    @property
    def base(self) -> str:
        """The prefix of every URL in this session."""
        return f"/as/{self.id}"

    @property
    def csrf(self) -> str:
        """The CSRF token of the session's forms, derived from its secret."""
        return digest(f"csrf {self.secret}".encode()).partition(":")[2]


class Reviewers:
    """The people who may give verdicts. Each has one sign-in link at a time, which works once."""

    def __init__(self, named: tuple[Actor, ...], why_not: str = "") -> None:
        self.named = named
        self.why_not = why_not
        """Why no one may give verdicts, if so."""
        self._links = {person.name: secrets.token_urlsafe(24) for person in named}
        self._sessions: dict[str, ReviewerSession] = {}

    def link(self, name: str) -> str:
        """Return the path of the one-time sign-in link."""
        return f"/sign-in?{urlencode({'as': name, 'secret': self._links[name]})}"

    def fits(self, name: str, secret: str) -> bool:
        """Whether the secret belongs to the person's current link."""
        return name in self._links and constant_time_equal(secret, self._links[name])

    def sign_in(self, name: str, secret: str) -> ReviewerSession | None:
        """Consume a link and return the new session; None if the link is not valid."""
        by = next((person for person in self.named if person.name == name), None)
        if by is None or not self.fits(name, secret):
            return None
        self._links[name] = secrets.token_urlsafe(24)
        session = ReviewerSession(secrets.token_urlsafe(24), by, secrets.token_urlsafe(32))
        while len(self._sessions) >= _MOST_SESSIONS:
            self._sessions.pop(next(iter(self._sessions)))
        self._sessions[session.id] = session
        return session

    def session(self, identifier: str, cookies: Mapping[str, str]) -> ReviewerSession | None:
        """Return the session with this id, if the cookies contain its secret."""
        session = self._sessions.get(identifier)
        return (
            session
            if session is not None and constant_time_equal(cookies.get(SESSION_COOKIE, ""), session.secret)
            else None
        )

    def sign_out(self, session: ReviewerSession) -> None:
        self._sessions.pop(session.id, None)
