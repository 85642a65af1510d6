"""New projects, workstreams and jobs: their ids, their names, and what other readers of the format make of them."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from donewhen.foundation.errors import UsageError
from donewhen.jobs.board.survey import survey_jobs
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.ids import id_in, next_id, slug
from donewhen.jobs.plan.job import BUDGETS, STAKES, TARGETS, Stakes
from donewhen.jobs.plan.workspace import Workspace, find_workspace
from donewhen.testing import ManualClock
from sentences import assert_sentences

NIGHT = datetime(2026, 2, 14, 23, 59, 30, tzinfo=UTC)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NIGHT)


@pytest.fixture
def shop(tmp_path: Path, clock: ManualClock) -> Workspace:
    return create_project(tmp_path, "Shop", clock=clock)


@pytest.fixture
def big(tmp_path: Path, clock: ManualClock) -> Workspace:
    return create_project(tmp_path, "Shop", form="big", clock=clock)


def simple_fields(path: Path) -> dict[str, object]:
    """The frontmatter as a reader sees it that knows lines, two kinds of lists and quotes, and no other YAML."""
    lines = iter(path.read_text(encoding="utf-8").split("\n"))
    assert next(lines) == "---"
    fields: dict[str, object] = {}
    name = ""
    for line in lines:
        if line == "---":
            return fields
        if line.startswith("  - "):
            known = fields[name]
            fields[name] = [*(known if isinstance(known, list) else []), simple_value(line[4:])]
            continue
        assert not line.startswith((" ", "\t")), line
        name, colon, rest = line.partition(":")
        assert colon, line
        fields[name] = simple_value(rest.strip())
    raise AssertionError("the frontmatter has no end")


def simple_value(text: str) -> object:
    if text in ("[]", "{}"):
        return [] if text == "[]" else {}
    if text.startswith('"'):
        assert text.endswith('"'), text
        return json.loads(text)
    assert ": " not in text, text
    assert "#" not in text, text
    return {"true": True, "false": False}.get(text, text)


def test_the_small_form_stands_beside_the_code(tmp_path: Path, clock: ManualClock) -> None:
    (tmp_path / "main.py").write_text("pass\n")
    made = create_project(tmp_path, "Shop", clock=clock)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".donewhen", "jobs", "main.py"]
    assert [path.name for path in (tmp_path / "jobs").iterdir()] == ["plan.md"]
    project = made.project()
    assert (project.id, project.title, project.status) == ("PJ-20260214-001", "Shop", "planned")
    assert project.agreement_status == "proposed"
    assert find_workspace(tmp_path) == made


def test_the_big_form_is_a_folder_of_its_own(tmp_path: Path, clock: ManualClock) -> None:
    made = create_project(tmp_path, "Shop & More", form="big", clock=clock)
    assert made.root == tmp_path / "PJ-20260214-001-shop-more"
    assert sorted(path.name for path in made.root.iterdir()) == [".donewhen", "plan.md"]
    assert create_project(tmp_path, "Other", form="big", clock=clock).root.name == "PJ-20260214-002-other"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["PJ-20260214-001-shop-more", "PJ-20260214-002-other"]


def test_a_project_without_a_title_has_the_name_of_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "web shop"
    folder.mkdir()
    assert create_project(folder, "").project().title == "web shop"


def test_there_is_no_second_project_in_one_place(shop: Workspace) -> None:
    before = shop.project_file.read_bytes()
    with pytest.raises(UsageError) as caught:
        create_project(shop.root, "Another")
    assert_sentences(caught.value)
    assert caught.value.where == str(shop.project_file)
    assert shop.project_file.read_bytes() == before


def test_what_belongs_to_this_machine_is_not_committed(shop: Workspace) -> None:
    ignored = (shop.folder / ".gitignore").read_text().splitlines()
    assert {"state/", "cache/", "index.sqlite*"} <= set(ignored)
    assert not {"ledger/", "evidence/"} & set(ignored)


def test_a_job_is_a_folder_with_everything_in_it(shop: Workspace) -> None:
    job = add_job(shop, "Log in", criteria=["It works", "It is quick"], commands=["true"], stakes="high")
    assert job.folder.name == "WI-20260214-001-log-in"
    assert sorted(path.name for path in job.folder.iterdir()) == [
        "artifacts",
        "inputs",
        "logs",
        "notes",
        "outputs",
        "plan.md",
    ]
    assert [(criterion.id, criterion.text) for criterion in job.criteria] == [
        ("AC-1", "It works"),
        ("AC-2", "It is quick"),
    ]
    assert (job.truth_required_commands, job.stakes, job.status) == (("true",), "high", "planned")
    assert job.completion_promise == "WI-20260214-001-DONE"
    assert job.document.fields["updated_at"] == "2026-02-14T23:59:30Z"


def test_git_gets_one_file_of_a_new_job(shop: Workspace) -> None:
    job = add_job(shop, "Log in")
    assert [path for path in job.folder.rglob("*") if not path.is_dir()] == [job.path]


@pytest.mark.parametrize("stakes", STAKES)
def test_target_and_budget_follow_the_stakes(shop: Workspace, stakes: Stakes) -> None:
    job = add_job(shop, "Log in", stakes=stakes)
    assert (job.reward_target, job.max_iterations) == (TARGETS[stakes], BUDGETS[stakes])


def test_a_job_without_criteria_says_so_and_can_not_be_agreed_to_as_it_is(shop: Workspace) -> None:
    job = add_job(shop, "Log in")
    assert [criterion.placeholder for criterion in job.criteria] == [True]
    assert [problem.code for problem in agreement_proposals(shop, [job])[1].problems] == ["placeholder"]


def test_ids_count_up_and_begin_anew_with_the_day_in_utc(shop: Workspace, clock: ManualClock) -> None:
    assert [add_job(shop, "x").id for _ in range(2)] == ["WI-20260214-001", "WI-20260214-002"]
    clock.advance(60)
    assert add_job(shop, "x").id == "WI-20260215-001"
    clock.jump(-3600)
    assert add_job(shop, "x").id == "WI-20260214-003"


def test_an_id_is_one_more_than_the_highest_and_gaps_stay(shop: Workspace) -> None:
    jobs = [add_job(shop, "x") for _ in range(3)]
    shutil.rmtree(jobs[1].folder)
    assert add_job(shop, "x").id == "WI-20260214-004"


def test_ids_pass_999(shop: Workspace) -> None:
    first = add_job(shop, "x")
    first.folder.rename(first.folder.with_name("WI-20260214-999-x"))
    assert add_job(shop, "y").id == "WI-20260214-1000"
    assert add_job(shop, "z").id == "WI-20260214-1001"
    assert shop.job("1000").title == "y"


def test_the_id_of_a_deleted_job_is_never_used_again_while_the_ledger_remembers_it(shop: Workspace) -> None:
    job = add_job(shop, "x", criteria=["It works"])
    for proposal in agreement_proposals(shop, [job]):
        agree(shop, proposal, Approval(Actor("me", "person")))
    shutil.rmtree(job.folder)
    assert add_job(shop, "y").id == "WI-20260214-002"


def test_the_id_of_a_deleted_project_is_not_used_again_either(shop: Workspace) -> None:
    agree(shop, agreement_proposals(shop, [])[0], Approval(Actor("me", "person")))
    shop.project_file.unlink()
    assert create_project(shop.root, "Again", clock=shop.clock).project().id == "PJ-20260214-002"


@pytest.mark.parametrize("name", ["WI-20260214-abc", "WI-20260214-001 (copy)", "WI-20260214-", "WI-20260214-7x"])
def test_a_folder_with_an_odd_name_does_not_keep_others_from_being_made(shop: Workspace, name: str) -> None:
    job = add_job(shop, "x")
    (job.folder.parent / name).mkdir()
    shutil.copy(job.path, job.folder.parent / name / "plan.md")
    assert add_job(shop, "y").id == "WI-20260214-002"


def test_a_stray_file_in_the_ledger_does_not_keep_jobs_from_being_made(shop: Workspace) -> None:
    (shop.folder / "ledger").mkdir()
    (shop.folder / "ledger" / "WI-20260214-001 (conflicted copy).jsonl").write_text("")
    assert id_in(add_job(shop, "x").folder.name) is not None


@pytest.mark.parametrize(
    ("taken", "expected"),
    [
        ([], "WI-20260214-001"),
        (["WI-20260214-001", "WI-20260214-007"], "WI-20260214-008"),
        (["WI-20260213-050", "PJ-20260214-050", "WS-20260214-050"], "WI-20260214-001"),
        (["WI-20260214-999", "WI-20260214-1200"], "WI-20260214-1201"),
    ],
    ids=["none", "gap", "others", "past 999"],
)
def test_the_next_id_of_a_day(taken: list[str], expected: str) -> None:
    assert next_id("WI", NIGHT, taken) == expected


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("WI-20260214-001", "WI-20260214-001"),
        ("WI-20260214-001-log-in", "WI-20260214-001"),
        ("WI-20260214-1000-x", "WI-20260214-1000"),
        ("PJ-20260214-001-x", "PJ-20260214-001"),
        ("WS-20260214-001-x", "WS-20260214-001"),
        ("WI-20260214-001x", None),
        ("WI-20260214-01-x", None),
        ("WI-2026021-001-x", None),
        ("XX-20260214-001", None),
        ("a-WI-20260214-001", None),
    ],
)
def test_an_id_is_read_off_a_folder(folder: str, expected: str | None) -> None:
    assert id_in(folder) == expected


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Log in", "log-in"),
        ("  Überweisung  &  Rückzug!  ", "uberweisung-ruckzug"),
        ("日本語", "untitled"),
        ("../../etc/passwd", "etc-passwd"),
        ("---", "untitled"),
        ("x" * 80, "x" * 60),
        ("a" * 59 + " b", "a" * 59),
    ],
    ids=["words", "accents", "no latin", "path", "dashes", "long", "cut at a dash"],
)
def test_a_title_becomes_part_of_a_folder_name(title: str, expected: str) -> None:
    assert slug(title) == expected


TITLES = {
    "newline": "Log\nin",
    "crlf and tab": "Log\r\n\tin",
    "escape": "Log \x1b[31min\x1b[0m",
    "null": "Log\x00 in",
    "separator": "Log\u2028in\u0085now",
    "quotes": "Say \"hi\" and 'bye'",
    "colon": "Log in: the form",
    "hash": "Log in #2",
    "fence": "---",
    "flow": "[Log in], {all}",
    "yaml word": "yes",
    "number": "0012",
    "null word": "null",
    "backslash": "C:\\temp\\new",
    "unicode": "Ünïcode → 日本",
    "list": "- item",
    "anchor": "*alias &anchor !tag %x @y `z`",
    "bom": "\ufeffLog in",
}


@pytest.mark.parametrize("title", TITLES.values(), ids=TITLES.keys())
def test_whatever_a_title_says_it_is_one_line_and_reads_back_for_both_readers(shop: Workspace, title: str) -> None:
    job = add_job(shop, title, outputs=[f"outputs/{slug(title)}: a.md"], commands=["echo 'a: b' # c"])
    assert job.title == simple_fields(job.path)["title"]
    assert job.title.split() == job.title.split("\n")[0].split()
    assert job.title.isprintable()
    assert shop.job(job.id).title == job.title
    fields = simple_fields(job.path)
    assert fields["outputs"] == list(job.outputs) == [f"outputs/{slug(title)}: a.md"]
    assert fields["truth_required_commands"] == ["echo 'a: b' # c"]
    assert fields["work_item_id"] == job.id
    body = job.document.body.split("\n")
    assert body[1] == f"# {job.title}"
    assert [line for line in body if line.startswith("## ")] == [
        "## Objective",
        "## Inputs",
        "## Outputs",
        "## Acceptance Criteria",
        "## Verification",
        "## Success Hook",
        "## Progress Log",
        "## Relevant Lessons Learned",
    ]


@pytest.mark.parametrize("title", TITLES.values(), ids=TITLES.keys())
def test_a_project_and_a_workstream_read_back_for_both_readers(big: Workspace, tmp_path: Path, title: str) -> None:
    (tmp_path / "other").mkdir()
    other = create_project(tmp_path / "other", title, form="big", clock=big.clock)
    add_job(other, "x", workstream=title)
    fields = simple_fields(other.project_file)
    stream = next(iter(other.workstream_folders()))
    assert fields["title"] == other.project().title == simple_fields(stream / "plan.md")["title"]
    # Two branches that add a job each would change the same list.
    assert fields["workstreams"] == simple_fields(stream / "plan.md")["jobs"] == []


@pytest.mark.parametrize("title", ["", "  ", "\n", "\x1b[0m", "\u200b"], ids=["empty", "space", "line", "esc", "zero"])
def test_a_job_needs_a_title(shop: Workspace, title: str) -> None:
    with pytest.raises(UsageError, match="title"):
        add_job(shop, title)
    assert list(shop.places()) == []


def test_a_long_title_is_cut(shop: Workspace) -> None:
    assert len(add_job(shop, "word " * 100).title) <= 200


PROJECT_FIELDS = (
    "schema kind id title status agreement_status agreed_at agreed_notes started_at updated_at completed_at "
    "completion_promise github_enabled github_repo max_parallel_agents waves workstreams"
)
STREAM_FIELDS = "schema kind id title status depends_on started_at updated_at completed_at completion_promise jobs"
JOB_FIELDS = (
    "schema kind work_item_id title status depends_on wave_id priority estimate_hours due_date stakes reward_target "
    "max_iterations iteration rework_count rework_reason started_at updated_at completed_at completion_promise "
    "outputs verification_evidence reward_last_score reward_last_eval_at reward_last_next_action truth_mode "
    "truth_checks truth_required_commands truth_last_status truth_last_checked_at truth_last_failures "
    "truth_input_snapshot execution_log_required execution_log_exemption_reason lesson_capture_required "
    "lesson_capture_exemption_reason github_issue_number github_issue_url uat_last_status uat_open_issues"
)


def test_every_field_of_the_format_is_written(shop: Workspace, big: Workspace) -> None:
    job = add_job(big, "Log in", workstream="Web")
    assert list(simple_fields(big.project_file)) == PROJECT_FIELDS.split()
    assert list(simple_fields(next(iter(big.workstream_folders())) / "plan.md")) == STREAM_FIELDS.split()
    assert list(simple_fields(job.path)) == JOB_FIELDS.split()
    small, large = simple_fields(shop.project_file), simple_fields(big.project_file)
    assert {name: small[name] for name in small if name != "workstreams"} == {
        name: large[name] for name in large if name != "workstreams"
    }


def test_a_project_has_the_headings_of_the_format(big: Workspace) -> None:
    headings = [line[2:] for line in big.project().document.body.split("\n") if line.startswith("# ")]
    assert headings == ["Goal", "Acceptance Criteria", "Workstreams", "Success Hook", "Progress Log", "Decisions"]


def test_a_job_in_the_big_form_needs_a_workstream_and_makes_it(big: Workspace) -> None:
    with pytest.raises(UsageError) as caught:
        add_job(big, "x")
    assert_sentences(caught.value)
    assert "--workstream" in str(caught.value.next_step)
    first = add_job(big, "x", workstream="User login")
    assert first.folder.parent.parent.name == "WS-20260214-001-user-login"
    assert add_job(big, "y").folder.parent == first.folder.parent
    add_job(big, "z", workstream="Pay")
    with pytest.raises(UsageError, match=r"WS-20260214-001-user-login, WS-20260214-002-pay"):
        add_job(big, "x")
    assert [folder.name[:15] for folder in big.workstream_folders()] == ["WS-20260214-001", "WS-20260214-002"]


@pytest.mark.parametrize("name", ["User login", "user-login", "WS-20260214-001", "WS-20260214-001-user-login"])
def test_a_workstream_is_named_by_title_id_or_folder(big: Workspace, name: str) -> None:
    first = add_job(big, "x", workstream="User login")
    again = add_job(big, "y", workstream=name)
    assert again.folder.parent == first.folder.parent
    assert len(list(big.workstream_folders())) == 1


def test_a_workstream_whose_title_merely_ends_alike_is_another_one(big: Workspace) -> None:
    first = add_job(big, "x", workstream="User login")
    second = add_job(big, "y", workstream="Login")
    assert first.folder.parent != second.folder.parent


def test_job_ids_are_one_sequence_over_all_workstreams(big: Workspace) -> None:
    found = [add_job(big, "x", workstream=name).id for name in ("A", "B", "A", "C")]
    assert found == [f"WI-20260214-00{number}" for number in (1, 2, 3, 4)]


def test_the_small_form_has_no_workstreams(shop: Workspace) -> None:
    with pytest.raises(UsageError) as caught:
        add_job(shop, "x", workstream="Web")
    assert_sentences(caught.value)
    assert list(shop.places()) == []


def test_dependencies_are_written_as_whole_ids_and_must_exist(shop: Workspace) -> None:
    first = add_job(shop, "Log in")
    assert add_job(shop, "Log out", depends_on=["log-in", "001"]).depends_on == (first.id, first.id)
    with pytest.raises(UsageError) as caught:
        add_job(shop, "Pay", depends_on=["nothing"])
    assert_sentences(caught.value)
    assert len(list(shop.places())) == 2


def test_what_makers_that_were_killed_left_behind_goes_with_the_next_job(shop: Workspace) -> None:
    left = shop.root / "jobs" / ".donewhen-0123456789abcdef.new"
    (left / "outputs").mkdir(parents=True)
    (left / "plan.md").write_text("half")
    assert (list(shop.places()), survey_jobs(shop).problems) == ([], ())
    add_job(shop, "x")
    assert not left.exists()


def test_a_job_that_can_not_be_finished_leaves_nothing(shop: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("donewhen.jobs.plan.creating.write_atomically", full)
    with pytest.raises(OSError) as caught:
        add_job(shop, "x")
    assert_sentences(caught.value)
    assert [child.name for child in (shop.root / "jobs").iterdir()] == ["plan.md"]


def test_a_new_project_can_be_made_days_later_beside_an_old_one(tmp_path: Path, clock: ManualClock) -> None:
    create_project(tmp_path, "Old", form="big", clock=clock)
    clock.advance(timedelta(days=2).total_seconds())
    assert create_project(tmp_path, "New", form="big", clock=clock).project().id == "PJ-20260216-001"
