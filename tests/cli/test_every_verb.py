"""Every verb as a real process, beside the same call inside this one: other tests rest on their being alike."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from donewhen.cli._app import VERBS
from donewhen.jobs.plan.creating import add_job, create_project

Run = Callable[..., subprocess.CompletedProcess[str]]

# What only looks is run for real; of the others, the help.
LOOKS = {
    "audit": [],
    "completion": ["bash"],
    "config": ["show", "--json"],
    "contract": ["show", "001"],
    "explain": ["not_json"],
    "guidance": ["show", "."],
    "hook": ["stop", "--runtime", "claude"],
    "hooks": ["status"],
    "judge": ["nothing.jsonl"],
    "lessons": ["list"],
    "log": [],
    "models": ["list"],
    "next": [],
    "plan-check": [],
    "promise": ["verify"],
    "ready": [],
    "replay": [],
    "review": ["--list"],
    "reward": ["001"],
    "reward-eval": ["001"],
    "status": ["--json"],
    "truth-eval": ["001"],
    "why": ["001"],
}
NAMES = [name for verbs in VERBS.values() for name in verbs]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one job."""
    folder = tmp_path_factory.mktemp("shop").resolve()
    add_job(
        create_project(folder, "Shop"),
        "Report",
        criteria=["It is there\n  check: file report.md"],
        outputs=["/report.md"],
    )
    (folder / "home").mkdir()
    return folder


@pytest.mark.parametrize("verb", NAMES)
def test_a_verb_does_as_a_process_what_it_does_in_this_one(
    verb: str, shop: Path, donewhen: Run, donewhen_process: Run
) -> None:
    call = [verb, *LOOKS.get(verb, ["--help"])]
    own = {"PATH": os.environ["PATH"], "HOME": str(shop / "home"), "NO_COLOR": "1", "LANG": "C.UTF-8"}
    process, inside = donewhen_process(call, shop, own), donewhen(call, shop, own)
    assert "Traceback" not in process.stderr
    assert process.stdout or process.stderr
    assert (inside.returncode, inside.stdout, inside.stderr) == (process.returncode, process.stdout, process.stderr)


def test_every_look_is_at_a_verb_that_exists() -> None:
    assert LOOKS.keys() <= {*NAMES}
