// Loaded before everything else by `node --test` and by the processes that it starts, one for each file. Adds tests of
// the gate to each file, and tells the gate how each test ended. What the processes report to `node --test` goes through
// their standard output, and what is about the tests of the gate is taken out there.
"use strict";
const { createHmac } = require("node:crypto");
const fs = require("node:fs");
const { join } = require("node:path");

const KEY_SIZE = 32;
const NUMBER_SIZE = 4;
const PAUSE = new Int32Array(new SharedArrayBuffer(4));
const TITLE = /\b(?:test|it|describe|suite)\s*(?:\.\s*\w+\s*)?\(\s*(?:"([^"\\\n]+)"|'([^'\\\n]+)'|`([^`\\$\n]+)`)/g;
const WORDS = "empty single large unknown default repeated missing simple given nested mixed other valid first last".split(" ");
const OWN_EVENTS = new Set(["enqueue", "dequeue", "complete", "start", "pass", "fail"].map((name) => `test:${name}`));
const TELLING = ["test:pass", "test:fail", "test:plan", "test:summary"];
const FAILING = `(assert, LEFT, RIGHT, WORD) => {
  const result = [LEFT, { name: WORD }];
  assert.deepStrictEqual(result, [RIGHT, { name: WORD }]);
}`;
// A test that passes if each assertion can fail. Without a message, node would read the file and parse it.
const PASSING = `(assert, LEFT, RIGHT, WORD) => {
  for (const [method, ...values] of [
    ["equal", LEFT, RIGHT], ["strictEqual", LEFT, RIGHT], ["strictEqual", WORD, ""], ["ok", false, WORD], ["notEqual", LEFT, LEFT],
    ["notStrictEqual", WORD, WORD], ["deepEqual", [LEFT], [RIGHT]], ["deepStrictEqual", { a: LEFT }, {}],
    ["notDeepStrictEqual", [WORD], [WORD]], ["notDeepEqual", [WORD], [WORD]], ["match", WORD, /^$/],
    ["doesNotMatch", WORD, /./], ["throws", () => {}], ["doesNotThrow", () => { throw new Error(WORD); }], ["fail", WORD],
    ["ifError", new Error(WORD)], ["", 0, WORD],
  ]) {
    for (const set of [assert, assert.strict]) {
      let refused = false;
      try {
        if (method === "") set(...values);
        else set[method](...values);
      } catch {
        refused = true;
      }
      if (!refused) throw new TypeError(method);
    }
  }
  assert.deepStrictEqual([LEFT, { name: WORD }], [LEFT, { name: WORD }]);
}`;

class Stream {
  constructor(descriptor, inode) {
    this.descriptor = descriptor;
    this.inode = inode;
    this.sent = 0;
    const key = Buffer.alloc(KEY_SIZE);
    this.key = this.isOpen() && fs.readSync(descriptor, key) === KEY_SIZE ? key : null;
  }

  isOpen() {
    // A test may have closed it, and then the number can be that of another file.
    try {
      const found = fs.fstatSync(this.descriptor);
      return found.isSocket() && found.ino === this.inode;
    } catch {
      return false;
    }
  }

  sealed(text) {
    return this.createHmac("sha256", this.key).update(text).digest("hex").slice(0, 16);
  }

  send(...fields) {
    if (!this.isOpen()) return;
    const number = this.key.readUInt32BE(0);
    const text = `${number} ${this.sent++} ${Buffer.from(fields.map((field) => field.slice(0, 1000)).join("\0")).toString("hex")}`;
    const data = Buffer.from(`${text} ${this.sealed(text)}\n`);
    for (let start = 0; start < data.length; ) {
      try {
        start += this.writeSync(this.descriptor, data, start);
      } catch (error) {
        if (error.code !== "EAGAIN") return;
        Atomics.wait(PAUSE, 0, 0, 1);
      }
    }
  }

  // Kept as they are now: the work can replace those of the modules.
  createHmac = createHmac;
  writeSync = fs.writeSync;
}

// What `node --test` runs in each file.

class FileRun {
  constructor(stream, file, options) {
    const { AsyncResource } = require("node:async_hooks");
    this.v8 = require("node:v8");
    this.vm = require("node:vm");
    this.root = new AsyncResource("Immediate");
    // What the file gets if it asks for a module.
    this.require = require("node:module").createRequire(file);
    this.stream = stream;
    this.file = file;
    this.options = options;
    this.drawn = 0;
    this.events = 0;
    this.controls = new Map();
    this.ended = 0;
    this.isStarted = false;
  }

