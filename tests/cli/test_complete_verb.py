"""The verbs for working on jobs, as people, agents and scripts call them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from donewhen import cli
from donewhen.cli import main
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.gates import evaluation
from donewhen.jobs.ledger.approval import Approval, person_at_terminal
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.document import rewrite_fields
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen_kit import run_main
from sentences import assert_sentences

Donewhen = Callable[..., subprocess.CompletedProcess[str]]
SAYS_YES = "It says yes.\n  check: file outputs/primary.md matches /yes/"
SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
GATES = ["agreement", "budget", "dependency", "truth", "reward"]


class Said(NamedTuple):
    """How a command ended, and what it printed."""

    status: int
    out: str
    err: str

    @property
    def envelope(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.out)
        assert set(told) == {"schema", "command", "ok", "data", "findings"}
        assert (told["schema"], told["ok"]) == ("donewhen/v1", self.status == 0)
        assert all(set(one) == {"code", "message", "where", "next"} for one in told["findings"])
        return told

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = self.envelope["data"]
        return found

    @property
    def codes(self) -> list[str]:
        return [one["code"] for one in self.envelope["findings"]]


Say = Callable[..., Said]


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    return create_project(tmp_path, "Shop")


@pytest.fixture
def say(shop: Workspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Say:
    """``say("complete", "001")``: the command in this process, in the project's folder."""
    monkeypatch.chdir(shop.root)
    monkeypatch.setattr(cli, "_end_properly_when_asked_to", lambda: None)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("DONEWHEN_DEBUG", raising=False)

    def call(*words: str) -> Said:
        capsys.readouterr()
        status = main(list(words))
        out, err = capsys.readouterr()
        return Said(int(status), out, err)

    return call


@pytest.fixture
def job(shop: Workspace) -> Job:
    return made(shop, "Say yes")


def made(shop: Workspace, title: str, **about: object) -> Job:
    job = add_job(shop, title, criteria=[SAYS_YES], **about)  # type: ignore[arg-type]
    seal(shop, job)
    return job


def seal(shop: Workspace, job: Job) -> None:
    for proposal in agreement_proposals(shop, [shop.job_at(job.path)]):
        agree(shop, proposal, Approval(person_at_terminal()))


def put_out(job: Job, text: str = "yes\n") -> None:
    (job.folder / "outputs" / "primary.md").write_text(text)


def typed(shop: Workspace, job: Job, **fields: Value) -> None:
    job.path.write_bytes(rewrite_fields(shop.read(job.path), fields))


@pytest.fixture
def done(say: Say, job: Job) -> Said:
    """The job, completed."""
    assert say("start", job.id).status == 0
    put_out(job)
    return say("complete", job.id)


# complete


def test_the_promise_and_its_receipt_stand_on_two_lines_of_their_own(shop: Workspace, job: Job, done: Said) -> None:
    assert done.status == 0
    lines = done.out.splitlines()
    place = lines.index(f"<promise>{job.id}-DONE</promise>")
    assert lines[place + 1] == f"receipt: {shop.ledger.head(job.id)}"
    project = shop.project().id
    assert lines[place + 2 : place + 4] == [
        f"<promise>{project}-DONE</promise>",
        f"receipt: {shop.ledger.head(project)}",
    ]
    assert [line.split()[1] for line in lines if line.startswith("  ✓")] == GATES
    assert "✗" not in done.out


def test_a_refusal_shows_every_gate_with_its_next_command_and_no_promise(say: Say, job: Job) -> None:
    say("start", job.id)
    said = say("complete", job.id)
    assert said.status == 1
    assert "promise" not in said.out
    assert [line.split()[1] for line in said.out.splitlines() if line[2:3] in "✓✗" and line[2:3]] == GATES
    assert "[output_missing]" in said.out
    assert job.id in said.out
    assert_sentences(said.out)
    assert "in_progress, iteration 1 of 3" in said.out


def test_completing_again_prints_the_promise_again(shop: Workspace, say: Say, job: Job, done: Said) -> None:
    head = shop.ledger.head(job.id)
    again = say("complete", job.id, "--json")
    assert (again.status, again.data["repeated"], again.data["receipt"]) == (0, True, head)
    assert again.data["promise"] == f"<promise>{job.id}-DONE</promise>"
    assert again.data["evaluation"] is None
    assert again.data["promise"] in done.out


