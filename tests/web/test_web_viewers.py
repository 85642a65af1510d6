"""Two hundred watch while others work: everybody is told, nobody waits for anybody, and who leaves is forgotten."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from web_kit import BOT, PATIENCE, Server, eventually, shop

from donewhen.demo.example_mission import make_mission
from donewhen.jobs.lifecycle.start import start_job

Serve = Callable[..., Server]

DONE = '"done":1'
"""A board on which one job is done."""
VIEWERS = 200
READERS = 20

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="it looks at processes by /proc")


class Watching:
    """A browser that follows the page: told of a change, it asks for the board anew."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.told = 0
        self.topics: set[str] = set()
        self.board = ""
        self.longest = 0.0

    async def follow(self, here: asyncio.Semaphore, end: asyncio.Event) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert b"200 OK" in await reader.readline()
        here.release()
        ending = asyncio.create_task(end.wait())
        try:
            while not ending.done():
                line = asyncio.create_task(reader.readline())
                await asyncio.wait({line, ending}, return_when=asyncio.FIRST_COMPLETED)
                if not line.done():
                    line.cancel()
                    break
                assert line.result(), "the stream ended early"
                if line.result().startswith(b"data: ") and b"jobs" in line.result():
                    self.told += 1
                    self.topics |= set(line.result().decode().split()[1:])
                    began = time.monotonic()
                    self.board = await got(self._port, "/board.json")
                    self.longest = max(self.longest, time.monotonic() - began)
        finally:
            ending.cancel()
            writer.close()


async def got(port: int, path: str) -> str:
    """A page, as the page itself asks for it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        asked = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nHX-Request: true\r\nConnection: close\r\n\r\n"
        writer.write(asked.encode())
        answer = (await reader.read()).decode()
        assert answer.startswith("HTTP/1.1 200"), answer[:200]
        return answer
    finally:
        writer.close()


async def donewhen(folder: Path, *arguments: str) -> None:
    """Run it to its end, without a terminal. It has to succeed; what it has learned may not be good enough."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "donewhen",
        *arguments,
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0 or b"was not adopted" in said, said.decode()


def memory_of(pid: int) -> float:
    """In megabytes."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


def sockets_of(pid: int) -> int:
    found = 0
    for path in Path(f"/proc/{pid}/fd").iterdir():
        # One may be closed between the two looks.
        with suppress(FileNotFoundError):
            found += os.readlink(path).startswith("socket:")
    return found


def test_two_hundred_watch_while_others_write(tmp_path: Path, serve: Serve) -> None:
    workspace, jobs = shop(tmp_path, *(f"Job {n}" for n in range(30)), inputs=["/check.sh"])
    make_mission(tmp_path / "missions" / "tone", 120)
    start_job(workspace, jobs[0].id, BOT)
    (tmp_path / "out.txt").write_text("hello\n", encoding="utf-8")
    server = serve(tmp_path)
    server.get("/")
    sockets, before = sockets_of(server.pid), memory_of(server.pid)

    async def story() -> list[Watching]:
        watching = [Watching(server.port) for _ in range(VIEWERS)]
        here, end = asyncio.Semaphore(0), asyncio.Event()
        following = [asyncio.create_task(one.follow(here, end)) for one in watching]
        for _ in watching:
            await here.acquire()
        reading = True

        async def read() -> int:
            pages = 0
            while reading:
                assert "Job 7" in await got(server.port, "/board.json")
                await got(server.port, "/review")
                pages += 2
            return pages

        readers = [asyncio.create_task(read()) for _ in range(READERS)]
        learning = asyncio.create_task(donewhen(tmp_path, "learn", "missions/tone", "--quiet"))
        for _ in range(3):
            await donewhen(tmp_path, "run", jobs[0].id, "--again")
        await donewhen(tmp_path, "complete", jobs[0].id)
        await learning
        until = time.monotonic() + PATIENCE
        while not all(DONE in one.board for one in watching):
            assert time.monotonic() < until, f"{sum(DONE not in one.board for one in watching)} never saw it"
            for one in following:
                if one.done():
                    one.result()
            await asyncio.sleep(0.05)
        reading = False
        pages = sum(await asyncio.gather(*readers))
        end.set()
        await asyncio.gather(*following)
        print(f"{VIEWERS} viewers, {sum(one.told for one in watching)} times told, {pages} pages to {READERS} readers")
        return watching

    watching = asyncio.run(story())
    assert all(one.told >= 1 and one.topics >= {"jobs"} for one in watching)
    longest = sorted(one.longest for one in watching)
    print(f"board after a change: median {longest[VIEWERS // 2]:.2f} s, longest {longest[-1]:.2f} s")
    print(f"memory: {before:.0f} MB before, {memory_of(server.pid):.0f} MB after")
    eventually(lambda: sockets_of(server.pid) <= sockets, "viewers that have left are still known")
    assert server.get("/").status == 200
    assert server.stop() == 0
    assert "Traceback" not in server.screen


def test_one_who_never_reads_keeps_nobody_waiting(tmp_path: Path, serve: Serve) -> None:
    workspace, (job,) = shop(tmp_path, "Greet")
    server = serve(tmp_path)
    stuck = []
    for _ in range(20):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        one.connect(("127.0.0.1", server.port))
        one.sendall(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        stuck.append(one)
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as quick:
        quick.sendall(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        seen = b""
        while b"event: hello" not in seen:
            seen += quick.recv(65536)
        for number in range(3):
            workspace.ledger.append(job.id, "unverified", {"why": f"stop {number}"}, BOT)
            told = b""
            while b"data: jobs" not in told:
                chunk = quick.recv(65536)
                assert chunk
                told += chunk
    assert server.get("/").status == 200
    assert server.stop() == 0
    for one in stuck:
        one.close()


def test_a_page_that_was_opened_before_a_change_learns_of_it_when_it_connects(tmp_path: Path, serve: Serve) -> None:
    workspace, (job,) = shop(tmp_path, "Greet")
    server = serve(tmp_path)
    page = server.get("/")
    workspace.ledger.append(job.id, "unverified", {"why": "a stop"}, BOT)
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as wire:
        wire.sendall(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        seen = b""
        # Either the greeting has another mark than the page, or the change is told at once.
        while b"data: jobs" not in seen:
            chunk = wire.recv(65536)
            assert chunk
            seen += chunk
    assert page.headers["x-donewhen-mark"] in page.text
    assert server.get("/").headers["x-donewhen-mark"] != page.headers["x-donewhen-mark"]
