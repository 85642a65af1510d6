// Follows what happens, and listens to keys. Every page works without this file.
"use strict";
(() => {
  const page = () => document.getElementById("page");
  const live = document.querySelector("[data-live]");
  let stream = null;

  const changed = (topics) => topics.forEach((one) => document.body.dispatchEvent(new Event(`changed-${one}`)));

  const open = () => {
    if (stream || document.hidden || !page()?.hasAttribute("hx-get")) return;
    stream = new EventSource("/events");
    stream.addEventListener("hello", (event) => {
      live.hidden = false;
      live.classList.remove("lost");
      // Something happened between the page and the stream, or while nobody was connected.
      if (event.data !== document.body.dataset.mark) changed(["jobs", "missions", "runs"]);
    });
    stream.addEventListener("changed", (event) => changed(event.data.split(" ")));
    stream.addEventListener("error", () => live.classList.add("lost"));
  };
  const close = () => {
    stream?.close();
    stream = null;
  };
  // A browser has few connections to one server: tabs that nobody sees give theirs back.
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", open);

  // What is swapped in keeps what somebody has opened, chosen or begun to write.
  const kept = { open: new Set(), chosen: null, typed: new Map(), focus: null };
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.target !== page()) return;
    if (!event.detail.isError) document.body.dataset.mark = event.detail.xhr.getResponseHeader("X-Donewhen-Mark") ?? "";
    kept.open = new Set([...document.querySelectorAll("#page details[open][id]")].map((one) => one.id));
    kept.typed = new Map([...document.querySelectorAll("#page input[id]:not([type=hidden])")].map((one) => [one.id, one.value]));
    kept.focus = document.activeElement?.id || null;
    kept.chosen = chosen()?.dataset.item ?? null;
  });
  document.body.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target !== page()) return;
    kept.open.forEach((id) => document.getElementById(id)?.setAttribute("open", ""));
    kept.typed.forEach((value, id) => {
      const found = document.getElementById(id);
      if (found && value) found.value = value;
    });
    if (kept.focus) document.getElementById(kept.focus)?.focus({ preventScroll: true });
    // Where the chosen one is gone, none is: a key that is on its way must not meet another.
    if (kept.chosen) choose(items().find((one) => one.dataset.item === kept.chosen), false);
  });

  // The review queue.
  const items = () => [...document.querySelectorAll("[data-queue] [data-item]")];
  const chosen = () => document.querySelector("[data-item].chosen");
  const choose = (item, move = true) => {
    if (!item) return;
    chosen()?.classList.remove("chosen");
    item.classList.add("chosen");
    // Nobody should have to decide on what they have not seen.
    item.querySelectorAll("details").forEach((one) => (one.open = true));
    if (move) {
      item.focus({ preventScroll: true });
      item.scrollIntoView({ block: "nearest" });
    }
  };
  // A key that was meant for the page before must not decide on this one, which nobody has read yet.
  const SETTLED = 400;
  const give = (item, verdict) => {
    if (performance.now() > SETTLED) item?.querySelector(`button[name=verdict][value=${verdict}]`)?.click();
  };
  const keys = {
    j: () => choose(items()[items().indexOf(chosen()) + 1]),
    k: () => choose(items()[Math.max(0, items().indexOf(chosen()) - 1)]),
    p: () => give(chosen(), "pass"),
    f: () => give(chosen(), "fail"),
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
  open();
})();
