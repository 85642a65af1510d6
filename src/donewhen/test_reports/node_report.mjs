// Writes the tests of `node --test` as JUnit XML. Node's own JUnit reporter names neither the file nor the suites of
// a test, so that tests of the same name could not be told apart.
import { relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

const FORBIDDEN = /[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu;
const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;" };

function quoted(text) {
  return `"${String(text).replace(FORBIDDEN, "\uFFFD").replace(/[&<>"\n\r\t]/g, (found) => ENTITIES[found])}"`;
}

function fileOf(data) {
  if (!data.file) return "";
  const path = data.file.startsWith("file:") ? fileURLToPath(data.file) : data.file;
  return relative(process.cwd(), path).split(sep).join("/");
}

function isFile(data, file) {
  return data.nesting === 0 && file !== "" && (data.name === data.file || data.name.split(sep).join("/") === file);
}

function outcome(type, data) {
  if (data.skip !== undefined && data.skip !== false) return "<skipped/>";
  if (data.todo !== undefined && data.todo !== false) return "<skipped/>";
  if (type === "test:pass") return "";
  const error = data.details?.error;
  return `<failure message=${quoted(error?.cause?.message ?? error?.cause ?? error?.message ?? "failed")}/>`;
}

export default async function* (events) {
  const names = [];
  const filesWithTests = new Set();
  yield '<?xml version="1.0" encoding="utf-8"?>\n<testsuites>\n';
  for await (const { type, data } of events) {
    if (type === "test:start") names[data.nesting] = data.name;
    if (type !== "test:pass" && type !== "test:fail") continue;
    const file = fileOf(data);
    let name = [...names.slice(0, data.nesting), data.name].join(" > ");
    const found = outcome(type, data);
    if (isFile(data, file)) {
      // A file with tests is no test itself, unless it fails otherwise than by them.
      if (filesWithTests.has(file) && (found === "" || data.details?.error?.failureType === "subtestsFailed")) continue;
      name = "(file)";
    } else {
      filesWithTests.add(file);
      if (data.details?.type === "suite" && !found.startsWith("<failure")) continue;
    }
    yield `<testcase classname=${quoted(file)} name=${quoted(name)}>${found}</testcase>\n`;
  }
  yield "</testsuites>\n";
}
