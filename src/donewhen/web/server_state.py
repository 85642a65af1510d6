"""The state of a running server."""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from donewhen.web.access_rules import AccessPolicy
from donewhen.web.file_watch import FileWatch
from donewhen.web.page_cache import PageCache
from donewhen.web.page_request import Surveys
from donewhen.web.project_folder import ProjectFolder
from donewhen.web.reviewers import Reviewers
from donewhen.web.viewers import Viewers

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Scope = MutableMapping[str, Any]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
"""An ASGI application."""

_MOST_NOTES = 100


class ServerState:
    """The served folder, the access rules, the reviewers, the viewers and the caches."""

    def __init__(
        self, place: ProjectFolder, door: AccessPolicy, people: Reviewers, tell: Callable[[str], None]
    ) -> None:
        self.place = place
        self.door = door
        self.people = people
        self.watch = FileWatch(place)
        self.viewers = Viewers(self.watch)
        self.pages = PageCache()
        self.surveys = Surveys()
        self.url = ""
        self._tell = tell
        self._notes: OrderedDict[str, str] = OrderedDict()

    async def tell(self, text: str) -> None:
        """Print a message on the server's terminal, in a thread because it may be slow."""
        await asyncio.to_thread(self._tell, text)

    def leave_note(self, text: str) -> str:
        """Store the result message of a form for the next page; return its key."""
        name = secrets.token_urlsafe(8)
        self._notes[name] = text
        while len(self._notes) > _MOST_NOTES:
            self._notes.popitem(last=False)
        return name

    def note(self, name: str) -> str:
        return self._notes.get(name, "")

    def close(self) -> None:
        self.viewers.close()
