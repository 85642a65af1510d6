"""Writers that are killed: before each of their steps in turn, and at random moments; and a disk that is full."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from donewhen.jobs.audit.audit import audit_workspace
from donewhen.jobs.board.survey import survey_jobs
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.entry_content import LessonNote
from donewhen.jobs.lessons.lesson_file import read_lessons
from donewhen.jobs.lessons.lesson_recording import LessonDraft, capture_lesson
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.workspace import Form, Workspace, find_workspace
from donewhen.jobs.record.writing import writing
from donewhen.testing import ManualClock
from sentences import assert_sentences

LONG = "DONEWHEN_SOAK_ROUNDS" in os.environ
ROUNDS = int(os.environ.get("DONEWHEN_SOAK_ROUNDS", "40"))
ME = Approval(Actor("me", "person"))
EXPECTED = {"interrupted", "torn"}
BESIDE_THE_POINT = {"anchor_absent", "unsealed"}

pytestmark = pytest.mark.timeout(3600 if LONG else 600)

# One process that knows everything and makes children of itself, so that a round costs no new interpreter. A child is
# killed before its n-th step that changes something on disk, or after some time.
KENNEL = """
import json, os, random, signal, sys, time
from pathlib import Path
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.criteria import parse_check
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.evidence.commands import record_file_check
from donewhen.jobs.lessons.lesson_recording import LessonDraft, capture_lesson
from donewhen.jobs.plan.workspace import find_workspace
from donewhen.testing import ManualClock

person = Approval(Actor("me", "person"))
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
EVENTS = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "os.chmod", "shutil.rmtree")

def rewrite(workspace, job, value):
    with workspace.locked(job.path):
        workspace.write(workspace.read(job.path), job.path, {"note": value, "other": "x" * 30})

def agree_to(workspace, name):
    for one in agreement_proposals(workspace, [workspace.job(name)]):
        agree(workspace, one, person)

def operate(what, root, clock):
    if what == "init":
        create_project(root, "Shop", clock=clock)
        return
    if what == "init_big":
        create_project(root, "Shop", form="big", clock=clock)
        return
    workspace = find_workspace(root, clock=clock)
    if what == "add":
        add_job(workspace, "New")
    elif what == "add_to_stream":
        add_job(workspace, "New", workstream="Web")
    elif what == "add_stream":
        add_job(workspace, "New", workstream="Another")
    elif what == "agree":
        agree_to(workspace, "open")
    elif what == "cancel":
        decide(workspace, workspace.job("done"), Decision("cancel", "not wanted"), person)
    elif what == "raise_budget":
        decide(workspace, workspace.job("done"), Decision("raise_budget", "more", 9), person)
    elif what == "target_of_open":
        decide(workspace, workspace.job("open"), Decision("target", "more", 85), person)
    elif what == "lesson":
        draft = LessonDraft("It broke.", "Mending it.", "Mend it first.")
        capture_lesson(workspace, draft, [workspace.job("done"), workspace.job("open")], person.by)
    elif what == "look":
        job = workspace.job("done")
        record_file_check(workspace, job, parse_check("file main.py", "x"), "file main.py", person.by, criterion=None)
    else:
        rewrite(workspace, workspace.job("done"), "new")

def killed_before_step(what, root, limit):
    steps = 0
    def step():
        nonlocal steps
        steps += 1
        if steps == limit:
            os.kill(os.getpid(), signal.SIGKILL)
    def seen(event, arguments):
        if event in EVENTS or (event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING):
            step()
    def stepping(function):
        def wrapped(*arguments):
            step()
            return function(*arguments)
        return wrapped
    sys.addaudithook(seen)
    os.fsync, os.write = stepping(os.fsync), stepping(os.write)
    operate(what, root, ManualClock())

def killed_some_time(root, seed, tell):
    chance = random.Random(seed)
    workspace = find_workspace(root)
    while True:
        jobs = [workspace.job_at(one.path) for one in workspace.places()]
        job = chance.choice(jobs)
        match chance.choice(["add", "agree", "decide", "rewrite", "rewrite"]):
            case "add":
                if len(jobs) < 12:
                    tell("job", add_job(workspace, "New", criteria=["It works"]).id, None)
            case "agree":
                for one in agreement_proposals(workspace, [job]):
                    tell("entry", one.chain, agree(workspace, one, person).hash)
            case "decide":
                decision = Decision(*chance.choice([("split", "x"), ("target", "x", chance.randint(1, 99))]))
                tell("entry", job.id, decide(workspace, job, decision, person).entry.hash)
            case _:
                with workspace.locked(job.path):
                    document = workspace.read(job.path)
                    value = document.fields.get("note", 0) + 1
                    changes = {"note": value, "text": "x" * chance.choice([0, 10, 100_000])}
                    workspace.write(document, job.path, changes)
                tell("note", job.id, value)

