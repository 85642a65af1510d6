"""`donewhen serve`: starting, ending, and what it refuses before it listens."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from web_kit import PATIENCE, Server, shop

from donewhen.foundation.install_line import install_line
from sentences import assert_sentences

Serve = Callable[..., Server]
Donewhen = Callable[..., subprocess.CompletedProcess[str]]
EVERYWHERE = "0.0.0.0"  # noqa: S104


def test_it_explains_itself(donewhen: Donewhen, tmp_path: Path) -> None:
    shown = donewhen(["serve", "-h"], tmp_path)
    assert shown.returncode == 0
    for option in ("--host", "--port", "--reviewer", "--token-file", "--open", "--project", "--json"):
        assert option in shown.stdout


def test_a_port_that_is_taken_is_said_with_what_to_do(donewhen: Donewhen, tmp_path: Path) -> None:
    shop(tmp_path, "Greet")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = donewhen(["serve", "--port", port], tmp_path)
    assert done.returncode == 2
    assert f"127.0.0.1:{port}" in done.stderr
    assert_sentences(done.stderr)
    assert "donewhen serve --port 0" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_host_that_does_not_exist_is_an_error(donewhen: Donewhen, tmp_path: Path) -> None:
    done = donewhen(["serve", "--host", "no.such.host.invalid", "--port", "0"], tmp_path)
    assert done.returncode == 2
    assert "no.such.host.invalid" in done.stderr


def test_reviewers_need_somebody_at_a_terminal(donewhen: Donewhen, tmp_path: Path) -> None:
    done = donewhen(["serve", "--port", "0", "--reviewer", "ada"], tmp_path)
    assert done.returncode == 2
    assert_sentences(done.stderr)


@pytest.mark.parametrize("name", ["", " ", "a\tb\x07", "x" * 61])
def test_a_reviewer_has_a_name_that_can_be_read(as_person: Callable[..., object], tmp_path: Path, name: str) -> None:
    played = as_person(["serve", "--port", "0", "--reviewer", name], tmp_path)
    assert played.status == 2  # type: ignore[attr-defined]
    assert_sentences(played.screen)


@pytest.mark.parametrize(
    ("token", "mode"),
    [
        ("short", 0o600),
        ("with spaces in it, and more", 0o600),
        ("x" * 30, 0o644),
    ],
)
def test_a_token_that_is_weak_or_open_is_refused(donewhen: Donewhen, tmp_path: Path, token: str, mode: int) -> None:
    path = tmp_path / "token"
    path.write_text(token, encoding="utf-8")
    path.chmod(mode)
    done = donewhen(["serve", "--port", "0", "--token-file", str(path)], tmp_path)
    assert done.returncode == 2
    assert_sentences(done.stderr)
    assert token not in done.stderr


def test_for_programs_one_envelope_says_where_it_is(tmp_path: Path, serve: Serve) -> None:
    shop(tmp_path, "Greet")
    server = serve(tmp_path, "--json")
    told = json.loads(re.search(r"\{.*\}", server.read_until(r'"findings": \[\]\s*\}'), re.DOTALL)[0])  # type: ignore[index]
    assert told["command"] == "serve"
    assert told["data"] == {"url": f"{server.url}/", "pid": server.pid, "reviewers": []}


def test_links_and_tokens_are_not_in_what_programs_read(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "donewhen", "serve", "--port", "0", "--host", EVERYWHERE, "--json"]
    with subprocess.Popen(
        argv, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert b"token=" in process.stderr.readline() + process.stderr.readline()
        process.terminate()
        assert b"token" not in process.stdout.read()
        process.stderr.read()


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_quietly_while_somebody_watches(tmp_path: Path, serve: Serve, kind: signal.Signals) -> None:
    shop(tmp_path, "Greet")
    server = serve(tmp_path)
    watching = [socket.create_connection(("127.0.0.1", server.port), PATIENCE) for _ in range(20)]
    for one in watching:
        one.sendall(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert one.recv(65536).startswith(b"HTTP/1.1 200")
    idle = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
    began = time.monotonic()
    assert server.stop(kind) == 0
    took = time.monotonic() - began
    print(f"ended with 20 viewers in {took:.2f} s")
    assert "Traceback" not in server.screen
    assert_sentences(server.screen.rstrip())
    for one in watching:
        while one.recv(65536):
            pass
        one.close()
    idle.close()


def test_a_second_ctrl_c_waits_for_nobody(tmp_path: Path, serve: Serve) -> None:
    shop(tmp_path, "Greet")
    server = serve(tmp_path)
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as half:
        # A request that never ends keeps the server for its last seconds.
        half.sendall(b"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\nContent-Length: 99\r\n")
        half.sendall(b"Content-Type: application/x-www-form-urlencoded\r\n\r\nas=")
        assert server.get("/").status == 200
        os.kill(server.pid, signal.SIGINT)
        assert server.stop(signal.SIGINT) in (0, 130)
    assert "Traceback" not in server.screen


def test_ctrl_c_at_the_terminal_ends_it(tmp_path: Path, serve: Serve) -> None:
    shop(tmp_path, "Greet")
    server = serve(tmp_path, person=True)
    assert server.get("/").status == 200
    assert server.stop(signal.SIGINT) == 0
    assert "Traceback" not in server.screen


def test_a_project_elsewhere_is_named(tmp_path: Path, serve: Serve) -> None:
    (tmp_path / "a").mkdir()
    shop(tmp_path / "a", "Greet")
    server = serve(tmp_path, "--project", str(tmp_path / "a"))
    assert "Greet" in server.get("/").text


def test_which_of_several_projects_is_meant_has_to_be_said(donewhen: Donewhen, tmp_path: Path) -> None:
    for title in ("One", "Two"):
        donewhen(["init", "--workstreams", "--title", title], tmp_path)
    done = donewhen(["serve", "--port", "0"], tmp_path)
    assert done.returncode == 2
    assert_sentences(done.stderr)


def test_without_the_extra_it_says_how_to_get_it(tmp_path: Path) -> None:
    code = (
        "import sys, importlib.abc\n"
        "class Gone(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name.split('.')[0] == sys.argv[1]: raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Gone())\n"
        "from donewhen.cli._run import run\n"
        "sys.exit(run(['serve', '--port', '0']))\n"
    )
    for name in ("starlette", "uvicorn", "jinja2"):
        argv = [sys.executable, "-c", code, name]
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2, (name, done.stdout, done.stderr)
        assert f"Run: {install_line('web')}" in done.stderr, name


def test_a_browser_is_opened_without_any_secret(tmp_path: Path, serve: Serve) -> None:
    shop(tmp_path, "Greet")
    opened = tmp_path / "opened"
    script = tmp_path / "bin" / "xdg-open"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\necho "$@" > {opened}.new && mv {opened}.new {opened}\n', encoding="utf-8")
    script.chmod(0o755)
    server = serve(tmp_path, "--open", person=True, env={"PATH": f"{script.parent}:{os.environ['PATH']}"})
    until = time.monotonic() + PATIENCE
    while not opened.exists():
        assert time.monotonic() < until
        time.sleep(0.02)
    assert opened.read_text(encoding="utf-8").strip() == f"{server.url}/"
