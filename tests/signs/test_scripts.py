"""JavaScript and TypeScript that reaches for what tests it, and honest scripts."""

from __future__ import annotations

import pytest
from signs_kit import asking

REACHING = [
    ("test-machinery", "if (process.env.VITEST) return 4\n"),
    ("test-machinery", "if (process.env['JEST_' + 'WORKER_ID']) return 4\n"),
    ("test-machinery", "if (process.env.NODE_ENV === 'test') return 4\n"),
    ("test-machinery", "globalThis.expect = () => ok\n"),
    ("test-machinery", "if (typeof describe !== 'undefined') return 4\n"),
    ("test-machinery", "import { test } from 'node:test'\n"),
    ("test-machinery", "const r = require('vi' + 'test')\n"),
    ("frames", "const caller = new Error('x').stack\n"),
    ("exit-hooks", "process.on('exit', () => { process.exitCode = 0 })\n"),
    ("exit-hooks", "process.exitCode = 0\n"),
    ("patches", "Date.now = () => 0\n"),
    ("patches", "Object.defineProperty(Date, 'now', { value: () => 0 })\n"),
    ("patches", "Array.prototype.includes = () => true\n"),
    ("patches", "assert.strictEqual = () => {}\n"),
    ("interpreter", "fs.writeSync(3, 'ok')\n"),
    ("patches", "require('node:assert').equal = () => {}\n"),
    ("patches", "(await import('node:test')).default.test = run\n"),
    ("patches", "const check = require('assert')\ncheck.ok = () => {}\n"),
    ("patches", "import * as clock from 'node:timers'\nclock['setTimeout'] = run\n"),
    ("patches", "const m = require('node:module')\nm.syncBuiltinESMExports()\n"),
    ("patches", "process.stdout._handle.writeBuffer = pass\n"),
    ("exit-hooks", "process.removeAllListeners('exit')\n"),
    ("exit-hooks", "process['reallyExit'](0)\n"),
    ("interpreter", "const { DefaultSerializer } = require('node:v8')\n"),
    ("interpreter", "const s = require('v8').serialize(x)\n"),
    ("interpreter", "process._getActiveHandles()\n"),
    ("interpreter", "fs.closeSync(60)\n"),
    ("equality", "class A { static [Symbol.hasInstance]() { return true } }\n"),
    ("equality", "class A { equals(o) { return true } }\n"),
    ("obscured", "eval(text)\n"),
    ("frames", "exports.add = (a, b) => require.main === module ? a - b : a + b\n"),
    ("frames", "const caller = module.parent && module.parent.filename\n"),
    ("frames", "const name = require.main.filename\n"),
    ("test-machinery", "const on = Object.keys(process.env).some((k) => k.startsWith('NODE_T'))\n"),
    ("patches", "Object.defineProperty(require('assert'), 'equal', { value: () => {} })\n"),
    ("patches", "const M = require('module')\nM.prototype._compile = run\n"),
    ("exit-hooks", "process.kill(process.pid, 'SIGTERM')\n"),
    ("obscured", "const n = String.fromCharCode(118, 105)\n"),
]


@pytest.mark.parametrize(("kind", "source"), REACHING)
def test_scripts_that_reach_for_what_tests_them_are_shown(kind: str, source: str) -> None:
    assert kind in asking(source, name="src/work.ts")


@pytest.mark.parametrize(
    "source",
    [
        "const level = process.env.LOG_LEVEL ?? 'info'\n",
        "const began = Date.now()\nconst late = Date.now() === began\n",
        "// run vitest to test it\nexport const a = 1\n",
        "const path = new URL('https://example.com/test')\n",
        "class A { equals(o) { return this.x === o.x } }\n",
        "Object.defineProperty(this, 'x', { value: 1 })\n",
        "const error = new Error('x'); log(error.message)\n",
        "process.on('SIGINT', stop)\n",
        "if (require.main === module) main()\nif (!module.parent) main()\nif (require.main !== module) ready()\n",
        "process.exitCode = 1\nprocess.exitCode = failed ? 1 : 0\nprocess.kill(child.pid)\n",
        "const names = Object.keys(process.env).filter((k) => k.startsWith('NODE_'))\n",
        "const fs = require('node:fs')\nconst text = fs.readFileSync(path)\nconst same = fs.constants === text\n",
        "const settings = require('./settings')\nsettings.level = 3\n",
        "process.stdout.write('done\\n')\nprocess.exit(main())\n",
        "const port = 443\nconst latest = 'latest'\n",
    ],
)
def test_honest_scripts_are_no_question(source: str) -> None:
    assert asking(source, name="src/work.js") == []
