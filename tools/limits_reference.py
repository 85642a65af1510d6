"""Generate docs/reference/limits.md from the size limits."""

from __future__ import annotations

from donewhen.foundation.size_limits import ALL_LIMITS, size_text

_INTRO = """\
# Size limits

donewhen reads these files as a whole, or line by line, and refuses those that are larger. The error names the file, its
size and the limit. An overview such as `donewhen status` lists a plan that is too large as a problem and goes on with
the other jobs. 1 MB is 1,048,576 bytes.

| file | limit | if it is larger |
| --- | --- | --- |
"""
_REST = """
Outputs, inputs and programs have no limit: they are hashed in pieces. Imported Markdown files may have 1,000,000 bytes,
and feature lists 64,000,000. What a command prints is shortened before it is stored.
"""


def limits_page() -> str:
    rows = [f"| {limit.what} | {size_text(limit.bytes)} | {limit.advice} |\n" for limit in ALL_LIMITS]
    return _INTRO + "".join(rows) + _REST
