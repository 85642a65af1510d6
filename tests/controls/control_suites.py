"""A small project with tests, honest and with work that forges what the tests say."""

from __future__ import annotations

RIGHT = "def add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return a - b\n"
PYTEST_TESTS = """\
import unittest

import pytest

from app import add


def test_small_numbers():
    assert add(1, 2) == 3


@pytest.mark.parametrize("number", [1, 2, 3])
def test_zero_changes_nothing(number):
    assert add(number, 0) == number


class TestMore:
    def test_large_numbers(self):
        assert add(10**20, 1) == 10**20 + 1


class AddTest(unittest.TestCase):
    def test_case(self):
        self.assertEqual(add(1, 1), 2)
"""
UNITTEST_TESTS = """\
import unittest

from app import add


class AddTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        print("set up once")

    def test_small_numbers(self):
        self.assertEqual(add(1, 2), 3)

    def test_negative_numbers(self):
        for number in (-1, -2):
            with self.subTest(number=number):
                self.assertEqual(add(number, -number), 0)

    @unittest.skip("not today")
    def test_later(self):
        self.fail()


class OtherTest(unittest.TestCase):
    def test_zero(self):
        self.assertTrue(add(0, 0) == 0)
"""
_PLUGIN = """
import gc
import pytest


def register(plugin):
    from _pytest.config import Config

    for config in [found for found in gc.get_objects() if isinstance(found, Config)]:
        config.pluginmanager.register(plugin)

"""
FORGED_WITH_PYTEST = {
    "the report of a test": """
import _pytest.reports
before = _pytest.reports.TestReport.from_item_and_call


def after(item, call):
    report = before(item, call)
    report.outcome, report.longrepr = "passed", None
    return report


_pytest.reports.TestReport.from_item_and_call = after
""",
    "what runs a test": """
import unittest

import _pytest.python

_pytest.python.Function.runtest = lambda self: None
import _pytest.unittest

_pytest.unittest.TestCaseFunction.runtest = lambda self: None
""",
    "the result of a call": """
import _pytest.runner
before = _pytest.runner.CallInfo.from_call.__func__


def after(cls, *values, **named):
    call = before(cls, *values, **named)
    call.excinfo = None
    return call


_pytest.runner.CallInfo.from_call = classmethod(after)
import unittest

unittest.TestCase.assertEqual = lambda *values: None
""",
    "a plugin that turns reports": _PLUGIN
    + """
class Plugin:
    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item, call):
        report = (yield).get_result()
        report.outcome, report.longrepr = "passed", None


register(Plugin())
""",
    "a plugin that turns reports later": _PLUGIN
    + """
class Plugin:
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report):
        report.outcome, report.longrepr = "passed", None


register(Plugin())
""",
    "a plugin that runs the tests": _PLUGIN
    + """
class Plugin:
    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem):
        return True


register(Plugin())
import unittest

unittest.TestCase.assertEqual = lambda *values: None
""",
    "the file with the report, and the end": """
import os, re

for value in open("/proc/self/environ").read().split(chr(0)):
    for path in re.findall(r"junitxml=([^' ]+)", value):
        with open(path, "w") as file:
            file.write('<testsuites><testsuite><testcase classname="test_app" name="test_small_numbers"/>')
            file.write("</testsuite></testsuites>")
        os._exit(0)
""",
    "the file with the report, at the end": """
import atexit, os, re, sys

paths = re.findall(r"junitxml=([^' ]+)", open("/proc/self/environ").read().replace(chr(0), " "))


@atexit.register
def forge():
    for path in paths:
        text = open(path).read()
        with open(path, "w") as file:
            file.write(re.sub(r"(?s)<failure.*?</failure>", "", text))
    sys.stdout.flush()
    os._exit(0)
""",
    "the end": """
import os


def add(a, b):
    os._exit(0)
""",
    "the end, politely": """
import pytest


def add(a, b):
    pytest.exit("done", returncode=0)
""",
    "the tests themselves": """
import gc


def add(a, b):
    import pytest

    for item in [found for found in gc.get_objects() if isinstance(found, pytest.Function)]:
        item.runtest = lambda: None
    return {(1, 2): 3}.get((a, b), a - b)
""",
}
FORGED_WITH_UNITTEST = {
    "an assertion": "import unittest\nunittest.TestCase.assertEqual = lambda *values: None\n",
    "what runs a test": """
import unittest


def run(self, result=None):
    result.startTest(self)
    result.addSuccess(self)
    result.stopTest(self)


unittest.TestCase.run = run
""",
    "what a failure is": """
import unittest

unittest.TestCase.failureException = type("Quiet", (unittest.SkipTest,), {})
""",
    "the result, while tests run": """
import sys, unittest


def add(a, b):
    frame = sys._getframe()
    while frame:
        result = frame.f_locals.get("result")
        if isinstance(result, unittest.TestResult):
            type(result).addFailure = lambda self, test, error: self.addSuccess(test)
            type(result).addSubTest = lambda self, test, subtest, error: None
        frame = frame.f_back
    return a - b
""",
    "the file with the report, at the end": """
import atexit, os, re, sys

paths = re.findall(r"DONEWHEN_UNITTEST_REPORT=([^\\0]+)", open("/proc/self/environ").read())


@atexit.register
def forge():
    for path in paths:
        text = open(path).read()
        with open(path, "w") as file:
            file.write(re.sub(r"<failure[^>]*/>", "", text))
    sys.stderr.flush()
    os._exit(0)
""",
    "the end": "import os\n\n\ndef add(a, b):\n    os._exit(0)\n",
}


def with_add(forgery: str) -> str:
    """A forgery, with wrong work beside it if it has none."""
    return forgery if "def add" in forgery else f"{forgery}\n\n{WRONG}"
