"""The scripted Responses API, over real HTTP."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from donewhen.runtime import TokenUsage
from donewhen.testing import ScriptExhaustedError, ToolCall
from donewhen.testing.responses_api import Reply, ResponsesServer, ToolOutcome, shell
from sentences import assert_sentences

KEY = "sk-not-for-the-record"


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


def ask(
    server: ResponsesServer,
    conversation: object = "Hello",
    *,
    path: str = "/v1/responses",
    method: str = "POST",
    headers: Mapping[str, str] | None = None,
    raw: bytes | None = None,
    **body: object,
) -> Response:
    connection = http.client.HTTPConnection(server.root_url.removeprefix("http://"), timeout=10)
    content = json.dumps({"model": "m", "input": conversation, **body}).encode() if raw is None else raw
    try:
        connection.request(method, path, content, {"Authorization": f"Bearer {KEY}", **(headers or {})})
        return Response(connection.getresponse())
    finally:
        connection.close()


def user(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def test_a_text_is_streamed_as_the_api_streams_it() -> None:
    with ResponsesServer([Reply("Done.", usage=TokenUsage(7, 3, 2))]) as server:
        response = ask(server, stream=True)

    assert response.headers["content-type"] == "text/event-stream"
    assert [event["type"] for event in response.events] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [event["sequence_number"] for event in response.events] == list(range(9))
    assert response.events[4]["delta"] == "Done."
    whole = response.events[-1]["response"]
    assert whole["output"] == [response.events[-2]["item"]]
    assert whole["output"][0]["content"][0]["text"] == "Done."
    assert whole["usage"]["input_tokens"] == 7
    assert whole["usage"]["input_tokens_details"] == {"cached_tokens": 2}
    assert whole["usage"]["total_tokens"] == 10


def test_a_client_that_wants_no_stream_gets_one_document() -> None:
    with ResponsesServer([Reply("Done.")]) as server:
        response = ask(server)

    assert response.headers["content-type"] == "application/json"
    assert response.json["status"] == "completed"
    assert response.json["model"] == "m"
    assert response.json["output"][0]["content"] == [{"type": "output_text", "text": "Done.", "annotations": []}]


def test_calls_come_after_the_text_each_with_an_id_of_its_own() -> None:
    calls = (ToolCall("read", {"path": "ä"}), ToolCall("agents.spawn", {"message": "go"}))
    with ResponsesServer([Reply("I look.", calls)]) as server:
        events = ask(server, stream=True).events

    message, read, spawn = events[-1]["response"]["output"]
    assert message["type"] == "message"
    assert (read["type"], read["name"], json.loads(read["arguments"])) == ("function_call", "read", {"path": "ä"})
    assert "namespace" not in read
    assert (spawn["namespace"], spawn["name"]) == ("agents", "spawn")
    assert read["call_id"] != spawn["call_id"]
    done = [event for event in events if event["type"] == "response.function_call_arguments.done"]
    assert [event["arguments"] for event in done] == [read["arguments"], spawn["arguments"]]


def test_an_answer_may_be_empty() -> None:
    with ResponsesServer([Reply()]) as server:
        assert ask(server).json["output"] == []


def test_a_shell_call_is_the_one_that_codex_understands() -> None:
    with ResponsesServer([shell("ls -l")]) as server:
        (call,) = ask(server).json["output"]

    assert (call["name"], json.loads(call["arguments"])) == ("exec_command", {"cmd": "ls -l"})


def test_a_sequence_is_played_in_order_and_may_hold_functions_of_the_request() -> None:
    with ResponsesServer([Reply("one"), lambda request: Reply(request.last_user_texts[0].upper())]) as server:
        answers = [ask(server, "a").json, ask(server, "b").json]

    assert [answer["output"][0]["content"][0]["text"] for answer in answers] == ["one", "B"]


def test_a_function_answers_every_call() -> None:
    with ResponsesServer(lambda request: Reply(request.model)) as server:
        texts = {ask(server).json["output"][0]["content"][0]["text"] for _ in range(3)}

    assert texts == {"m"}


def test_every_request_is_recorded_without_the_key() -> None:
    with ResponsesServer(lambda request: Reply("ok")) as server:
        ask(server, "first", headers={"X-Some": "Thing", "x-api-key": KEY})
        ask(server, "second", path="/v1/responses?debug=1")
        seen = server.requests

    assert [request.body["input"] for request in seen] == ["first", "second"]
    assert [request.path for request in seen] == ["/v1/responses", "/v1/responses"]
    assert seen[0].headers["x-some"] == "Thing"
    assert KEY not in str(seen)
    assert 0 <= seen[0].at <= seen[1].at


def test_a_request_says_what_is_new_in_its_conversation() -> None:
    conversation = [
        user("Write the report."),
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "c1", "name": "exec_command", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "an old result"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Wait."}]},
        user("Go on."),
        {"type": "function_call", "call_id": "c2", "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "a result"}]},
        user("And tests?"),
    ]
    with ResponsesServer([Reply("ok")]) as server:
        ask(server, conversation, tools=[])
        (request,) = server.calls()

    assert request.last_user_texts == ("And tests?",)
    assert request.tool_results == (ToolOutcome("read", "a result"),)
    assert request.mentions("an old result")
    assert not request.mentions("a new result")


def test_a_request_names_the_tools_on_offer() -> None:
    tools = [
        {"type": "function", "name": "exec_command"},
        {"type": "namespace", "name": "agents", "tools": [{"type": "function", "name": "spawn"}]},
        {"type": "web_search"},
    ]
    with ResponsesServer([Reply("ok")]) as server:
        ask(server, tools=tools)

    assert server.calls()[0].tool_names == ("exec_command", "agents.spawn", "web_search")


def test_calls_of_a_sub_agent_are_told_apart() -> None:
    with ResponsesServer(lambda request: Reply(request.kind)) as server:
        ask(server, headers={"x-openai-subagent": "collab_spawn"})
        ask(server)

    assert [request.kind for request in server.requests] == ["subagent", "main"]
    assert len(server.calls()) == 1
    assert len(server.calls("main", "subagent")) == 2


def test_other_requests_are_refused_and_recorded_but_do_not_move_the_script() -> None:
    with ResponsesServer([Reply("ok")]) as server:
        other = ask(server, path="/v1/models", method="GET")
        assert ask(server).status == 200

    assert other.status == 404
    assert "GET /v1/models" in other.json["error"]["message"]
    assert [(request.method, request.path) for request in server.calls("other")] == [("GET", "/v1/models")]


@pytest.mark.parametrize(("status", "kind"), [(400, "invalid_request_error"), (503, "server_error")])
def test_an_error_is_a_reply_with_its_status(status: int, kind: str) -> None:
    with ResponsesServer([Reply("Not today.", status=status, retry_after=1.5)]) as server:
        response = ask(server, stream=True)

    assert response.status == status
    assert response.headers["retry-after"] == "1.5"
    assert response.json["error"] == {"message": "Not today.", "type": kind, "param": None, "code": None}


def test_a_delay_comes_before_the_first_byte() -> None:
    with ResponsesServer([Reply("ok", delay=0.3)]) as server:
        started = time.monotonic()
        ask(server)

    assert time.monotonic() - started >= 0.3


def test_the_end_of_the_block_waits_for_no_delay() -> None:
    started = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        with ResponsesServer([Reply("late", delay=600)]) as server:
            waiting = pool.submit(ask, server)
            while not server.requests:
                time.sleep(0.01)
        assert isinstance(waiting.exception(), http.client.RemoteDisconnected)
    assert time.monotonic() - started < 300


@pytest.mark.parametrize("stream", [True, False])
def test_a_connection_can_break_off_in_mid_answer(stream: bool) -> None:
    with (
        ResponsesServer([Reply("You won't read this.", broken_off=True)]) as server,
        pytest.raises(http.client.IncompleteRead) as caught,
    ):
        ask(server, stream=stream)

    assert caught.value.partial


def test_a_script_that_is_over_is_refused_without_an_invitation_to_retry_and_raises_at_the_end() -> None:
    with pytest.raises(ScriptExhaustedError) as caught, ResponsesServer([Reply("ok")]) as server:
        ask(server)
        refused = [ask(server), ask(server)]
        assert [response.status for response in refused] == [400, 400]
        assert_sentences(refused[0].json["error"]["message"])
    assert_sentences(caught.value)


def test_check_raises_before_the_block_ends() -> None:
    server = ResponsesServer([])
    with pytest.raises(ScriptExhaustedError), server:
        server.check()
        ask(server)
        server.check()
        pytest.fail("check() was silent")


def test_a_function_that_would_go_on_for_ever_meets_the_limit() -> None:
    with (
        pytest.raises(ScriptExhaustedError) as caught,
        ResponsesServer(lambda _: Reply("ok"), limit=3) as server,
    ):
        assert [ask(server).status for _ in range(4)] == [200, 200, 200, 400]
    assert_sentences(caught.value)


def test_a_script_that_raises_refuses_the_client_and_raises_in_the_test() -> None:
    def broken(request: object) -> Reply:
        raise LookupError("no such line")

    with pytest.raises(LookupError, match="no such line"), ResponsesServer([broken]) as server:
        assert ask(server).status == 400


def test_a_failure_in_the_block_is_not_hidden_by_one_of_the_script() -> None:
    with pytest.raises(KeyError) as caught, ResponsesServer([]) as server:
        ask(server)
        raise KeyError("mine")

    assert any("SCRIPT EXHAUSTED" in note for note in caught.value.__notes__)


def test_calls_at_the_same_time_get_replies_and_ids_of_their_own() -> None:
    count = 8
    with ResponsesServer([Reply(str(n)) for n in range(count)]) as server, ThreadPoolExecutor(count) as pool:
        answers = [response.json for response in pool.map(lambda _: ask(server), range(count))]

    assert {answer["output"][0]["content"][0]["text"] for answer in answers} == {str(n) for n in range(count)}
    assert len({answer["id"] for answer in answers}) == count


@pytest.mark.parametrize("raw", [b"", b"not json", b"[1]"])
def test_a_body_that_is_no_json_object_counts_as_empty(raw: bytes) -> None:
    with ResponsesServer([Reply("ok")]) as server:
        assert ask(server, raw=raw).status == 200

    assert server.requests[0].body == {}
    assert server.requests[0].last_user_texts == ()


def test_a_client_that_hangs_up_is_no_failure_of_the_script() -> None:
    answered = threading.Event()

    def huge(request: object) -> Reply:
        answered.wait(5)
        return Reply("x" * 10_000_000)

    with ResponsesServer([huge, Reply("ok")]) as server:
        host, port = server.root_url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(b"POST /v1/responses HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
            while not server.requests:
                time.sleep(0.01)
        answered.set()
        assert ask(server).status == 200


def test_the_base_url_leads_to_the_script() -> None:
    with ResponsesServer([Reply("ok")]) as server:
        assert ask(server, path=f"{server.base_url.removeprefix(server.root_url)}/responses").status == 200

    assert server.base_url.startswith("http://127.0.0.1:")


def test_an_answer_to_head_has_no_body() -> None:
    with ResponsesServer([]) as server:
        response = ask(server, method="HEAD", path="/")

    assert (response.status, response.text) == (404, "")


def test_a_request_that_cannot_be_read_is_loud() -> None:
    with (
        pytest.raises(ValueError, match="invalid literal"),
        ResponsesServer([]) as server,
        pytest.raises(http.client.RemoteDisconnected),
    ):
        ask(server, raw=b"", headers={"Content-Length": "many"})
