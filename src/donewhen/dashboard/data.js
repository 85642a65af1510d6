"use strict";
/* The data, the filters, and helpers that create elements. Values from the data are set as text, never as markup. */

let BOARD, JOBS, NEEDED_BY, SOUGHT;
/* The address of the server that the page came from; undefined where the page is a file. */
const SERVER = document.body.dataset.server;
const STATUSES = ["in_progress", "blocked", "planned", "done", "cancelled"];
const GATES = ["agreement", "budget", "dependency", "truth", "reward"];
const MARKS = { planned: "○", in_progress: "◐", blocked: "■", done: "✓", cancelled: "✕" };
const STAKES = ["low", "normal", "high", "critical"];

const words = (name) => name.replaceAll("_", " ");
const when = (time) => (time ? time.replace("T", " ").replace(/:\d\dZ$/, " UTC") : "");
const count = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
const short = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);
const isOpen = (job) => job.status !== "done" && job.status !== "cancelled";
const byId = (id) => document.getElementById(id);

/* Take over a board: at first the one in the page, later each one that a server sends. */
function load(board) {
  BOARD = board;
  JOBS = Object.values(board.jobs);
  // Dependencies in both directions. A job may depend on itself or on a missing job.
  NEEDED_BY = new Map();
  for (const job of JOBS) for (const name of new Set(job.depends_on)) {
    if (!NEEDED_BY.has(name)) NEEDED_BY.set(name, []);
    NEEDED_BY.get(name).push(job.id);
  }
  SOUGHT = new Map(JOBS.map((job) => [job.id, [
    job.id, job.title, job.next_action, job.blocked_reason, job.workstream, job.workstream_title, job.wave, job.stakes,
    ...closedGates(job).flatMap((gate) => gate.reasons.flatMap((reason) => [reason.code, reason.says])),
  ].join("\n").toLowerCase()]));
}
const jobOf = (name) => (Object.hasOwn(BOARD.jobs, name) ? BOARD.jobs[name] : undefined);
const waitsFor = (job) => [...new Set(job.depends_on)].filter((name) => !jobOf(name) || isOpen(jobOf(name)));
const closedGates = (job) => job.gates.filter((gate) => !gate.open);

/* The filters are part of the address, so that a view can be shared. */
const CHOICES = ["view", "q", "status", "stakes", "workstream", "wave", "gate", "job"];
const VIEWS = ["board", "graph", "numbers", "ledger"];

function chosen() {
  const given = new URLSearchParams(location.hash.slice(1));
  const found = Object.fromEntries(CHOICES.map((name) => [name, (given.get(name) ?? "").slice(0, 200)]));
  if (!VIEWS.includes(found.view)) found.view = "board";
  return found;
}

function address(changes) {
  const wanted = { ...chosen(), ...changes };
  const given = new URLSearchParams();
  for (const name of CHOICES) if (wanted[name] && !(name === "view" && wanted.view === "board")) given.set(name, wanted[name]);
  return `#${given}`;
}

function fits(job, wanted) {
  const sought = wanted.q.toLowerCase().split(/\s+/).filter(Boolean);
  return (!wanted.status || job.status === wanted.status)
    && (!wanted.stakes || job.stakes === wanted.stakes)
    && (!wanted.workstream || job.workstream === wanted.workstream)
    && (!wanted.wave || job.wave === wanted.wave)
    && (!wanted.gate || closedGates(job).some((gate) => gate.gate === wanted.gate))
    && sought.every((word) => SOUGHT.get(job.id).includes(word));
}

/* Elements */
function made(element, given, children) {
  for (const [name, value] of Object.entries(given ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [kind, act] of Object.entries(value)) element.addEventListener(kind, act);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child !== undefined && child !== null && child !== false) element.append(child);
  }
  return element;
}
const h = (tag, given, ...children) => made(document.createElement(tag), given, children);
const s = (tag, given, ...children) => made(document.createElementNS("http://www.w3.org/2000/svg", tag), given, children);
const filled = (element, ...children) => { element.replaceChildren(...children.flat(Infinity).filter((child) => child)); return element; };

const statusOf = (name) => h("span", { class: `status s-${name}` }, h("i", { class: "dot", "aria-hidden": "true" }), words(name));
const tag = (text, kind) => h("span", { class: `tag ${kind}` }, text);
const foreign = (text, given) => h("span", { dir: "auto", ...given }, text);
const pageOf = (job) => `${SERVER}/jobs/${encodeURIComponent(job.id)}`;
const linkTo = (name, text) => h("a", { href: address({ job: name }), dir: "auto" }, text ?? name);

function tagsOf(job) {
  return [
    job.stakes !== "normal" && tag(job.stakes, `k-${job.stakes}`),
    job.agreement !== "agreed" && tag(job.agreement, `a-${job.agreement}`),
    job.tampered.length > 0 && h("span", { class: "tag k-tampered", title: `Edited by hand: ${job.tampered.join(", ")}` }, "tampered"),
  ].filter(Boolean);
}

function bar(score, target) {
  const filling = h("i"), mark = h("u", { title: `target ${target}` });
  filling.style.width = `${Math.max(0, Math.min(100, score))}%`;
  mark.style.left = `calc(${Math.max(0, Math.min(100, target))}% - 1px)`;
  return h("span", { class: "bar", "aria-hidden": "true" }, filling, mark);
}

/* The next step as a sentence. The state and its command come with the data; the words for them stand here. */
const STATE_TEXTS = {
  record_broken: "The ledger of this job is broken", tampered: "Fields were edited by hand", cancelled: "",
  voided: "The agreed terms have changed: a person has to review them", not_agreed: "A person has to agree to it", done: "",
  out_of_budget: "All iterations are used up: a person has to decide", blocked: "Blocked: a person has to resolve it",
  asked: "A person has to answer", disputed: "Disputed: a person has to decide", ready: "Ready to start",
  needs_person: "A person has to decide about a verdict", no_longer_done: "The completion is no longer valid",
};

function nextOf(job) {
  const before = job.state === "waiting" ? waitsFor(job) : [];
  if (before.length) return `Waits for ${before.slice(0, 3).join(", ")}${before.length > 3 ? ` and ${before.length - 3} more` : ""}`;
  return STATE_TEXTS[job.state] ?? (job.next_action.replace(/ \(next: .*\)$/, "") || job.next_command);
}
