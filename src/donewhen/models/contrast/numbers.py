"""Labelled numbers: values after a name, in key-value lines and in tables, in the order of the text.

Dates, versions, numbers with leading zeros and long runs of digits identify something and measure nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from donewhen.models.contrast.words import normalise_label

_VALUE = r"-?(?!0\d)\d{1,9}(?:\.\d+)?"
_NUMBER = re.compile(rf"[\"'*`”」]{{0,4}}\s?[:=]\s?[\"'*`“「]{{0,4}}\s?({_VALUE})(?![\w\-:]|\.\d|,\d|/\d{{1,2}}/)")
# A label is up to three words before a colon or an equals sign.
_LABEL = re.compile(r"[^\W\d][\w\-]*(?:[ ][^\W\d][\w\-]*){0,2}$")
_LONGEST_LABEL = 60
_ROW = re.compile(r"^[ \t]*\|(.+)\|[ \t]*$")
_RULER = re.compile(r"^[\s|:\-]+$")
_CELL = re.compile(rf"\s*[*`]{{0,2}}({_VALUE})[*`]{{0,2}}\s*%?\s*")
_NAMED = re.compile(r"\s*[*`]{0,2}([^\W\d][\w \-]{0,39}?)[*`]{0,2}\s*")


def labelled_numbers(text: str) -> Mapping[str, tuple[float, ...]]:
    """Return the numbers of each label, in the order of the text."""
    series: dict[str, list[float]] = {}
    # Search backwards from each number: searching for labels first would test every word.
    for number in _NUMBER.finditer(text):
        label = _LABEL.search(text[max(0, number.start() - _LONGEST_LABEL) : number.start()])
        if label is not None:
            series.setdefault(normalise_label(label[0]), []).append(float(number[1]))
    for name, value in _table_numbers(text) if "|" in text else ():
        series.setdefault(normalise_label(name), []).append(value)
    return {label: tuple(values) for label, values in series.items()}


def _table_numbers(text: str) -> Iterator[tuple[str, float]]:
    """Yield the numbers in tables by the heading of their column; in two columns also by the name of their row."""
    header: list[str] = []
    for line, after in pairwise([*text.splitlines(), ""]):
        row = _ROW.match(line)
        if row is None:
            header = []
            continue
        cells = row[1].split("|")
        if not header:
            header = cells if _RULER.match(after) and "-" in after else []
            continue
        for column, cell in zip(header, cells, strict=False):
            value, name = _CELL.fullmatch(cell), _NAMED.fullmatch(column)
            if value is None:
                continue
            if name is not None:
                yield name[1], float(value[1])
            row_name = _NAMED.fullmatch(cells[0])
            if len(cells) == 2 and row_name is not None:
                yield row_name[1], float(value[1])
