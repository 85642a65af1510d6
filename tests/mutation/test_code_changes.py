"""Small changes of code: which there are, what is left alone, and that each is a program."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from donewhen.mutation import code_changes as module
from donewhen.mutation.code_changes import CodeChange, code_changes


def changed(text: str, kind: str | None = None) -> set[str]:
    return {change.changed for change in code_changes(text) if kind is None or change.kind == kind}


@pytest.mark.parametrize(
    ("code", "kind", "expected"),
    [
        ("x = a < b", "comparison", {"a <= b", "a >= b"}),
        ("x = a == b", "comparison", {"a != b"}),
        ("x = a < b < c", "comparison", {"a <= b < c", "a >= b < c", "a < b <= c", "a < b >= c"}),
        ("x = a in b", "comparison", {"a not in b"}),
        ("x = a is None", "comparison", {"a is not None"}),
        ("x = a and b", "and/or", {"a or b"}),
        ("x = a + b", "arithmetic", {"a - b"}),
        ("x = a @ b", "arithmetic", set()),
        ("x += b", "arithmetic", {"x -= b"}),
        ("x += 'text'", "arithmetic", set()),
        ("x = a + f'{b}'", "arithmetic", set()),
        ("x = not a", "negation", {"a"}),
        ("x = -a", "negation", {"a"}),
        ("x = 2", "constant", {"3", "1"}),
        ("x = 0", "constant", {"1"}),
        ("x = True", "constant", {"False"}),
        ("x = 1.5", "constant", {"2.5"}),
        ("x = 'a'", "constant", {"''"}),
        ("x = ''", "constant", {"'changed'"}),
        ("x = b'a'", "constant", set()),
        ("x = min(a)", "call", {"max(a)"}),
        ("x = a.lower()", "call", {"a.upper()"}),
        ("x = sorted(a)", "call", {"a"}),
        ("x = sorted(*a)", "call", set()),
        ("x = a[1:n]", "slice", {"a[:n]", "a[1:]"}),
        ("x = a if b else c", "choice", {"a", "c"}),
        ("def f():\n    return a", "return", {"return None"}),
        ("def f():\n    return None", "return", set()),
        ("for a in b:\n    break", "loop", {"continue"}),
        ("for a in b:\n    continue", "loop", {"break"}),
        ("if a:\n    pass", "condition", {"True", "False"}),
        ("x = [a for a in b if a]", "condition", {"True", "False"}),
        ("raise ValueError('no')", "removed", {"pass"}),
        ("a.append(b)", "removed", {"pass"}),
        ("a[0] = b", "removed", {"pass"}),
        ("def f():\n    if a:\n        return\n    b()", "removed", {"pass"}),
    ],
)
def test_what_is_changed(code: str, kind: str, expected: set[str]) -> None:
    assert changed(code, kind) == expected


@pytest.mark.parametrize(
    "code",
    [
        '"""Documentation with 2 numbers."""',
        "def f(a: 'Literal[1]') -> 'Literal[2]': ...",
        "__all__ = ['a', 'b']",
        "print('2 files' if a == 1 else 'none')",
        "logger.info('%s', a + 1)",
        "import a",
        "x = f'{a + 1}'",
        "assert a == 1, 'one'",
        "if TYPE_CHECKING:\n    x = 1",
        "if __name__ == '__main__':\n    main()",
    ],
)
def test_what_is_only_shown_or_read_by_type_checkers_is_left_alone(code: str) -> None:
    assert [change for change in code_changes(code) if change.kind != "condition"] == []


def test_only_changes_of_these_lines() -> None:
    code = "if a > 1:\n    b = 2\n    c = 3\n"
    assert {change.line for change in code_changes(code, {2})} == {2}
    assert {change.line for change in code_changes(code, {1})} == {1}
    assert code_changes(code, set()) == ()


@pytest.mark.parametrize("code", ["def f(:", "x = '\0'", "(" * 5000])
def test_what_can_not_be_parsed_has_none(code: str) -> None:
    assert code_changes(code) == ()


def test_a_change_says_what_it_is() -> None:
    (change,) = code_changes("é = a == b  # ü\n")
    assert str(change) == "line 1: a == b → a != b"
    assert change.applied_to("é = a == b  # ü\n") == "é = (a != b)  # ü\n"


def test_long_code_is_shortened() -> None:
    change = CodeChange(1, 0, "return", "return " + "a" * 200, "return None", 0, 1, "")
    assert len(str(change)) < 120


def test_every_change_of_a_module_is_another_program() -> None:
    text = Path(module.__file__).read_text("utf-8")
    changes = code_changes(text)
    assert len(changes) > 100
    for change in changes:
        assert ast.dump(ast.parse(change.applied_to(text))) != ast.dump(ast.parse(text))
