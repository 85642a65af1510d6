"""Progress of a learning run: bars on a terminal, one line per epoch in a log."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from donewhen.cli._output import Output
from donewhen.learning.running.event_content import BudgetHit, EpochEnded, GuidanceChanged
from donewhen.learning.running.events import RunEvent
from donewhen.learning.running.recorder import Watcher
from donewhen.learning.running.run_state import RunState

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class LearningProgress(Watcher):
    """The progress bars. A context manager, so that the terminal is restored."""

    def __init__(self, output: Output, *, quiet: bool) -> None:
        self._output = output
        self._bars = not quiet and not output.json and sys.stderr.isatty()
        self._lines = not quiet and not output.json and not self._bars
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._status = ""

    def __enter__(self) -> Self:
        if self._bars:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            self._progress = Progress(
                TextColumn("{task.description:<34}"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TimeRemainingColumn(compact=True),
                TextColumn("{task.fields[status]}", style="dim"),
                console=Console(stderr=True, no_color=not self._output.color),
                transient=True,
            )
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def phase(self, name: str, total: int) -> None:
        if self._progress is not None:
            if self._task is not None:
                self._progress.remove_task(self._task)
            self._task = self._progress.add_task(name, total=max(1, total), status=self._status)

    def advance(self, done: int) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=done, status=self._status)

    def tell(self, accuracy: float | None, spent: Mapping[str, Any]) -> None:
        """Update the text beside the bar: accuracy so far, and cost."""
        self._status = _status_text(accuracy, spent)

    def event(self, event: RunEvent, state: RunState) -> None:
        judged = state.epoch.rolled if state.epochs else 0
        self.tell(1 - state.epoch.wrong / judged if judged else None, event.spent)
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, status=self._status)
        line = _line(event, state)
        if line and self._lines:
            self._output.note(line)
        elif line and self._progress is not None:
            from rich.text import Text

            self._progress.console.print(Text(line))


def _status_text(accuracy: float | None, spent: Mapping[str, Any]) -> str:
    parts = [] if accuracy is None else [f"accuracy {accuracy:.3f}"]
    parts.append(f"{int(spent.get('calls', 0)):,} calls")
    tokens = int(spent.get("prompt_tokens", 0) + spent.get("completion_tokens", 0))
    cached = int(spent.get("cached_tokens", 0))
    if tokens:
        parts.append(f"{tokens:,} tokens" + (f" ({cached:,} cached)" if cached else ""))
    if spent.get("cost"):
        parts.append(f"{spent['cost']:.2f} spent")
    return ", ".join(parts)


def _line(event: RunEvent, state: RunState) -> str:
    """The log line of an event; empty if it needs none."""
    match event.content:
        case EpochEnded() as ended:
            shown = [f"epoch {ended.epoch}: training {_share(ended.train_accuracy)}"]
            if ended.validation_after is not None:
                before, after = _share(ended.validation_before), _share(ended.validation_after)
                shown.append(f"validation {before} → {after}")
            epoch = state.epoch
            shown.append(f"{epoch.changes} change(s), {epoch.refused} refused")
            given_up = epoch.candidates - epoch.covered - epoch.no_evidence
            fates = f"{epoch.covered} covered, {epoch.no_evidence} set aside, {given_up} given up"
            shown.append(f"{epoch.candidates} candidate(s): {fates}")
            return ", ".join(shown)
        case GuidanceChanged() as changed:
            text = changed.change.text or state.changes[-1]["gone"].get(changed.key, "")
            return f"  {changed.change.op} {changed.key}: {text}"
        case BudgetHit() as hit:
            return f"  the budget is used up: {hit.limit}, {hit.allowed:g} allowed"
        case _:
            return ""


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
