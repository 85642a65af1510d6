/* The page: the address holds the view and the filters; a change of the address draws the page again. */

const TITLES = { board: "Board", graph: "Graph", numbers: "Numbers", ledger: "Ledger" };
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
  filled(byId("views"), VIEWS.map((name) => h("a", { href: address({ view: name }), "aria-current": wanted.view === name ? "page" : undefined }, TITLES[name])));
  drawFilters(wanted, jobs);
  if (!JOBS.length) filled(byId("view"), h("div", { class: "empty" }, h("h2", {}, "There are no jobs yet"), h("p", {}, "Add a job: ", h("code", {}, 'donewhen add "What has to be done"'))));
  else if (!jobs.length && wanted.view !== "ledger") filled(byId("view"), h("div", { class: "empty" }, h("h2", {}, "No matching jobs"), h("p", {}, "Remove a filter, or search for something else.")));
  else DRAWN[wanted.view](byId("view"), jobs, wanted);
  showDetails(wanted);
  // Scripts that drive the page can wait until it shows what the address says.
  document.body.dataset.drawn = location.hash;
}

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
    const back = [...document.querySelectorAll("[data-job] a.card-title, a.node[data-job]")].find((link) => (link.dataset.job ?? link.parentElement.dataset.job) === opener);
    (back ?? byId("main")).focus({ preventScroll: true });
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

function drawChoices() {
  const select = (name, none, options) => options.length > 1 && [h("label", { class: "unseen", for: `by-${name}` }, none),
    h("select", { id: `by-${name}`, name, on: { change: (event) => choose({ [name]: event.target.value }) } }, h("option", { value: "" }, none),
      options.map(([value, text]) => h("option", { value }, short(text, 60))))];
  const named = (values) => [...new Map(values.filter(([value]) => value)).entries()].sort((a, b) => a[0].localeCompare(b[0]));
  filled(byId("choices"),
    select("stakes", "any stakes", STAKES.filter((name) => JOBS.some((job) => job.stakes === name)).map((name) => [name, name])),
    select("workstream", "any workstream", named(JOBS.map((job) => [job.workstream, job.workstream_title || job.workstream]))),
    select("wave", "any wave", named(JOBS.map((job) => [job.wave, job.wave]))),
    select("gate", "any gate", GATES.map((name) => [name, `${name} closed`])));
}

function drawHead() {
  const about = BOARD.project, newest = BOARD.events[BOARD.events.length - 1];
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
  filled(unread, h("h2", {}, "Jobs that can't be read"), h("ul", {}, BOARD.unread.slice(0, 12).map((job) => h("li", {}, h("code", { dir: "auto" }, job.where), " ", foreign(job.says)))),
    BOARD.unread.length > 12 && h("p", {}, `and ${BOARD.unread.length - 12} more: donewhen status lists them`));
  byId("foot").textContent = newest ? `Plans and ledger as of ${when(newest.at)}. This page is read-only.` : "This page is read-only.";
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

function theme(name) {
  const dark = name ? name === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  if (name) document.documentElement.dataset.theme = name;
  byId("theme").textContent = dark ? "Light" : "Dark";
  byId("theme").setAttribute("aria-label", dark ? "Use light colours" : "Use dark colours");
}

/* Some browsers give a local file no storage. */
function storedTheme(name) {
  try {
    if (name !== undefined) localStorage.setItem("donewhen-theme", name);
    return localStorage.getItem("donewhen-theme") ?? "";
  } catch {
    return "";
  }
}

byId("theme").addEventListener("click", () => {
  const dark = getComputedStyle(document.documentElement).colorScheme === "dark" || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  const name = dark ? "light" : "dark";
  storedTheme(name);
  theme(name);
});
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
theme(storedTheme() === "dark" || storedTheme() === "light" ? storedTheme() : "");
drawHead();
drawChoices();
draw();
byId("page").hidden = false;
