"""A project in which tricks try to get a promise, and the page that shows how each is refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from donewhen.config.agent_runtimes import AGENT_VARIABLES
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.ledger.approval import Approval, Policy, person_at_terminal, unproved_actor
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.promise import PromiseCheck, verify_promise
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.record.history import History, history_of
from donewhen_kit import run_main
from lean_python import lean_python

PYTHON = sys.executable
CHECK = f"{PYTHON} check.py"
PYTEST = f"{lean_python()} -m pytest -q -p no:cacheprovider"
LOOKS = "import sys\nsys.exit('good' not in open('result.txt').read())\n"
PAGE = Path(__file__).parents[2] / "docs" / "adversarial.md"
_CODE = re.compile(r"^\s+\[([a-z_]+)\]", re.MULTILINE)
_PROMISE = re.compile(r"<promise>")


class Answer(NamedTuple):
    """What `donewhen complete` said."""

    status: int
    stdout: str
    codes: tuple[str, ...]
    """The reasons, sorted; the score is left out, because it follows from the others."""

    @property
    def promises(self) -> int:
        return len(_PROMISE.findall(self.stdout))


class Shop:
    """A project with jobs, and somebody who can edit every file in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workspace = create_project(root, "Shop")
        self.write("check.py", LOOKS)

    def job(
        self,
        *criteria: str,
        title: str = "Report",
        outputs: Sequence[str] = ("/result.txt",),
        edit: tuple[str, str] = ("", ""),
        agreed: bool = True,
        started: bool = True,
        **more: Any,
    ) -> Job:
        """A job that a person has agreed to and that was started; by default it is done when check.py says so."""
        given = criteria or (f"The check passes\n  check: run {CHECK}",)
        job = add_job(self.workspace, title, criteria=given, outputs=outputs, **more)
        if edit[0]:
            self.edit(job, *edit)
        if agreed:
            self.agree(job)
        if agreed and started:
            assert start_job(self.workspace, job.id, unproved_actor()).started
        return self.workspace.job(job.id)

    def agree(self, *jobs: Job) -> None:
        for proposal in agreement_proposals(self.workspace, [self.workspace.job(job.id) for job in jobs]):
            agree(self.workspace, proposal, Approval(person_at_terminal()))

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def work(self, name: str = "result.txt") -> None:
        """The honest work."""
        self.write(name, "good work\n")

    def edit(self, job: Job, *pairs: str) -> None:
        """Replace texts of a job's plan: old, new, old, new, …"""
        text = job.path.read_text()
        for old, new in zip(pairs[::2], pairs[1::2], strict=True):
            assert old in text, old
            text = text.replace(old, new, 1)
        job.path.write_text(text)

    def field(self, job: Job, **values: str) -> None:
        """Type values into the frontmatter."""
        text = job.path.read_text()
        for name, value in values.items():
            text, count = re.subn(rf"^{name}:.*$", f"{name}: {value}", text, count=1, flags=re.MULTILINE)
            assert count == 1, name
        job.path.write_text(text)

    def finish(self, job: Job) -> None:
        assert complete(self.workspace, job.id, unproved_actor()).done

    def ledger(self, job: Job) -> Path:
        return self.workspace.folder / "ledger" / f"{job.id}.jsonl"

    def history(self, job: str) -> History:
        return history_of(job, self.workspace.ledger.read(job).entries, Policy())

    def verified(self, text: str) -> PromiseCheck:
        return verify_promise(self.workspace, text, Policy())

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """The command line, as an agent calls it."""
        hidden = {*AGENT_VARIABLES, "CI", "GITHUB_ACTIONS"}
        quiet = {name: value for name, value in os.environ.items() if name not in hidden} | {"NO_COLOR": "1"}
        return run_main(arguments, self.root, quiet | environment)

    def complete(self, job: Job, environment: Mapping[str, str] | None = None) -> Answer:
        """`donewhen complete JOB`."""
        done = self.run("complete", job.id, **(environment or {}))
        codes = _CODE.findall(done.stdout)
        if done.returncode == 2 or not done.stdout:
            # What can't even be read is said on standard error, and changes nothing when it is asked again.
            again = self.run("complete", job.id, "--json", **(environment or {}))
            codes = re.findall(r'"code": "([a-z_]+)"', again.stdout)
        return Answer(done.returncode, done.stdout, tuple(sorted({*codes} - {"score_too_low"})))


Played = Job | tuple[Job, Mapping[str, str]]
Play = Callable[[Shop], Played]


@dataclass(frozen=True)
class Trick:
    """A row of gaming.md, played up to `donewhen complete`, and the honest change that looks like it."""

    row: int
    name: str
    codes: tuple[str, ...]
    play: Play
    twin: str
    honest: Play
    still: str
    """What would still get through."""

    @property
    def id(self) -> str:
        return f"{self.row:02d} {self.name}"


def played(shop: Shop, play: Play) -> tuple[Job, Answer]:
    """Play it, and try to complete the job."""
    given = play(shop)
    job, environment = given if isinstance(given, tuple) else (given, {})
    return job, shop.complete(job, environment)


def assert_refused(shop: Shop, trick: Trick) -> None:
    """The trick gets no promise, for the reasons that the page tells."""
    job, answer = played(shop, trick.play)
    assert answer.codes == trick.codes, answer.stdout
    assert answer.status in (1, 2), answer.stdout
    assert answer.promises == 0, answer.stdout
    assert shop.history(job.id).status != "done"
    assert row_of(trick, answer.codes) in PAGE.read_text(encoding="utf-8")


def assert_promised(shop: Shop, trick: Trick) -> None:
    """Its twin is completed, with a promise that holds."""
    job, answer = played(shop, trick.honest)
    assert answer.codes == (), answer.stdout
    assert answer.status == 0, answer.stdout
    assert f"\n<promise>{job.id}-DONE</promise>\nreceipt: sha256:" in answer.stdout
    assert shop.verified(answer.stdout).real
    assert shop.history(job.id).status == "done"


def once(tricks: Iterable[Trick]) -> list[Trick]:
    """One trick for each twin: some share theirs."""
    return list({trick.twin: trick for trick in tricks}.values())


def row_of(trick: Trick, codes: Sequence[str]) -> str:
    message = ", ".join(f"`{code}`" for code in codes)
    return f"| {trick.row} | {trick.name} | {message} | {trick.twin} | {trick.still} |\n"


def page(rows: Iterable[tuple[Trick, Sequence[str]]]) -> str:
    """The page in the docs, from tricks and the reasons for which they were refused."""
    head = """\
<!-- Written from a run of the tricks in tests/adversarial. Change those, then run: python -m tools.adversarial_page -->

# How completion is faked, and how each attempt is refused

Every trick in this table is run up to `donewhen complete`, which refuses it for these reasons and prints no promise. An
honest change that looks similar is completed. The last column says what is not detected. An agent with all rights of
the person controls the machine; that is why CI runs the contract again.

| # | trick | refused for | honest change that is completed | not detected |
| --- | --- | --- | --- | --- |
"""
    ordered = sorted(rows, key=lambda row: (row[0].row, row[0].name))
    return head + "".join(row_of(trick, codes) for trick, codes in ordered)
