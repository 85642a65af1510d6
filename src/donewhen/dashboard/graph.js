/* The dependency graph: layers from left to right, so that every arrow points forwards. */

const MOST = 80;
const WIDE = 190, TALL = 46, GAP_X = 70, GAP_Y = 16, EDGE = 12;

function drawGraph(place, jobs, wanted) {
  const near = wanted.job && jobOf(wanted.job) ? around(wanted.job) : undefined;
  const linked = (near ?? jobs).filter((job) => job.depends_on.length || NEEDED_BY.has(job.id));
  const picked = near ? linked.slice(0, MOST) : [...linked].sort((a, b) => weight(b) - weight(a)).slice(0, MOST);
  const names = new Set(picked.map((job) => job.id));
  const nodes = linked.filter((job) => names.has(job.id));
  const notes = [];
  if (near) notes.push(h("p", { class: "note" }, "Only the dependencies of ", h("code", {}, wanted.job), " and the jobs that depend on it. ", h("a", { href: address({ job: "" }) }, "Show all")));
  if (linked.length > nodes.length) notes.push(h("p", { class: "note" },
    `${count(linked.length, "job")} with dependencies; ${nodes.length} are drawn, ${near ? "the nearest" : "open ones"} first. Search, filter or open a job to see others.`));
  const circle = inCircles();
  if (circle.length) notes.push(h("p", { class: "note serious" }, "These jobs depend on each other in a cycle, so none can start: ", listed(circle)));
  const lost = [...new Set(JOBS.flatMap((job) => job.depends_on.filter((name) => !jobOf(name))))];
  if (lost.length) notes.push(h("p", { class: "note serious" }, "Missing dependencies: ", h("span", { dir: "auto" }, short(lost.slice(0, 12).join(", "), 400)), lost.length > 12 ? " and more" : ""));
  if (!nodes.length) {
    const message = jobs.length ? "None of these jobs depends on another." : "No matching jobs.";
    filled(place, notes, h("p", { class: "nothing" }, message));
    return;
  }
  filled(place, notes,
    h("p", { class: "legend about" }, "Arrows point from a job to the jobs that depend on it.",
      STATUSES.map((name) => h("span", { class: `status s-${name}` }, `${MARKS[name]} ${words(name)}`))),
    h("div", { class: "graph", tabindex: "0", role: "region", "aria-label": "Dependency graph" }, svgOf(nodes, wanted)));
}

/* Open jobs with open neighbours come first. */
const weight = (job) => (isOpen(job) ? 2 : 0) + ([...job.depends_on, ...(NEEDED_BY.get(job.id) ?? [])].some((name) => jobOf(name) && isOpen(jobOf(name))) ? 1 : 0);
const listed = (names) => [names.slice(0, 12).map((name, at) => [at ? ", " : "", linkTo(name)]), names.length > 12 ? " and more" : ""];

/* All upstream and downstream jobs of a job, the nearest first. */
function around(name) {
  const found = new Map([[name, 0]]);
  for (const next of [(id) => jobOf(id)?.depends_on ?? [], (id) => NEEDED_BY.get(id) ?? []]) {
    let edge = [name];
    for (let far = 1; edge.length; far += 1) {
      edge = edge.flatMap(next).filter((id) => jobOf(id) && !found.has(id) && found.set(id, far));
    }
  }
  return [...found].sort((a, b) => a[1] - b[1]).map(([id]) => jobOf(id));
}

let circles, circlesOf;
function inCircles() {
  if (circlesOf === BOARD) return circles;
  // What is left after repeatedly removing jobs without dependencies and jobs that no other depends on.
  const left = new Map(JOBS.map((job) => [job.id, new Set(job.depends_on.filter(jobOf))]));
  const trim = (edges) => {
    const back = new Map([...edges.keys()].map((name) => [name, []]));
    for (const [name, before] of edges) for (const id of before) back.get(id)?.push(name);
    const free = [...edges].filter(([, before]) => !before.size).map(([name]) => name);
    while (free.length) {
      const name = free.pop();
      edges.delete(name);
      for (const id of back.get(name)) if (edges.get(id)?.delete(name) && !edges.get(id).size) free.push(id);
    }
    return edges;
  };
  trim(left);
  const turned = new Map([...left.keys()].map((name) => [name, new Set()]));
  for (const [name, before] of left) for (const id of before) turned.get(id)?.add(name);
  [circles, circlesOf] = [[...trim(turned).keys()].sort(), BOARD];
  return circles;
}

/* The layer of each job: one more than its highest dependency; a cycle is cut at the first job visited. */
function layersOf(above) {
  const found = new Map();
  for (const first of above.keys()) {
    const stack = [first], path = new Set();
    while (stack.length) {
      const name = stack[stack.length - 1];
      if (found.has(name)) { stack.pop(); continue; }
      path.add(name);
      const waiting = above.get(name).filter((id) => !found.has(id) && !path.has(id));
      if (waiting.length) { stack.push(...waiting); continue; }
      found.set(name, 1 + Math.max(-1, ...above.get(name).map((id) => found.get(id) ?? -1)));
      path.delete(name);
      stack.pop();
    }
  }
  return found;
}

