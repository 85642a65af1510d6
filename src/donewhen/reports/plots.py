"""Plots as inline SVG: drawn for the width of a phone, coloured by the page's style sheet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import ceil, floor
from typing import Literal, NamedTuple

from donewhen.learning.measuring.metrics import Confusion, Estimate
from donewhen.reports.markup import escape_line
from donewhen.reports.phrases import large_count, minus, share, signed_number

Tone = Literal["now", "then", "base", "good", "bad", "warn"]
_Place = Callable[[int], float]
_Height = Callable[[float], float]
WIDTH = 380


class Whisker(NamedTuple):
    """A number with its interval."""

    name: str
    estimate: Estimate | None
    tone: Tone


class PlotLine(NamedTuple):
    """A value over time; None where it was not measured."""

    name: str
    values: Sequence[float | None]
    tone: Tone


class BarPart(NamedTuple):
    """A part of a stacked bar."""

    name: str
    value: float
    tone: Tone


def whiskers(title: str, rows: Sequence[Whisker]) -> str:
    """Draw numbers with their intervals below each other on a common scale."""
    estimates = [row.estimate for row in rows if row.estimate is not None]
    if not estimates:
        return ""
    low, high = _scale([estimate.low for estimate in estimates] + [estimate.high for estimate in estimates])
    left, right, step = 92, 332, 30
    bottom = 8 + step * len(rows)

    def x(value: float) -> float:
        return left + (right - left) * (value - low) / (high - low)

    drawn = [_tick(x(at), 4, bottom, minus(f"{at:.1f}")) for at in _steps(low, high)]
    for place, (name, estimate, tone) in enumerate(rows):
        y = 8 + step * place + step / 2
        drawn.append(_text(0, y + 4, name))
        if estimate is None:
            drawn.append(_text(left + 4, y + 4, "not measurable", "soft"))
            continue
        drawn.append(
            f'<g class="t-{tone}"><line class="stroke" x1="{x(estimate.low):.1f}" x2="{x(estimate.high):.1f}" '
            f'y1="{y:.1f}" y2="{y:.1f}"/><circle class="fill" cx="{x(estimate.value):.1f}" cy="{y:.1f}" r="5"/></g>'
        )
        drawn.append(_text(WIDTH, y + 4, share(estimate), anchor="end"))
    description = "; ".join(
        f"{row.name} {row.estimate.value:.3f}, {row.estimate.low:.2f} to {row.estimate.high:.2f}"
        for row in rows
        if row.estimate is not None
    )
    return _figure(title, description, bottom + 20, drawn)


def curve(title: str, numbers: Sequence[int], lines: Sequence[PlotLine], below: Sequence[str] = ()) -> str:
    """Draw lines over epochs. ``below`` has a label for each epoch."""
    values = [value for line in lines for value in line.values if value is not None]
    if not values:
        return ""
    low, high = _scale(values)
    left, right, top, bottom = 40, WIDTH - 24, 30, 180

    def x(place: int) -> float:
        return left + (right - left) * place / max(1, len(numbers) - 1)

    def y(value: float) -> float:
        return bottom - (bottom - top) * (value - low) / (high - low)

    drawn = [
        f'<line class="grid" x1="{left}" x2="{right}" y1="{y(at):.1f}" y2="{y(at):.1f}"/>'
        + _text(left - 14, y(at) + 4, f"{at:.1f}", "soft", "end")
        for at in _steps(low, high)
    ]
    every = ceil(len(numbers) / 8)
    for place in range(0, len(numbers), every):
        drawn.append(_text(x(place), bottom + 18, str(numbers[place]), "soft", "middle"))
        if below:
            drawn.append(_text(x(place), bottom + 34, below[place], "soft", "middle"))
    across = 0.0
    for line in lines:
        drawn.append(
            f'<g class="t-{line.tone}">{_path(line, x, y)}'
            f'<circle class="fill" cx="{across + 5:.0f}" cy="10" r="5"/></g>'
        )
        drawn.append(_text(across + 15, 14, line.name))
        across += 34 + 6.6 * len(line.name)
    last = [
        f"{line.name}: " + ", ".join("—" if value is None else f"{value:.3f}" for value in line.values)
        for line in lines
    ]
    return _figure(title, "; ".join(last), bottom + (42 if below else 26), drawn)


def _path(line: PlotLine, x: _Place, y: _Height) -> str:
    points = [None if value is None else (x(place), y(value)) for place, value in enumerate(line.values)]
    between = [
        f'<line class="stroke" x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"/>'
        for start, end in pairwise(points)
        if start is not None and end is not None
    ]
    radius = 4 if len(points) <= 40 else 2
    dots = [
        f'<circle class="fill" cx="{point[0]:.1f}" cy="{point[1]:.1f}" r="{radius}"/>'
        for point in points
        if point is not None
    ]
    return "".join(between + dots)


def diverging(title: str, bars: Sequence[tuple[str, int]]) -> str:
    """Draw bars to both sides of zero: positive values to the right, negative ones to the left."""
    if not bars:
        return ""
    most = max(1, *(abs(value) for _, value in bars))
    left, right, step = 44, WIDTH, 24
    middle = (left + right) / 2
    reach = (right - left) / 2 - 34
    bottom = 6 + step * len(bars)
    drawn = [f'<line class="axis" x1="{middle}" x2="{middle}" y1="2" y2="{bottom}"/>']
    for place, (name, value) in enumerate(bars):
        y = 6 + step * place
        width = reach * abs(value) / most
        tone: Tone = "good" if value > 0 else "bad" if value < 0 else "base"
        start = middle if value >= 0 else middle - width
        drawn.append(_text(0, y + 15, name))
        drawn.append(
            f'<g class="t-{tone}"><rect class="fill" x="{start:.1f}" y="{y + 3}" width="{width:.1f}" '
            f'height="{step - 8}" rx="2"/></g>'
        )
        at, anchor = (middle + width + 6, "start") if value >= 0 else (middle - width - 6, "end")
        drawn.append(_text(at, y + 15, signed_number(value), anchor=anchor))
    return _figure(title, "; ".join(f"{name} {signed_number(value)}" for name, value in bars), bottom + 6, drawn)


def confusion_square(title: str, confusion: Confusion) -> str:
    """Draw verdicts against labels; missing verdicts get their own column."""
    rows = [
        (
            "people: pass",
            [(confusion.true_pass, "good", ""), (confusion.false_fail, "warn", "false block")],
            confusion.invalid_pass,
        ),
        (
            "people: fail",
            [(confusion.false_pass, "bad", "false release"), (confusion.true_fail, "good", "")],
            confusion.invalid_fail,
        ),
    ]
    columns = ["judge: pass", "judge: fail"] + (["no verdict"] if confusion.invalid else [])
    left, top, tall = 86, 24, 58
    wide = (WIDTH - left) / len(columns)
    drawn = [_text(left + wide * (at + 0.5), 15, name, "soft", "middle") for at, name in enumerate(columns)]
    for down, (name, cells, invalid) in enumerate(rows):
        y = top + down * (tall + 4)
        drawn.append(_text(0, y + tall / 2 + 4, name, "soft"))
        every = cells + ([(invalid, "bad", "")] if confusion.invalid else [])
        of = sum(count for count, _, _ in every) or 1
        for at, (count, tone, word) in enumerate(every):
            x = left + wide * at
            strength = 0.08 + 0.42 * count / of
            drawn.append(
                f'<g class="t-{tone}"><rect class="fill" x="{x:.1f}" y="{y}" width="{wide - 4:.1f}" height="{tall}" '
                f'rx="4" opacity="{strength:.2f}"/></g>'
            )
            drawn.append(_text(x + wide / 2 - 2, y + (28 if word else 36), str(count), "big", "middle"))
            if word:
                drawn.append(_text(x + wide / 2 - 2, y + 46, word, "soft", "middle"))
    message = (
        f"right: {confusion.true_pass} pass, {confusion.true_fail} fail; false releases {confusion.false_pass}, "
        f"false blocks {confusion.false_fail}, no verdict {confusion.invalid}"
    )
    return _figure(title, message, top + 2 * (tall + 4), drawn)


def stacked(title: str, rows: Sequence[tuple[str, Sequence[BarPart]]]) -> str:
    """Draw stacked bars, each to its own scale, with the numbers below."""
    rows = [(name, [part for part in parts if part.value > 0]) for name, parts in rows]
    rows = [(name, parts) for name, parts in rows if parts]
    if not rows:
        return ""
    drawn: list[str] = []
    for place, (name, parts) in enumerate(rows):
        y = 4 + 64 * place
        total = sum(part.value for part in parts)
        drawn.append(_text(0, y + 12, name) + _text(WIDTH, y + 12, large_count(total), anchor="end"))
        x = 0.0
        for part in parts:
            width = WIDTH * part.value / total
            drawn.append(
                f'<g class="t-{part.tone}"><rect class="fill" x="{x:.1f}" y="{y + 18}" '
                f'width="{max(1.0, width - 1):.1f}" height="14" rx="2"/></g>'
            )
            x += width
        across = 0.0
        for part in parts:
            words = f"{part.name} {large_count(part.value)}"
            drawn.append(
                f'<g class="t-{part.tone}"><circle class="fill" cx="{across + 4:.0f}" cy="{y + 44}" r="4"/></g>'
            )
            drawn.append(_text(across + 12, y + 48, words, "soft"))
            across += 26 + 6.3 * len(words)
    message = "; ".join(
        f"{name}: " + ", ".join(f"{part.name} {large_count(part.value)}" for part in parts) for name, parts in rows
    )
    return _figure(title, message, 64 * len(rows), drawn)


def _figure(title: str, description: str, height: float, drawn: Sequence[str]) -> str:
    return (
        f"<figure><figcaption>{escape_line(title)}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'aria-label="{escape_line(f"{title}. {description}", 2000)}">'
        f"{''.join(drawn)}</svg></figure>"
    )


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{style}>{escape_line(words, 40)}</text>'


def _tick(x: float, top: float, bottom: float, words: str) -> str:
    line = f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}"/>'
    return line + _text(x, bottom + 15, words, "soft", "middle")


def _scale(values: Sequence[float]) -> tuple[float, float]:
    """Return full tenths around the values, at least two tenths apart."""
    low, high = floor(min(values) * 10 + 1e-9) / 10, ceil(max(values) * 10 - 1e-9) / 10
    if high - low < 0.15:
        low, high = (low - 0.1, high) if high >= 1 else (low, high + 0.1)
    return low, high


def _steps(low: float, high: float) -> list[float]:
    """Return at most seven round values on a scale."""
    tenths = range(round(low * 10), round(high * 10) + 1)
    every = next(step for step in (1, 2, 5, 10) if len(tenths) / step <= 7)
    return [at / 10 for at in tenths if at % every == 0]
