"""Draw the pictures in docs/images from the output of the demo and from the import-linter contract."""

from __future__ import annotations

import ast
import functools
import html
import io
import json
import os
import pwd
import re
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Sequence
from pathlib import Path

from donewhen.demo.story_lines import StoryLine
from donewhen.demo.storyteller import Storyteller

ROOT = Path(__file__).parents[1]

_COLUMNS = 92
_WORDS = ("amber-river", "linen-otter", "cedar-lemon")
_ALONE = """\
import os, sys
if os.fork():
    os._exit(0)
os.execv(sys.argv[1], sys.argv[1:])
"""
_MONOSPACE = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"

# Rich's own format loads fonts from the network; a picture in a repository must not.
_TERMINAL = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img" \
aria-label="What donewhen demo prints">
<style>
.{unique_id}-matrix {{ font-family: FONTS; font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-family: SANS; font-size: 18px; font-weight: bold; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
""".replace("FONTS", _MONOSPACE).replace("SANS", _SANS)


@functools.cache
def _story() -> tuple[StoryLine, ...]:
    """Run the demo and return its lines, without the values that differ between runs.

    The demo runs as a detached process, because the descendants of an agent's program can't agree as a person.
    """
    command = [sys.executable, "-c", _ALONE, sys.executable, "-m", "donewhen", "demo", "--json"]
    data = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)["data"]
    if not data["told"]:
        raise SystemExit(f"The demo could not be run: {data['because']}")
    lines = [StoryLine(**line) for line in data["story"]]
    typed = [line.text for line in lines if line.kind == "types"]
    return tuple(line._replace(text=_timeless(line.text, typed)) for line in lines)


def _timeless(text: str, typed: Sequence[str]) -> str:
    for word, known in zip(typed, _WORDS, strict=True):
        text = text.replace(word, known)
    text = text.replace(f"the word of {pwd.getpwuid(os.getuid()).pw_name} ", "the word of ada ")
    text = re.sub(r"\b(WI|PJ)-\d{8}-", r"\1-20260214-", text)
    return re.sub(r"sha256:[0-9a-f]{64}", "sha256:…", text)


def demo_svg(*chapters: int) -> str:
    """Draw chapters of the demo, as they look on a terminal."""
    from rich.console import Console

    console = Console(
        record=True, width=_COLUMNS, file=io.StringIO(), color_system="truecolor", force_terminal=True, highlight=False
    )
    teller = Storyteller(console)
    chapter = 0
    for line in _story():
        chapter += line.kind == "chapter"
        console.quiet = chapter not in chapters
        teller.tell(line)
    drawn = console.export_svg(title="donewhen demo", code_format=_TERMINAL, unique_id="demo")
    return "\n".join(line.rstrip() for line in drawn.splitlines() if line.strip()) + "\n"


def same_story(one: str, other: str) -> bool:
    """Whether two pictures of the demo have the same text. Coordinates are ignored: they depend on Rich's version."""
    return _drawn_text(one) == _drawn_text(other)


def _drawn_text(svg: str) -> str:
    lines = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    return " ".join(html.unescape(" ".join(lines)).split())


_WIDTH = 920
_MARGIN = 28
_GAP = 12
_LINE = 16
_ROOF = 92
_GROUND = 44
_TINTS = ("#fff1d6", "#fde8d0", "#fbe3e3", "#f3e3f6", "#e7e6fb", "#dfeafc", "#dcf1f5", "#def4e6", "#e9efe2", "#ebebe6")

_WALL = 'stroke="#a79a83"'
_ASIDE = "A room imports the rooms below it, never those above. Import-linter checks it."
_HOUSE_STYLE = """\
<style>
.name { font: 600 17px MONO; fill: #1d2733; }
.says { font: 13px SANS; fill: #3b4754; }
.title { font: 600 21px SANS; fill: #1d2733; text-anchor: middle; }
.aside { font: italic 13px SANS; fill: #55606c; text-anchor: middle; }
</style>""".replace("MONO", _MONOSPACE).replace("SANS", _SANS)


def house_svg(package: str = "donewhen") -> str:
    """Draw the rooms of a package, floor by floor, from its import-linter contract in pyproject.toml."""
    floors = _floors(package)
    storeys: list[str] = []
    top = _ROOF
    for level, rooms in enumerate(floors):
        drawn, height = _storey(package, rooms, top, _TINTS[level % len(_TINTS)])
        storeys += drawn
        top += height + _GAP
    bottom = top + _GROUND
    middle = f"{_WIDTH / 2:g}"
    head = f'<svg viewBox="0 0 {_WIDTH} {bottom}" xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{_ASIDE}">'
    # The background keeps the picture legible on light and on dark pages.
    ground = f'<rect x="1" y="1" width="{_WIDTH - 2}" height="{bottom - 2}" rx="14" fill="#fbfaf7" stroke="#c9c4b8"/>'
    eaves = _ROOF - _GAP
    roof = f'<path d="M {_MARGIN} {eaves} L {middle} 14 L {_WIDTH - _MARGIN} {eaves} Z" {_WALL} fill="#e9dfcf"/>'
    title = f'<text class="title" x="{middle}" y="{_ROOF - 30}">{package}</text>'
    aside = f'<text class="aside" x="{middle}" y="{top + 18}">{_ASIDE}</text>'
    return "\n".join([head, _HOUSE_STYLE, ground, roof, title, *storeys, aside, "</svg>", ""])


def _floors(package: str) -> list[list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (house,) = [contract for contract in contracts if contract.get("containers") == [package]]
    # "a | b" and "a : b" are two ways to put rooms on one floor. Private names are not rooms.
    floors = [re.split(r"\s*[|:]\s*", layer) for layer in house["layers"]]
    return [floor for floor in floors if not floor[0].startswith("_")]


def _storey(package: str, rooms: list[str], top: int, tint: str) -> tuple[list[str], int]:
    """Draw one floor with rooms side by side, and return its height as well."""
    width = (_WIDTH - 2 * _MARGIN - (len(rooms) - 1) * _GAP) / len(rooms)
    says = [textwrap.wrap(_first_line(package, room), int((width - 28) / 6.9)) for room in rooms]
    height = 34 + _LINE * max(len(lines) for lines in says)
    parts = []
    for number, (room, lines) in enumerate(zip(rooms, says, strict=True)):
        left = _MARGIN + number * (width + _GAP)
        parts += [
            f'<rect x="{left:g}" y="{top}" width="{width:g}" height="{height}" rx="8" {_WALL} fill="{tint}"/>',
            f'<text class="name" x="{left + 14:g}" y="{top + 22}">{html.escape(room)}</text>',
            *(
                f'<text class="says" x="{left + 14:g}" y="{top + 40 + _LINE * line}">{html.escape(text)}</text>'
                for line, text in enumerate(lines)
            ),
        ]
    return parts, height


def _first_line(package: str, room: str) -> str:
    base = ROOT.joinpath("src", *package.split("."), room)
    source = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    doc = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    return " ".join(doc.split("\n\n")[0].replace("`", "").split())
