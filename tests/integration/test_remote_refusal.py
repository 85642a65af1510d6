"""A refusal while other calls are under way: what they are answered is paid for, and kept."""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
from collections import Counter
from pathlib import Path

import pytest

from donewhen.demo.example_mission import make_mission
from donewhen.models.answer_store import AnswerStore
from donewhen.models.metered import MeteredModel
from donewhen.models.roles import Decode, Prompt, RolloutRequest
from donewhen.testing.chat_api import ChatCall, ChatServer, Reply
from donewhen.testing.models import ScriptedJudge
from donewhen_kit import run_main

AT_ONCE = 8


def test_what_is_answered_after_a_refusal_is_not_asked_again(tmp_path: Path) -> None:
    pytest.importorskip("openai", reason="OPENAI IS NOT INSTALLED: pip install 'donewhen[openai]'")
    make_mission(tmp_path / "reports", 80)
    with (tmp_path / "reports" / "mission.toml").open("a") as settings:
        settings.write(f"epochs = 1\nconcurrency = {AT_ONCE}\nsampler = [{{ temperature = 0.1 }}]\n")
    lock, answered, numbers = threading.Lock(), Counter[str](), iter(range(1, 100_000))
    refused = threading.Event()
    together = threading.Barrier(AT_ONCE)

    def script(call: ChatCall) -> Reply:
        with lock:
            number = next(numbers)
        if number <= AT_ONCE:
            together.wait(60)
            if number == 1:
                refused.set()
                return Reply("Your key has expired.", status=401)
            # Answered when the refusal has long been heard.
            refused.wait(60)
            with lock:
                answered[call.user] += 1
            return Reply("Verdict: pass\nReason: fine", delay=0.3)
        with lock:
            answered[call.user] += 1
        return Reply("{}" if call.schema else "Verdict: pass\nReason: fine")

    def learn(*options: str) -> subprocess.CompletedProcess[str]:
        model = f"openai:any@{server.base_url}"
        env = os.environ | {"OPENAI_API_KEY": "sk-loopback-0123456789abcdef", "NO_COLOR": "1"}
        return run_main(["learn", "--quiet", "--model", model, *options], tmp_path / "reports", env)

    with ChatServer(script, limit=100_000) as server:
        stopped = learn()
        assert (stopped.returncode, "Your key has expired." in stopped.stderr) == (2, True)
        assert answered.total() >= AT_ONCE - 1
        first = set(answered)
        learn("--resume")
    assert {answered[one] for one in first} == {1}


def test_letting_go_gives_up_what_is_under_way(tmp_path: Path) -> None:
    async def main(answers: AnswerStore) -> tuple[int, bool]:
        never = asyncio.Event()
        cancelled = []

        async def hanging() -> str:
            try:
                await never.wait()
            except asyncio.CancelledError:
                cancelled.append(True)
                raise
            return "never"

        asking = MeteredModel(ScriptedJudge(lambda _: hanging()), answers=answers)
        request = RolloutRequest(Prompt("rules", "ticket"), {}, {}, Decode(), "en")
        call = asyncio.ensure_future(asking.roll(request))
        for _ in range(5):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await asking.aclose()
        return len(asyncio.all_tasks()), bool(cancelled)

    with AnswerStore(tmp_path / "answers.db") as answers:
        assert asyncio.run(main(answers)) == (1, True)
