// What survives a live update, and the keyboard shortcuts of reviews. Every page works without this file.
"use strict";
(() => {
  const page = () => document.getElementById("page");

  // A swap keeps what the person has opened, selected or typed.
  const kept = { open: new Set(), chosen: null, typed: new Map(), focus: null };
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.target !== page()) return;
    if (!event.detail.isError) document.body.dataset.mark = event.detail.xhr.getResponseHeader("X-Donewhen-Mark") ?? "";
    kept.open = new Set([...document.querySelectorAll("#page details[open][id]")].map((details) => details.id));
    kept.typed = new Map([...document.querySelectorAll("#page input[id]:not([type=hidden]), #page textarea[id]")].map((input) => [input.id, input.value]));
    kept.focus = document.activeElement?.id || null;
    kept.chosen = chosen()?.dataset.item ?? null;
  });
  document.body.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target !== page()) return;
    tellAges();
    kept.open.forEach((id) => document.getElementById(id)?.setAttribute("open", ""));
    kept.typed.forEach((value, id) => {
      const input = document.getElementById(id);
      if (input && value) input.value = value;
      // What was written about an item that is settled or has changed meanwhile is not thrown away.
      else if (value.trim() && id.startsWith("reason-")) {
        const left = document.createElement("p");
        left.className = "notice";
        left.textContent = `The item changed, or somebody else has settled it. You wrote: ${value}`;
        page().prepend(left);
      }
    });
    if (kept.focus) document.getElementById(kept.focus)?.focus({ preventScroll: true });
    // If the selected item is gone, select none: a pending key press must not hit another item.
    if (kept.chosen) choose(items().find((item) => item.dataset.item === kept.chosen), false);
  });

  // How long ago, beside the moment itself.
  const UNITS = [[31536000, "year"], [2592000, "month"], [86400, "day"], [3600, "hour"], [60, "minute"]];
  const tellAges = () => {
    for (const time of document.querySelectorAll("time[data-ago]")) {
      const seconds = (Date.now() - Date.parse(time.dateTime)) / 1000;
      if (Number.isNaN(seconds)) continue;
      const [length, unit] = UNITS.find(([length]) => seconds >= length) ?? [0, ""];
      const count = length ? Math.floor(seconds / length) : 0;
      time.dataset.ago = length ? ` (${count} ${unit}${count === 1 ? "" : "s"} ago)` : " (just now)";
    }
  };
  tellAges();
  setInterval(tellAges, 30000);

  // The review queue.
  const items = () => [...document.querySelectorAll("[data-queue] [data-item]")];
  const chosen = () => document.querySelector("[data-item].chosen");
  const choose = (item, move = true) => {
    if (!item) return;
    chosen()?.classList.remove("chosen");
    item.classList.add("chosen");
    // Show the evidence before a decision.
    item.querySelectorAll("details").forEach((details) => (details.open = true));
    if (move) {
      item.focus({ preventScroll: true });
      item.scrollIntoView({ block: "nearest" });
    }
  };
  // A key press meant for the previous page must not decide an item that was not read yet.
  const SETTLED = 400;
  const give = (key) => () => {
    if (performance.now() <= SETTLED) return;
    // An answer is written first: the key leads to its field.
    const field = chosen()?.querySelector("textarea[name=reason]");
    if (field && !field.value.trim()) return field.focus();
    chosen()?.querySelector(`button[name=verdict][data-key=${key}]`)?.click();
  };
  const keys = {
    j: () => choose(items()[items().indexOf(chosen()) + 1]),
    k: () => choose(items()[Math.max(0, items().indexOf(chosen()) - 1)]),
    p: give("p"),
    f: give("f"),
    a: give("a"),
    x: give("x"),
    b: give("b"),
    w: give("w"),
    c: give("c"),
    o: () => chosen()?.querySelector("[data-open]")?.click(),
    r: () => chosen()?.querySelector("[name=reason]")?.focus(),
    "?": () => {
      const help = document.querySelector("[data-help]");
      if (help) help.hidden = !help.hidden;
    },
  };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select");
    if (typing && event.key === "Escape") return typing.blur();
    if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat || !items().length) return;
    if (Object.hasOwn(keys, event.key)) {
      event.preventDefault();
      keys[event.key]();
    }
  });
  if (items().length) choose(items()[0], false);
})();
