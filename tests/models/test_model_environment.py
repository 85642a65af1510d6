"""What comes from the environment: an address is part of a model's name, a key is part of nothing that is shown."""

from __future__ import annotations

import asyncio

import pytest

from donewhen.foundation.errors import ConfigError
from donewhen.models import open_model
from donewhen.models.roles import Decode, Prompt, RolloutRequest
from donewhen.testing.chat_api import ChatServer, Reply
from sentences import assert_sentences


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_a_server_from_the_environment_is_named(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(kind, reason=f"{kind.upper()} IS NOT INSTALLED: pip install 'donewhen[{kind}]'")
    monkeypatch.delenv(f"{kind.upper()}_API_KEY", raising=False)
    monkeypatch.setenv(f"{kind.upper()}_BASE_URL", "http://127.0.0.1:1/v1")
    assert open_model(f"{kind}:any").name == f"{kind}:any@http://127.0.0.1:1/v1"
    assert open_model(f"{kind}:any@http://127.0.0.1:2/v1").name == f"{kind}:any@http://127.0.0.1:2/v1"


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_a_password_in_an_address_from_the_environment_is_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(kind, reason=f"{kind.upper()} IS NOT INSTALLED: pip install 'donewhen[{kind}]'")
    monkeypatch.setenv(f"{kind.upper()}_BASE_URL", "http://me:open-sesame@127.0.0.1:1/v1")
    with pytest.raises(ConfigError) as caught:
        open_model(f"{kind}:any")
    assert_sentences(caught.value)
    assert "open-sesame" not in f"{caught.value} {caught.value.where} {caught.value.next_step}"


REQUEST = RolloutRequest(Prompt("shared", "own"), {}, {}, Decode(), "en")


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_a_line_break_after_a_key_is_no_part_of_it(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(kind, reason=f"{kind.upper()} IS NOT INSTALLED: pip install 'donewhen[{kind}]'")
    monkeypatch.setenv(f"{kind.upper()}_API_KEY", "open-sesame-0123456789\n")
    with ChatServer(lambda _: Reply("Verdict: pass\nReason: so"), key="open-sesame-0123456789") as server:
        url = server.base_url if kind == "openai" else server.root_url
        answer = asyncio.run(open_model(f"{kind}:any@{url}").roll(REQUEST))
    assert answer.text.startswith("Verdict: pass")


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
@pytest.mark.parametrize("between", ["\n", "\x01", " "])
def test_what_no_header_can_hold_is_no_key_and_is_not_shown(
    kind: str, between: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(kind, reason=f"{kind.upper()} IS NOT INSTALLED: pip install 'donewhen[{kind}]'")
    monkeypatch.setenv(f"{kind.upper()}_API_KEY", f"open-sesame{between}open-sesame")
    with pytest.raises(ConfigError) as caught:
        open_model(f"{kind}:any@http://127.0.0.1:1/v1")
    assert_sentences(caught.value)
    assert "sesame" not in f"{caught.value} {caught.value.where} {caught.value.next_step}"
