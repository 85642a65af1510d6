"""The facts of a job, collected from real workspaces."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from donewhen.jobs.board.views import ViewFact
from donewhen.jobs.gates.evaluation import evaluate
from donewhen.jobs.gates.evidence_status import collect_evidence, sign_off
from donewhen.jobs.gates.score import score_of
from donewhen.jobs.gates.suites import SuiteFact
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.gate_results import GateCode
from donewhen.jobs.lessons.lesson_use import LessonFact, lesson_fact
from lean_python import lean_python
from sentences import assert_sentences

if TYPE_CHECKING:
    from donewhen.jobs.plan.job import Job

Bench = Any
ADA = Approval(Actor("ada", "person"))
BOT = Actor("bot")
PYTEST = f"{lean_python()} -m pytest -q -p no:cacheprovider"
TWO_TESTS = "def test_one():\n    assert True\n\n\ndef test_two():\n    assert True\n"
LESSON = "## LL-20260214-001 {id}\n- Context: {text}\n- What worked: {text}\n- What failed: {text}\n"


def codes(bench: Bench, job: Job) -> list[GateCode]:
    return [reason.code for reason in evaluate(bench.facts(job)).reasons]


def states(bench: Bench, job: Job) -> list[str]:
    return [output.state for output in bench.facts(job).outputs]


# Outputs


def test_an_output_with_something_in_it_is_good(bench: Bench) -> None:
    job = bench.job()
    assert states(bench, job) == ["missing"]
    bench.write(job)
    (found,) = bench.facts(job).outputs
    assert (found.path, found.state, found.changed) == ("outputs/primary.md", "good", True)


@pytest.mark.parametrize("content", ["", "\n", " \t\r\n\n"], ids=["empty", "newline", "white"])
def test_an_output_without_a_word_is_empty(bench: Bench, content: str) -> None:
    job = bench.job()
    bench.write(job, content)
    assert states(bench, job) == ["empty"]
    assert GateCode.OUTPUT_MISSING in codes(bench, job)


def test_a_folder_is_no_output(bench: Bench) -> None:
    job = bench.job()
    bench.write(job, name="outputs/primary.md/inside.md")
    assert states(bench, job) == ["not_a_file"]


@pytest.mark.parametrize("path", ["../..", "../../jobs/plan.md", "outputs/../../../x"])
def test_an_output_that_leads_out_of_the_job_is_outside(bench: Bench, path: str) -> None:
    job = bench.job(agreed=False)
    bench.edit(job, "- outputs/primary.md", f'- "{path}"')
    assert states(bench, job) == ["outside"]
    assert GateCode.OUTPUT_MISSING in codes(bench, job)


def test_a_file_of_the_system_is_looked_for_in_the_project(bench: Bench) -> None:
    job = bench.job(agreed=False)
    bench.edit(job, "- outputs/primary.md", "- /etc/hostname")
    assert Path("/etc/hostname").exists()
    assert states(bench, job) == ["missing"]


def test_a_link_out_of_the_project_is_outside(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("Something that was there already.\n")
    job = bench.job()
    (job.folder / "outputs" / "primary.md").symlink_to(tmp_path / "secret.md")
    assert states(bench, job) == ["outside"]


def test_a_link_within_the_project_is_no_file_of_its_own(bench: Bench) -> None:
    job = bench.job()
    bench.write(job, name="notes/real.md")
    (job.folder / "outputs" / "primary.md").symlink_to(job.folder / "notes" / "real.md")
    assert states(bench, job) == ["not_a_file"]


def test_outputs_that_lead_out_are_told_even_after_somebody_signed_the_job_off(bench: Bench) -> None:
    job = bench.job(criteria=["It reads well."])
    bench.write(job)
    sign_off(bench.workspace, job, "AC-1", "I read it", ADA)
    bench.edit(job, "- outputs/primary.md", '- "../.."')
    assert states(bench, job) == ["outside"]
    assert {GateCode.OUTPUT_MISSING, GateCode.AGREEMENT_VOIDED} <= {*codes(bench, job)}


def test_a_job_whose_upstream_leads_out_still_has_facts(bench: Bench) -> None:
    first = bench.done("First")
    second = bench.job("Second", depends_on=[first.id])
    bench.edit(first, "- outputs/primary.md", '- "../.."')
    assert bench.facts(second).upstream_changed == (bench.workspace.where(first.folder / "outputs" / "primary.md"),)
    assert GateCode.UPSTREAM_CHANGED in codes(bench, second)


def test_a_job_whose_upstream_cannot_be_read_still_has_facts(bench: Bench) -> None:
    first = bench.done("First")
    second = bench.job("Second", depends_on=[first.id])
    first.path.write_text("---\nstatus: [\n---\n")
    facts = bench.facts(second)
    assert [dependency.state for dependency in facts.dependencies] != ["done"]


def test_an_output_with_a_placeholder_in_it_earns_no_points(bench: Bench) -> None:
    job = bench.job(criteria=["It reads well."])
    before = score_of(bench.facts(job)).total
    for text in ("x\n", "TBD\n", "[The result. Replace this line.]\n"):
        bench.write(job, text)
        assert score_of(bench.facts(job)).total == before
    bench.write(job)
    assert score_of(bench.facts(job)).total > before


@pytest.mark.parametrize(
    "content",
    [
        b"TBD\n" * 400,
        b"TBD\0\n",
        b"\xffto be done\n",
        b"\0" * 12,
        "to be done\n".encode("utf-16"),
        "\n\n".encode("utf-16"),
    ],
    ids=[
        "repeated",
        "with a zero byte",
        "with a bad byte",
        "zeros",
        "in another encoding",
        "blank in another encoding",
    ],
)
def test_a_placeholder_in_another_form_is_one_although_a_command_passed(bench: Bench, content: bytes) -> None:
    job = bench.done()
    bench.write(job).write_bytes(content)
    collect_evidence(bench.workspace, bench.read(job), BOT)
    (output,) = bench.facts(job).outputs
    assert (output.state, output.template) == ("good", True)


@pytest.mark.parametrize(
    "content",
    [
        "Der Zähler hat zwölf Zeilen.\n".encode("utf-16"),
        b"The log has 12 lines.\0\n",
        b"\0\0\0\7",
        b"\x89\xfa\0\x01",
        b"".join(b"line %d has a number\n" % number for number in range(400)),
        b"0,0,0\n" * 400,
    ],
    ids=["utf-16", "words and a zero byte", "a number", "bytes", "many lines", "a table of zeros"],
)
def test_what_says_something_in_any_form_is_no_placeholder(bench: Bench, content: bytes) -> None:
    job = bench.done()
    bench.write(job).write_bytes(content)
    collect_evidence(bench.workspace, bench.read(job), BOT)
    (output,) = bench.facts(job).outputs
    assert (output.state, output.template) == ("good", False)


# Unchanged outputs


def test_an_output_that_was_there_at_the_start_and_is_the_same_is_unchanged(bench: Bench) -> None:
    job = bench.job(agreed=False)
    bench.write(job)
    bench.agree(job)
    bench.start(job)
    assert bench.facts(job).outputs[0].changed is False
    bench.complete(job)
    assert codes(bench, job) == [GateCode.OUTPUT_UNCHANGED]
    bench.write(job, "Now with 13 lines.\n")
    assert bench.complete(job).done


def test_an_output_made_between_agreement_and_start_is_a_change(bench: Bench) -> None:
    job = bench.job(started=False)
    bench.write(job)
    assert bench.facts(job).outputs[0].changed is True
    bench.start(job)
    assert bench.facts(job).outputs[0].changed is True


def test_an_output_that_was_written_again_with_the_same_words_is_unchanged(bench: Bench) -> None:
    job = bench.job(agreed=False)
    bench.write(job)
    bench.agree(job)
    bench.start(job)
    bench.write(job, "something else")
    bench.write(job)
    assert bench.facts(job).outputs[0].changed is False


def test_a_job_that_is_read_only_by_agreement_completes_with_what_was_there(bench: Bench) -> None:
    job = bench.job(agreed=False)
    bench.write(job)
    bench.edit(job, "truth_mode: strict", "truth_mode: strict\nread_only: true")
    bench.agree(job)
    bench.start(job)
    assert bench.complete(job).done


def test_completing_an_invalidated_job_again_with_the_same_output_is_honest(bench: Bench) -> None:
    first = bench.done("First")
    second = bench.done("Second", depends_on=[first.id])
    bench.write(first, "The log has 13 lines.\n")
    bench.start(first)
    assert [job.id for job in bench.complete(first).invalidated] == [second.id]
    assert bench.facts(second).upstream_changed == (bench.workspace.where(first.folder / "outputs" / "primary.md"),)
    assert bench.start(second).started
    facts = bench.facts(second)
    assert (facts.outputs[0].changed, facts.upstream_changed) == (True, ())
    assert bench.complete(second).done


# Upstream


def test_what_changed_upstream_since_the_start_is_named(bench: Bench) -> None:
    first = bench.done("First")
    second = bench.job("Second", depends_on=[first.id])
    assert bench.facts(second).upstream_changed == ()
    path = bench.write(first, "Other words.\n")
    assert bench.facts(second).upstream_changed == (bench.workspace.where(path),)
    path.unlink()
    assert bench.facts(second).upstream_changed == (bench.workspace.where(path),)
    bench.write(first)
    assert bench.facts(second).upstream_changed == ()


def test_nothing_has_changed_for_a_job_that_was_not_started(bench: Bench) -> None:
    first = bench.done("First")
    second = bench.job("Second", started=False, depends_on=[first.id])
    bench.write(first, "Other words.\n")
    assert bench.facts(second).upstream_changed == ()


def test_dependencies_are_looked_at_all_the_way_up(bench: Bench) -> None:
    first = bench.done("First", inputs=["/data.csv"])
    second = bench.done("Second", depends_on=[first.id])
    third = bench.job("Third", depends_on=[second.id])
    assert [dependency.state for dependency in bench.facts(third).dependencies] == ["done"]
    (bench.root / "data.csv").write_text("new\n")
    (found,) = bench.facts(third).dependencies
    assert (found.id, found.state, found.chain) == (second.id, "invalid", (second.id, first.id))
    assert "data.csv changed" in found.why


# Tests that got lost


@pytest.fixture
def tested(bench: Bench) -> Callable[..., Job]:
    """A job that is verified by a suite of two tests, which were there when it was started."""

    def make(command: str = PYTEST) -> Job:
        (bench.root / "test_it.py").write_text(TWO_TESTS)
        bench.git(bench.root, "add", "test_it.py")
        job: Job = bench.job(criteria=["It works."], commands=[command])
        bench.write(job)
        return job

    return make


def suites_after(bench: Bench, job: Job, text: str) -> tuple[SuiteFact, ...]:
    (bench.root / "test_it.py").write_text(text)
    collect_evidence(bench.workspace, job, BOT)
    found: tuple[SuiteFact, ...] = bench.facts(job).suites
    return found


def test_a_suite_is_compared_with_what_it_was_at_the_start(bench: Bench, tested: Callable[..., Job]) -> None:
    job = tested()
    (found,) = suites_after(bench, job, TWO_TESTS + "\n\ndef test_three():\n    assert True\n")
    assert (found.evidence, found.lost, found.skipped, found.before, found.now) == (PYTEST, (), (), 2, 3)
    assert bench.complete(job).done


def test_a_test_that_was_deleted_is_lost(bench: Bench, tested: Callable[..., Job]) -> None:
    job = tested()
    (found,) = suites_after(bench, job, "def test_one():\n    assert True\n")
    assert (found.lost, found.skipped, found.now) == (("test_it::test_two",), (), 1)
    result = bench.complete(job)
    assert (result.done, [reason.code for reason in result.evaluation.reasons]) == (False, [GateCode.REPORT_TESTS_LOST])


def test_a_test_that_is_skipped_now_is_named_and_one_that_always_was_is_not(
    bench: Bench, tested: Callable[..., Job]
) -> None:
    job = tested()
    skipping = "import pytest\n\n\n@pytest.mark.skip\n" + TWO_TESTS
    (found,) = suites_after(bench, job, skipping)
    assert (found.lost, found.skipped) == ((), ("test_it::test_one",))
    assert GateCode.REPORT_TESTS_SKIPPED in codes(bench, job)


def test_a_test_that_was_skipped_from_the_beginning_must_stay_but_may_stay_skipped(bench: Bench) -> None:
    text = "import pytest\n\n\n@pytest.mark.skip\n" + TWO_TESTS
    (bench.root / "test_it.py").write_text(text)
    bench.git(bench.root, "add", "test_it.py")
    job = bench.job(criteria=["It works."], commands=[PYTEST])
    (found,) = suites_after(bench, job, text + "\n")
    assert (found.lost, found.skipped, found.before) == ((), (), 1)
    (found,) = suites_after(bench, job, "def test_two():\n    assert True\n")
    assert found.lost == ("test_it::test_one",)


def test_a_secret_in_the_command_does_not_hide_what_got_lost(bench: Bench, tested: Callable[..., Job]) -> None:
    token = "gh" + "p_" + "a1B2c3D4" * 5
    job = tested(f"{PYTEST} --override-ini=cache_dir={token}")
    (found,) = suites_after(bench, job, "def test_one():\n    assert True\n")
    assert found.lost == ("test_it::test_two",)


def test_a_command_without_a_report_is_no_suite(bench: Bench) -> None:
    (bench.root / "check.sh").write_text("exit 0\n")
    bench.git(bench.root, "add", "check.sh")
    job = bench.job(criteria=["It works."], commands=["sh check.sh"])
    collect_evidence(bench.workspace, job, BOT)
    facts = bench.facts(job)
    assert (facts.suites, facts.chain_breaks, facts.runs) == ((), (), 1)


def test_a_report_whose_test_ids_are_gone_breaks_the_record(bench: Bench, tested: Callable[..., Job]) -> None:
    job = tested()
    suites_after(bench, job, TWO_TESTS + "\n")
    store = bench.workspace.folder / "evidence"
    gone = [path for path in store.rglob("*") if path.is_file() and b"test_it::test_two" in path.read_bytes()]
    (outcomes,) = (item for item in gone if set(json.loads(item.read_bytes()).values()) == {"passed"})
    outcomes.unlink()
    facts = bench.facts(job)
    assert facts.suites == ()
    assert_sentences(facts.chain_breaks)
    assert GateCode.RECORD_BROKEN in codes(bench, job)


# The record


def test_a_ledger_that_was_edited_is_broken_and_a_torn_last_line_is_not(bench: Bench) -> None:
    job = bench.job()
    path = bench.workspace.folder / "ledger" / f"{job.id}.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"seq": 9')
    assert bench.facts(job).chain_breaks == ()
    path.write_bytes(whole.replace(b'"bot"', b'"ada"', 1))
    assert len(bench.facts(job).chain_breaks) == 1


def test_what_was_typed_into_a_projected_field_is_tampered(bench: Bench) -> None:
    job = bench.job()
    bench.edit(job, "truth_last_status: unknown", "truth_last_status: pass")
    assert [(item.field, item.found) for item in bench.facts(job).tampered] == [("truth_last_status", "pass")]


def test_a_job_that_nothing_happened_to_can_have_nothing_tampered_with(bench: Bench) -> None:
    job = bench.job(agreed=False)
    bench.edit(job, "iteration: 0", "iteration: 2")
    assert bench.facts(job).tampered == ()


def test_runs_count_from_the_last_start_and_before_it_while_they_hold(bench: Bench) -> None:
    job = bench.job(started=False)
    bench.write(job)
    collect_evidence(bench.workspace, job, BOT)
    assert bench.facts(job).runs == 1
    bench.start(job)
    assert bench.facts(job).runs == 1
    bench.write(job, "Now with 13 lines.\n")
    assert bench.facts(job).runs == 0
    collect_evidence(bench.workspace, job, BOT)
    assert bench.facts(job).runs == 1


# Prose


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", 0),
        ("- TBD\n", 0),
        ("\n- ...\n\n* x\n", 0),
        ("- 2026-02-14: parsed the first log\n", 1),
        ("Began.\n\n- Half of it works.\n- TODO\n", 2),
    ],
    ids=["none", "tbd", "signs", "one", "two"],
)
def test_progress_lines_say_something(bench: Bench, text: str, lines: int) -> None:
    job = bench.job(agreed=False)
    bench.edit(job, "## Progress Log\n", f"## Progress Log\n\n{text}")
    assert bench.facts(job).progress_lines == lines


def test_sections_are_found_by_their_titles_in_any_case(bench: Bench) -> None:
    job = bench.job(agreed=False)
    bench.edit(job, "## Verification\n", "## VERIFICATION\n\nCompare the counts.\n")
    assert bench.facts(job).sections["verification"] == "Compare the counts."


def test_a_typed_number_of_an_issue_is_no_mirror(bench: Bench) -> None:
    job = bench.job(agreed=False)
    bench.edit(job, 'github_issue_number: ""', "github_issue_number: 17")
    assert bench.facts(job).mirror[:-1] == (False, False)
    assert_sentences(bench.facts(job).mirror[-1])
    plan = bench.workspace.project_file
    plan.write_text(plan.read_text().replace("github_enabled: false", "github_enabled: true"))
    assert bench.facts(job).mirror[:-1] == (True, False)
    assert_sentences(bench.facts(job).mirror[-1])


def test_views_are_current_after_a_start_and_not_after_an_edit(bench: Bench) -> None:
    job = bench.job()
    assert bench.facts(job).views == ViewFact(tracker=True, dashboard=True)
    bench.edit(job, "title: Parser", "title: Another")
    assert bench.facts(job).views == ViewFact(tracker=False, dashboard=False)


# Lessons


def noted(bench: Bench, text: str) -> None:
    folder = bench.workspace.base / "notes"
    folder.mkdir(exist_ok=True)
    (folder / "lessons-learned.md").write_text(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", LessonFact(0, 0)),
        (LESSON.format(id="{id}", text="x"), LessonFact(1, 1)),
        (LESSON.format(id="{id}", text="TBD"), LessonFact(1, 1)),
        (LESSON.format(id="{id}", text=""), LessonFact(1, 1)),
        ("## LL-1\nLinked: {id}\n", LessonFact(1, 1)),
        (LESSON.format(id="{id}", text="Logs end without a newline."), LessonFact(1, 0)),
        ("### LL-1: tail\n\n- Linked: {id}\n- **Recommendation:** Read to the end.\n", LessonFact(1, 0)),
        ("# LL-1 {id}\nContext: x\nWhat worked: Reading it twice.\n", LessonFact(1, 0)),
        (LESSON.format(id="WI-20990101-001", text="Logs end."), LessonFact(0, 0)),
        (LESSON.format(id="{id}9", text="Logs end."), LessonFact(0, 0)),
        ("Context: {id} is mentioned before any lesson.\n## LL-1\nContext: Others.\n", LessonFact(0, 0)),
        (
            LESSON.format(id="{id}", text="x") + LESSON.format(id="{id}", text="Logs end without a newline."),
            LessonFact(2, 1),
        ),
    ],
    ids=[
        "empty",
        "x",
        "tbd",
        "blank",
        "no-fields",
        "good",
        "bold",
        "one-of-two",
        "other-job",
        "longer-id",
        "unlinked",
        "two",
    ],
)
def test_lessons_are_those_that_name_the_job_and_those_of_x_say_nothing(
    bench: Bench, text: str, expected: LessonFact
) -> None:
    job = bench.job(agreed=False)
    noted(bench, text.replace("{id}", job.id))
    assert lesson_fact(bench.workspace, job.id)[:2] == expected[:2]
    assert bench.facts(job).lessons[:2] == expected[:2]


def test_without_a_file_of_lessons_there_are_none(bench: Bench) -> None:
    assert bench.facts(bench.job(agreed=False)).lessons == LessonFact(0, 0)
