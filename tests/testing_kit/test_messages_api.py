"""The scripted Messages API, over real HTTP."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from donewhen.runtime import TokenUsage
from donewhen.testing import ScriptExhaustedError, ToolCall
from donewhen.testing.messages_api import MessagesRequest, MessagesServer, Reply, ToolOutcome
from sentences import assert_sentences

KEY = "sk-ant-not-for-the-record"
CLI = {"x-app": "cli", "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14"}
BASH = {"name": "Bash", "description": "Runs a command.", "input_schema": {"type": "object"}}


class Response:
    def __init__(self, raw: http.client.HTTPResponse) -> None:
        self.status = raw.status
        self.headers = raw.headers
        self.text = raw.read().decode()

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def events(self) -> list[dict[str, Any]]:
        found = []
        for block in self.text.strip().split("\n\n"):
            name, data = block.split("\n")
            found.append(json.loads(data.removeprefix("data: ")))
            assert name == f"event: {found[-1]['type']}"
        return found

    @property
    def said(self) -> str:
        return "".join(block["text"] for block in self.json["content"] if block["type"] == "text")


def ask(
    server: MessagesServer,
    *messages: object,
    path: str = "/v1/messages",
    method: str = "POST",
    headers: Mapping[str, str] | None = None,
    raw: bytes | None = None,
    **body: object,
) -> Response:
    connection = http.client.HTTPConnection(server.base_url.removeprefix("http://"), timeout=10)
    content = json.dumps({"model": "m", "messages": messages or [user("Hello")], **body}).encode()
    try:
        connection.request(method, path, content if raw is None else raw, {"x-api-key": KEY, **(headers or {})})
        return Response(connection.getresponse())
    finally:
        connection.close()


def user(content: object) -> dict[str, object]:
    return {"role": "user", "content": content}


def assistant(*blocks: object) -> dict[str, object]:
    return {"role": "assistant", "content": blocks}


def text(words: str) -> dict[str, object]:
    return {"type": "text", "text": words}


def kind_of(*messages: object, headers: Mapping[str, str] | None = None, **body: object) -> str:
    with MessagesServer(lambda _: Reply("ok")) as server:
        ask(server, *messages, headers=headers, **body)
    return server.requests[0].kind


def test_a_text_is_streamed_as_the_api_streams_it() -> None:
    with MessagesServer([Reply("Done.", usage=TokenUsage(7, 3, 2))]) as server:
        response = ask(server, stream=True)

    assert response.headers["content-type"] == "text/event-stream"
    assert [event["type"] for event in response.events] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    start, opened, delta, _, ending, _ = response.events
    assert start["message"]["content"] == []
    assert start["message"]["stop_reason"] is None
    assert start["message"]["usage"] == {
        "input_tokens": 5,
        "cache_read_input_tokens": 2,
        "cache_creation_input_tokens": 0,
        "output_tokens": 0,
    }
    assert opened["content_block"] == text("")
    assert delta["delta"] == {"type": "text_delta", "text": "Done."}
    assert ending["delta"]["stop_reason"] == "end_turn"
    assert ending["usage"] == {"output_tokens": 3}


def test_a_client_that_wants_no_stream_gets_one_document() -> None:
    with MessagesServer([Reply("Done.", usage=TokenUsage(7, 3))]) as server:
        response = ask(server)

    assert response.headers["content-type"] == "application/json"
    assert (response.json["type"], response.json["role"], response.json["model"]) == ("message", "assistant", "m")
    assert response.json["content"] == [text("Done.")]
    assert response.json["stop_reason"] == "end_turn"
    assert response.json["usage"]["output_tokens"] == 3


def test_tools_are_called_after_the_text_each_with_an_id_of_its_own() -> None:
    calls = (ToolCall("Read", {"path": "ä"}), ToolCall("Bash", {"command": "ls"}))
    with MessagesServer([Reply("I look.", calls), Reply(tools=calls[:1])]) as server:
        events = ask(server, stream=True).events
        (third,) = ask(server).json["content"]

    message, read, bash = (event["content_block"] for event in events if event["type"] == "content_block_start")
    assert message["type"] == "text"
    assert (read["type"], read["name"], read["input"]) == ("tool_use", "Read", {})
    assert len({read["id"], bash["id"], third["id"]}) == 3
    arguments = [event["delta"]["partial_json"] for event in events if "partial_json" in event.get("delta", {})]
    assert [json.loads(argument) for argument in arguments] == [{"path": "ä"}, {"command": "ls"}]
    assert events[-2]["delta"]["stop_reason"] == "tool_use"


def test_a_stop_reason_can_be_given() -> None:
    with MessagesServer([Reply("And then", stop_reason="max_tokens")]) as server:
        assert ask(server).json["stop_reason"] == "max_tokens"


def test_an_empty_reply_still_has_a_block() -> None:
    with MessagesServer([Reply()]) as server:
        assert ask(server).json["content"] == [text("")]


def test_a_sequence_is_played_in_order_and_may_hold_functions_of_the_request() -> None:
    with MessagesServer([Reply("one"), lambda request: Reply(request.last_user_texts[0].upper())]) as server:
        assert [ask(server, user("a")).said, ask(server, user("b")).said] == ["one", "B"]


def test_a_function_answers_every_call() -> None:
    with MessagesServer(lambda request: Reply(request.model)) as server:
        assert {ask(server).said for _ in range(3)} == {"m"}


def test_every_request_is_recorded_without_the_key() -> None:
    with MessagesServer(lambda _: Reply("ok")) as server:
        ask(server, user("first"), headers={"X-Some": "Thing", "Authorization": f"Bearer {KEY}"})
        ask(server, user("second"), path="/v1/messages?beta=true")
        seen = server.requests

    assert [request.last_user_texts for request in seen] == [("first",), ("second",)]
    assert [request.path for request in seen] == ["/v1/messages", "/v1/messages"]
    assert seen[0].headers["x-some"] == "Thing"
    assert KEY not in str(seen)
    assert 0 <= seen[0].at <= seen[1].at


def test_a_request_says_what_is_new_in_its_conversation() -> None:
    def result(number: int, content: object, **more: object) -> dict[str, object]:
        return {"type": "tool_result", "tool_use_id": f"t{number}", "content": content, **more}

    def call(number: int, name: str) -> dict[str, object]:
        return {"type": "tool_use", "id": f"t{number}", "name": name, "input": {"path": "an argument"}}

    conversation = [
        user("Write the report."),
        assistant(call(1, "Read")),
        user([result(1, "an old result")]),
        assistant(text("Both."), call(2, "Bash"), call(3, "Write")),
        user([result(2, [text("two"), text("lines")]), result(3, "denied", is_error=True), text("A reminder.")]),
        {"role": "system", "content": [text("The environment.")]},
        user("Stop hook feedback:\nThe tests are missing."),
    ]
    with MessagesServer([Reply("ok")]) as server:
        ask(server, *conversation, system=[text("You test."), text("Be brief.")], tools=[BASH])
        (request,) = server.calls()

    assert request.tool_results == (ToolOutcome("Bash", "two\nlines", False), ToolOutcome("Write", "denied", True))
    assert request.last_user_texts == ("A reminder.", "Stop hook feedback:\nThe tests are missing.")
    assert request.system == "You test.\nBe brief."
    assert request.tool_names == ("Bash",)
    for words in ("an old result", "an argument", "Be brief.", "The environment."):
        assert request.mentions(words)
    assert not request.mentions("a new result")


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        pytest.param({}, {}, id="any client"),
        pytest.param(CLI, {"tools": [BASH]}, id="with tools"),
        pytest.param(CLI, {"tools": []}, id="without tools"),
        pytest.param(CLI, {"tools": [BASH], "output_config": {"effort": "medium"}}, id="with an effort"),
        pytest.param({"x-app": "cli"}, {"tools": [BASH]}, id="small model"),
    ],
)
def test_calls_of_the_conversation_are_main_calls(headers: Mapping[str, str], body: Mapping[str, object]) -> None:
    assert kind_of(headers=headers, **body) == "main"


def test_calls_of_a_sub_agent_are_told_apart() -> None:
    system = [text("You are an agent for Claude Code, Anthropic's official CLI for Claude.")]

    assert kind_of(headers={**CLI, "x-claude-code-agent-id": "a1"}, tools=[BASH]) == "subagent"
    assert kind_of(headers=CLI, tools=[BASH], system=system) == "subagent"


JSON_ANSWER = {"effort": "medium", "format": {"type": "json_schema", "schema": {}}}
COMPACT = "Your task is to create a detailed summary of the conversation so far."


@pytest.mark.parametrize(
    ("message", "headers", "body"),
    [
        pytest.param("<session>…</session>", CLI, {"output_config": JSON_ANSWER}, id="a title, a prompt hook"),
        pytest.param(
            "Is it done?", {**CLI, "x-claude-code-agent-id": "a1"}, {"output_config": JSON_ANSWER}, id="in a sub-agent"
        ),
        pytest.param("Warmup", CLI, {"tools": []}, id="a warm-up (2.0)"),
        pytest.param("Command: ls", {"x-app": "cli", "anthropic-beta": "x"}, {}, id="a small question (2.1.42)"),
        pytest.param(COMPACT, CLI, {"tools": [BASH]}, id="a summary"),
    ],
)
def test_the_clients_own_business_is_auxiliary_and_does_not_move_the_script(
    message: str, headers: Mapping[str, str], body: Mapping[str, object]
) -> None:
    with MessagesServer([Reply("one"), Reply("two")], auxiliary=lambda _: Reply("aside")) as server:
        first = ask(server, headers=CLI)
        aside = ask(server, user(message), headers=headers, **body)
        second = ask(server, headers=CLI)

    assert [first.said, aside.said, second.said] == ["one", "aside", "two"]
    assert len(server.calls()) == 2
    assert [request.last_user_texts for request in server.calls("auxiliary")] == [(message,)]


def test_the_clients_own_business_gets_an_answer_without_being_scripted() -> None:
    with MessagesServer([]) as server:
        assert ask(server, user("Warmup"), headers=CLI).status == 200


def test_tokens_are_counted_roughly() -> None:
    with MessagesServer([]) as server:
        short = ask(server, path="/v1/messages/count_tokens").json["input_tokens"]
        long = ask(server, user("word " * 100), path="/v1/messages/count_tokens").json["input_tokens"]

    assert 0 < short < long


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_any_other_request_is_answered_and_does_not_move_the_script(method: str) -> None:
    with MessagesServer([Reply("ok")]) as server:
        other = ask(server, path="/api/event_logging/batch", method=method, raw=b"\x1f\x8b not json")
        assert ask(server).said == "ok"

    assert (other.status, other.text) == (200, "" if method == "HEAD" else "{}")
    assert [(request.method, request.body) for request in server.calls("other")] == [(method, {})]


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, "invalid_request_error"), (401, "authentication_error"), (429, "rate_limit_error"), (500, "api_error")],
)
@pytest.mark.parametrize("stream", [True, False])
def test_an_error_is_a_reply_with_its_status(status: int, kind: str, stream: bool) -> None:
    with MessagesServer([Reply("Not today.", status=status, retry_after=1.5)]) as server:
        response = ask(server, stream=stream)

    assert response.status == status
    assert response.headers["retry-after"] == "1.5"
    assert response.json == {"type": "error", "error": {"type": kind, "message": "Not today."}}


def test_an_error_without_words_says_its_kind() -> None:
    with MessagesServer([Reply(status=529)]) as server:
        response = ask(server)

    assert response.json["error"]["message"] == "overloaded_error"
    assert "retry-after" not in response.headers


@pytest.mark.parametrize("status", [200, 500])
def test_a_delay_comes_before_the_first_byte(status: int) -> None:
    with MessagesServer([Reply("ok", delay=0.3, status=status)]) as server:
        started = time.monotonic()
        ask(server)

    assert time.monotonic() - started >= 0.3


def test_the_end_of_the_block_waits_for_no_delay() -> None:
    started = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        with MessagesServer([Reply("late", delay=600)]) as server:
            waiting = pool.submit(ask, server)
            while not server.requests:
                time.sleep(0.01)
        assert isinstance(waiting.exception(), http.client.RemoteDisconnected)
    assert time.monotonic() - started < 300


@pytest.mark.parametrize("stream", [True, False])
def test_a_connection_can_break_off_in_mid_answer(stream: bool) -> None:
    with (
        MessagesServer([Reply("You won't read all of this.", broken_off=True)]) as server,
        pytest.raises(http.client.IncompleteRead) as caught,
    ):
        ask(server, stream=stream)

    assert caught.value.partial
    assert b"message_stop" not in caught.value.partial


def test_a_script_that_is_over_is_loud_in_the_answer_and_raises_at_the_end() -> None:
    with pytest.raises(ScriptExhaustedError) as caught, MessagesServer([Reply("ok")]) as server:
        ask(server)
        refused = [ask(server, stream=True), ask(server)]
        assert [response.status for response in refused] == [400, 400]
        assert_sentences(refused[0].json["error"]["message"])
    assert_sentences(caught.value)


def test_check_raises_before_the_block_ends() -> None:
    server = MessagesServer([])
    with pytest.raises(ScriptExhaustedError), server:
        server.check()
        ask(server)
        server.check()
        pytest.fail("check() was silent")


def test_a_function_that_would_go_on_for_ever_meets_the_limit() -> None:
    with (
        pytest.raises(ScriptExhaustedError) as caught,
        MessagesServer(lambda _: Reply("ok"), limit=3) as server,
    ):
        assert [ask(server).status for _ in range(4)] == [200, 200, 200, 400]
    assert_sentences(caught.value)


@pytest.mark.parametrize("auxiliary", [True, False])
def test_a_script_that_raises_refuses_the_client_and_raises_in_the_test(auxiliary: bool) -> None:
    def broken(request: MessagesRequest) -> Reply:
        raise LookupError(f"nothing for {request.kind}")

    with pytest.raises(LookupError) as caught, MessagesServer(broken, auxiliary=broken) as server:
        assert ask(server, user("Warmup" if auxiliary else "Hello"), headers=CLI).status == 400
    assert_sentences(caught.value)


def test_a_failure_in_the_block_is_not_hidden_by_one_of_the_script() -> None:
    with pytest.raises(KeyError) as caught, MessagesServer([]) as server:
        ask(server)
        raise KeyError("mine")

    assert any("SCRIPT EXHAUSTED" in note for note in caught.value.__notes__)


def test_calls_at_the_same_time_get_replies_and_ids_of_their_own() -> None:
    count = 16
    together = threading.Barrier(count)

    def at_once(number: int) -> Response:
        together.wait(10)
        return ask(server, user(f"call {number}"))

    with MessagesServer([Reply(str(n)) for n in range(count)]) as server, ThreadPoolExecutor(count) as pool:
        answers = list(pool.map(at_once, range(count)))

    assert {answer.said for answer in answers} == {str(n) for n in range(count)}
    assert len({answer.json["id"] for answer in answers}) == count
    assert {request.last_user_texts[0] for request in server.calls()} == {f"call {n}" for n in range(count)}


def test_a_reply_that_is_late_does_not_hold_up_another() -> None:
    with (
        MessagesServer(lambda request: Reply("ok", delay=1 if request.mentions("slow") else 0)) as server,
        ThreadPoolExecutor(1) as pool,
    ):
        slow = pool.submit(ask, server, user("slow"))
        while not server.requests:
            time.sleep(0.01)
        assert ask(server, user("fast")).said == "ok"
        assert not slow.done()
        assert slow.result(10).said == "ok"


@pytest.mark.parametrize("raw", [b"", b"not json", b"[1]"])
def test_a_body_that_is_no_json_object_counts_as_empty(raw: bytes) -> None:
    with MessagesServer([Reply("ok")]) as server:
        assert ask(server, raw=raw).said == "ok"

    (request,) = server.calls()
    assert (request.body, request.last_user_texts, request.tool_results, request.system) == ({}, (), (), "")


def test_servers_side_by_side_have_addresses_of_their_own() -> None:
    with MessagesServer([Reply("one")]) as one, MessagesServer([Reply("two")]) as two:
        assert one.base_url != two.base_url
        assert one.base_url.startswith("http://127.0.0.1:")
        assert [ask(two).said, ask(one).said] == ["two", "one"]