function svgOf(jobs, wanted) {
  const there = new Map(jobs.map((job) => [job.id, job]));
  const lost = new Set(jobs.flatMap((job) => job.depends_on.filter((name) => !jobOf(name))));
  const above = new Map([...[...lost].map((name) => [name, []]),
    ...jobs.map((job) => [job.id, [...new Set(job.depends_on)].filter((name) => there.has(name) || lost.has(name))])]);
  const layer = layersOf(above);
  const rows = [];
  for (const name of above.keys()) (rows[layer.get(name)] ??= []).push(name);
  untangle(rows, above);
  const width = rows.length * (WIDE + GAP_X) - GAP_X + 2 * EDGE;
  const at = placed(rows, above);
  const height = Math.max(...[...at.values()].map((point) => point.y)) + TALL + EDGE;
  const arrows = [...above].flatMap(([name, before]) => before.map((id) => {
    const from = at.get(id), to = at.get(name), back = layer.get(id) >= layer.get(name);
    const x1 = from.x + WIDE, y1 = from.y + TALL / 2, x2 = to.x - 7, y2 = to.y + TALL / 2;
    const bend = back ? 60 : Math.max(30, Math.abs(x2 - x1) / 2);
    const kind = back ? " back" : lost.has(id) ? " lost" : wanted.job && (id === wanted.job || name === wanted.job) ? " lit" : "";
    return s("path", { class: `arrow${kind}`, d: `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`, "marker-end": "url(#tip)" },
      s("title", {}, `${name} depends on ${id}`));
  }));
  const drawn = [...at].map(([name, { x, y }]) => (there.has(name) ? nodeOf(there.get(name), x, y, wanted) : lostNode(name, x, y)));
  return s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `Dependencies of ${count(jobs.length, "job")}` },
    s("defs", {}, s("marker", { id: "tip", viewBox: "0 0 8 8", refX: 6, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto" },
      s("path", { class: "tip", d: "M0 0 L8 4 L0 8 z" }))), arrows, drawn);
}

/* Place each job beside its dependencies, as far as there is room. */
function placed(rows, above) {
  const at = new Map();
  rows.forEach((row, number) => {
    const wish = new Map(row.map((name, place) => {
      const before = above.get(name).filter((id) => at.has(id)).map((id) => at.get(id).y);
      return [name, before.length ? before.reduce((sum, y) => sum + y, 0) / before.length : EDGE + place * (TALL + GAP_Y)];
    }));
    let free = EDGE;
    for (const name of [...row].sort((a, b) => wish.get(a) - wish.get(b))) {
      const y = Math.max(free, wish.get(name));
      at.set(name, { x: EDGE + number * (WIDE + GAP_X), y });
      free = y + TALL + GAP_Y;
    }
  });
  return at;
}

function nodeOf(job, x, y, wanted) {
  return s("a", { class: `node s-${job.status}${job.id === wanted.job ? " chosen" : ""}`, href: address({ job: job.id }), "data-job": job.id },
    s("title", {}, `${job.id}: ${job.title} (${words(job.status)})`),
    s("rect", { x, y, width: WIDE, height: TALL, rx: job.status === "blocked" ? 0 : 6 }),
    s("text", { class: "mark", x: x + 10, y: y + 19 }, MARKS[job.status]),
    s("text", { class: "id", x: x + 27, y: y + 18 }, short(job.id, 22)),
    s("text", { x: x + 10, y: y + 36, direction: "ltr" }, short(job.title, 24)));
}

function lostNode(name, x, y) {
  return s("g", { class: "node lost" }, s("title", {}, `${name} is missing`), s("rect", { x, y, width: WIDE, height: TALL, rx: 6 }),
    s("text", { class: "mark", x: x + 10, y: y + 19 }, "?"), s("text", { class: "id", x: x + 27, y: y + 18 }, short(name, 22)),
    s("text", { x: x + 10, y: y + 36 }, "missing"));
}

/* Move each job to the middle of its neighbours, forwards and backwards a few times. */
function untangle(rows, above) {
  const below = new Map([...above.keys()].map((name) => [name, []]));
  for (const [name, before] of above) for (const id of before) below.get(id).push(name);
  const place = new Map();
  const note = (row) => row.forEach((name, at) => place.set(name, at / row.length));
  rows.forEach(note);
  for (let sweep = 0; sweep < 6; sweep += 1) {
    const near = sweep % 2 ? below : above;
    for (const row of sweep % 2 ? [...rows].reverse() : rows) {
      const wish = new Map(row.map((name) => {
        const others = near.get(name);
        return [name, others.length ? others.reduce((sum, id) => sum + place.get(id), 0) / others.length : place.get(name)];
      }));
      row.sort((a, b) => wish.get(a) - wish.get(b));
      note(row);
    }
  }
}
