"""The scripted adapter keeps the contract that every adapter must keep."""

from __future__ import annotations

from pathlib import Path

import pytest

from donewhen.adapters.scripted import ModelError, ModelRequest, Turn
from donewhen.filesystem import Filesystem, HostFilesystem
from donewhen.testing import AdapterContract, Played, Scene, ScriptedAdapter


class _Player:
    """A model that follows a scene's turns and notes what it was told."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.told: list[str] = []
        self._heard = 0

    def respond(self, request: ModelRequest) -> Turn:
        new = request.messages[self._heard :]
        self._heard = len(request.messages)
        self.told.append("\n".join(one.text for one in new if one.role != "assistant"))
        number = len(self.told) - 1
        turn = self._scene.turns(number) if callable(self._scene.turns) else self._scene.turns[number]
        if isinstance(turn, ModelError):
            raise turn
        return turn


class TestScriptedAdapter(AdapterContract):
    @pytest.fixture(autouse=True)
    def _workspace(self, tmp_path: Path) -> None:
        self._filesystem = HostFilesystem(tmp_path)

    @property
    def filesystem(self) -> Filesystem:
        return self._filesystem

    def play(self, scene: Scene) -> Played:
        player = _Player(scene)
        adapter = ScriptedAdapter(
            player,
            task_completion_checker=scene.checker,
            filesystem=self._filesystem,
            policy=scene.policy,
            max_turns=scene.max_turns or 100,
        )
        response = adapter.evaluate(scene.prompt, session=scene.session, deadline=scene.deadline, budget=scene.budget)
        return Played(response, tuple(player.told))
