// Tells the page what has changed on the server: one event per topic. Every page works without this file.
"use strict";
(() => {
  const live = document.querySelector("[data-live]");
  let stream = null;

  const changed = (topics) => topics.forEach((topic) => document.body.dispatchEvent(new Event(`changed-${topic}`)));

  const open = () => {
    if (stream || document.hidden || !document.body.dataset.topics) return;
    stream = new EventSource("/events");
    stream.addEventListener("hello", (event) => {
      live.hidden = false;
      live.classList.remove("lost");
      // Something changed between loading the page and opening the stream, or while disconnected.
      if (event.data !== document.body.dataset.mark) changed(["jobs", "missions", "runs"]);
    });
    stream.addEventListener("changed", (event) => changed(event.data.split(" ")));
    stream.addEventListener("error", () => live.classList.add("lost"));
  };
  const close = () => {
    stream?.close();
    stream = null;
  };
  // Browsers limit connections per server, so hidden tabs close theirs.
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  // The answer to a form replaces the page. Until then the page must not reload: what it shows may be decided already.
  document.addEventListener("submit", close);
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", open);
  // After all scripts of the page: they listen to the events.
  document.addEventListener("DOMContentLoaded", open);
})();
