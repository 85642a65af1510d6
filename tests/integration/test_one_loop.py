"""One loop, with the real command line: agents are held until gates pass, gates ask the judge, people teach it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from donewhen.config.agent_runtimes import AGENT_VARIABLES
from donewhen.demo.example_mission import examples, make_mission
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.plan.workspace import find_workspace
from donewhen_kit import run_main, run_process
from sentences import assert_sentences, lines_with

Person = Callable[..., Any]
JUDGED = "The report convinces :: judge:agent-reports"
FLAWS = (
    "The numbers are placeholder values for now.",
    "Some placeholder text is left in.",
    "There is a placeholder in one table.",
)


class Project:
    """A repository in which an agent works, at the command line and nowhere else."""

    def __init__(self, root: Path, as_person: Person) -> None:
        self.root = root
        self.as_person = as_person
        self.environment = {name: value for name, value in os.environ.items() if name not in AGENT_VARIABLES}
        self.environment |= {"NO_COLOR": "1"}

    def run(self, *arguments: str, stdin: str = "", status: int | None = 0) -> str:
        """A command of an agent; what it printed."""
        # A hook is a process of its own, as the runtime starts it.
        run = run_process if arguments[0] == "hook" else run_main
        done = run(arguments, self.root, self.environment, stdin)
        assert status is None or done.returncode == status, done.stdout + done.stderr
        return done.stdout

    def data(self, *arguments: str, status: int = 0) -> Any:
        return json.loads(self.run(*arguments, "--json", status=status))["data"]

    def person(self, *arguments: str, keys: Sequence[str] = ()) -> str:
        """A command of a person at a terminal; what they saw."""
        played = self.as_person(list(arguments), self.root, keys=keys)
        assert played.status == 0, played.screen
        screen: str = played.screen
        return screen

    def stop(self, **more: object) -> dict[str, Any]:
        """An agent in Claude Code wants to stop; what the hook answers."""
        event = {"session_id": "s", "cwd": str(self.root), "hook_event_name": "Stop", "stop_hook_active": False}
        answer: dict[str, Any] = json.loads(
            self.run("hook", "stop", "--runtime", "claude", stdin=json.dumps(event | more))
        )
        return answer

    def add(self, title: str, output: str, *criteria: str) -> str:
        """A job that a person has agreed to and that was started; its id."""
        name = self.propose(title, output, *criteria)
        self.person("agree", name)
        self.run("start", name)
        return name

    def propose(self, title: str, output: str, *criteria: str) -> str:
        """A job that nobody has agreed to; its id."""
        given = [word for criterion in criteria or (JUDGED,) for word in ("--criterion", criterion)]
        self.run("add", title, *given, "--output", f"/{output}")
        return max(place.id for place in find_workspace(self.root).places())

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def entries(self, job: str) -> tuple[Entry, ...]:
        return find_workspace(self.root).ledger.read(job).entries

    def judged(self, job: str) -> Entry:
        """The last verdict of the judge."""
        return [entry for entry in self.entries(job) if entry.data.get("what") == "judge"][-1]


@pytest.fixture
def project(repository: Path, git: Callable[..., str], as_person: Person) -> Project:
    (repository / "README.md").write_text("A shop.\n")
    git(repository, "add", "--all")
    git(repository, "commit", "-q", "-m", "x")
    return Project(repository, as_person)


def test_an_agent_is_held_until_the_judge_is_convinced_and_then_has_a_promise(
    project: Project, git: Callable[..., str]
) -> None:
    project.write("donewhen.toml", "[stop]\njobs = true\n")
    project.run("init", "--title", "Shop")
    # A judge with fewer than two rules leaves it to a person what its default passes.
    rules = [f'When "{word}" occurs, the verdict is fail.' for word in ("placeholder", "lorem ipsum")]
    project.run("mission", "new", "missions/agent-reports", *(word for rule in rules for word in ("--rule", rule)))
    project.write("check.sh", "test -s report.md && echo it is there\n")
    # What judges is agreed to as it was committed.
    git(project.root, "add", "--all")
    git(project.root, "commit", "-q", "-m", "A check")
    job = project.add("Report", "report.md", "It is there :: run sh check.sh", JUDGED)

    # Nothing is there, so nothing is judged, and the agent may not stop.
    held = project.stop()
    assert held["decision"] == "block"
    assert str(job) in held["reason"]
    assert_sentences(held["reason"])
    assert "[criterion_failed]" in project.run("complete", job, status=1)
    assert not any(entry.data.get("what") == "judge" for entry in project.entries(job))

    # The check passes, and the judge is not convinced.
    project.write("report.md", "All numbers are placeholder values.\n")
    refused = project.run("complete", job, status=1)
    assert_sentences(refused)
    assert project.stop(stop_hook_active=True)["decision"] == "block"

    # The work is done.
    project.write("report.md", "Of 42 lines, 42 were parsed.\n")
    assert project.stop(stop_hook_active=True)["decision"] == "block"
    completed = project.run("complete", job)
    assert f"<promise>{job}-DONE</promise>" in completed
    assert_sentences(project.run("promise", "verify", stdin=completed))
    assert "decision" not in project.stop(stop_hook_active=True)
    ended = project.entries(job)[-1]
    verdict = project.judged(job)
    assert ended.data["judged"]["AC-2"]["entry"] == verdict.hash
    assert (verdict.data["verdict"], verdict.data["votes"]) == ("pass", {"pass": 3, "fail": 0, "malformed": 0})
    project.run("audit")

    # A promise holds for this work, and is not to be had by typing.
    typed = completed.replace(ended.hash, "sha256:" + "0" * 64)
    assert_sentences(project.run("promise", "verify", stdin=typed, status=1))


def test_an_agent_may_rest_while_a_person_has_to_decide(project: Project) -> None:
    project.write("donewhen.toml", "[stop]\njobs = true\n")
    project.run("init", "--title", "Shop")
    project.run("mission", "new", "missions/agent-reports")
    job = project.add("Report", "report.md")
    project.write("report.md", "Of 42 lines, 42 were parsed.\n")
    assert project.stop()["decision"] == "block"
    assert "[needs_human]" in project.run("complete", job, status=1)
    assert "decision" not in project.stop(stop_hook_active=True)
    assert find_workspace(project.root).job(job).iteration == 0
    project.person("review", keys=["p"])
    assert project.stop()["decision"] == "block"
    completed = project.run("complete", job)
    assert_sentences(project.run("promise", "verify", stdin=completed))


def test_people_who_overrule_the_judge_change_its_verdict_on_the_next_job(project: Project) -> None:
    mission = project.root / "missions" / "agent-reports"
    make_mission(mission, 160)
    with (mission / "mission.toml").open("a") as file:
        file.write("[manual_review]\nspot_check = 1.0\n")
    project.run("init", "--title", "Shop")
    project.person("agree")

    # From the shipped tickets the judge learns something, and nobody has told it about placeholders.
    first = project.data("learn", "agent-reports")
    assert first["gates_follow"] == {"step": 0, "newest": False}
    project.person("guidance", "accept", "agent-reports")
    good = [example.text for example in examples(400, seed=99) if example.label == "pass" and not example.noisy]
    jobs: dict[str, bool] = {}
    for number in range(40):
        flawed = number % 5 != 0
        jobs[_planned(project, number, good[number], flawed=flawed)] = flawed
    project.person("agree")
    for job in jobs:
        project.run("start", job)
        project.run("complete", job, status=None)
    assert project.judged(max(jobs)).data["verdict"] == "pass"
    assert jobs[max(jobs)], "the last one is flawed"
    passed = [job for job in jobs if project.judged(job).data["verdict"] == "pass"]
    assert len(passed) >= 34

    # A person looks at what the judge has passed, and sees it otherwise where there is a placeholder.
    items = project.data("review", "--kind", "spot_check")["items"]
    assert {item["job"] for item in items} >= set(passed)
    screen = project.person(
        "review", "--kind", "spot_check", keys=["f" if jobs[item["job"]] else "p" for item in items]
    )
    assert_sentences(lines_with(screen, f"{len(items)} ")[-1])
    wrong = next(job for job in passed if jobs[job])
    assert "says fail" in project.run("complete", wrong, status=1)

    # What they said is what it learns from; the gates follow that once a person has looked at it.
    second = project.data("learn", "agent-reports")
    events = (mission / "runs" / second["run"] / "events.jsonl").read_text()
    assert json.loads(events.partition("\n")[0])["data"]["tickets"]["count"] == 160 + len(items)
    assert second["gates_follow"]["newest"] is False
    before = _judged_next(project, good[50], "before")
    assert before.data["verdict"] == "pass"
    assert "placeholder" in project.run("guidance", "diff", "agent-reports", "--accepted")
    project.person("guidance", "accept", "agent-reports")

    # The next job with the same flaw, and one without it.
    after = _judged_next(project, good[50], "after")
    assert after.data["verdict"] == "fail"
    assert after.data["guidance_step"] == second["guidance_step"] > before.data["guidance_step"]
    assert "placeholder" in after.data["reason"]
    assert str(second["guidance_step"]) in project.run("log", "-n", "500")
    job = project.add("Report 90", "out/90.md")
    project.write("out/90.md", f"{good[51]}\n")
    assert f"<promise>{job}-DONE</promise>" in project.run("complete", job)
    project.run("audit")


def _planned(project: Project, number: int, text: str, *, flawed: bool) -> str:
    """A job that nobody has agreed to, with its report written."""
    job = project.propose(f"Report {number}", f"out/{number}.md")
    project.write(f"out/{number}.md", f"{text}\n{FLAWS[number % 3]}\n" if flawed else f"{text}\n")
    return job


def _judged_next(project: Project, text: str, name: str) -> Entry:
    job = project.add(f"Report {name}", f"out/{name}.md")
    project.write(f"out/{name}.md", f"{text}\nThe table holds placeholder numbers.\n")
    project.run("complete", job, status=None)
    return project.judged(job)
