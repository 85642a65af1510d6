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
    kept.typed = new Map([...document.querySelectorAll("#page input[id]:not([type=hidden])")].map((input) => [input.id, input.value]));
    kept.focus = document.activeElement?.id || null;
    kept.chosen = chosen()?.dataset.item ?? null;
  });
  document.body.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target !== page()) return;
    kept.open.forEach((id) => document.getElementById(id)?.setAttribute("open", ""));
    kept.typed.forEach((value, id) => {
      const input = document.getElementById(id);
      if (input && value) input.value = value;
    });
    if (kept.focus) document.getElementById(kept.focus)?.focus({ preventScroll: true });
    // If the selected item is gone, select none: a pending key press must not hit another item.
    if (kept.chosen) choose(items().find((item) => item.dataset.item === kept.chosen), false);
  });

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
    if (performance.now() > SETTLED) chosen()?.querySelector(`button[name=verdict][data-key=${key}]`)?.click();
  };
  const keys = {
    j: () => choose(items()[items().indexOf(chosen()) + 1]),
    k: () => choose(items()[Math.max(0, items().indexOf(chosen()) - 1)]),
    p: give("p"),
    f: give("f"),
    a: give("a"),
    x: give("x"),
    o: () => chosen()?.querySelector("[data-open]")?.click(),
    r: () => chosen()?.querySelector("input[name=reason]")?.focus(),
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
