/* The board: a column per status with a limited number of cards, and a button for more. */

const AT_FIRST = 24;
const shownIn = new Map();
let boardOf = "";

function drawBoard(place, jobs, wanted) {
  const now = address({ job: "", view: "" });
  if (boardOf !== now) shownIn.clear();
  boardOf = now;
  const columns = STATUSES.map((status) => {
    const all = jobs.filter((job) => job.status === status);
    // Finished jobs are sorted newest first; open jobs keep their order.
    if (status === "done" || status === "cancelled") all.sort((a, b) => (b.completed_at || b.updated_at).localeCompare(a.completed_at || a.updated_at) || b.id.localeCompare(a.id));
    return all.length ? column(status, all, wanted) : undefined;
  });
  filled(place, h("div", { class: "board" }, columns));
}

function column(status, all, wanted) {
  const list = h("ul", { class: "cards" });
  const more = h("button", { type: "button", class: "more quiet" });
  const grow = (upto) => {
    const from = list.children.length;
    for (const job of all.slice(from, upto)) list.append(card(job, wanted));
    const left = all.length - list.children.length;
    more.hidden = left <= 0;
    more.textContent = `Show ${Math.min(left, 2 * AT_FIRST)} more (${left.toLocaleString("en")} left)`;
  };
  more.addEventListener("click", () => {
    const first = list.children.length;
    shownIn.set(status, first + 2 * AT_FIRST);
    grow(shownIn.get(status));
    list.children[first]?.querySelector("a").focus();
  });
  grow(shownIn.get(status) ?? AT_FIRST);
  const name = words(status);
  return h("section", { class: `column s-${status}`, "aria-label": name },
    h("h2", {}, h("i", { class: "dot", "aria-hidden": "true" }), name[0].toUpperCase() + name.slice(1), h("span", {}, all.length.toLocaleString("en"))),
    list, more);
}

function card(job, wanted) {
  const reason = isOpen(job) ? closedGates(job)[0]?.reasons[0]?.says : undefined;
  const next = nextOf(job);
  // Leave out a gate's reason that the next action repeats.
  const message = reason && !next.includes(reason) ? reason : undefined;
  return h("li", { class: `card s-${job.status}${wanted.job === job.id ? " chosen" : ""}`, "data-job": job.id },
    h("div", { class: "row" }, h("code", { class: "id" }, job.id), tagsOf(job)),
    h("a", { class: "card-title clamp", href: address({ job: job.id }), dir: "auto", title: job.title }, job.title),
    job.gates.length > 0 && gateMarks(job),
    job.score !== null && h("div", { class: "score" }, bar(job.score, job.target), h("span", {}, String(job.score), h("span", { class: "soft" }, `, needs ${job.target}`))),
    job.blocked_reason && h("p", { class: "waits clamp", dir: "auto", title: job.blocked_reason }, job.blocked_reason),
    !job.blocked_reason && message && job.status !== "planned" && h("p", { class: "small soft clamp", dir: "auto", title: message }, message),
    next && h("p", { class: "next clamp", dir: "auto", title: next }, next),
    (isOpen(job) || job.iteration > 0) && h("p", { class: "small soft row" }, tries(job)));
}

function gateMarks(job) {
  return h("div", { class: "gates", role: "group", "aria-label": "gates, last evaluation" }, job.gates.map((gate) => {
    const state = gate.open ? "open" : "closed";
    const codes = gate.reasons.map((reason) => words(reason.code)).join(", ");
    return h("span", { class: `gate ${state}`, title: `${gate.gate}: ${state}${codes ? ` (${codes})` : ""}` },
      h("span", { "aria-hidden": "true" }, gate.open ? "✓" : "✗"), gate.gate, h("span", { class: "unseen" }, ` ${state}`));
  }));
}

function tries(job) {
  const text = `${job.iteration} of ${count(job.max_iterations, "iteration")}`;
  if (job.max_iterations > 8) return h("span", { class: job.iteration > job.max_iterations ? "bad" : undefined }, text);
  const dots = Array.from({ length: Math.min(9, Math.max(job.max_iterations, job.iteration)) }, (_, at) =>
    h("i", { class: at >= job.max_iterations ? "over" : at < job.iteration ? "used" : undefined }));
  return [h("span", { class: "tries", "aria-hidden": "true" }, dots), text];
}
