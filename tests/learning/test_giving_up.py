"""Whatever ends a run while questions are under way: what they are answered is paid for, and kept."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from learning_kit import ONE_VOTE, mission_in, small

from donewhen.foundation.errors import ConfigError, DonewhenError
from donewhen.learning.after.learn_mission import learn
from donewhen.learning.running.run_folders import unfinished_run
from donewhen.models.ray.ray_cluster import ExecutorError
from donewhen.models.roles import Completion, RolloutRequest
from donewhen.testing.models import ScriptedJudge

AT_ONCE = 4


class BreaksOff(ScriptedJudge):
    """The first question ends everything, while the others that were put with it are still being answered."""

    def __init__(self, error: DonewhenError | None) -> None:
        super().__init__(lambda _: "Verdict: pass\nReason: so", lambda _: "{}", lambda _: "{}")
        self.error = error
        self.under_way = 0
        self.answered: list[str] = []

    async def roll(self, request: RolloutRequest) -> Completion:
        self.under_way += 1
        if self.error is not None and self.under_way == 1:
            while self.under_way < AT_ONCE:
                await asyncio.sleep(0)
            raise self.error
        if self.error is not None:
            # Long after the error was heard.
            await asyncio.sleep(0.2)
        self.answered.append(request.prompt.own)
        return await super().roll(request)


@pytest.mark.parametrize("error", [ConfigError("The key has expired."), ExecutorError("There is no worker left.")])
def test_what_was_being_answered_when_a_run_broke_off_is_not_asked_again(tmp_path: Path, error: DonewhenError) -> None:
    mission = mission_in(tmp_path, small(), f"epochs = 1\nconcurrency = {AT_ONCE}\n{ONE_VOTE}")
    broken = BreaksOff(error)
    with pytest.raises(type(error), match=error.message):
        learn(mission, broken)
    assert len(broken.answered) >= AT_ONCE - 1
    whole = BreaksOff(None)
    learn(mission, whole, resume=unfinished_run(mission))
    assert whole.answered
    assert not set(whole.answered) & set(broken.answered)
