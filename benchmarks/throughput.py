"""Throughput of judging: answers per second, compared with the ideal rate for the number of concurrent calls.

The server is a separate process on loopback that answers every question after a fixed time, at any load. Everything
else is the same as in a real run: the OpenAI client, the pace, the meter, the stored answers, the judge's stream.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from donewhen.judging.guidance import seed_guidance
from donewhen.judging.judge import Judge
from donewhen.judging.mission import Mission, read_mission
from donewhen.judging.ticket import Ticket
from donewhen.models.answer_store import AnswerStore
from donewhen.models.metered import MeteredModel
from donewhen.models.registry import open_model

LATENCIES = (1.0, 0.05)
AT_ONCE = (1, 16, 256)
WANTED = 0.9
_WANTED_AT = 1.0
_ROUNDS = 30
_ROUNDS_ALONE = 8
_TEXT = "The agent opened the page, filled in the form, and reported success. " * 20


class Throughput(NamedTuple):
    """The measurement for one latency and one number of concurrent calls."""

    latency: float
    at_once: int
    answers: int
    seconds: float
    cpu: float
    waited: float
    """Seconds in which the process had to wait for a core."""

    @property
    def rate(self) -> float:
        return self.answers / self.seconds

    @property
    def ideal(self) -> float:
        return self.at_once / self.latency

    @property
    def ratio(self) -> float:
        return self.rate / self.ideal


def throughput_benchmark() -> int:
    """Print the table; return 1 if a required ratio was not reached."""
    print("Answers per second with a fixed latency of the server, including the start; the ideal is at once / latency")
    columns = ("latency", "at once", "answers/s", "ideal", "ratio", "CPU per answer", "waiting for CPU")
    print("  {:>8} {:>8} {:>10} {:>8} {:>6} {:>17} {:>15}".format(*columns))
    missed = 0
    for row in throughput():
        print(
            f"  {row.latency:6.2f} s {row.at_once:8} {row.rate:10.1f} {row.ideal:8.1f} {row.ratio:6.3f} "
            f"{1000 * row.cpu / row.answers:14.2f} ms {row.waited / row.seconds:14.0%}",
            flush=True,
        )
        missed += row.latency == _WANTED_AT and row.ratio < WANTED
    result = f"{missed} row(s) are below it." if missed else "All rows reach it."
    print(f"The target ratio at {_WANTED_AT:g} s is {WANTED}. {result}\n")
    return 1 if missed else 0


def throughput() -> Iterator[Throughput]:
    """Yield the measurements, one after the other."""
    for latency in LATENCIES:
        with _server(latency) as url:
            for at_once in AT_ONCE:
                yield measured(url, latency, at_once, at_once * (_ROUNDS if at_once > 1 else _ROUNDS_ALONE))


def measured(url: str, latency: float, at_once: int, count: int) -> Throughput:
    """Judge ``count`` tickets with ``at_once`` concurrent calls."""
    with tempfile.TemporaryDirectory() as folder, AnswerStore(Path(folder) / "answers.sqlite") as answers:
        asking = MeteredModel(open_model(f"openai:any@{url}"), answers=answers)
        judge = Judge(_mission(Path(folder), at_once), seed_guidance("bench", {"G0": "Decide."}, ""), asking)
        began, worked, waited = time.monotonic(), time.process_time(), _waited()
        passes = asyncio.run(_passes(judge, asking, count))
        result = Throughput(
            latency, at_once, count, time.monotonic() - began, time.process_time() - worked, _waited() - waited
        )
    assert passes == count, f"{count - passes} of {count} tickets got no answer"
    return result


async def _passes(judge: Judge, asking: MeteredModel, count: int) -> int:
    try:
        return sum([result.verdict == "pass" async for result in judge.stream(_tickets(count))])
    finally:
        await asking.aclose()


def _waited() -> float:
    """Return the seconds in which this thread waited for a core; 0 if the system does not report it."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


@contextmanager
def _server(latency: float) -> Iterator[str]:
    code = f"from benchmarks.throughput import serve; serve({latency})"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.terminate()


def serve(latency: float) -> None:
    """Print the port, then answer every question after ``latency`` seconds."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Answering(latency), "127.0.0.1", 0, backlog=1024)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    asyncio.run(main())


class _Answering(asyncio.Protocol):
    """One connection that stays open. It implements only the part of HTTP that the client needs."""

    def __init__(self, latency: float) -> None:
        self._latency = latency
        self._received = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, blank, body = self._received.partition(b"\r\n\r\n")
        if blank and len(body) >= _length(head):
            self._received = b""
            asyncio.get_running_loop().call_later(self._latency, self._answer)

    def _answer(self) -> None:
        assert self._transport is not None
        if not self._transport.is_closing():
            self._transport.write(_RESPONSE)


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


def _response() -> bytes:
    message = {"role": "assistant", "content": "Verdict: pass\nReason: no rule speaks against it"}
    body = json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 0,
            "model": "any",
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 400, "completion_tokens": 12, "total_tokens": 412},
        }
    ).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


_RESPONSE = _response()


def _tickets(count: int) -> Iterator[Ticket]:
    for number in range(count):
        yield Ticket(f"T{number}", "bench", None, {"text": f"{number} {_TEXT}"}, f"T{number}")


def _mission(folder: Path, at_once: int) -> Mission:
    settings = f'mission = "bench"\nconcurrency = {at_once}\nsampler = [{{ temperature = 0.1 }}]\n'
    (folder / "mission.toml").write_text(settings)
    return read_mission(folder)


if __name__ == "__main__":
    # Don't send requests to loopback through a proxy.
    os.environ["NO_PROXY"] = "127.0.0.1"
    raise SystemExit(throughput_benchmark())
