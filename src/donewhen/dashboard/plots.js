/* Charts, drawn for the width of a phone. Each has a text alternative. */

const PLOT = 420;

function figure(title, caption, drawn, height, label) {
  return h("figure", {}, h("figcaption", {}, title), caption && h("p", {}, caption),
    drawn ? s("svg", { viewBox: `0 0 ${PLOT} ${height}`, role: "img", "aria-label": `${title}. ${label}` }, drawn)
      : h("p", { class: "nothing" }, label));
}

const label = (x, y, text, anchor, kind) => s("text", { x, y, "text-anchor": anchor ?? "start", class: kind }, text);
const key = (tone, text) => h("span", { class: `key t-${tone}` }, h("i", { "aria-hidden": "true" }), text);

function drawNumbers(place, jobs, wanted) {
  const job = wanted.job ? jobOf(wanted.job) : undefined;
  filled(place, h("div", { class: "plots" },
    burnDown(jobs), job ? scoresOf(job) : recentScores(jobs), distribution(jobs), closedOf(jobs), iterations(jobs), hours(jobs)));
}

/* The time axis, from the first to the last time; a single time is centred. */
function along(times, left, right) {
  const first = Math.min(...times), last = Math.max(...times);
  return (time) => (last === first ? (left + right) / 2 : left + (right - left) * (time - first) / (last - first));
}

function ends(times, x, y) {
  const first = Math.min(...times), last = Math.max(...times);
  const text = (time) => new Date(time).toISOString().slice(0, 16).replace("T", " ");
  if (first === last) return [label(x(first), y, text(first), "middle", "soft")];
  return [label(x(first), y, text(first), "start", "soft"), label(x(last), y, text(last), "end", "soft")];
}

const timeOf = (text) => Date.parse(text);

function burnDown(jobs) {
  const steps = [];
  const counted = jobs.filter((job) => job.status !== "cancelled");
  for (const job of counted) {
    let done = false;
    for (const move of job.moves) {
      const time = timeOf(move.at);
      if (Number.isNaN(time) || (move.status === "done") === done) continue;
      done = !done;
      steps.push([time, done ? -1 : 1]);
    }
  }
  const title = "Open jobs over time";
  if (!steps.length) return figure(title, undefined, undefined, 0, "No job has been completed yet.");
  steps.sort((a, b) => a[0] - b[0]);
  const newest = BOARD.events.length ? timeOf(BOARD.events[BOARD.events.length - 1].at) : steps[steps.length - 1][0];
  const begun = counted.flatMap((job) => [job.started_at, job.moves[0]?.at]).map(timeOf).filter((time) => !Number.isNaN(time));
  const from = begun.reduce((a, b) => Math.min(a, b), steps[0][0]), to = Math.max(newest || 0, steps[steps.length - 1][0]);
  const left = 40, right = PLOT - 12, top = 12, bottom = 172;
  const most = counted.length || 1;
  const x = along([from, to], left, right), y = (value) => bottom - (bottom - top) * value / most;
  let open = counted.length;
  const points = [`M${x(from).toFixed(1)} ${y(open).toFixed(1)}`];
  for (const [time, step] of steps) { open += step; points.push(`H${x(time).toFixed(1)}V${y(open).toFixed(1)}`); }
  points.push(`H${x(to).toFixed(1)}`);
  const drawn = [ticks(most).map((value) => [s("line", { class: "grid", x1: left, x2: right, y1: y(value), y2: y(value) }), label(left - 8, y(value) + 4, String(value), "end", "soft")]),
    s("g", { class: "t-now" }, s("path", { class: "stroke", d: points.join("") })), ends([from, to], x, bottom + 18)];
  return figure(title, `${open} of ${count(counted.length, "job")} open; cancelled jobs are not counted`, drawn, bottom + 26, `${open} open of ${counted.length}`);
}

/* At most five round values on a scale from zero. */
function ticks(most) {
  const rough = most / 4, power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = Math.max(1, [1, 2, 5, 10].map((factor) => factor * power).find((value) => value >= rough) ?? power);
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, at) => at * step);
}

const TONES = { completed: "good", refused: "bad", evaluated: "now" };

