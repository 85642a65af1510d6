"""The mission of the demo: the number of tickets for a model, and the settings."""

from __future__ import annotations

import json
from typing import NamedTuple

MISSION = "reports"

_FOR_ALL = """
# The judge sees only the job's outputs, because the tickets have only a report.
[from_job]
parts = ["outputs"]

# Short rules, for the person who accepts them.
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
    """The number of tickets, and whether the model answers slowly."""

    tickets: int
    slow: bool


def sample_for(model: str) -> Sample:
    """The sample for a model: contrast answers thousands of times a second, other models get fewer tickets."""
    return Sample(300, slow=False) if model == "contrast" else Sample(80, slow=True)


def mission_file(text: str, model: str, sample: Sample) -> str:
    """mission.toml as written by `donewhen mission example`, with the settings of the demo."""
    head = f"model = {json.dumps(model)}\n" + ("epochs = 1\nconcurrency = 1\n" if sample.slow else "")
    return text + (head if model != "contrast" else "") + _FOR_ALL + (_SMALLER if sample.slow else "")
