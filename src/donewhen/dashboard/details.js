/* One job: the results of its gates, the reasons, and the next command. */

function drawDetails(place, job) {
  const gone = !job;
  if (gone) {
    filled(place, closing(), h("h2", { id: "details-title", tabindex: "-1" }, "Job not found"), h("p", {}, "It may have been removed since this address was copied."));
    return;
  }
  const events = BOARD.events.filter((event) => event.chain === job.id).reverse();
  const needed = NEEDED_BY.get(job.id) ?? [];
  filled(place, closing(),
    h("div", { class: "row" }, statusOf(job.status), h("code", { class: "soft" }, job.id), tagsOf(job)),
    h("h2", { id: "details-title", tabindex: "-1", dir: "auto" }, job.title),
    SERVER !== undefined && h("p", {}, h("a", { class: "to-page", href: pageOf(job) }, "Full page: gates now, evidence, contract, ledger")),
    job.tampered.length > 0 && h("p", { class: "note serious" }, `Edited by hand, different from the ledger: ${job.tampered.join(", ")}.`),
    job.blocked_reason && [h("h3", {}, "Blocked"), h("p", { class: "waits", dir: "auto" }, job.blocked_reason)],
    isOpen(job) && [h("h3", {}, "Next"), nextOf(job) && nextOf(job) !== job.next_command && h("p", { dir: "auto" }, nextOf(job)), job.next_command && copyable(job.next_command)],
    facts(job),
    job.gates.length > 0 ? [h("h3", {}, `Gates, last evaluated${job.evaluated_at ? ` ${when(job.evaluated_at)}` : ""}`), h("ul", { class: "gate-list" }, job.gates.map(gateOf))]
      : h("p", { class: "soft" }, "The gates have not been evaluated yet."),
    job.scores.length > 0 && scatter("Scores", kinds(), job.scores, job.target),
    job.depends_on.length > 0 && [h("h3", {}, "Depends on"), jobList([...new Set(job.depends_on)])],
    needed.length > 0 && [h("h3", {}, "Required by"), jobList(needed)],
    (job.depends_on.length > 0 || needed.length > 0) && h("p", {}, h("a", { href: address({ view: "graph" }) }, "Show in the graph")),
    events.length > 0 && [h("h3", {}, "Recent events"), h("ul", { class: "plain" }, events.slice(0, 30).map((event) =>
      h("li", {}, h("b", { class: `e-${event.type}` }, event.type), " ", h("span", { class: "small soft" }, `${when(event.at)} · ${event.by} (${event.kind})`), event.says && h("div", { dir: "auto", class: "small" }, event.says))))]);
}

function closing() {
  return h("button", { type: "button", class: "close quiet", "aria-label": "Close", on: { click: () => choose({ job: "" }) } }, "Close");
}

function facts(job) {
  const rows = [
    ["score", job.score === null ? "none yet" : `${job.score}, needs ${job.target}`], ["iterations", `${job.iteration} of ${job.max_iterations}`],
    ["stakes", job.stakes], ["agreement", job.agreement], ["priority", job.priority], ["estimate", `${job.estimate_hours} h`],
    ["workstream", job.workstream_title || job.workstream], ["wave", job.wave], ["due", job.due_date],
    ["started", when(job.started_at)], ["completed", when(job.completed_at)],
    ["rework", job.rework_count ? `${job.rework_count}${job.rework_reason ? `: ${job.rework_reason}` : ""}` : ""],
  ].filter(([, value]) => value);
  const long = [["plan", job.path], ["receipt", job.receipt]].filter(([, value]) => value);
  return h("dl", { class: "facts" }, rows.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", { dir: "auto" }, value))),
    long.map(([name, value]) => h("div", { class: "wide" }, h("dt", {}, name), h("dd", {}, h("code", {}, value)))));
}

function gateOf(gate) {
  const state = gate.open ? "open" : "closed";
  return h("li", { class: state }, h("i", { "aria-hidden": "true" }, gate.open ? "✓" : "✗"),
    h("div", {}, h("b", {}, gate.gate), h("span", { class: "unseen" }, ` ${state}`),
      gate.reasons.map((reason) => h("p", {}, h("code", {}, reason.code), " ", foreign(reason.says)))));
}

function jobList(names) {
  return h("ul", { class: "plain" }, names.slice(0, 50).map((name) => {
    const job = jobOf(name);
    return h("li", {}, job ? [statusOf(job.status), " ", linkTo(name), " ", foreign(job.title, { class: "small" })] : [h("span", { class: "bad" }, foreign(name), ", which does not exist")]);
  }), names.length > 50 && h("li", { class: "soft" }, `and ${names.length - 50} more`));
}

function copyable(text) {
  const code = h("code", { dir: "ltr" }, text);
  const button = h("button", { type: "button" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      // Without access to the clipboard, the text is selected instead.
      getSelection().selectAllChildren(code);
      button.textContent = "Selected: copy it";
    }
  });
  return h("div", { class: "copy" }, code, button);
}
