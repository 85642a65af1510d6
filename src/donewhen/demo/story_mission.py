"""The mission of the story: how much of it a model gets to see, and what is set for it."""

from __future__ import annotations

import json
from typing import NamedTuple

MISSION = "reports"

_FOR_ALL = """
# What the gate shows of a job is what the tickets hold: a report, and nothing else.
[from_job]
parts = ["outputs"]

# Short enough to be read by the person who accepts them.
[rules]
max_length = 80
"""

_SMALLER = """\
credit_tickets = 0

[[sampler]]
temperature = 0.0

[split]
train = 0.4
validation = 0.3
test = 0.3

[reflection]
max_changes_per_epoch = 3

[trial]
min_tickets = 12
"""


class Sample(NamedTuple):
    """How many tickets there are, and whether every answer takes its time."""

    tickets: int
    slow: bool


def sample_for(model: str) -> Sample:
    """contrast answers thousands of times a second. Of every other model, less is asked."""
    return Sample(300, slow=False) if model == "contrast" else Sample(80, slow=True)


def mission_file(text: str, model: str, sample: Sample) -> str:
    """mission.toml as `donewhen mission example` has written it, with what the story sets."""
    head = f"model = {json.dumps(model)}\n" + ("epochs = 1\nconcurrency = 1\n" if sample.slow else "")
    return text + (head if model != "contrast" else "") + _FOR_ALL + (_SMALLER if sample.slow else "")
