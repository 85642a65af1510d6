"""The real clients hold, let go at the cap, and record an end, as the table in the documentation says.

All other cells of the table have the marker `runtimes`, and are played by `make runtimes`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.runtime_scenes.cell import Cell
from tools.runtime_scenes.client import ClientMissingError, client_program
from tools.runtime_scenes.page import PAGE, page, results_in
from tools.runtime_scenes.scenes import RUNTIMES, SCENES, play_scene

from donewhen.adapters.hook_targets import HOOK_TARGETS

EXPECTED = {"early stop": "held", "own cap, with tools": "held, recorded", "API error": "recorded"}
MARKS = {name: getattr(pytest.mark, name) for name in HOOK_TARGETS}


def client_or_skip(name: str) -> None:
    try:
        client_program(name)
    except ClientMissingError as error:
        pytest.skip(f"LOUD: {error}, so this runtime is NOT tested (make test does it)")


@pytest.mark.parametrize("scene", EXPECTED)
@pytest.mark.parametrize("name", [pytest.param(name, marks=mark) for name, mark in MARKS.items()])
def test_the_real_client_holds_caps_and_records(name: str, scene: str, tmp_path: Path) -> None:
    client_or_skip(name)
    cell = play_scene(name, scene, tmp_path / "stage")
    assert cell.result == EXPECTED[scene], cell.note


@pytest.mark.runtimes
@pytest.mark.parametrize("scene", [scene for scene in SCENES if scene not in EXPECTED])
@pytest.mark.parametrize("name", RUNTIMES)
def test_the_page_says_what_the_real_client_does(name: str, scene: str, tmp_path: Path) -> None:
    client_or_skip(name)
    cell = play_scene(name, scene, tmp_path / "stage")
    assert cell.result == results_in(PAGE.read_text(encoding="utf-8"))[name, scene], cell.note


def test_the_page_has_a_result_for_every_runtime_and_scene_and_a_reason_for_every_cannot() -> None:
    text = PAGE.read_text(encoding="utf-8")
    results = results_in(text)
    assert set(results) == {(name, scene) for name in RUNTIMES for scene in SCENES}
    for (name, scene), result in results.items():
        assert result in ("held", "recorded", "held, recorded", "can't")
        if result == "can't":
            assert f"{RUNTIMES[name]}, {scene}: " in text
    assert "not played:" not in text


def test_what_is_written_is_what_is_read() -> None:
    cells = {("claude", "early stop"): Cell("held"), ("codex", "budget"): Cell("can't", "it has no budget")}
    text = page(cells, {"claude": "1.0", "codex": "2.0"}, "2026-01-01")
    assert results_in(text) == {("claude", "early stop"): "held", ("codex", "budget"): "can't"}
    assert "1. Codex, budget: it has no budget." in text
