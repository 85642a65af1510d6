"""Comments that silence tools, tests that ask for less, and private code that nothing uses."""

from __future__ import annotations

import pytest
from signs_kit import asking, signs_in

COMMENTS = [
    ("work.py", "x = 1  # noqa: E501\n", "ruff"),
    ("work.py", "# ruff: noqa\n", "ruff"),
    ("work.py", "x = f()  # type: ignore[arg-type]\n", "mypy"),
    ("work.py", "# mypy: ignore-errors\n", "mypy"),
    ("work.py", "x = f()  # pyright: ignore\n", "pyright"),
    ("work.py", "if x:  # pragma: no cover\n    pass\n", "--cov"),
    ("work.py", "# pylint: disable=all\n", "pylint"),
    ("work.js", "// eslint-disable-next-line\nf()\n", "eslint"),
    ("work.ts", "// @ts-expect-error\nf()\n", "tsc"),
    ("work.js", "/* istanbul ignore next */\nf()\n", "--coverage"),
    ("work.go", "f() //nolint:errcheck\n", "golangci-lint"),
    ("work.py", "@typing.no_type_check\ndef f(): ...\n", "mypy"),
    ("work.py", "if not TYPE_CHECKING:\n    f = 1\n", "pyright"),
    ("work.rs", "#[allow(dead_code)]\nfn f() {}\n", "clippy"),
    ("work.sh", "# shellcheck disable=SC2086\necho $x\n", "shellcheck"),
    ("Work.java", '@SuppressWarnings("all")\nclass A {}\n', "pmd"),
]


@pytest.mark.parametrize(("name", "source", "tool"), COMMENTS)
def test_a_comment_asks_only_if_it_silences_a_tool_of_the_checks(name: str, source: str, tool: str) -> None:
    assert asking(source, name=name, tools=[tool], used=["work"]) == ["suppressions"]
    (noted,) = signs_in(source, name=name, tools=["pytest"], used=["work"])
    assert (noted.kind, noted.asks) == ("suppressions", False)


def test_a_comment_that_was_there_is_no_question() -> None:
    before = "x = 1  # noqa: E501\ny = 2\n"
    assert signs_in(f"z = 3\n{before}", before, tools=["ruff"]) == ()


def test_a_comment_on_a_line_that_was_there_is_one() -> None:
    assert asking("x = 1  # noqa\n", "x = 1\n", tools=["ruff"]) == ["suppressions"]


def test_a_text_is_no_comment() -> None:
    assert signs_in('x = "# noqa"\n', tools=["ruff"]) == ()
    assert signs_in("Write `# noqa`.\n", name="docs/a.md", tools=["ruff"]) == ()


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("test_work.py", "@pytest.mark.skip\ndef test_a(): ...\n"),
        ("test_work.py", "@pytest.mark.xfail(strict=False)\ndef test_a(): ...\n"),
        ("test_work.py", "class T:\n    @unittest.skipIf(True, '')\n    def test_a(self): ...\n"),
        ("test_work.py", "def test_a():\n    pytest.skip('later')\n"),
        ("work.test.js", "it.skip('adds', () => {})\n"),
        ("work.test.js", "xit('adds', () => {})\n"),
        ("work_test.go", "t.Skip()\n"),
        ("WorkTest.java", "@Disabled\nvoid adds() {}\n"),
    ],
)
def test_a_skipped_test_is_shown(name: str, source: str) -> None:
    assert asking(source, name=name, is_test=True) == ["weaker-tests"]


@pytest.mark.parametrize(
    ("name", "line", "weaker"),
    [
        ("pyproject.toml", "fail_under = 95", "fail_under = 80"),
        ("setup.cfg", "addopts = --cov-fail-under=90", "addopts = --cov-fail-under=9"),
        ("package.json", '"branches": 90', '"branches": 10'),
        ("pytest.ini", "timeout = 10", "timeout = 1000"),
        (".eslintrc.json", '"max-warnings": 0', '"max-warnings": 99'),
    ],
)
def test_a_weaker_threshold_is_shown_and_a_stronger_one_is_not(name: str, line: str, weaker: str) -> None:
    assert asking(f"{weaker}\n", f"{line}\n", name=name) == ["weaker-tests"]
    assert asking(f"{line}\n", f"{weaker}\n", name=name) == []


def test_private_code_that_nothing_uses_is_shown() -> None:
    (sign,) = signs_in("def _later(n):\n    return _later(n - 1)\n")
    assert (sign.kind, sign.why) == ("uncalled", "nothing uses _later")


@pytest.mark.parametrize(
    "source",
    [
        "def _later():\n    return 1\n\n\nx = _later()\n",
        "def later():\n    return 1\n",
        "@hook\ndef _later():\n    return 1\n",
        "class A(Base):\n    def _later(self):\n        return 1\n",
        "class A:\n    def __init__(self):\n        pass\n",
        "def f():\n    def _later():\n        return 1\n",
    ],
)
def test_code_that_may_be_used_is_no_question(source: str) -> None:
    assert asking(source) == []


def test_code_that_another_file_uses_is_no_question() -> None:
    assert asking("def _later():\n    return 1\n", used=["_later"]) == []
