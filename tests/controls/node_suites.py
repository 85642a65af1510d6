"""A small project with tests for node's own runner, honest and with work that forges what they say."""

from __future__ import annotations

RIGHT = "exports.add = (a, b) => a + b;\n"
WRONG = "exports.add = (a, b) => a - b;\n"
TESTS = """\
const { describe, it, test } = require("node:test");
const { add } = require("./app");
const assert = require("node:assert");

test("adds small numbers", () => assert.equal(add(1, 2), 3));
test("adds nothing", async (t) => {
  await t.test("to one", () => assert.deepStrictEqual([add(1, 0)], [1]));
});
describe("large numbers", () => {
  it("are added", () => assert.strictEqual(add(1e9, 1), 1000000001));
  it("are skipped", { skip: true }, () => assert.fail());
  it("are still to do", { todo: true }, () => assert.fail());
});
"""
MODULE_TESTS = """\
import assert from "node:assert/strict";
import { test } from "node:test";
import { add } from "./app.mjs";

test("adds numbers of modules", () => assert.equal(add(1, 2), 3));
"""
FILES = {"app.js": RIGHT, "app.test.js": TESTS}
_EVENTS = """
const v8 = require("node:v8");
const eventsOf = (chunk) => {
  const events = [];
  for (let at = 0; at < chunk.length; ) {
    const end = at + 6 + chunk.readUInt32BE(at + 2);
    const reader = new v8.DefaultDeserializer(chunk.subarray(at + 6, end));
    reader.readHeader();
    events.push(reader.readValue());
    at = end;
  }
  return events;
};
const messageOf = (event) => {
  const writer = new v8.DefaultSerializer();
  writer.writeHeader(); writer.writeRawBytes(Buffer.alloc(4)); writer.writeHeader(); writer.writeValue(event);
  const content = writer.releaseBuffer();
  content.writeUInt32BE(content.length - 6, 2);
  return content;
};
"""
FORGED = {
    "assertions": """
const assert = require("node:assert");
const names = Object.keys(assert).filter((name) => typeof assert[name] === "function" && name !== "strict");
for (const name of names) assert[name] = () => {};
""",
    "one assertion": 'require("node:assert").equal = () => {};\n',
    "what runs a test": """
const runner = require("node:test");
const { test } = runner;
runner.test = (name, ...rest) => test(name, () => {});
""",
    "what is loaded": """
const Module = require("node:module");
const load = Module._load;
Module._load = function (name, parent, ...rest) {
  const found = load.call(this, name, parent, ...rest);
  if (name !== "node:assert" || !parent.filename.endsWith("app.test.js")) return found;
  return new Proxy(found, { get: () => () => {} });
};
""",
    "what is written": _EVENTS
    + """
const { write } = process.stdout;
process.stdout.write = function (chunk, ...rest) {
  if (typeof chunk === "string" || chunk[0] !== 0xff) return write.call(this, chunk, ...rest);
  const events = eventsOf(chunk);
  for (const { type, data } of events) if (data.details) delete data.details.error;
  for (const event of events) if (event.type === "test:fail") event.type = "test:pass";
  return write.call(this, Buffer.concat(events.map(messageOf)), ...rest);
};
process.on("exit", () => { process.exitCode = 0; });
""",
    "what is written, below": _EVENTS
    + """
const handle = process.stdout._handle;
const pass = (chunk) => {
  const events = eventsOf(chunk);
  const failures = events.filter((event) => event.type === "test:fail");
  for (const event of failures) { event.type = "test:pass"; delete event.data.details.error; }
  return Buffer.concat(events.map(messageOf));
};
const { writeBuffer, writev } = handle;
handle.writeBuffer = function (request, chunk) { return writeBuffer.call(this, request, pass(chunk)); };
handle.writev = function (request, chunks, all) {
  return writev.call(this, request, chunks.map((chunk) => (all ? pass(chunk) : chunk)), all);
};
process.on("exit", () => { process.exitCode = 0; });
""",
    "what is serialised": """
const { DefaultSerializer } = require("node:v8");
const { writeValue } = DefaultSerializer.prototype;
DefaultSerializer.prototype.writeValue = function (event) {
  if (event.type === "test:fail") event.type = "test:pass";
  return writeValue.call(this, event);
};
process.on("exit", () => { process.exitCode = 0; });
""",
    "a report of its own, and the end": _EVENTS
    + """
const file = __filename.replace("app.js", "app.test.js");
const details = { duration_ms: 1, type: "test" };
for (const [index, name] of ["adds small numbers", "adds nothing"].entries())
  for (const type of ["test:start", "test:pass"]) {
    const data = { name, nesting: 0, testNumber: index + 1, details, file, line: 1, column: 1 };
    require("fs").writeSync(1, messageOf({ type, data }));
  }
process.reallyExit(0);
""",
    "the end": "process.exit(0);\n",
    "the end, while tests run": "exports.add = () => process.exit(0);\n",
    "the end, at the end": 'process.on("exit", () => process.reallyExit(0));\nexports.add = () => process.exit(0);\n',
    "the end, without handlers": "exports.add = () => { process.removeAllListeners(); process.reallyExit(0); };\n",
    "the end of the loop, said": """
exports.add = () => { process.emit("beforeExit", 0); process.removeAllListeners("exit"); process.reallyExit(0); };
""",
    "the stream to the gate": """
const fs = require("node:fs");
for (let number = 3; number < 100; number++) {
  try { if (fs.fstatSync(number).isSocket()) fs.writeSync(number, "passed\\n"); } catch {}
}
""",
    "the stream to the gate, closed": """
const fs = require("node:fs");
for (let number = 50; number < 100; number++) {
  try { if (fs.fstatSync(number).isSocket()) fs.closeSync(number); } catch {}
}
exports.add = () => process.exit(0);
""",
    "the hooks of tests": """
const { beforeEach } = require("node:test");
beforeEach((t) => { t.skip(); });
""",
}


def with_add(forgery: str) -> str:
    """A forgery, with wrong work beside it if it has none."""
    return forgery if "exports.add" in forgery else f"{forgery}\n{WRONG}"
