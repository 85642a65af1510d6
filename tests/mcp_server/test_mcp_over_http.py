"""`donewhen mcp --http`: the real client and plain requests against a real process on loopback."""

from __future__ import annotations

import http.client
import json
import os
import signal
import stat
import subprocess
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from sentences import assert_sentences

anyio = pytest.importorskip("anyio", reason="LOUD: donewhen[mcp] is not installed, so the MCP server is NOT tested")
TOKEN = "a-token-that-is-long-enough"
SLOW = "It takes long.\n  check: run sh slow.sh"
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


def post(url: str, body: bytes | dict[str, Any], *, path: str | None = None, **headers: str) -> tuple[int, Any, Any]:
    """Send one request with exactly these headers; the status, the headers and the document of the response."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.putrequest("POST", path or parts.path, skip_host=True, skip_accept_encoding=True)
    given = {
        "host": parts.netloc,
        "authorization": f"Bearer {TOKEN}",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "content-length": str(len(data)),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    for name, value in given.items():
        if value:
            connection.putheader(name, value)
    connection.endheaders(data)
    response = connection.getresponse()
    raw = response.read().decode()
    connection.close()
    document = json.loads(raw) if response.headers.get("content-type") == "application/json" and raw else raw
    return response.status, response.headers, document


def test_several_clients_work_over_http_and_every_call_is_an_agents(
    shop: Any, http: Any, http_client: Any, play: Any
) -> None:
    job = shop.job(started=False)
    server = http(shop.command(), DONEWHEN_MCP_TOKEN=TOKEN)

    async def scene() -> None:
        async with http_client(server.url, TOKEN) as one, http_client(server.url, TOKEN) as two:
            assert (await one("start_job", job=job.id))["started"]
            assert not (await two("complete_job", job=job.id))["done"]
            shop.work()
            ran = await two("run_evidence", job=job.id)
            assert ran["passed"]
            assert two.progress[-1] == (1, 2, "AC-2: sh check.sh")
            assert (await one("complete_job", job=job.id))["done"]
            assert (await two("check_job", job=job.id))["done"]

    play(scene)
    assert shop.read(job).status == "done"
    since = [entry for entry in shop.entries(job) if entry.by.name != "ada"]
    assert since
    assert {entry.by.kind for entry in since} == {"agent"}
    status, out, err = server.end()
    assert (status, out) == (0, "")
    assert TOKEN not in server.where + err


ACCESS: list[tuple[dict[str, str], int]] = [
    ({}, 200),
    ({"authorization": ""}, 401),
    ({"authorization": "Bearer wrong-token-of-this-length"}, 401),
    ({"authorization": f"Basic {TOKEN}"}, 401),
    ({"authorization": TOKEN}, 401),
    ({"authorization": f"bearer {TOKEN}"}, 200),
    ({"authorization": "Bearer \xe9"}, 401),
    ({"host": "evil.example:80"}, 421),
    ({"host": "127.0.0.1.evil.example"}, 421),
    ({"host": "192.0.2.7"}, 421),
    ({"host": "localhost:9999"}, 200),
    ({"host": "[::1]:80"}, 200),
    ({"origin": "http://evil.example"}, 403),
    ({"origin": "null"}, 403),
    ({"origin": "http://127.0.0.1:1"}, 403),
    ({"host": "localhost:80", "origin": "http://localhost:80"}, 200),
]


def test_requests_without_the_token_or_from_elsewhere_are_refused(shop: Any, http: Any) -> None:
    server = http(shop.command(), DONEWHEN_MCP_TOKEN=TOKEN)
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
    refusals = {}
    for headers, status in ACCESS:
        got, given, document = post(server.url, hello, **headers)
        assert got == status, headers
        if status != 200:
            refusals[status] = document["error"]["message"]
            assert (given.get("www-authenticate") == "Bearer") is (status == 401)
            # Nothing about the project, and no session.
            assert given.get("mcp-session-id") is None
    assert_sentences(refusals)


def test_what_is_no_request_of_the_protocol_has_a_clean_status(shop: Any, http: Any) -> None:
    server = http(shop.command(), DONEWHEN_MCP_TOKEN=TOKEN)
    assert post(server.url, LIST, path="/")[0] == 404
    assert post(server.url, LIST, path="/mcp/../etc")[0] == 404
    assert post(server.url, b"not JSON")[0] == 400
    assert post(server.url, b"[]")[0] == 400
    assert post(server.url, b"")[0] == 400
    assert post(server.url, LIST)[0] == 400, "there is no session"
    assert post(server.url, LIST, mcp_session_id="none")[0] == 404
    assert post(server.url, LIST, content_type="text/plain")[0] in (400, 415)
    assert post(server.url, LIST, accept="text/html")[0] == 406
    assert post(server.url, b"x" * 5_000_000)[0] == 413
    status, _, document = post(server.url, b'{"jsonrpc": "2.0", "id": "\\ud83d", "method": "tools/list"}')
    assert (status, document["id"]) == (400, "\ud83d")
    parts = urlsplit(server.url)
    for method, expected in (("PUT", 405), ("GET", 400), ("OPTIONS", 405)):
        connection = http_connection(parts.netloc)
        connection.request(
            method, parts.path, headers={"authorization": f"Bearer {TOKEN}", "accept": "text/event-stream"}
        )
        assert connection.getresponse().status == expected
        connection.close()
    connection = http_connection(parts.netloc)
    connection.putrequest("POST", parts.path)
    for name in ("authorization", "authorization"):
        connection.putheader(name, f"Bearer {TOKEN}")
    connection.endheaders()
    assert connection.getresponse().status == 400
    connection.close()
    assert server.process.poll() is None
    assert server.end()[0] == 0


def http_connection(address: str) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(address, timeout=60)


def test_an_argument_with_half_an_emoji_gets_a_reply_over_http_too(
    shop: Any, http: Any, http_client: Any, play: Any
) -> None:
    job = shop.job()
    server = http(shop.command(), DONEWHEN_MCP_TOKEN=TOKEN)
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    _, headers, _ = post(server.url, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    session = headers["mcp-session-id"]
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert post(server.url, ready, mcp_session_id=session)[0] == 202
    arguments = f'{{"job": "{job.id}", "question": "Done? \\ud83d"}}'
    call = f'{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"ask_person","arguments":{arguments}}}}}'
    status, _, text = post(server.url, call.encode(), mcp_session_id=session)
    assert status == 200
    assert "\ufffd" in json.dumps(text, ensure_ascii=False) or "\\ufffd" in text
    assert shop.entries(job)[-1].data["reason"] == "Done? \ufffd"


def test_every_call_gets_a_reply_also_if_the_id_of_an_open_one_is_used_again(shop: Any, http: Any) -> None:
    waiting, go_on = shop.root / "waiting", shop.root / "go-on"
    (shop.root / "check.sh").write_text("touch waiting; while ! [ -e go-on ]; do sleep 0.05; done\n")
    (shop.root / "donewhen.toml").write_text('[stop]\ncommands = ["sh check.sh"]\n')
    server = http(shop.command(), DONEWHEN_MCP_TOKEN=TOKEN)
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    _, headers, _ = post(server.url, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    session = headers["mcp-session-id"]
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert post(server.url, ready, mcp_session_id=session)[0] == 202
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "check_stop", "arguments": {}}}
    replies: list[tuple[int, Any, Any]] = []
    first = threading.Thread(target=lambda: replies.append(post(server.url, call, mcp_session_id=session)))
    first.start()
    while not waiting.exists():
        first.join(0.02)
    for number in (2, "2"):
        status, _, document = post(server.url, call | {"id": number}, mcp_session_id=session)
        assert (status, document["id"], "error" in document) == (400, number, True)
    go_on.touch()
    first.join(60)
    assert [status for status, _, _ in replies] == [200]
    assert post(server.url, call, mcp_session_id=session)[0] == 200, "the id is free again"


def test_a_client_that_leaves_ends_its_command(shop: Any, http: Any, http_client: Any, play: Any) -> None:
    job = shop.job(criteria=[SLOW])
    (shop.root / "slow.sh").write_text("echo $$ > started; exec sleep 600\n")
    server = http(shop.command(), DONEWHEN_MCP_TOKEN=TOKEN)

    async def scene() -> None:
        async with http_client(server.url, TOKEN) as call, anyio.create_task_group() as group:
            group.start_soon(call.raw, "run_evidence", {"job": job.id})
            with anyio.fail_after(60):
                while not ((shop.root / "started").exists() and (shop.root / "started").read_text().strip()):
                    await anyio.sleep(0.02)
            group.cancel_scope.cancel()

    play(scene)
    _ends(int((shop.root / "started").read_text()))


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_ended_leaves_no_command_behind(
    shop: Any, http: Any, http_client: Any, play: Any, how: signal.Signals
) -> None:
    job = shop.job(criteria=[SLOW])
    (shop.root / "slow.sh").write_text("echo $$ > started; exec sleep 600\n")
    server = http(shop.command(), DONEWHEN_MCP_TOKEN=TOKEN)

    def call() -> None:
        async def scene() -> None:
            async with http_client(server.url, TOKEN) as one:
                await one.raw("run_evidence", {"job": job.id})

        try:
            anyio.run(scene)
        except BaseException:
            return

    caller = threading.Thread(target=call)
    caller.start()
    while not ((shop.root / "started").exists() and (shop.root / "started").read_text().strip()):
        threading.Event().wait(0.02)
    status, _, err = server.end(how)
    caller.join(60)
    assert (status, err.replace("Ctrl-C ends it.", "").strip()) == (0, "")
    _ends(int((shop.root / "started").read_text()))


def _ends(process: int) -> None:
    patience = threading.Event()
    for _ in range(3000):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        patience.wait(0.02)
    raise AssertionError("the command still runs")


def test_without_a_terminal_the_token_is_in_a_file_that_only_this_user_can_read(
    shop: Any, http: Any, http_client: Any, play: Any
) -> None:
    server = http(shop.command(), DONEWHEN_MCP_TOKEN="")
    path = Path(server.where.split(" token in ")[1].split(" as ")[0])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    token = path.read_text().strip()
    assert token not in server.where

    async def scene() -> None:
        async with http_client(server.url, token) as call:
            assert (await call("list_jobs"))["total"] == 0

    play(scene)
    _, out, err = server.end()
    assert token not in out + err
    assert not path.exists()


def test_a_token_file_is_made_once_and_used_again(
    shop: Any, http: Any, http_client: Any, play: Any, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    command = shop.command("--token-file", str(file))
    http(command).end()
    token = file.read_text().strip()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    server = http(command)
    assert str(file) in server.where

    async def scene() -> None:
        async with http_client(server.url, token) as call:
            assert (await call("list_jobs"))["total"] == 0

    play(scene)


def test_a_terminal_shows_the_token_once(shop: Any, tmp_path: Path) -> None:
    import pty

    main, side = pty.openpty()
    process = subprocess.Popen(
        shop.command("--http", "127.0.0.1:0"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=side,
        text=True,
        env={**os.environ, "DONEWHEN_MCP_TOKEN": "", "NO_COLOR": "1"},
    )
    os.close(side)
    try:
        assert process.stdout
        url = process.stdout.readline().split()[-1]
        shown = ""
        while "Ctrl-C" not in shown:
            shown += os.read(main, 4096).decode()
        token = shown.split("only once: ")[1].split()[0]
        assert shown.count(token) == 1
        assert post(url, LIST, authorization=f"Bearer {token}")[0] == 400
        assert post(url, LIST, authorization="Bearer wrong")[0] == 401
    finally:
        process.terminate()
        out, _ = process.communicate(timeout=60)
        os.close(main)
    assert token not in out


def test_mistakes_on_the_command_line_are_sentences(shop: Any, http: Any, tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.write_text("a-token-that-is-long-enough\n")
    open_to_all.chmod(0o644)
    taken = http(shop.command(), DONEWHEN_MCP_TOKEN=TOKEN)
    address = urlsplit(taken.url).netloc
    cases = [
        (["--token-file", str(tmp_path / "x")], {}, "--token-file belongs to --http"),
        (["--http", "--token-file", str(open_to_all)], {}, "Other users can read the token file"),
        (["--http", "--token-file", str(tmp_path / "no" / "x")], {}, "token file can't be written"),
        (["--http", "127.0.0.1:0"], {"DONEWHEN_MCP_TOKEN": "short"}, "A token has at least 16 characters"),
        (["--http", "127.0.0.1:x"], {}, "is not a port"),
        (["--http", "127.0.0.1:99999"], {}, "is not a port"),
        (["--http", "no.such.host.invalid:0"], {}, "There is no address"),
        (["--http", address], {}, "The port is already in use"),
    ]
    for options, env, expected in cases:
        command = shop.command(*options)
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env={**os.environ, **env}, timeout=60
        )
        assert (done.returncode, done.stdout) == (2, ""), (options, done)
        assert expected in done.stderr, done.stderr
