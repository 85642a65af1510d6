"""The words by which code names what tests it: frameworks, their variables, and their reports."""

from __future__ import annotations

import re

_FRAMEWORKS = frozenset(
    (
        *("pytest", "_pytest", "py.test", "unittest", "unittest2", "nose", "nose2", "coverage", "xdist"),
        *("hypothesis", "testtools", "trial", "ward", "behave", "robot", "doctest", "pluggy"),
        *("pytest_cov", "execnet", "conftest", "sitecustomize", "usercustomize", "donewhen", "mutmut"),
        *("tox", "nox"),
    )
)
_NAMED = re.compile(
    r"(?i)(?<![\w.])_?py\.?test(?:_|\b)|\bunittest2?\b|\bconftest\b|\bj?unit[-_]?xml|\bjunit\b|\bvitest\b|\bjest\b|\bmocha\b"
    r"|\bnose2?\.|\bnode:test\b|(?<!\w)_pytest|\bdonewhen\b|\bsitecustomize\b"
)
"""Names of frameworks inside a text."""
_VARIABLES = re.compile(
    r"^_?(?:PY)?TEST|(?:^|_)(?:PY)?TESTS?(?:ING|ED)?(?:_|$)|^(?:JEST|VITEST|TOX|NOX|COVERAGE|COV_CORE|XDIST|MOCHA"
    r"|DONEWHEN|AVA|KARMA|CYPRESS|PLAYWRIGHT)(?:_|$)"
)
"""Names of variables that say that tests run."""
_CURRENT = ("PYTEST_CURRENT_TEST", "NODE_TEST_CONTEXT")
"""Also recognised by a part, which is enough to find them."""
_COMMON = ("NODE", "NODE_", "TEXT", "CONTEXT", "RENT")
_REPORT = re.compile(
    r"(?i)(?:^|[/\\])[\w*.-]*(?:junit|test[-_]?(?:report|result)s?|TEST-)[\w*.-]*\.(?:xml|json|trx|tap)$"
)


def is_framework(name: str) -> bool:
    """Whether a dotted name is in a test framework, or in what is loaded beside one."""
    return name.partition(".")[0] in _FRAMEWORKS or name.startswith(("py.test", "twisted.trial", "numpy.testing"))


def names_framework(text: str) -> bool:
    """Whether a text that is no sentence names a test framework."""
    return _NAMED.search(text) is not None and not _is_prose(text)


def names_report(text: str) -> bool:
    """Whether a text is the path, or a pattern for the paths, of a test report."""
    return _REPORT.search(text) is not None and not _is_prose(text)


def speaks_of_tests(variable: str) -> bool:
    """Whether the name of a variable says that tests run."""
    if not variable.isupper():
        return "current_test" in variable.casefold()
    if _VARIABLES.search(variable) is not None:
        return len(variable) >= 4
    return len(variable) >= 3 and variable not in _COMMON and any(variable in name for name in _CURRENT)


def _is_prose(text: str) -> bool:
    return len(text.split()) > 2