function scatter(title, caption, points, target) {
  const left = 40, right = PLOT - 12, top = 12, bottom = 172;
  const timed = points.filter((point) => !Number.isNaN(timeOf(point.at)));
  if (!timed.length) return figure(title, undefined, undefined, 0, "The gates have not been evaluated yet: donewhen complete JOB evaluates them.");
  const times = timed.map((point) => timeOf(point.at));
  const x = along(times, left + 6, right - 6), y = (score) => bottom - (bottom - top) * Math.max(0, Math.min(100, score)) / 100;
  const line = target === undefined ? undefined
    : s("g", { class: "t-now" }, s("path", { class: "stroke", "stroke-opacity": ".5", d: timed.map((point, at) => `${at ? "L" : "M"}${x(timeOf(point.at)).toFixed(1)} ${y(point.score).toFixed(1)}`).join("") }));
  const drawn = [[0, 25, 50, 75, 100].map((value) => [s("line", { class: "grid", x1: left, x2: right, y1: y(value), y2: y(value) }), label(left - 8, y(value) + 4, String(value), "end", "soft")]),
    target !== undefined && [s("line", { class: "target", x1: left, x2: right, y1: y(target), y2: y(target) }), label(right, y(target) - 5, `target ${target}`, "end", "soft")], line,
    timed.map((point) => s("g", { class: `t-${TONES[point.what] ?? "base"}` }, s("circle", { class: "fill", cx: x(timeOf(point.at)).toFixed(1), cy: y(point.score).toFixed(1), r: timed.length > 60 ? 3 : 4.5, "fill-opacity": ".8" },
      s("title", {}, `${point.job ? `${point.job}: ` : ""}${point.score}, ${point.what} ${when(point.at)}`)))), ends(times, x, bottom + 18)];
  const last = timed[timed.length - 1];
  return figure(title, caption, drawn, bottom + 26, `${count(timed.length, "score")}, the newest ${last.score}`);
}

const kinds = () => [key("good", "completed"), key("bad", "refused"), key("now", "evaluated")];

function scoresOf(job) {
  return scatter(`Scores of ${job.id}`, kinds(), job.scores, job.target);
}

function recentScores(jobs) {
  const all = jobs.flatMap((job) => job.scores.map((score) => ({ ...score, job: job.id }))).sort((a, b) => a.at.localeCompare(b.at) || a.job.localeCompare(b.job));
  const newest = all.slice(-300);
  return scatter("Scores over time", [kinds(), all.length > newest.length ? `the newest ${newest.length} of ${all.length}` : ""], newest);
}

function distribution(jobs) {
  const scored = jobs.filter((job) => job.score !== null);
  const title = "Distribution of scores";
  if (!scored.length) return figure(title, undefined, undefined, 0, "No job has a score yet.");
  const tens = Array.from({ length: 10 }, () => [0, 0]);
  for (const job of scored) tens[Math.max(0, Math.min(9, Math.floor(job.score / 10)))][job.score >= job.target ? 0 : 1] += 1;
  const left = 34, right = PLOT - 8, top = 18, bottom = 160, most = Math.max(...tens.map(([a, b]) => a + b));
  const wide = (right - left) / 10, tall = (value) => (bottom - top) * value / most;
  const drawn = [s("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }), tens.map(([reached, below], at) => {
    const x = left + at * wide;
    return [s("g", { class: "t-warn" }, s("rect", { class: "fill", x: x + 3, y: bottom - tall(below), width: wide - 6, height: tall(below) })),
      s("g", { class: "t-good" }, s("rect", { class: "fill", x: x + 3, y: bottom - tall(below) - tall(reached), width: wide - 6, height: tall(reached) })),
      reached + below > 0 && label(x + wide / 2, bottom - tall(reached + below) - 5, String(reached + below), "middle"),
      label(x + wide / 2, bottom + 17, at === 9 ? "90+" : String(at * 10), "middle", "soft")];
  })];
  const good = scored.filter((job) => job.score >= job.target).length;
  return figure(title, [key("good", "target reached"), key("warn", "below the target")], drawn, bottom + 26, `${good} of ${count(scored.length, "job")} with a score reached the target`);
}

