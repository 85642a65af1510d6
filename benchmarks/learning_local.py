"""Learning with the local model: from real tickets, compared with word counts, and from made-up ones with known rules.

From each file of tickets a sample of 60 is taken, stratified by label, and each text is cut to 800 characters, from its
beginning and from its end. There is one seed. The printed figures are for tickets that are never used in learning.

All answers are stored in a folder, so an interrupted run can be continued, and a repeated run takes seconds.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from donewhen.demo.example_mission import NAME, examples
from donewhen.judging.mission import Mission, read_mission
from donewhen.learning.after.learn_mission import learn
from donewhen.learning.after.report_data import LearningReport
from donewhen.learning.measuring.metrics import Estimate, Measures
from donewhen.learning.running.recorder import NoWatcher
from donewhen.models.contrast import default_rule
from donewhen.models.registry import open_model
from donewhen.models.roles import Model

SAMPLE = 60
CUT = 800
MADE_UP = 120
FOLDER = Path("build/bench-learn-local")

_SETTINGS = """
mission = "{name}"
model = "{model}"
seed = 1
epochs = 2
concurrency = 1

[[sampler]]
temperature = 0.0

[split]
train = {train}
validation = {validation}
test = {test}

[reflection]
max_changes_per_epoch = 6

[rules]
credit_tickets = 0

[trial]
min_tickets = 12
"""


class Parts(NamedTuple):
    train: float
    validation: float
    test: float


REAL = Parts(0.4, 0.3, 0.3)
SIMULATED = Parts(0.35, 0.25, 0.4)


class Progress(NoWatcher):
    """Prints a line for each phase, because a run takes minutes."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def phase(self, name: str, total: int) -> None:
        print(f"    {time.monotonic() - self._began:6.0f} s  {name} ({total})", file=sys.stderr, flush=True)


def learning_local(data: Path, choice: str) -> int:
    """Learn from made-up tickets and from every file, and print the table."""
    model = open_model(choice)
    print(f"{model.name}: verdicts by log-probability at temperature 0, one seed, 95 % intervals")
    print(f"  {'':28} {'accuracy':>20} {'kappa':>7} {'false release':>14} {'calls':>6} {'tokens':>8} {'seconds':>8}")
    _simulation(model, choice, FOLDER / "made-up")
    files = sorted((data / "tickets").glob("*.jsonl"))
    if not files:
        print(f"There are no tickets in {data / 'tickets'}: make bench-learn-local DATA=FOLDER")
        return 2
    for path in files:
        _real(model, choice, path, FOLDER / path.stem)
    return 0


def _simulation(model: Model, choice: str, folder: Path) -> None:
    lines = [f"{example.line()}\n".encode() for example in examples(MADE_UP)]
    mission = _mission(folder, NAME, choice, lines, SIMULATED)
    learnt = _learnt(mission, model)
    _header(f"made-up reports with known rules (a simulation), {MADE_UP} tickets", learnt)
    _taught(learnt)


def _real(model: Model, choice: str, path: Path, folder: Path) -> None:
    rows = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    lines = [msgspec.json.encode({**row, "text": cut(row["text"])}) + b"\n" for row in sampled(rows, SAMPLE)]
    mission = _mission(folder, rows[0]["mission"], choice, lines, REAL)
    learnt = _learnt(mission, model)
    _header(f"{path.stem}, {len(lines)} tickets, texts cut to {CUT} characters", learnt)
    _taught(learnt)
    without = replace(mission, settings=msgspec.structs.replace(mission.settings, trial="off"))
    untried = _learnt(without, model)
    _row("after learning, no trial", untried.now, untried)
    counted = learnt.baseline("word_counts")
    if counted is not None:
        _row("word counts", counted.measures)


def sampled(rows: list[dict[str, Any]], wanted: int) -> Iterator[Mapping[str, Any]]:
    """Yield a sample with the same share of each label as in all rows."""
    shuffled = random.Random(1).sample(rows, len(rows))
    for label in ("pass", "fail"):
        some = [row for row in shuffled if row["label"] == label]
        yield from some[: round(wanted * len(some) / len(rows))]


def cut(text: str) -> str:
    """Return the beginning and the end of a text."""
    return text if len(text) <= CUT else f"{text[: CUT // 2]}\n[…]\n{text[-CUT // 2 :]}"


def _mission(folder: Path, name: str, choice: str, lines: Iterable[bytes], parts: Parts) -> Mission:
    folder.mkdir(parents=True, exist_ok=True)
    # Written each time with the same bytes, so that a continued run finds its stored answers.
    (folder / "tickets.jsonl").write_bytes(b"".join(lines))
    (folder / "mission.toml").write_text(_SETTINGS.format(name=name, model=choice, **parts._asdict()))
    (folder / "initial_guidance.json").write_bytes(msgspec.json.encode({"G0": default_rule("pass", "en")}))
    return read_mission(folder)


def _learnt(mission: Mission, model: Model) -> LearningReport:
    """Learn from the start, reusing stored answers. The guidance is not changed."""
    return learn(mission, model, Progress(), adopting=False).report


def _header(title: str, report: LearningReport) -> None:
    sizes = report.splits
    print(f"{title}: {sizes.train.tickets} / {sizes.validation.tickets} / {sizes.test.tickets}")


def _taught(report: LearningReport) -> None:
    _row("before learning", report.before)
    _row("after learning", report.now, report)
    for row in report.rules:
        print(f"      [{row.key}] {row.text}")


def _row(name: str, found: Measures | None, report: LearningReport | None = None) -> None:
    if found is None:
        print(f"  {name:28} -")
        return
    spent = ""
    if report is not None:
        cost = report.cost
        tokens = cost.prompt_tokens + cost.completion_tokens
        spent = f" {cost.calls:6} {tokens:8} {cost.seconds:8.0f}" + (f"  ({cost.reused} reused)" if cost.reused else "")
    accuracy = found.accuracy
    message = "-" if accuracy is None else f"{accuracy.value:.3f} ({accuracy.low:.2f}–{accuracy.high:.2f})"
    print(f"  {name:28} {message:>20} {_value(found.kappa)} {_value(found.false_release, 14)}{spent}", flush=True)


def _value(estimate: Estimate | None, width: int = 7) -> str:
    return f"{'-':>{width}}" if estimate is None else f"{estimate.value:{width}.3f}"


if __name__ == "__main__":
    given = sys.argv[1:]
    raise SystemExit(
        learning_local(Path(given[0] if given else "../shared/data"), given[1] if len(given) > 1 else "local")
    )
