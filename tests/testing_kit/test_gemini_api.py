"""The scripted Gemini API, as clients without a client library see it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from donewhen.testing import GeminiServer, ScriptExhaustedError, ToolCall
from donewhen.testing.gemini_api import Reply, shell

TOOLS = [{"functionDeclarations": [{"name": "run_shell_command"}, {"name": "read_file"}]}]


def ask(server: GeminiServer, contents: object, *, stream: bool = False, tools: object = TOOLS) -> Any:
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    request = urllib.request.Request(  # noqa: S310 - loopback
        f"{server.base_url}/v1beta/models/gemini-x:{verb}",
        data=json.dumps({"contents": contents, **({"tools": tools} if tools else {})}).encode(),
        headers={"content-type": "application/json", "x-goog-api-key": "dummy"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        text = answer.read().decode()
    return json.loads(text.removeprefix("data: ")) if stream else json.loads(text)


def said(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


@pytest.mark.parametrize("stream", [False, True])
def test_a_text_and_a_tool_call_are_answered_whole_and_as_a_stream(stream: bool) -> None:
    call = ToolCall("read_file", {"path": "a"})
    with GeminiServer([Reply("Hello.", tools=(call,))]) as server:
        answer = ask(server, [said("user", {"text": "Hi."})], stream=stream)
    (candidate,) = answer["candidates"]
    text, used = candidate["content"]["parts"]
    assert text == {"text": "Hello."}
    assert used == {"functionCall": {"name": "read_file", "args": {"path": "a"}}}
    assert answer["usageMetadata"]["totalTokenCount"] == 15


def test_what_is_new_in_a_conversation_is_shown() -> None:
    history = [
        said("user", {"text": "first"}),
        said("model", {"functionCall": {"name": "run_shell_command", "args": {}}}),
        said("user", {"functionResponse": {"name": "run_shell_command", "response": {"output": "hello"}}}),
        said("user", {"text": "second"}),
    ]
    with GeminiServer([Reply("Done.")]) as server:
        ask(server, history)
        (request,) = server.calls()
    assert request.last_user_texts == ("second",)
    assert [(result.name, "hello" in result.text) for result in request.tool_results] == [("run_shell_command", True)]
    assert request.model == "gemini-x"
    assert request.tool_names == ("run_shell_command", "read_file")


def test_calls_without_tools_are_auxiliary_and_don_t_use_the_script() -> None:
    with GeminiServer([shell("ls")]) as server:
        assert ask(server, [], tools=None)["candidates"][0]["content"]["parts"] == [{"text": "{}"}]
        assert "functionCall" in ask(server, [])["candidates"][0]["content"]["parts"][0]
        assert [request.kind for request in server.requests] == ["auxiliary", "main"]


def test_errors_have_the_form_of_the_api_and_so_has_an_exhausted_script() -> None:
    with pytest.raises(ScriptExhaustedError), GeminiServer([Reply("Slow down.", status=429, retry_after=0)]) as server:
        with pytest.raises(urllib.error.HTTPError) as error:
            ask(server, [])
        assert json.loads(error.value.read())["error"]["status"] == "RESOURCE_EXHAUSTED"
        with pytest.raises(urllib.error.HTTPError) as error:
            ask(server, [])
        assert error.value.code == 400
        error.value.close()