function rows(title, caption, lines, none) {
  if (!lines.length) return figure(title, undefined, undefined, 0, none);
  const step = 30, left = 128, right = PLOT - 96;
  const most = Math.max(1, ...lines.map((line) => line.most));
  const drawn = lines.map((line, at) => {
    const y = 6 + at * step;
    let x = left;
    const parts = line.parts.map(([value, tone]) => {
      const wide = (right - left) * value / most;
      const part = s("g", { class: `t-${tone}` }, s("rect", { class: "fill", x, y: y + 4, width: wide, height: 14, rx: 2 }));
      x += wide;
      return part;
    });
    const name = s("text", { x: 0, y: y + 16 }, short(line.name, 18), s("title", {}, line.full ?? line.name));
    return [line.job ? s("a", { href: address({ job: line.job }) }, name) : name, parts,
      line.limit !== undefined && s("line", { class: "axis", x1: left + (right - left) * line.limit / most, x2: left + (right - left) * line.limit / most, y1: y + 1, y2: y + 21 }),
      label(PLOT, y + 16, line.says, "end", "soft")];
  });
  return figure(title, caption, drawn, 10 + step * lines.length, lines.map((line) => `${line.name} ${line.says}`).join("; "));
}

function closedOf(jobs) {
  const open = jobs.filter((job) => isOpen(job) && job.gates.length);
  const lines = GATES.map((name) => {
    const number = open.filter((job) => closedGates(job).some((gate) => gate.gate === name)).length;
    return { name, parts: [[number, "bad"]], most: open.length, says: `${number} closed` };
  });
  return rows("Gates of open jobs, last evaluation", open.length ? `of ${count(open.length, "evaluated job")}` : undefined,
    open.length ? lines : [], "No gate of an open job has been evaluated yet.");
}

function iterations(jobs) {
  const begun = jobs.filter((job) => job.iteration > 0 && job.status !== "cancelled");
  const nearest = [...begun].sort((a, b) => (b.iteration / (b.max_iterations || 1)) - (a.iteration / (a.max_iterations || 1)) || b.iteration - a.iteration || a.id.localeCompare(b.id)).slice(0, 8);
  const wanted = jobs.filter((job) => job.status !== "cancelled");
  const used = wanted.reduce((sum, job) => sum + job.iteration, 0), allowed = wanted.reduce((sum, job) => sum + job.max_iterations, 0);
  return rows("Budget: iterations used", [`${used.toLocaleString("en")} of ${allowed.toLocaleString("en")} in total; `, begun.length > nearest.length ? `the ${nearest.length} nearest to their limit` : "the line is the limit"],
    nearest.map((job) => ({ name: job.id, full: `${job.id}: ${job.title}`, job: job.id, most: Math.max(job.iteration, job.max_iterations), limit: job.max_iterations,
      parts: [[job.iteration, job.iteration > job.max_iterations ? "bad" : job.iteration === job.max_iterations ? "warn" : "now"]], says: `${job.iteration} of ${job.max_iterations}` })),
    "No iterations used yet: only refused completions and restarts count.");
}

function hours(jobs) {
  const groups = new Map();
  const grouping = jobs.some((job) => job.workstream) ? (job) => [job.workstream, job.workstream_title || job.workstream] : (job) => [job.stakes, `${job.stakes} stakes`];
  for (const job of jobs) {
    if (job.status === "cancelled") continue;
    const [name, title] = grouping(job);
    if (!groups.has(name)) groups.set(name, { name: title || "none", done: 0, open: 0 });
    groups.get(name)[job.status === "done" ? "done" : "open"] += job.estimate_hours;
  }
  const round = (value) => (Math.round(value * 10) / 10).toLocaleString("en");
  const order = [...groups].sort((a, b) => STAKES.indexOf(a[0]) - STAKES.indexOf(b[0]) || String(a[0]).localeCompare(b[0])).map(([, group]) => group);
  const lines = order.slice(0, 12).map((group) => ({ name: group.name, most: group.done + group.open, parts: [[group.done, "good"], [group.open, "base"]],
    says: `${round(group.done)} of ${round(group.done + group.open)} h` }));
  return rows("Estimated hours", [key("good", "done"), key("base", "open"), order.length > 12 ? `12 of ${order.length}` : ""], lines, "There are no jobs to count.");
}
