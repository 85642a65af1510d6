"""Print the demo on a terminal, at reading speed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from donewhen.demo.story_lines import StoryLine
from donewhen.foundation.plain_text import plain_text

if TYPE_CHECKING:
    from rich.console import Console

_NAMES = 9
_COLORS = {"person": "cyan", "agent": "yellow"}
_MARKS = {True: ("✓ ", "green"), False: ("✗ ", "red"), None: ("", "dim")}
_MARKED = ("✓", "✗", "- ", "<promise>", "receipt:")
_SHORTEST, _PER_CHARACTER, _LONGEST = 0.25, 0.007, 1.4
_PER_KEY = 0.08


class Storyteller:
    """Print and store the lines. If ``slowly``, pause after each line; longer lines get more time."""

    def __init__(self, console: Console, *, slowly: bool = False) -> None:
        self._console = console
        self._slowly = slowly
        self._chapters = 0
        self._cheats = 0
        self.lines: list[StoryLine] = []

    def tell(self, line: StoryLine) -> None:
        self.lines.append(line)
        match line.kind:
            case "chapter":
                self._chapters += 1
                self._console.print(f"\n[bold]{self._chapters}. {line.text}[/bold]\n")
            case "cheat":
                self._cheats += 1
                self._console.print()
                self._row("", f"Cheat {self._cheats}: {line.text}", "bold magenta")
            case "types":
                self._keys("types ", line.text)
            case "presses":
                self._keys("presses ", line.text)
            case "command":
                self._row(line.who, f"$ {line.text}", _COLORS[line.who])
            case "says":
                self._row(line.who, f"“{line.text}”", "italic")
            case "does":
                self._row(line.who, line.text, "dim")
            case "note":
                self._row("", line.text, "italic")
            case "answer":
                self._answer(line)
        self._wait(min(_LONGEST, _SHORTEST + _PER_CHARACTER * len(line.text)))

    def say(self, text: str) -> None:
        """Print text with markup. It is not stored."""
        self._console.print(text)

    def _answer(self, line: StoryLine) -> None:
        mark, color = _MARKS[line.good]
        self._row("", line.text if line.text.startswith(_MARKED) else f"{mark}{line.text}", color)

    def _keys(self, doing: str, keys: str) -> None:
        from rich.text import Text

        start = Text.assemble((f"{'person':>{_NAMES}} ", f"bold {_COLORS['person']}"), (doing, "dim"))
        self._console.print(start, end="")
        for key in keys:
            self._wait(_PER_KEY)
            self._console.print(Text(key, style="bold reverse"), end="")
        self._console.print()

    def _row(self, who: str, text: str, style: str) -> None:
        from rich.text import Text

        name = f"{who:>{_NAMES}} "
        room = max(20, self._console.width - len(name))
        for line in Text(plain_text(text), style=style).wrap(self._console, room):
            line.rstrip()
            self._console.print(Text.assemble((name, f"bold {_COLORS.get(who, '')}"), line), no_wrap=True, crop=False)
            name = " " * len(name)

    def _wait(self, seconds: float) -> None:
        if self._slowly:
            time.sleep(seconds)
