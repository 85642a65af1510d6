"""The page with the table of runtimes and scenes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from tools.runtime_scenes.cell import Cell
from tools.runtime_scenes.scenes import RUNTIMES, SCENES

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "runtimes.md"

_INTRODUCTION = """\
# What each agent runtime does

Each cell is the result of a real run: the runtime's own client with the hooks that `donewhen hooks install` writes, a
scripted model on loopback, and a check that a file is there. `make runtimes` plays all scenes and writes this page.

- **held**: the model was asked again, with the reason.
- **recorded**: the end is in `.donewhen/state/unverified.jsonl`, so `donewhen hooks status` shows it. For the
  Claude Agent SDK, which has an adapter and no hooks: the report of the run is not `verified`.
- **can't**: neither, for the reason below the table. If the reason is that the runtime doesn't have what the scene
  needs, there was nothing to play.
"""


def write_page(cells: Mapping[tuple[str, str], Cell], versions: Mapping[str, str]) -> None:
    """Write the table, and below it a note for each cell that has one."""
    PAGE.write_text(page(cells, versions, datetime.now(UTC).date().isoformat()), encoding="utf-8")


def page(cells: Mapping[tuple[str, str], Cell], versions: Mapping[str, str], day: str) -> str:
    """The text of the page."""
    titles = {name: RUNTIMES[name] for name in versions}
    played = ", ".join(f"{titles[name]} {version}" for name, version in versions.items())
    lines = [_INTRODUCTION, f"Played on {day} with {played}.", ""]
    lines.append(f"| scene | {' | '.join(titles.values())} |")
    lines.append("| --- |" + " --- |" * len(titles))
    notes: list[str] = []
    for scene in SCENES:
        row = []
        for name in titles:
            cell = cells.get((name, scene))
            if cell is None:
                row.append("")
                continue
            if cell.note:
                note = f"{titles[name]}, {scene}: {cell.note}."
                notes.append(note)
                row.append(f"{cell.result} ({len(notes)})")
            else:
                row.append(cell.result)
        lines.append(f"| {scene} | {' | '.join(row)} |")
    lines += ["", "The scenes:", ""]
    lines += [f"- **{scene}**: {(function.__doc__ or '').splitlines()[0]}" for scene, function in SCENES.items()]
    if notes:
        lines += ["", "Notes:", "", *(f"{number}. {note}" for number, note in enumerate(notes, start=1))]
    return "\n".join(lines) + "\n"


def results_in(text: str) -> dict[tuple[str, str], str]:
    """The results in the table of a page, without the numbers of their notes."""
    names = {title: name for name, title in RUNTIMES.items()}
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    if not rows:
        return {}
    columns = [names[title] for title in rows[0][1:]]
    return {
        (name, row[0]): cell.partition(" (")[0]
        for row in rows[2:]
        for name, cell in zip(columns, row[1:], strict=True)
        if cell
    }
