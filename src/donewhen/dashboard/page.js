/* The page: the address holds the view and the filters; a change of the address draws the page again. */

const DRAWN = { board: drawBoard, graph: drawGraph, numbers: drawNumbers, ledger: drawLedger };
let opener = "";

function choose(changes, replacing) {
  const to = address(changes);
  if (to === (location.hash || "#")) return;
  if (replacing) location.replace(to);
  else location.hash = to;
}

function draw() {
  const wanted = chosen();
  const jobs = JOBS.filter((job) => fits(job, wanted));
  for (const link of byId("views").querySelectorAll("[data-view]")) {
    link.setAttribute("href", address({ view: link.dataset.view }));
    if (link.dataset.view === wanted.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  drawFilters(wanted, jobs);
  if (!JOBS.length) filled(byId("view"), h("div", { class: "empty" }, h("h2", {}, "There are no jobs yet"), h("p", {}, "Add a job: ", h("code", {}, 'donewhen add "What has to be done"'))));
  else if (!jobs.length && wanted.view !== "ledger") filled(byId("view"), h("div", { class: "empty" }, h("h2", {}, "No matching jobs"), h("p", {}, "Remove a filter, or search for something else.")));
  else DRAWN[wanted.view](byId("view"), jobs, wanted);
  showDetails(wanted);
  // Scripts that drive the page can wait until it shows what the address says.
  document.body.dataset.drawn = location.hash;
}

/* Show another state of the project; what somebody is looking at stays where it is. */
function update(board) {
  const held = heldPlace();
  load(board);
  drawHead();
  drawChoices();
  draw();
  if (!byId("details").hidden) drawDetails(byId("details"), jobOf(chosen().job));
  held();
}

/* Remember the focus and what was scrolled; the returned function restores both after drawing. */
function heldPlace() {
  const active = document.activeElement, job = active?.closest("[data-job]")?.dataset.job;
  const details = byId("details"), inside = details.contains(active);
  const graph = document.querySelector(".graph"), at = [scrollX, scrollY, details.scrollTop, graph?.scrollLeft ?? 0, graph?.scrollTop ?? 0];
  return () => {
    const drawn = document.querySelector(".graph");
    if (drawn) [drawn.scrollLeft, drawn.scrollTop] = [at[3], at[4]];
    details.scrollTop = at[2];
    scrollTo(at[0], at[1]);
    if (inside) byId("details-title").focus({ preventScroll: true });
    else if (active?.id) byId(active.id)?.focus({ preventScroll: true });
    else if (job) linkOf(job)?.focus({ preventScroll: true });
  };
}

const linkOf = (name) => [...document.querySelectorAll("#view [data-job] a.card-title, #view a.node[data-job]")].find((link) => link.closest("[data-job]").dataset.job === name);

function showDetails(wanted) {
  const place = byId("details"), before = place.dataset.job ?? "";
  document.body.classList.toggle("with-details", Boolean(wanted.job));
  place.hidden = !wanted.job;
  if (wanted.job === before) return;
  place.dataset.job = wanted.job;
  if (wanted.job) {
    if (!before) opener = wanted.job;
    drawDetails(place, jobOf(wanted.job));
    place.scrollTop = 0;
    byId("details-title").focus({ preventScroll: true });
  } else {
    // Return the focus to the element that opened the details.
    place.replaceChildren();
    (linkOf(opener) ?? byId("main")).focus({ preventScroll: true });
  }
}

function drawFilters(wanted, jobs) {
  const others = JOBS.filter((job) => fits(job, { ...wanted, status: "" }));
  const chip = (name, number) => h("button", { type: "button", class: name ? `s-${name}` : undefined, "aria-pressed": String(wanted.status === name), "data-status": name || "all",
    on: { click: () => { choose({ status: name }); byId("statuses").querySelector(`[data-status="${name || "all"}"]`).focus(); } } },
  name && h("i", { class: "dot", "aria-hidden": "true" }), name ? words(name) : "all", h("b", {}, number.toLocaleString("en")));
  filled(byId("statuses"), chip("", others.length), STATUSES.map((name) => chip(name, others.filter((job) => job.status === name).length)));
  for (const select of byId("choices").querySelectorAll("select")) select.value = wanted[select.name];
  if (document.activeElement !== byId("q")) byId("q").value = wanted.q;
  const filtered = wanted.q || wanted.status || wanted.stakes || wanted.workstream || wanted.wave || wanted.gate;
  filled(byId("found"), filtered ? [`${jobs.length.toLocaleString("en")} of ${count(JOBS.length, "job")}`,
    h("button", { type: "button", class: "quiet", on: { click: () => { byId("q").value = ""; choose({ q: "", status: "", stakes: "", workstream: "", wave: "", gate: "" }); } } }, "Show all")] : []);
}

let choicesOf = "";
function drawChoices() {
  const select = (name, none, options) => options.length > 1 && [h("label", { class: "unseen", for: `by-${name}` }, none),
    h("select", { id: `by-${name}`, name, on: { change: (event) => choose({ [name]: event.target.value }) } }, h("option", { value: "" }, none),
      options.map(([value, text]) => h("option", { value }, short(text, 60))))];
  const named = (values) => [...new Map(values.filter(([value]) => value)).entries()].sort((a, b) => a[0].localeCompare(b[0]));
  const stakes = STAKES.filter((name) => JOBS.some((job) => job.stakes === name)).map((name) => [name, name]);
  const workstreams = named(JOBS.map((job) => [job.workstream, job.workstream_title || job.workstream]));
  const waves = named(JOBS.map((job) => [job.wave, job.wave]));
  // A list that somebody has opened closes when it is replaced, so it is replaced only by another one.
  const now = JSON.stringify([stakes, workstreams, waves]);
  if (now === choicesOf) return;
  choicesOf = now;
  filled(byId("choices"), select("stakes", "any stakes", stakes), select("workstream", "any workstream", workstreams),
    select("wave", "any wave", waves), select("gate", "any gate", GATES.map((name) => [name, `${name} closed`])));
}

function drawHead() {
  const about = BOARD.project, newest = BOARD.events[BOARD.events.length - 1];
  document.title = about.title;
  byId("title").textContent = about.title;
  filled(byId("about"), h("code", {}, about.id), statusOf(about.status), tag(about.agreement, `a-${about.agreement}`), h("span", {}, newest ? `as of ${when(newest.at)}` : "no events yet"));
  const wanted = JOBS.filter((job) => job.status !== "cancelled"), done = wanted.filter((job) => job.status === "done").length;
  const share = wanted.length ? Math.floor(100 * done / wanted.length) : 0;
  const parts = ["done", "in_progress", "blocked", "planned"].map((name) => [name, wanted.filter((job) => job.status === name).length]).filter(([, number]) => number);
  filled(byId("progress"), h("p", {}, h("b", {}, `${done.toLocaleString("en")} of ${wanted.length.toLocaleString("en")} done`), h("span", { class: "soft" }, `${share} %`)),
    h("div", { class: "stack", role: "img", "aria-label": parts.map(([name, number]) => `${number} ${words(name)}`).join(", ") || "no jobs" }, parts.map(([name, number]) => {
      const part = h("i", { class: `s-${name}`, title: `${number} ${words(name)}` });
      part.style.flexGrow = String(number);
      return part;
    })));
  const sum = (jobs, field) => jobs.reduce((total, job) => total + job[field], 0);
  const open = JOBS.filter(isOpen), blocked = open.filter((job) => job.status === "blocked");
  const startable = open.filter((job) => job.state === "ready");
  const number = (value, caption, tone) => h("div", { class: "number" }, h("b", { class: tone }, value), h("span", {}, caption));
  const round = (value) => Math.round(value).toLocaleString("en");
  filled(byId("numbers"), JOBS.length > 0 && [
    number(blocked.length.toLocaleString("en"), "blocked", blocked.length ? "bad" : undefined),
    number(startable.length.toLocaleString("en"), "ready to start"),
    number(`${round(sum(wanted, "iteration"))} of ${round(sum(wanted, "max_iterations"))}`, "iterations used"),
    number(`${round(sum(wanted.filter((job) => job.status === "done"), "estimate_hours"))} of ${round(sum(wanted, "estimate_hours"))} h`, "of the estimate done")]);
  const unread = byId("unread");
  unread.hidden = !BOARD.unread.length;
  filled(unread, h("h2", {}, "Problems"), h("ul", {}, BOARD.unread.slice(0, 12).map((job) => h("li", {}, h("code", { dir: "auto" }, job.where), " ", foreign(job.says)))),
    BOARD.unread.length > 12 && h("p", {}, `and ${BOARD.unread.length - 12} more: donewhen status lists them`));
  const way = SERVER === undefined ? "This page is read-only." : "This page follows the plans and the ledger.";
  byId("foot").textContent = newest ? `As of ${when(newest.at)}. ${way}` : way;
}

function drawLedger(place, jobs, wanted) {
  const filtered = jobs.length < JOBS.length, ids = new Set(jobs.map((job) => job.id));
  const events = BOARD.events.filter((event) => (!filtered || ids.has(event.chain)) && (!wanted.job || event.chain === wanted.job || !jobOf(wanted.job))).reverse();
  if (!events.length) { filled(place, h("p", { class: "nothing" }, BOARD.events.length ? "None of the newest events is about these jobs." : "No events yet.")); return; }
  filled(place, h("div", { class: "ledger" }, h("p", { class: "about" }, `${filtered || wanted.job ? "Matches among the" : "The"} newest ${BOARD.events.length} events, newest first. All events: `, h("code", {}, "donewhen log")),
    h("table", {}, h("thead", {}, h("tr", {}, ["when (UTC)", "job", "what", "who", ""].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, events.map((event) => h("tr", {}, h("td", { class: "when" }, event.at.replace("T", " ").replace("Z", "")),
        h("td", {}, h("code", {}, jobOf(event.chain) ? linkTo(event.chain) : event.chain)), h("td", { class: `what e-${event.type}` }, event.type),
        h("td", { class: `who k-${event.kind}`, dir: "auto" }, `${event.by} (${event.kind})`), h("td", { dir: "auto" }, event.says)))))));
}

byId("q").addEventListener("input", () => choose({ q: byId("q").value.trim() }, true));
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); byId("main").focus(); });
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
  if (event.key === "Escape") {
    if (typing && event.target.value && event.target === byId("q")) { byId("q").value = ""; choose({ q: "" }, true); }
    else if (typing) event.target.blur();
    else if (chosen().job) choose({ job: "" });
  } else if (typing) return;
  else if (event.key === "/") { event.preventDefault(); byId("q").focus(); byId("q").select(); }
  else if (/^[1-4]$/.test(event.key)) choose({ view: VIEWS[Number(event.key) - 1] });
});
addEventListener("hashchange", draw);
load(JSON.parse(byId("data").textContent));
drawHead();
drawChoices();
draw();
byId("page").hidden = false;
