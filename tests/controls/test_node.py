"""Controls in runs of node's own test runner."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping

import pytest
from control_kit import Suite
from node_suites import FILES, FORGED, MODULE_TESTS, RIGHT, TESTS, WRONG, with_add

pytestmark = [
    pytest.mark.scenes,
    pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed"),
]
MODULES = {"app.mjs": "export const add = (a, b) => a + b;\n", "b.test.mjs": MODULE_TESTS}
HOOKED = """\
const { after, before, beforeEach, test } = require("node:test");
const assert = require("node:assert");
before(() => {});
beforeEach(() => {});
after(() => {});
test("waits", (t, done) => { setTimeout(done, 5); });
test("mocks", (t) => { t.mock.method(assert, "ok", () => {}); assert.ok(false); });
test("starts programs", () => {
  const { execFileSync } = require("node:child_process");
  assert.equal(execFileSync(process.execPath, [...process.execArgv, "-p", "1 + 1"]).toString(), "2\\n");
});
test("starts threads", async () => {
  const { Worker } = require("node:worker_threads");
  const worker = new Worker("process.stdout.write('thread')", { eval: true });
  await new Promise((done) => worker.on("exit", done));
});
"""


@pytest.mark.parametrize(
    ("files", "options", "passed"),
    [
        ({}, (), 4),
        (MODULES, (), 5),
        ({"plain.test.js": "", "hooked.test.js": HOOKED}, ("--test-concurrency=1",), 9),
        ({}, ("--test-name-pattern=small",), 1),
        ({}, ("--test-name-pattern", "/^ADDS/i"), 3),
        ({"app.test.js": TESTS.replace('numbers", ()', 'numbers", { only: true }, ()')}, ("--test-only",), 1),
        ({}, ("--test-reporter=tap",), 4),
        (MODULES, ("b.test.mjs",), 1),
    ],
    ids=str,
)
def test_controls_hold_in_honest_runs_of_node(
    suite: Suite, files: Mapping[str, str], options: tuple[str, ...], passed: int
) -> None:
    run = suite({**FILES, **files}, "node", "--test", *options)
    assert run.controls.held == "held", (run.controls, run.result.output)
    assert run.passed, run.result.output
    assert run.report is not None and run.report.count("passed") == passed, run.report


@pytest.mark.parametrize("forgery", FORGED)
def test_a_forged_run_of_node_is_not_trusted(suite: Suite, forgery: str) -> None:
    run = suite({"app.js": with_add(FORGED[forgery]), "app.test.js": TESTS}, "node", "--test")
    assert run.controls.held == "broken", (run.controls, run.result.output)
    assert not run.passed


def test_a_run_of_node_shows_no_trace_of_controls(suite: Suite) -> None:
    look = """
const { test } = require("node:test");
test("looks around", () => {
  console.log("LOOKED", JSON.stringify([process.execArgv, process.env.NODE_OPTIONS ?? null]));
  console.log("LOADED", Object.keys(require.cache).length);
});
"""
    run = suite({**FILES, "look.test.js": look}, "node", "--test", "--experimental-test-coverage")
    output = run.result.output
    assert run.controls.held == "held", (run.controls, output)
    known = {"adds small numbers", "adds nothing", "to one", "are added", "are skipped", "are still to do"}
    assert set(re.findall(r"^\s*[✔✖﹣⚠] (\S.*?) \(", output, re.MULTILINE)) <= known | {"large numbers", "looks around"}
    assert re.search(r"tests 7\b[\s\S]*pass 5\b[\s\S]*fail 0\b[\s\S]*skipped 1\b[\s\S]*todo 1\b", output), output
    assert 'LOOKED [["--experimental-test-coverage"],null]' in output or "LOOKED [[],null]" in output, output
    assert "LOADED 1" in output, output
    assert "controls" not in output and "donewhen" not in output, output


def test_numbers_of_tests_stay_the_same(suite: Suite) -> None:
    tests = """
const { test } = require("node:test");
test("first", () => {});
setTimeout(() => test("second", () => {}), 30);
"""
    run = suite({"a.test.js": tests}, "node", "--test", "--test-reporter=tap")
    assert run.controls.held == "held", (run.controls, run.result.output)
    assert "ok 1 - first" in run.result.output and "ok 2 - second" in run.result.output, run.result.output
    assert "1..2" in run.result.output


def test_wrong_work_fails_as_it_would(suite: Suite) -> None:
    run = suite({"app.js": WRONG, "app.test.js": TESTS}, "node", "--test")
    assert (run.result.exit_code, run.passed) == (1, False)
    assert run.controls.held == "held", run.controls
    assert run.report is not None and run.report.count("failed") == 3


def test_files_without_tests_are_no_alarm(suite: Suite) -> None:
    files = {"plain.test.js": "", "none.test.js": 'require("node:test");\n'}
    run = suite(files, "node", "--test")
    assert run.passed, (run.controls, run.result.output)
    run = suite(
        {"app.js": RIGHT, "none.test.js": "", "plain.test.js": "require('./app').add(1, 2);\n"}, "node", "--test"
    )
    assert (run.controls.held, run.passed) == ("none", True), (run.controls, run.result.output)


def test_many_files_have_controls(suite: Suite) -> None:
    """Each process has a key of its own."""
    files = {f"n{number}.test.js": "require('node:test').test('is ready', () => {});\n" for number in range(6)}
    run = suite(files, "node", "--test")
    assert run.passed and run.controls.held == "held", (run.controls, run.result.output)


PACKAGE = '{"name": "shop", "version": "1.0.0", "scripts": {"test": "node --test"}}'
WRAPPED = {
    "npm": (("npm", "test"), {"package.json": PACKAGE}),
    "make": (("make", "test"), {"Makefile": "test:\n\t@node --test\n"}),
    "sh": (("sh", "test.sh"), {"test.sh": "node --test\n"}),
}
ENVIRONMENT = """
test("starts programs", () => {
  const { execFileSync } = require("node:child_process");
  const names = "[process.env.NODE_OPTIONS, process.env.PYTHONPATH]";
  assert.equal(execFileSync(process.execPath, ["-p", `JSON.stringify(${names})`]).toString(), "[null,null]\\n");
});
"""


@pytest.mark.parametrize("wrapper", WRAPPED)
def test_controls_hold_in_what_a_program_starts_with_node(suite: Suite, wrapper: str) -> None:
    words, files = WRAPPED[wrapper]
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    run = suite({**FILES, "app.test.js": TESTS + ENVIRONMENT, **files}, *words)
    assert (run.controls.held, run.passed) == ("held", True), (run.controls, run.result.output)
    forgery = with_add(FORGED["one assertion"])
    run = suite({"app.js": forgery}, *words)
    assert (run.controls.held, run.passed) == ("broken", False), (run.controls, run.result.output)


def test_a_program_that_starts_no_tests_of_node_has_no_controls(suite: Suite) -> None:
    run = suite({"package.json": PACKAGE.replace("node --test", "node app.js"), "app.js": RIGHT}, "npm", "test")
    assert (run.controls.held, run.passed) == ("none", True), (run.controls, run.result.output)
