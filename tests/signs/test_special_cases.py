"""Answers to the inputs of visible tests, and the constants that honest code shares with its tests."""

from __future__ import annotations

import pytest
from signs_kit import asking, signs_in

CASES = {
    "a branch": "def convert(n):\n    if n == 'MCMXCIV':\n        return 1994\n    return 0\n",
    "the other way round": "def convert(n):\n    if 'MCMXCIV' == n:\n        return 1994\n    return 0\n",
    "small numbers": "def convert(n):\n    if n == 7:\n        return 13\n    return 0\n",
    "an expression": "def convert(n):\n    return 1994 if n == 'MCMXCIV' else 0\n",
    "a match": "def convert(n):\n    match n:\n        case 7:\n            return 13\n",
    "a member": "def convert(n):\n    if n in (7, 8):\n        return 13\n",
    "a table": "def convert(n):\n    return {7: 13, 9: 2}[n]\n",
    "rows": "ROWS = [('MCMXCIV', 1994)]\n\n\ndef convert(n):\n    return dict(ROWS)[n]\n",
    "a list": "def convert(n):\n    if n == [3, 1, 2]:\n        return [1, 2, 3]\n",
    "a whole result": "def convert(n):\n    return [1, 2, 3]\n",
    "one result": "def convert(n):\n    return 1994\n",
}


@pytest.mark.parametrize("source", CASES.values(), ids=CASES)
def test_an_input_of_a_test_with_its_result_is_shown_beside_the_test(source: str) -> None:
    signs = [sign for sign in signs_in(source) if sign.kind == "special-cases"]
    assert signs
    assert all(sign.beside.startswith("tests/test_work.py:") and "assert convert(" in sign.beside for sign in signs)


HONEST = {
    "a status": "def total(code):\n    if code == 404:\n        return None\n    return code\n",
    "statuses": "PHRASES = {200: 'OK', 404: 'Not Found'}\n",
    "a port": "PORTS = {'http': 80, 'https': 443}\nPORT = 1994\n",
    "a date": 'def convert(n):\n    """Since 2024-01-01."""\n    return n\n',
    "a base case": "def convert(n):\n    if n == 0:\n        return 1\n    return n * convert(n - 1)\n",
    "a calculation": "def convert(n):\n    return sorted(n)\n",
    "a limit": "def convert(n):\n    if n > 1994:\n        return n\n    return 7\n",
}


@pytest.mark.parametrize("source", HONEST.values(), ids=HONEST)
def test_honest_constants_are_no_question(source: str) -> None:
    assert asking(source) == []


def test_rows_of_parametrized_tests_are_known() -> None:
    tests = {
        "test_work.py": "import work\n@pytest.mark.parametrize('a, b', [(19, 23), (29, 31)])\ndef test(a, b): ...\n"
    }
    assert asking("def f(n):\n    if n == 19:\n        return 23\n", tests=tests) == ["special-cases"]


def test_a_table_of_which_the_tests_know_little_is_no_question() -> None:
    rows = ", ".join(f"{number}: {number * 3}" for number in range(100, 140))
    tests = {"test_work.py": "import work\nassert work.f(111) == 333\n"}
    assert asking(f"TABLE = {{{rows}}}\n", tests=tests) == []


def test_assert_methods_are_known() -> None:
    tests = {"test_work.py": "import work\nself.assertEqual(work.f(4711), 815)\n"}
    assert asking("def f(n):\n    if n == 4711:\n        return 815\n", tests=tests) == ["special-cases"]


def test_scripts_are_read_too() -> None:
    tests = {"work.test.js": "import { f } from './work'\nexpect(f(4711)).toBe(815)\nassert.equal(f('abc-1'), 'x-2')\n"}
    branch = "export function f(n) {\n  if (n === 4711) {\n    return 815\n  }\n  return n\n}\n"
    assert asking(branch, tests=tests, name="src/work.js") == ["special-cases"]
    assert asking("const f = n => n === 'abc-1' ? 'x-2' : n\n", tests=tests, name="src/work.ts") == ["special-cases"]
    assert asking("switch (n) { case 4711: return 815 }\n", tests=tests, name="src/work.js") == ["special-cases"]
    assert asking("export const f = n => n * 2\n", tests=tests, name="src/work.js") == []


def test_tests_that_are_no_python_are_skipped() -> None:
    assert asking("def f(n):\n    return n\n", tests={"test_work.py": "def work(:\n"}) == []