  below(limit) {
    return Number.parseInt(this.stream.sealed(`draw ${this.drawn++}`).slice(0, 8), 16) % limit;
  }

  from(things) {
    return things[this.below(things.length)];
  }

  // Say which tests must fail and which must pass, before the work can say anything.
  announce() {
    const text = fs.readFileSync(this.file, "utf8");
    this.stream.send("file", this.file);
    if (!/["'](?:node:)?test["']/.test(text)) return;
    const titles = [...text.matchAll(TITLE)].map((match) => match[1] ?? match[2] ?? match[3]);
    this.lines = text.split("\n").length;
    for (const must of ["fail", "pass"].sort(() => this.below(3) - 1)) {
      const name = this.nameLike(titles);
      if (name === "") {
        for (const other of this.controls.keys()) this.controls.delete(other);
        if (this.isNamePattern()) this.stream.send("none", "no name fits the pattern for names");
        return;
      }
      this.controls.set(name, must);
    }
    for (const [name, must] of this.controls) this.stream.send("control", name, must);
  }

  isNamePattern() {
    return this.options.patterns.length + this.options.skipped.length > 0;
  }

  nameLike(titles) {
    const { patterns, skipped } = this.options;
    for (let tries = 0; tries < 40; tries++) {
      const title = titles.length ? this.from(titles) : this.from(WORDS);
      const words = [this.from(WORDS), this.from(WORDS)].join(" ");
      const name = this.from([`${title} ${words}`, `${words} ${title}`, `${title} (${words})`]);
      const fits = (pattern) => pattern.test(name);
      const selected = (!patterns.length || patterns.some(fits)) && !skipped.some(fits);
      if (selected && !this.controls.has(name) && !titles.includes(name)) return name;
    }
    return "";
  }

  start() {
    this.isStarted = true;
    const [left, word] = [1 + this.below(90), this.from(WORDS)];
    const right = left + 1 + this.below(9);
    const own = this;
    this.root.runInAsyncScope(() => {
      const assert = own.require("node:assert");
      const { test } = own.require("node:test");
      for (const [name, must] of own.controls) {
        const body = must === "fail" ? FAILING : PASSING;
        const code = `(test, assert, LEFT, RIGHT, WORD, NAME, OPTIONS) => test(NAME, OPTIONS, () => (${body})(assert, LEFT, RIGHT, WORD))`;
        const place = { filename: own.file, lineOffset: own.below(own.lines) };
        // A failure of what is still to do leaves the exit status as it is.
        const options = own.options.only ? { todo: true, only: true } : { todo: true };
        own.vm.runInThisContext(code, place)(test, assert, left, right, word, name, options);
      }
    });
  }

  // The parts of what is written that are left, if there are messages in it.
  filtered(chunk) {
    const parts = [];
    let position = 0;
    while (position < chunk.length) {
      const end = chunk.length - position < 6 ? Infinity : position + 6 + chunk.readUInt32BE(position + 2);
      if (chunk[position] !== 0xff || chunk[position + 1] !== 0x0f || end > chunk.length) return null;
      if (this.isPlain(chunk, position, end)) {
        parts.push(chunk.subarray(position, end));
        position = end;
        continue;
      }
      const reader = new this.v8.DefaultDeserializer(chunk.subarray(position + 6, end));
      reader.readHeader();
      const event = reader.readValue();
      const what = this.note(event);
      if (what === "changed") parts.push(this.message(event));
      else if (what === "project") parts.push(chunk.subarray(position, end));
      position = end;
    }
    return Buffer.concat(parts);
  }

  // Whether a message says nothing that matters here, so that it need not be read.
  isPlain(chunk, start, end) {
    if (!this.isStarted || this.ended) return false;
    const message = chunk.subarray(start, end);
    return !TELLING.some((text) => message.includes(text)) && ![...this.controls.keys()].some((name) => message.includes(name));
  }

  message(event) {
    const writer = new this.v8.DefaultSerializer();
    writer.writeHeader();
    writer.writeRawBytes(Buffer.alloc(4));
    writer.writeHeader();
    writer.writeValue(event);
    const content = writer.releaseBuffer();
    content.writeUInt32BE(content.length - 6, 2);
    return content;
  }

  note({ type, data }) {
    const done = this.ended;
    if (data.nesting === 0 && this.controls.has(data.name) && OWN_EVENTS.has(type)) {
      if (type === "test:pass" || type === "test:fail") {
        this.ended += 1;
        const isSkipped = data.skip !== undefined && data.skip !== false;
        this.stream.send("ended", data.name, "call", isSkipped ? "skipped" : type === "test:pass" ? "passed" : "failed");
      }
      return "own";
    }
    this.events += 1;
    if (type === "test:pass" || type === "test:fail") this.sendOutcome(type, data);
    if (!this.isStarted && this.controls.size) this.start();
    if (done === 0) return "project";
    if (type === "test:plan" && data.nesting === 0) data.count -= done;
    else if (type === "test:summary") {
      const { counts } = data;
      counts.tests -= done;
      counts.topLevel -= done;
      counts.todo -= done;
    } else if (data.nesting === 0 && typeof data.testNumber === "number") data.testNumber -= done;
    else return "project";
    return "changed";
  }

  sendOutcome(type, data) {
    const isLeft = [data.skip, data.todo].some((value) => value !== undefined && value !== false);
    const outcome = isLeft ? "skipped" : type === "test:pass" ? "passed" : "failed";
    if (data.details?.type === "suite" && outcome !== "failed") return;
    this.stream.send("test", `${this.events} ${data.name}`, "call", outcome);
  }

  watch() {
    const out = process.stdout;
    const { write } = out;
    const own = this;
    out.write = function (chunk, ...rest) {
      if (!Buffer.isBuffer(chunk) || chunk[0] !== 0xff) return write.call(this, chunk, ...rest);
      const left = own.filtered(chunk);
      return write.call(this, left ?? chunk, ...rest);
    };
    process.once("beforeExit", () => {
      // No test has started: whoever ends the process must not say so.
      if (!this.isStarted && this.controls.size) this.start();
    });
    process.once("exit", (code) => {
      if (code === 0 && !this.events) this.stream.send("test", "(file)", "call", "passed");
    });
  }
}

function values(name) {
  const found = [];
  for (const [place, word] of process.execArgv.entries()) {
    if (word === name) found.push(process.execArgv[place + 1] ?? "");
    else if (word.startsWith(`${name}=`)) found.push(word.slice(name.length + 1));
  }
  return found;
}

function pattern(text) {
  const match = /^\/(.*)\/([a-z]*)$/s.exec(text);
  return match ? new RegExp(match[1], match[2].replace("g", "")) : new RegExp(text);
}

function optionsOf() {
  return {
    patterns: values("--test-name-pattern").map(pattern),
    skipped: values("--test-skip-pattern").map(pattern),
    only: process.execArgv.includes("--test-only"),
  };
}

// Programs that tests start get the variables that they would have had.
function leaveEnvironment() {
  const own = `--require ${__filename}`;
  const options = process.env.NODE_OPTIONS;
  if (options?.startsWith(own)) setOrDelete("NODE_OPTIONS", options.slice(own.length).trim());
  const paths = process.env.PYTHONPATH?.split(":");
  const folder = join(__dirname, "..");
  if (paths?.includes(folder)) setOrDelete("PYTHONPATH", paths.filter((path) => path !== folder).join(":"));
}

function setOrDelete(name, value) {
  if (value) process.env[name] = value;
  else delete process.env[name];
}

function start() {
  const context = process.env.NODE_TEST_CONTEXT;
  const isRunner = context === undefined && process.execArgv.includes("--test");
  if (!(isRunner || context === "child-v8") || !require("node:worker_threads").isMainThread) return;
  const [descriptor, inode] = fs.readFileSync(join(__dirname, "..", "channel.txt"), "utf8").split(" ").map(Number);
  let stream;
  try {
    stream = new Stream(descriptor, inode);
  } catch {
    return;
  }
  if (stream.key === null) return;
  if (isRunner) {
    stream.send("start", `node ${process.version}`);
    if ([...values("--test-isolation"), ...values("--experimental-test-isolation")].includes("none")) {
      stream.send("none", "the tests run in the process of the test runner");
    }
    process.once("exit", (code) => stream.send("end", String(code)));
    return;
  }
  const options = optionsOf();
  // Programs that tests start get the options that they would have had.
  const place = process.execArgv.findIndex((word, index) => word === "--require" && process.execArgv[index + 1] === __filename);
  if (place >= 0) process.execArgv.splice(place, 2);
  leaveEnvironment();
  delete require.cache[__filename];
  const run = new FileRun(stream, process.argv[1], options);
  run.announce();
  run.watch();
}

try {
  start();
} catch {
  // Without controls, the gate says so.
}
