"""A shop whose jobs are agreed with a work area and the commit they are about, as `donewhen agree` does it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from verify_kit import Shop

from donewhen.jobs.ledger.approval import Approval, person_at_terminal
from donewhen.jobs.lifecycle.agreeing import agree_to
from donewhen.jobs.plan.creating import add_job
from donewhen.jobs.plan.job import Job
from donewhen.jobs.verifying import Verification, verify_branch
from lean_python import lean_python

PYTHON = sys.executable
PYTEST = f"{lean_python()} -m pytest -q -p no:cacheprovider"
WRONG = "def total(prices):\n    return 0\n"
RIGHT = "def total(prices):\n    return sum(prices)\n"
ON_PATH = "import sys\n\nsys.path.insert(0, 'src')\n"
CHECK = f"{ON_PATH}from shop.price import total\n\nsys.exit(total([1, 2]) != 3)\n"
TESTS = (
    f"{ON_PATH}from shop.price import total\n\n\ndef test_sum():\n    assert total([1, 2]) == 3\n\n\n"
    "def test_nothing():\n    assert total([]) == 0\n"
)
RUN_CHECK = f"run {PYTHON} check.py"
RUN_TESTS = f"run {PYTEST}"
FILES = {"src/shop/__init__.py": "", "src/shop/price.py": WRONG, "check.py": CHECK, "tests/test_price.py": TESTS}


class RoomShop(Shop):
    """What done means is agreed on main; the job may change the package and the tests."""

    def __init__(self, folder: Path, files: Mapping[str, str] | None = None, inside: str = "") -> None:
        super().__init__(folder, inside)
        (self.root / "prices.py").unlink()
        (self.root / "test_prices.py").unlink()
        for name, text in {**FILES, **(files or {})}.items():
            self.write(name, text)

    def agreed(
        self,
        check: str = RUN_CHECK,
        *,
        title: str = "Add the prices",
        outputs: Sequence[str] = ("/src/shop/price.py",),
        work: Sequence[str] | None = ("/src/shop/**", "/tests/**"),
        fields: str = "",
        **more: Any,
    ) -> Job:
        """A job that a person agrees to on the current branch, with the commit that it is about."""
        job = add_job(
            self.workspace, title, criteria=(f"The sum is right\n  check: {check}",), outputs=outputs, work=work, **more
        )
        if fields:
            self.edit(self.plan(job), "\nstatus: ", f"\n{fields}\nstatus: ")
        self.commit("A plan")
        agree_to(self.workspace, [self.workspace.job(job.id)], Approval(person_at_terminal()))
        self.commit("What done means")
        return self.workspace.job(job.id)

    def pull_request(self, job: Job, changes: Mapping[str, str | None]) -> Verification:
        """What CI says about a branch with these files; None removes one."""
        self.git("switch", "-q", "-C", "agent", "main")
        return self.pushed(job, changes)

    def pushed(self, job: Job, changes: Mapping[str, str | None]) -> Verification:
        """What CI says about the current branch with these changes, too."""
        for name, text in changes.items():
            if text is None:
                (self.root / name).unlink()
            else:
                self.write(name, text)
        self.commit("The work")
        return self.looked(job)

    def looked(self, job: Job) -> Verification:
        """What CI says about the current branch."""
        return verify_branch(self.workspace, "main", jobs=[job.id])


def found_codes(found: Verification) -> set[str]:
    """The codes of what is said against a branch."""
    return {str(reason.code) for reason in found.reasons}


def note_codes(found: Verification) -> set[str]:
    return {str(note.code) for note in found.notes}