@pytest.mark.parametrize("verb", ["complete", "job-complete"])
def test_programs_get_the_whole_story(shop: Workspace, say: Say, job: Job, verb: str) -> None:
    say("start", job.id)
    refused = say(verb, "--work-item-id", job.id, "--project", str(shop.root), "--json")
    assert (refused.status, refused.envelope["command"]) == (1, verb)
    assert (refused.data["done"], refused.data["promise"], refused.data["receipt"]) == (False, None, None)
    assert (refused.data["status"], refused.data["iteration"], refused.data["cascade"]) == ("in_progress", 1, [])
    assert {"output_missing", "criterion_failed"} <= set(refused.codes)
    gates = refused.data["evaluation"]["gates"]
    assert [gate["gate"] for gate in gates] == GATES
    assert [gate["passed"] for gate in gates] == [True, True, False, False, False]
    put_out(job)
    said = say(verb, job.id, "--json")
    assert (said.status, said.codes, said.data["done"]) == (0, [], True)
    assert said.data["receipt"] == shop.ledger.head(job.id)
    assert said.data["cascade"] == [shop.project().id]


def test_what_is_not_done_any_more_is_told(shop: Workspace, say: Say, job: Job, done: Said) -> None:
    below = made(shop, "Below", depends_on=[job.id])
    say("start", below.id)
    put_out(below)
    assert say("complete", below.id).status == 0
    say("start", job.id)
    put_out(job, "yes, better\n")
    said = say("complete", job.id)
    assert said.status == done.status == 0
    assert below.id in said.out
    assert_sentences(said.out)


