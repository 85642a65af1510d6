"""What a caller should know while the work goes on."""

from __future__ import annotations

import contextvars
import logging

import pytest

from donewhen.foundation.notices import notices_to, notify


def test_a_notice_goes_to_the_handler_of_its_context() -> None:
    inner: list[str] = []
    outer: list[str] = []
    with notices_to(outer.append):
        with notices_to(inner.append):
            notify("first")
            contextvars.copy_context().run(notify, "second")
        notify("third")
    assert inner == ["first", "second"]
    assert outer == ["third"]


def test_without_a_handler_a_notice_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="donewhen"):
        contextvars.Context().run(notify, "The views could not be refreshed: 100 % full.")
    assert [(record.name, record.getMessage()) for record in caplog.records] == [
        ("donewhen", "The views could not be refreshed: 100 % full.")
    ]


def test_a_handler_that_fails_changes_nothing() -> None:
    asked: list[str] = []

    def broken(message: str) -> None:
        asked.append(message)
        raise BrokenPipeError

    with notices_to(broken):
        notify("lost")
        notify("lost, too")
    assert asked == ["lost", "lost, too"]


def test_a_notice_is_one_plain_line_of_limited_length() -> None:
    notices: list[str] = []
    with notices_to(notices.append):
        notify("a\nb\x1b[31mc" + "x" * 5000)
    assert len(notices) == 1
    assert notices[0].startswith("a bcxxx")
    assert len(notices[0]) == 1000
