"""Finds the signs of a change that is given as texts."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from donewhen.signs.kinds import ChangedFile, Sign
from donewhen.signs.signs import Around, signs_of_change

TESTS = """from work import convert, total

def test_them():
    assert convert("MCMXCIV") == 1994
    assert convert(7) == 13
    assert convert([3, 1, 2]) == [1, 2, 3]
    assert total(404) is None
    assert total("https") == 443
"""


def signs_in(
    after: str,
    before: str | None = None,
    *,
    name: str = "src/work.py",
    tests: Mapping[str, str] | None = None,
    tools: Collection[str] = (),
    is_test: bool = False,
    used: Collection[str] = (),
    own: Collection[str] = ("work",),
) -> tuple[Sign, ...]:
    """The signs of one file."""
    around = Around(
        {"tests/test_work.py": TESTS} if tests is None else tests,
        frozenset(tools),
        frozenset(own),
        lambda word, _: word in used,
    )
    return signs_of_change([ChangedFile(name, before, after, is_test)], around)


def asking(after: str, before: str | None = None, **more: object) -> list[str]:
    """The kinds of the signs that ask for a person."""
    return sorted({sign.kind for sign in signs_in(after, before, **more) if sign.asks})  # type: ignore[arg-type]
