"""An error that nobody foresaw: the page says so in a sentence, and the terminal says what."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from web_kit import missing_extra

from donewhen.web.access_rules import AccessPolicy
from donewhen.web.project_folder import ProjectFolder
from donewhen.web.reviewers import Reviewers
from donewhen.web.server_state import ServerState
from sentences import assert_sentences, visible

pytestmark = pytest.mark.skipif(bool(missing_extra()), reason=missing_extra())


def test_it_is_a_page_and_tells_nothing_of_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from donewhen.web import app
    from donewhen.web.page_request import View

    def broken(_: object) -> Any:
        raise RuntimeError("a secret of the machine")

    monkeypatch.setitem(app.VIEWS, "/missions", View(broken, ("jobs",)))
    printed: list[str] = []
    sent: list[Any] = []
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/missions",
        "raw_path": b"/missions",
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1")],
    }

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    site = ServerState(ProjectFolder(tmp_path), AccessPolicy("127.0.0.1"), Reviewers(()), printed.append)
    asyncio.run(app.application(site)(scope, receive, send))
    page = b"".join(one.get("body", b"") for one in sent).decode()
    assert sent[0]["status"] == 500
    assert_sentences(visible(page))
    assert "a secret of the machine" not in page
    assert printed[:1] == ["The page /missions could not be shown: RuntimeError: a secret of the machine"]
