"""A project in git whose job needs a person: a file outside its work area, or a test, has to change for its check."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from donewhen.jobs.gates.job_view import JobView, view_job
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.lifecycle.agreeing import agree_to
from donewhen.jobs.lifecycle.completion import Completion, complete
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.review.items import ReviewItem
from donewhen.review.queue import review_queue
from donewhen_kit import git_command

ADA = Approval(Actor("ada", "person"))
BOT = Actor("bot", "agent")
CHECK = """import sys
sys.path.insert(0, "src")
from shop.price import total
sys.exit(total([1, 2]) != int(open("expected.txt").read()))
"""
TESTS = """import sys
sys.path.insert(0, "src")
from shop.price import total

def test_total():
    assert total([1, 2]) == {total}
"""
PRICE = "def total(prices):\n    return {result}\n"


class Shop(NamedTuple):
    """A project with one job in progress."""

    root: Path
    workspace: Workspace
    id: str

    @property
    def job(self) -> Job:
        return self.workspace.job(self.id)

    @property
    def view(self) -> JobView:
        return view_job(self.workspace, self.job)

    @property
    def entries(self) -> tuple[Entry, ...]:
        return self.workspace.ledger.read(self.id).entries

    @property
    def decisions(self) -> list[tuple[str, str, str]]:
        decided = [entry for entry in self.entries if entry.type == "decided"]
        return [(entry.data["decision"], entry.data["reason"], entry.by.kind) for entry in decided]

    def items(self) -> tuple[ReviewItem, ...]:
        return review_queue(self.workspace)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def complete(self) -> Completion:
        return complete(self.workspace, self.id, BOT)


def shop_with(root: Path, *criteria: str, inputs: Sequence[str] = ()) -> Shop:
    """A job in progress, agreed to at a commit; its work area is the package and the tests."""
    root.mkdir(exist_ok=True)
    if not (root / ".git").exists():
        git_command(root, "init", "-q", "-b", "main")
    workspace = create_project(root, "Shop")
    shop = Shop(root, workspace, "")
    shop.write("src/shop/__init__.py", "")
    shop.write("src/shop/price.py", PRICE.format(result="0"))
    shop.write("check.py", CHECK)
    shop.write("expected.txt", "4\n")
    shop.write("tests/test_price.py", TESTS.format(total=4))
    shop.write("README.md", "A shop.\n")
    shop.write(".gitignore", "__pycache__/\n")
    chosen = criteria or (f"It adds up\n  check: run {sys.executable} check.py",)
    area = ["/src/shop/**", "/tests/**"]
    job = add_job(workspace, "Sum", criteria=chosen, outputs=["/src/shop/price.py"], inputs=inputs, work=area)
    git_command(root, "add", "--all")
    git_command(root, "commit", "-q", "-m", "shop")
    agree_to(workspace, [job], ADA)
    git_command(root, "add", "--all")
    git_command(root, "commit", "-q", "-m", "agreed")
    assert start_job(workspace, job.id, BOT).started
    return Shop(root, workspace, job.id)


def outside(root: Path) -> Shop:
    """The check passes only with another ``expected.txt``, which is no part of the work."""
    shop = shop_with(root)
    shop.write("src/shop/price.py", PRICE.format(result="sum(prices)"))
    shop.write("expected.txt", "3\n")
    assert not shop.complete().done
    return shop


def changed_tests(root: Path) -> Shop:
    """The test passes only as the agent has changed it."""
    run = f"{sys.executable} -m pytest -q -p no:cacheprovider"
    shop = shop_with(root, f"The tests pass\n  check: run {run}")
    shop.write("src/shop/price.py", PRICE.format(result="sum(prices)"))
    shop.write("tests/test_price.py", TESTS.format(total=3))
    assert not shop.complete().done
    return shop
