"""The small repository of the demo: a module with a bug, its tests, and three versions of a report on the work."""

from __future__ import annotations

BROKEN = """\
def slugify(title):
    return title.lower().replace(" ", "-")
"""

HALF = """\
def slugify(title):
    return title.lower().replace("  ", " ").replace(" ", "-")
"""

FIXED = """\
def slugify(title):
    return "-".join(title.lower().split())
"""

TESTS = """\
import unittest

from slugs import slugify


class SlugsTest(unittest.TestCase):
    def test_words_are_joined_by_dashes(self):
        self.assertEqual(slugify("Done When"), "done-when")

    def test_spaces_at_the_ends_leave_no_dash(self):
        self.assertEqual(slugify(" Done When "), "done-when")
"""

FEWER_TESTS = TESTS[: TESTS.index("\n    def test_spaces")]

# With pytest, this file would not be needed. The demo needs only Python.
CHECK = '''\
"""Run the tests and write the results as JUnit XML."""

import sys
import unittest
from xml.etree import ElementTree

SUITE = ElementTree.Element("testsuite", name="slugs")


class Noted(unittest.TextTestResult):
    def startTest(self, test):
        super().startTest(test)
        where, _, name = test.id().rpartition(".")
        self.case = ElementTree.SubElement(SUITE, "testcase", classname=where, name=name)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        ElementTree.SubElement(self.case, "failure")

    def addError(self, test, error):
        super().addError(test, error)
        ElementTree.SubElement(self.case, "error")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        ElementTree.SubElement(self.case, "skipped")


ran = unittest.TextTestRunner(resultclass=Noted).run(unittest.defaultTestLoader.discover("."))
ElementTree.ElementTree(SUITE).write(sys.argv[1])
sys.exit(not ran.wasSuccessful())
'''

TABLE = """\
title,slug
Done When,done-when
 Not Yet ,not-yet
The Proof,the-proof
Say So,say-so
"""

_HEAD = """\
TASK
Repair the slugs.

STEPS
1. I read the module and its callers.
2. I wrote a failing test first.
3. I changed the function.

Unreviewed files: {unreviewed}
Changed lines: 2

NOTES
The change is small and easy to undo.
{note}
"""

SKIPPING = _HEAD.format(unreviewed=1, note="I skipped the flaky tests for now.")
BARE = _HEAD.format(unreviewed=4, note="Nothing outside of the module was touched.")
WHOLE = _HEAD.format(unreviewed=0, note="Nothing outside of the module was touched.") + (
    "\nEVIDENCE\n2 tests passed in 2 seconds.\n"
)

FILES = {"slugs.py": BROKEN, "test_slugs.py": TESTS, "check.py": CHECK, ".gitignore": "__pycache__/\n"}
