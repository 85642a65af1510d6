// The live data of the dashboard: fetched again after each change of a job, and drawn by the dashboard's own script.
"use strict";
(() => {
  const notice = document.getElementById("notice");
  let asking = false, again = false, shown = "";

  const fetched = async () => {
    const answer = await fetch(`${SERVER}/board.json`);
    if (!answer.ok) throw new Error(answer.statusText);
    const text = await answer.text();
    document.body.dataset.mark = answer.headers.get("X-Donewhen-Mark") ?? "";
    if (text !== shown) update(JSON.parse(text));
    shown = text;
    notice.hidden = true;
  };

  const refresh = async () => {
    again = true;
    if (asking) return;
    asking = true;
    while (again) {
      again = false;
      try {
        await fetched();
      } catch {
        notice.textContent = "The project can't be read right now. This is the last state that could be read.";
        notice.hidden = false;
      }
    }
    asking = false;
  };

  document.body.addEventListener("changed-jobs", refresh);
})();