def test_a_gate_that_breaks_exits_with_three(
    shop: Workspace, say: Say, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> None:
        raise RuntimeError("a bug")

    say("start", job.id)
    put_out(job)
    monkeypatch.setattr(evaluation, "dependency_gate", broken)
    said = say("complete", job.id, "--json")
    assert (said.status, said.codes, said.data["done"]) == (3, ["gate_error"], False)
    assert shop.job(job.id).iteration == 0
    for verb in ("reward", "truth-eval"):
        assert say(verb, job.id).status == 3


@pytest.mark.parametrize("verb", ["complete", "job-complete", "start", "block", "ask"])
def test_a_job_is_named_once_and_exists(say: Say, job: Job, verb: str) -> None:
    more = {"block": ["--reason", "x"], "ask": ["--question", "x"]}.get(verb, [])
    assert say(verb, *more, "--json").codes == ["usage"]
    assert say(verb, job.id, "--work-item-id", job.id, *more).status == 2
    unknown = say(verb, "WI-20200101-001", *more)
    assert (unknown.status, unknown.out) == (2, "")
    assert_sentences(unknown.err)


@pytest.mark.parametrize("verb", ["complete", "start", "next", "ready", "plan-check", "reward", "truth-eval"])
def test_without_a_project_there_is_nothing_to_do(donewhen: Donewhen, tmp_path: Path, verb: str) -> None:
    (tmp_path / ".git").mkdir()
    done = donewhen([verb, *(["001"] if verb in ("complete", "start", "reward", "truth-eval") else [])], tmp_path)
    assert done.returncode == 2
    assert "donewhen init" in done.stderr


def test_an_unreadable_plan_is_a_usage_error_with_its_place(shop: Workspace, say: Say, job: Job) -> None:
    typed(shop, job, stakes="hihg")
    said = say("complete", job.id)
    assert said.status == 2
    assert_sentences(said.err)
    assert f"{shop.where(job.path)}:" in said.err


# start


def test_a_start_says_how_it_stands(say: Say, job: Job) -> None:
    said = say("start", "001")
    assert (said.status, "in_progress, iteration 0 of 3" in said.out) == (0, True)
    again = say("start", job.id, "--json")
    started = {"job": job.id, "started": True, "status": "in_progress", "next": None, "reopened": False}
    assert again.data == {**started, "overlapping": [], "lessons": [], "taken_over": "", "from_people": []}


def test_a_start_that_is_refused_says_why_and_what_next(shop: Workspace, say: Say) -> None:
    job = add_job(shop, "New", criteria=[SAYS_YES])
    said = say("start", job.id)
    assert said.status == 1
    assert "[not_agreed_yet]" in said.out
    assert f"next: donewhen agree {job.id}" in said.out
    told = say("start", job.id, "--json")
    assert set(told.codes) == {"not_agreed_yet"}
    assert (told.data["started"], told.data["status"]) == (False, "planned")
    assert {one["next"] for one in told.envelope["findings"]} == {f"donewhen agree {job.id}"}


# next and ready


def test_next_walks_through_the_whole_job(say: Say, job: Job) -> None:
    assert say("next").out.strip() == f"donewhen start {job.id}"
    assert say("next", "--json").data == {"job": None, "next": f"donewhen start {job.id}", "ready": [job.id]}
    say("start", job.id)
    text = say("next").out.splitlines()[-1]
    assert job.id in text
    assert_sentences(text)
    put_out(job)
    say("truth-eval", job.id)
    text = say("next", job.id).out.splitlines()[-1]
    assert job.id in text
    assert_sentences(text)
    said = say("next", "--json")
    assert (said.status, said.data["job"], said.data["passed"]) == (0, job.id, True)
    say("complete", job.id)
    assert say("next").out.splitlines() == ["No job is in progress, and none can start now.", "donewhen status"]


def test_ready_shows_waves_and_the_critical_path(shop: Workspace, say: Say, job: Job) -> None:
    below = made(shop, "Below", depends_on=[job.id])
    said = say("ready")
    assert said.status == 0
    assert job.id in "\n".join(said.out.splitlines())
    assert below.id in "\n".join(said.out.splitlines())
    assert_sentences(said.out.splitlines())
    assert say("ready", "--json").data == {
        "ready": [job.id],
        "waves": [[job.id], [below.id]],
        "critical_path": [job.id, below.id],
        "hours": 2.0,
    }


def test_with_nothing_to_start_ready_says_so(say: Say, done: Said) -> None:
    assert done.status == 0
    assert_sentences(say("ready").out.strip())


# block and ask


@pytest.mark.parametrize(
    ("words", "kind"),
    [(["block", "--reason", "No key."], "block"), (["ask", "--question", "No key."], "ask")],
    ids=["block", "ask"],
)
def test_resting_is_a_legal_stop(shop: Workspace, say: Say, job: Job, words: list[str], kind: str) -> None:
    say("start", job.id)
    said = say(*words, job.id)
    assert said.status == 0
    assert "blocked: No key." in said.out
    assert "next, for a person: donewhen review" in said.out
    told = say(*words, "--work-item-id", job.id, "--json")
    assert (told.data["status"], told.data["decision"], told.data["reason"]) == ("blocked", kind, "No key.")
    assert shop.job(job.id).status == "blocked"


@pytest.mark.parametrize("words", [["block"], ["ask"], ["block", "--reason", " "], ["ask", "--question", ""]])
def test_resting_without_words_is_refused(shop: Workspace, say: Say, job: Job, words: list[str]) -> None:
    assert say(*words, job.id).status == 2
    assert shop.job(job.id).status == "planned"


# reward and truth


@pytest.mark.parametrize("verb", ["reward", "reward-eval"])
def test_the_score_is_told_line_by_line(shop: Workspace, say: Say, job: Job, verb: str) -> None:
    say("start", job.id)
    low = say(verb, job.id, "--explain")
    assert low.status == 1
    assert_sentences(low.out)
    put_out(job)
    assert say("truth-eval", job.id).status == 0
    said = say(verb, "--work-item-id", job.id, "--json")
    assert (said.status, said.codes, said.data["target"]) == (0, [], 80)
    components = said.data["score"]["components"]
    counted = [component for component in components if component["applies"]]
    got, possible = (sum(one[name] for one in counted) for name in ("got", "possible"))
    assert said.data["score"]["total"] == round(100 * got / possible) == shop.read(job.path).fields["reward_last_score"]
    assert sum(component["possible"] for component in components) == 100
    assert shop.job(job.id).iteration == 0


def test_a_score_that_is_too_low_is_the_one_finding_of_reward(say: Say, job: Job) -> None:
    said = say("reward", job.id, "--json")
    assert (said.status, said.codes) == (1, ["score_too_low"])
    assert said.envelope["findings"][0]["next"] == f"donewhen reward {job.id} --explain"


def test_truth_is_told_criterion_by_criterion(say: Say, job: Job) -> None:
    say("start", job.id)
    put_out(job, "no\n")
    said = say("truth-eval", job.id, "--json")
    assert (said.status, said.data["status"], said.data["mode"]) == (1, "fail", "strict")
    assert said.codes == ["criterion_failed"]
    assert "truth: fail" in say("truth-eval", job.id).out
    put_out(job)
    assert say("truth-eval", job.id, "--json").data["failures"] == []


# plan-check


def test_a_sound_plan_passes(say: Say, done: Said) -> None:
    assert done.status == 0
    said = say("plan-check")
    assert said.status == 0
    assert_sentences(said.out.strip())


def test_every_problem_is_named_with_its_place_and_next_step(shop: Workspace, say: Say, job: Job) -> None:
    typed(shop, job, depends_on=[job.id, "WI-20200101-001"], status="done")
    said = say("plan-check", "--json")
    assert said.status == 1
    assert {"tampered", "dependency_dangling", "dependency_circle"} <= set(said.codes)
    assert {one["where"] for one in said.envelope["findings"]} == {shop.where(job.path)}
    assert all(one["next"] for one in said.envelope["findings"])
    assert "[dependency_circle]" in say("plan-check").out


# loop


def test_a_loop_ends_with_the_promise_or_says_why_not(shop: Workspace, say: Say, job: Job) -> None:
    nothing = say("loop", job.id, "--max-turns", "1", "--json", "--", "true")
    assert (nothing.status, nothing.codes) == (1, ["loop_ended"])
    assert (nothing.data["ending"], nothing.data["turns"]) == ("turns_spent", 1)
    output = shop.where(job.folder / "outputs" / "primary.md")
    said = say("loop", job.id, "--", sys.executable, "-c", f"open({output!r}, 'w').write('yes')")
    assert said.status == 0
    assert_sentences(said.out)
    lines = said.out.splitlines()
    assert lines[-4:-2] == [f"<promise>{job.id}-DONE</promise>", f"receipt: {shop.ledger.head(job.id)}"]
    project = shop.project().id
    assert lines[-2:] == [f"<promise>{project}-DONE</promise>", f"receipt: {shop.ledger.head(project)}"]
    assert say("loop", job.id, "--json", "--", "true").data["turns"] == 0


@pytest.mark.parametrize("words", [["--max-turns", "0"], ["--max-seconds", "0"], ["--turn-seconds", "-1"], []])
def test_a_loop_needs_a_command_and_caps_that_let_it_run(say: Say, job: Job, words: list[str]) -> None:
    assert say("loop", job.id, *words, *(["--", "true"] if words else [])).status == 2


# promise verify


def test_a_promise_is_verified_from_a_file_and_from_standard_input(
    shop: Workspace, say: Say, job: Job, done: Said, donewhen: Donewhen, tmp_path: Path
) -> None:
    path = tmp_path / "said.txt"
    path.write_text(done.out)
    said = say("promise", "verify", str(path), "--json")
    assert (said.status, said.data["id"], said.data["real"]) == (0, job.id, True)
    assert_sentences(said.data["why"])
    piped = run_main(["promise", "verify", "--project", str(shop.root)], input=done.out)
    assert piped.returncode == 0
    assert job.id in piped.stdout
    assert_sentences(piped.stdout)
    nothing = donewhen(["promise", "verify"], shop.root)
    assert nothing.returncode == 1
    assert_sentences(nothing.stdout)


def test_a_typed_promise_is_told_from_a_real_one(say: Say, job: Job, tmp_path: Path) -> None:
    path = tmp_path / "said.txt"
    path.write_text(f"<promise>{job.id}-DONE</promise>\n")
    said = say("promise", "verify", str(path), "--json")
    assert (said.status, said.codes, said.data["real"]) == (1, ["promise"], False)
    assert say("promise", "verify", str(tmp_path / "absent")).status == 2


# Scripts and help


def script(name: str, words: Sequence[str], cwd: Path) -> Said:
    done = subprocess.run([sys.executable, str(SCRIPTS / name), *words], cwd=cwd, capture_output=True, text=True)
    return Said(done.returncode, done.stdout, done.stderr)


def test_the_scripts_of_the_spec_do_what_the_verbs_do(
    shop: Workspace, job: Job, say: Say, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    named = ["--project", str(shop.root), "--work-item-id", job.id, "--json"]
    assert script("job_complete.py", named, elsewhere).status == 1
    say("start", job.id)
    put_out(job)
    truth = script("truth_eval.py", named, elsewhere)
    assert (truth.status, truth.envelope["command"], truth.data["status"]) == (0, "truth-eval", "pass")
    reward = script("reward_eval.py", named, elsewhere)
    assert (reward.status, reward.envelope["command"]) == (0, "reward-eval")
    done = script("job_complete.py", named, elsewhere)
    assert (done.status, done.envelope["command"], done.data["status"]) == (0, "job-complete", "done")
    plan = script("plan_check.py", ["--project", str(shop.root), "--json"], elsewhere)
    assert (plan.status, plan.envelope["command"], plan.data["jobs"]) == (0, "plan-check", 1)


VERBS = ["complete", "job-complete", "start", "next", "ready", "block", "ask", "loop", "reward", "reward-eval",
         "truth-eval", "plan-check", "promise verify"]  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_they_explain_themselves(say: Say, verb: str) -> None:
    said = say(*verb.split(), "--help")
    assert said.status == 0
    assert said.out.startswith(f"Usage: donewhen {verb} ")
    assert {"--json", "--project"} <= set(said.out.split())
