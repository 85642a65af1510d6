"""Learning from real tickets with the judge that needs no model, compared with the majority label and word counts.

The argument is a folder with ``tickets/*.jsonl``. The tickets are split by cluster, 60 / 20 / 20, with five seeds. The
printed figures are for the last fifth, which is never used in learning.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from donewhen.judging.mission import read_mission
from donewhen.learning.after.learn_mission import learn
from donewhen.learning.after.report_data import LearningReport
from donewhen.learning.measuring.metrics import Estimate, Measures
from donewhen.models.contrast import default_rule
from donewhen.models.registry import open_model

SEEDS = (1, 2, 3, 4, 5)


class Figures(NamedTuple):
    """The printed figures: means over the seeds."""

    accuracy: float
    kappa: float
    tpr: float
    tnr: float
    false_release: float


def learning_benchmark(data: Path, seeds: Sequence[int] = SEEDS) -> int:
    """Learn from every file, and print the table."""
    files = sorted((data / "tickets").glob("*.jsonl"))
    if not files:
        print(f"There are no tickets in {data / 'tickets'}. Use a folder with tickets: make bench-learn DATA=FOLDER")
        return 2
    print(f"Held-out tickets, means of {len(seeds)} seeds (contrast, splits by cluster, defaults of a new mission)")
    print(f"  {'':24} {'accuracy':>9} {'kappa':>7} {'TPR':>6} {'TNR':>6} {'false release':>14}")
    for path in files:
        with tempfile.TemporaryDirectory() as folder:
            began = time.monotonic()
            reports = [learned(path, Path(folder) / str(seed), seed) for seed in seeds]
            seconds = (time.monotonic() - began) / len(seeds)
        sizes = reports[0].splits
        print(f"{path.stem}: {sizes.train.tickets} / {sizes.validation.tickets} / {sizes.test.tickets} tickets")
        _row("before learning", [report.before for report in reports])
        _row("after learning", [report.now for report in reports])
        for name in ("majority", "word_counts"):
            baselines = [report.baseline("majority" if name == "majority" else "word_counts") for report in reports]
            _row(name.replace("_", " "), [baseline.measures for baseline in baselines if baseline is not None])
        kappas = " ".join(f"{_value(report.now.kappa):.2f}" for report in reports)
        rules = statistics.mean(sum(row.key[0] == "G" for row in report.rules) - 1 for report in reports)
        better = sum(report.comparison is not None and report.comparison.p < 0.05 for report in reports)
        print(
            f"  kappa by seed: {kappas}; {rules:.1f} rules learned; better than before by McNemar (p < .05): "
            f"{better} of {len(reports)}; {seconds:.0f} s per run"
        )
    return 0


def learned(tickets: Path, folder: Path, seed: int) -> LearningReport:
    """Learn from a file of tickets, in a new mission."""
    folder.mkdir(parents=True)
    with tickets.open() as file:
        name = msgspec.json.decode(file.readline())["mission"]
    (folder / "tickets.jsonl").symlink_to(tickets.resolve())
    (folder / "mission.toml").write_text(f'mission = "{name}"\nseed = {seed}\n')
    (folder / "initial_guidance.json").write_bytes(msgspec.json.encode({"G0": default_rule("pass", "en")}))
    return learn(read_mission(folder), open_model("contrast")).report


def _row(name: str, measured: Sequence[Measures]) -> None:
    means = [
        statistics.mean(_value(getattr(measures, field)) for measures in measured) if measured else float("nan")
        for field in Figures._fields
    ]
    accuracy, kappa, tpr, tnr, released = means
    print(f"  {name:24} {accuracy:9.3f} {kappa:7.3f} {tpr:6.3f} {tnr:6.3f} {released:14.3f}")


def _value(estimate: Estimate | None) -> float:
    return 0.0 if estimate is None else estimate.value


if __name__ == "__main__":
    raise SystemExit(learning_benchmark(Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data")))
