"""Draw the pictures of the dashboard for the docs: python -m tools.dashboard_pictures

It creates a project with two simulated days of work, by real calls, and opens its page in a real browser. It needs
Chromium and Playwright, so tools.write_docs does not update these pictures.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from donewhen.jobs.board.views import dashboard_path, rebuild_views
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.setting_aside import set_job_aside
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job, Stakes
from donewhen.jobs.plan.workspace import Workspace

IMAGES = Path(__file__).parents[1] / "docs" / "images"
LARGEST = 250_000
ADA, BOT = Actor("ada", "person"), Actor("claude")
_SIZE: Any = {"width": 1280, "height": 860}
_CRITERIA = (
    "It is written down\n  check: file outputs/primary.md",
    "It has its three parts\n  check: file outputs/primary.md matches /Costs/",
)
# Title, stakes, dependencies (by index), number of refused attempts, and final state.
_JOBS: tuple[tuple[str, Stakes, tuple[int, ...], int, str], ...] = (
    ("Log in with a password", "high", (), 1, "done"),
    ("Lock an account after five failures", "normal", (0,), 2, "done"),
    ("List the orders of a customer", "normal", (0,), 0, "done"),
    ("Export orders as CSV", "low", (2,), 1, "done"),
    ("Pay by card", "critical", (0,), 3, "done"),
    ("Retry a payment three times", "high", (4,), 1, "done"),
    ("Send the receipt by mail", "normal", (4,), 0, "done"),
    ("Import the price list", "normal", (), 1, "done"),
    ("Show prices with and without tax", "normal", (7,), 2, "in_progress"),
    ("Refund an order", "high", (4, 6), 3, "in_progress"),
    ("Warn before the stock runs out", "normal", (7,), 0, "in_progress"),
    ("Tell the bank what was paid", "high", (5,), 1, "asked"),
    ("Keep the audit trail for seven years", "critical", (4,), 7, "refused"),
    ("Coupons for returning customers", "low", (8,), 0, "planned"),
    ("A report of the day at six", "normal", (3, 10), 0, "planned"),
    ("Addresses abroad", "normal", (), 0, "planned"),
    ("Search by name and number", "normal", (2,), 0, "planned"),
    ("Fax orders to the warehouse", "low", (), 0, "cancelled"),
)


@dataclass
class Days:
    """A simulated clock that advances by two minutes at each reading."""

    moment: datetime = datetime(2026, 2, 16, 8, tzinfo=UTC)

    def now(self) -> datetime:
        self.moment += timedelta(minutes=2)
        return self.moment

    def monotonic(self) -> float:
        return self.moment.timestamp()


def main() -> int:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("Chromium was not found; it is needed to draw the pictures.", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="donewhen-dashboard-") as name:
        draw(browser, build(Path(name)))
    sizes = {path.name: path.stat().st_size for path in sorted(IMAGES.glob("dashboard-*.png"))}
    for picture, size in sizes.items():
        print(f"{picture}: {size // 1000} kB{'' if size <= LARGEST else ', which is too large'}")
    return int(any(size > LARGEST for size in sizes.values()))


def build(folder: Path) -> Path:
    """Create a project with work in progress, and return the path of its page."""
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    workspace = create_project(folder, "Webshop", clock=Days())
    jobs: list[Job] = []
    for title, stakes, before, _, _ in _JOBS:
        needed = [jobs[index].id for index in before]
        jobs.append(add_job(workspace, title, stakes=stakes, depends_on=needed, criteria=_CRITERIA))
    # One job is not agreed yet.
    for proposal in agreement_proposals(workspace, [job for job in jobs if job.title != "Addresses abroad"]):
        agree(workspace, proposal, Approval(ADA))
    for job, (_, _, _, tries, end) in zip(jobs, _JOBS, strict=True):
        work(workspace, job, tries, end)
    rebuild_views(workspace)
    return dashboard_path(workspace, "html")


def work(workspace: Workspace, job: Job, tries: int, end: str) -> None:
    if end == "cancelled":
        from donewhen.jobs.contract.decisions import Decision, decide

        decide(workspace, workspace.job_at(job.path), Decision("cancel", "Nobody has a fax."), Approval(ADA))
    if end in ("planned", "cancelled"):
        return
    start_job(workspace, job.id, BOT)
    output = job.folder / "outputs" / "primary.md"
    for number in range(tries + (end == "refused")):
        if number:
            output.write_text(f"Draft {number}.\n", encoding="utf-8")
        complete(workspace, job.id, BOT)
    if end == "done":
        output.write_text("## What\n\n## Costs\n\n## Risks\n", encoding="utf-8")
        complete(workspace, job.id, BOT)
    elif end == "asked":
        set_job_aside(workspace, job.id, BOT, question="Comma or semicolon between the columns?")


def draw(browser: str, page: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        for name, chosen in (("light", ""), ("dark", "view=numbers"), ("graph", "view=graph"), ("job", "q=refund")):
            scheme: Any = "dark" if name == "dark" else "light"
            shown = chromium.new_context(viewport=_SIZE, color_scheme=scheme).new_page()
            shown.goto(f"{page.as_uri()}#{chosen}")
            if name == "job":
                shown.locator(".card-title").first.click()
            shown.wait_for_selector("#view > *")
            shown.screenshot(path=IMAGES / f"dashboard-{name}.png")
        chromium.close()


if __name__ == "__main__":
    sys.exit(main())
