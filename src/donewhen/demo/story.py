"""Run the demo: six chapters, from the agreement to a judge that learns."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

from donewhen.demo.chapters import (
    Measured,
    at_the_gate,
    four_cheats,
    learning,
    the_work,
    what_done_means,
    what_is_left,
)
from donewhen.demo.stage import Stage
from donewhen.demo.story_lines import StoryBroken, Tell
from donewhen.demo.story_mission import sample_for
from donewhen.foundation.errors import UsageError
from donewhen.models.registry import open_model


class Ending(NamedTuple):
    """The result of the demo."""

    told: bool
    """Whether all chapters ran."""
    because: str = ""
    broken: bool = False
    learned: Measured | None = None
    promises: tuple[str, ...] = ()


def play(folder: Path, tell: Tell, *, model: str = "contrast", columns: int = 100, watched: bool = False) -> Ending:
    """Run the demo in ``folder``, which must be empty. If ``watched``, commands may draw progress bars."""
    sample = sample_for(model)
    # Before anything starts, so that an unknown model is an error at once.
    open_model(model)
    if shutil.which("git") is None:
        raise UsageError("The demo needs git, which was not found.", next_step="Install git.")
    stage = Stage(folder, tell, columns=columns, watched=watched)
    try:
        if not what_done_means(stage, model, sample):
            message = "An agent seems to run this demo. Only a person can agree, so the demo ends here."
            return Ending(False, message)
        four_cheats(stage)
        promises = the_work(stage)
        learned = learning(stage, sample)
        promises += at_the_gate(stage)
        what_is_left(stage, learned, promises)
    except StoryBroken as gone:
        return Ending(False, f"This demo is broken: {gone}", broken=True)
    return Ending(True, learned=learned, promises=promises)