print("ready", flush=True)
for line in sys.stdin:
    order = json.loads(line)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        def tell(*what):
            REAL_WRITE(writer, (json.dumps(what) + "\\n").encode())
        REAL_WRITE = os.write
        status = 1
        try:
            if "step" in order:
                killed_before_step(order["what"], Path(order["root"]), order["step"])
            else:
                tell("begun", None, None)
                killed_some_time(Path(order["root"]), order["seed"], tell)
            status = 0
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        first = b""
        if "seconds" in order:
            first = pipe.readline()
            time.sleep(order["seconds"])
            os.kill(child, signal.SIGKILL)
        said = first + pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    whole = said[: said.rfind(b"\\n") + 1].decode().splitlines()
    print(json.dumps({"status": status, "told": [json.loads(one) for one in whole]}), flush=True)
"""


class Kennel:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, **order: object) -> tuple[int, list[tuple[str, str, object]]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order, default=str) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return answer["status"], [(kind, name, value) for kind, name, value in answer["told"]]


@pytest.fixture(scope="module")
def kennel() -> Iterator[Kennel]:
    argv = [sys.executable, "-c", KENNEL]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield Kennel(process)


def prepared(folder: Path, form: Form) -> Path:
    """A project with an agreed job ("done") and one that is not agreed yet ("open")."""
    folder.mkdir()
    (folder / "main.py").write_text("pass\n")
    made = create_project(folder, "Shop", form=form, clock=ManualClock())
    stream = "Web" if form == "big" else None
    done = add_job(made, "Done", criteria=["It works"], workstream=stream)
    add_job(made, "Open", criteria=["It works"], workstream=stream)
    for proposal in agreement_proposals(made, [done]):
        agree(made, proposal, ME)
    return made.root


def plans(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("plan.md") if visible(root, path)
    }


def ledgers(root: Path) -> dict[str, bytes]:
    """The chains. Of what has a file for each entry, each file."""
    ledger = root / ".donewhen" / "ledger"
    files = [*ledger.glob("*.jsonl"), *ledger.glob("*/*.json")]
    return {path.relative_to(ledger).as_posix(): path.read_bytes() for path in files if visible(ledger, path)}


def visible(root: Path, path: Path) -> bool:
    return not any(part.startswith(".donewhen-") for part in path.relative_to(root).parts)


def leftovers(root: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in root.rglob(".donewhen-*")]


def codes(workspace: Workspace) -> set[str]:
    return {str(finding.code) for finding in audit_workspace(workspace).findings} - BESIDE_THE_POINT


def next_command(what: str, root: Path) -> Workspace:
    """What somebody does next: the same kind of thing, in the same place."""
    workspace = find_workspace(root, clock=ManualClock())
    if what == "add":
        add_job(workspace, "Next")
    elif what == "add_to_stream":
        add_job(workspace, "Next", workstream="Web")
    elif what == "add_stream":
        add_job(workspace, "Next", workstream="Another")
    elif what == "agree":
        for proposal in agreement_proposals(workspace, [workspace.job("open")]):
            if proposal.agreement.state != "agreed":
                agree(workspace, proposal, ME)
    elif what == "lesson":
        capture_lesson(workspace, LessonDraft("Next broke.", "Mending next.", "Mend next."), [], ME.by)
    job = workspace.job("open" if what in ("agree", "target_of_open") else "done")
    decide(workspace, job, Decision("split", "next"), ME)
    return workspace


OPERATIONS = [
    "add",
    "add_to_stream",
    "add_stream",
    "agree",
    "cancel",
    "raise_budget",
    "target_of_open",
    "look",
    "lesson",
    "rewrite",
]


@pytest.mark.parametrize("what", OPERATIONS)
def test_killed_before_any_step_each_file_is_the_old_or_the_new_one(tmp_path: Path, kennel: Kennel, what: str) -> None:
    form: Form = "big" if "stream" in what else "small"
    start = prepared(tmp_path / "start", form)
    full = tmp_path / "full"
    shutil.copytree(start, full)
    assert kennel.ask(what=what, root=full, step=0)[0] == 0
    before, after = plans(start), plans(full)
    chains_before, chains_after = ledgers(start), ledgers(full)
    assert (before, chains_before) != (after, chains_after)
    for step in range(1, 200):
        root = tmp_path / f"step {step}"
        shutil.copytree(start, root)
        status, _ = kennel.ask(what=what, root=root, step=step)
        if status == 0:
            break
        assert status == -9
        now = plans(root)
        assert set(before) <= set(now) <= set(after)
        for name, content in now.items():
            assert content in (before.get(name), after[name]), name
        for name, content in ledgers(root).items():
            assert chains_after[name].startswith(content)
            assert content.startswith(chains_before.get(name, b""))
        workspace = find_workspace(root, clock=ManualClock())
        assert survey_jobs(workspace).problems == ()
        assert codes(workspace) <= EXPECTED, step
        next_command(what, root)
        assert codes(workspace) == set(), step
        with writing(workspace, workspace.project_file):
            # The next writer of the project removes what was left of an entry of it.
            pass
        assert leftovers(root) == [], step
        assert_finished(what, workspace)
        shutil.rmtree(root)
    assert step > 5


def assert_finished(what: str, workspace: Workspace) -> None:
    """What is on record has been done."""
    if what == "lesson":
        notes = [entry.content for entry in workspace.ledger.read(workspace.job("done").id).entries]
        recorded = {note.lesson: note.hash for note in notes if isinstance(note, LessonNote)}
        lessons = {lesson.id: lesson.hash for lesson in read_lessons(workspace)}
        assert recorded.items() <= lessons.items(), "a lesson is on record and not in the file"
        # The lesson of the next command has no job. Every other is in the ledger: none looks like a forgery.
        assert len(lessons) == len(recorded) + 1
    for job in (workspace.job_at(place.path) for place in workspace.places()):
        entries = workspace.ledger.read(job.id).entries[1:]
        decided = {entry.data["decision"]: entry.data.get("value") for entry in entries
                   if entry.type == "decided"}  # fmt: skip
        if "raise_budget" in decided:
            assert job.max_iterations == decided["raise_budget"], "a decision is on record that was never applied"
        if "target" in decided and what != "target_of_open":
            assert job.reward_target == decided["target"]
        if "cancel" in decided:
            assert job.status == "cancelled"


@pytest.mark.parametrize("what", ["init", "init_big"])
def test_a_beginning_that_was_killed_can_be_made_again(tmp_path: Path, kennel: Kennel, what: str) -> None:
    form: Form = "big" if what == "init_big" else "small"
    for step in range(1, 200):
        root = tmp_path / f"step {step}"
        root.mkdir()
        status, _ = kennel.ask(what=what, root=root, step=step)
        if status == 0:
            break
        assert status == -9
        made = list(plans(root).values())
        assert all(text.startswith(b"---\n") and text.endswith(b"# Decisions\n") for text in made)
        workspace = find_workspace(root, clock=ManualClock()) if made else create_project(root, "Shop", form=form)
        add_job(workspace, "Next", workstream="Web" if form == "big" else None)
        agree(workspace, agreement_proposals(workspace, [])[0], ME)
        assert len([plan for plan in plans(root) if plan.count("/") <= 1 and "WI-" not in plan]) == 1
        assert leftovers(root) == [], step
        assert (survey_jobs(workspace).problems, codes(workspace)) == ((), set())
    assert step > 5


def test_killed_at_random_moments_nothing_that_was_reported_is_lost(tmp_path: Path, kennel: Kennel) -> None:
    root = prepared(tmp_path / "shop", "small")
    workspace = find_workspace(root)
    chance = random.Random(20260214)
    notes: dict[str, int] = {}
    entries: set[tuple[str, object]] = set()
    jobs: set[str] = set()
    longest = 0.08
    for number in range(ROUNDS):
        status, events = kennel.ask(root=root, seed=number, seconds=chance.random() * longest)
        assert status == -9
        # On a busy machine, as much has to happen before the kill as on an idle one.
        longest *= 1 if events[1:] else 1.2
        for kind, name, value in events[1:]:
            if kind == "job":
                jobs.add(name)
            elif kind == "entry":
                entries.add((name, value))
            else:
                assert isinstance(value, int)
                notes[name] = value
        found = survey_jobs(workspace)
        assert found.problems == ()
        assert jobs <= {job.id for job in found.jobs}
        assert [job.tampered for job in found.jobs] == [()] * len(found.jobs)
        findings = audit_workspace(workspace).findings
        assert {str(finding.code) for finding in findings} <= EXPECTED | BESIDE_THE_POINT, findings
        chains = {
            name: {entry.hash for entry in workspace.ledger.read(name).entries} for name in workspace.ledger.chains()
        }
        assert all(value in chains[name] for name, value in entries)
        dirty = {finding.where.partition(":")[0] for finding in findings} | set(leftovers(root))
        for item in workspace.places():
            count = workspace.read(item.path).fields.get("note", 0)
            assert isinstance(count, int)
            assert notes.get(item.id, 0) <= count <= notes.get(item.id, 0) + 1
            notes[item.id] = count
            if any(item.id in place for place in dirty):
                decide(workspace, workspace.job_at(item.path), Decision("split", "next"), ME)
        if any(place.startswith("jobs/.") for place in dirty):
            jobs.add(add_job(workspace, "Next", criteria=["It works"]).id)
        if any("PJ-" in place or "jobs/plan.md" in place or place.startswith("jobs/.") for place in dirty):
            agree(workspace, agreement_proposals(workspace, [])[0], ME)
        assert codes(workspace) == set()
        assert leftovers(root) == []
    assert len(entries) + sum(notes.values()) > ROUNDS / 4


FULL = """
import resource, sys
from pathlib import Path
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.plan.creating import add_job
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.plan.workspace import find_workspace
from donewhen.jobs.record.writing import RecordedError
what, root, room = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
person = Approval(Actor("me", "person"))
workspace = find_workspace(root)
opened, done = workspace.job("open"), workspace.job("done")
proposed = agreement_proposals(workspace, [opened])[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
try:
    if what == "add":
        add_job(workspace, "New")
    elif what == "agree":
        agree(workspace, proposed, person)
    elif what == "cancel":
        decide(workspace, done, Decision("cancel", "x"), person)
    else:
        with workspace.locked(done.path):
            workspace.write(workspace.read(done.path), done.path, {"note": "x"})
except OSError as error:
    print(error.errno)
except RecordedError as error:
    print(error)
"""


@pytest.mark.parametrize("room", [0, 20, 500])
@pytest.mark.parametrize("what", ["add", "agree", "cancel", "rewrite"])
def test_a_full_disk_is_told_and_leaves_every_file_as_it_was(tmp_path: Path, what: str, room: int) -> None:
    root = prepared(tmp_path / "shop", "small")
    before, chains = plans(root), ledgers(root)
    argv = [sys.executable, "-c", FULL, what, str(root), str(room)]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == (str(errno.EFBIG), "")
    assert plans(root) == before
    assert all(ledgers(root)[name] == content for name, content in chains.items())
    workspace = find_workspace(root)
    assert codes(workspace) <= EXPECTED
    next_command({"rewrite": "cancel"}.get(what, what), root)
    assert codes(workspace) == set()
    assert leftovers(root) == []


def test_a_disk_that_fills_between_ledger_and_plan_is_repaired_by_the_next_command(tmp_path: Path) -> None:
    root = prepared(tmp_path / "shop", "small")
    workspace = find_workspace(root)
    path = workspace.place("done").path
    path.write_bytes(path.read_bytes() + b"x" * 50_000)
    before = plans(root)
    # There is room for the line of the ledger, and not for the plan file.
    room = 20_000
    argv = [sys.executable, "-c", FULL, "cancel", str(root), str(room)]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert_sentences(done.stdout, done.stderr)
    assert (plans(root), codes(workspace)) == (before, {"interrupted"})
    entries = workspace.ledger.read(workspace.job("done").id).entries
    decide(workspace, workspace.job("done"), Decision("split", "next"), ME)
    assert (workspace.job("done").status, codes(workspace)) == ("cancelled", set())
    assert len(workspace.ledger.read(workspace.job("done").id).entries) == len(entries) + 1


def test_a_command_that_is_repeated_after_the_disk_was_full_records_nothing_twice(tmp_path: Path) -> None:
    root = prepared(tmp_path / "shop", "small")
    workspace = find_workspace(root)
    path = workspace.place("done").path
    path.write_bytes(path.read_bytes() + b"x" * 50_000)
    argv = [sys.executable, "-c", FULL, "cancel", str(root), "20000"]
    subprocess.run(argv, capture_output=True, text=True, check=True)
    chain = workspace.ledger.read(workspace.job("done").id)
    decided = decide(workspace, workspace.job("done"), Decision("cancel", "x"), ME)
    assert decided.counts
    assert decided.entry == chain.entries[-1]
    assert workspace.ledger.read(workspace.job("done").id) == chain
    assert (workspace.job("done").status, codes(workspace)) == ("cancelled", set())
    # Once more is another decision.
    decide(workspace, workspace.job("done"), Decision("cancel", "x"), ME)
    assert len(workspace.ledger.read(workspace.job("done").id).entries) == len(chain.entries) + 1
