"""LLMJudgeChecker(mission=…): a judge that has learned, inside an agent runtime."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from donewhen.completion import LLMJudgeChecker, ReasonCode, TaskCompletionContext, TaskCompletionResult
from donewhen.filesystem import Filesystem, HostFilesystem, InMemoryFilesystem
from donewhen.missions.new_mission import create_mission
from donewhen.models import executors
from donewhen.prompt import MarkdownSection, Prompt, PromptTemplate
from donewhen.runtime import Session
from donewhen.testing import Script, ScriptedAdapter, make_context, say
from donewhen.testing.models import ScriptedJudge
from sentences import assert_sentences

SCAFFOLD = ('When "skipped" occurs, the verdict is fail.', 'When "guessed" occurs, the verdict is fail.')
PARTS = '\n[from_job]\nparts = ["outputs"]\n'


def make(folder: Path, *, scaffold: tuple[str, ...] = SCAFFOLD, settings: str = PARTS) -> Path:
    create_mission(folder, "reports", "en", (), scaffold)
    with (folder / "mission.toml").open("a") as file:
        file.write(settings)
    return folder


def checked(root: Path, checker: LLMJudgeChecker, output: Any = "I am done.") -> TaskCompletionResult:
    return checker.check(context_in(HostFilesystem(root), output))


def context_in(filesystem: Filesystem, output: Any = "I am done.") -> TaskCompletionContext:
    return TaskCompletionContext(session=Session(), tentative_output=output, filesystem=filesystem)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    make(tmp_path / "missions" / "reports")
    (tmp_path / "report.md").write_text("All tests ran.\n")
    return tmp_path


def test_what_the_rules_accept_is_complete_and_names_the_step(project: Path) -> None:
    result = checked(project, LLMJudgeChecker(mission="reports", files=("report.md",)))
    assert result.complete
    assert_sentences(result.feedback)


def test_what_the_rules_refuse_is_incomplete_with_the_reason(project: Path) -> None:
    (project / "report.md").write_text("Two tests were skipped.\n")
    result = checked(project, LLMJudgeChecker(mission="reports", files=("report.md",)))
    assert (result.complete, result.code) == (False, ReasonCode.JUDGE_FAILED)
    assert_sentences(result.feedback)


def test_a_judge_that_was_taught_nothing_leaves_it_to_a_person(tmp_path: Path) -> None:
    make(tmp_path / "judge", scaffold=())
    (tmp_path / "report.md").write_text("Anything.\n")
    result = checked(tmp_path, LLMJudgeChecker(mission=tmp_path / "judge", files=("report.md",)))
    assert (result.complete, result.code) == (False, ReasonCode.NEEDS_HUMAN)
    assert result.code is not None and ReasonCode(result.code).undecided


def test_a_judge_with_one_rule_decides_only_what_the_rule_decides(tmp_path: Path) -> None:
    make(tmp_path / "judge", scaffold=SCAFFOLD[:1])
    checker = LLMJudgeChecker(mission=tmp_path / "judge", files=("report.md",))
    (tmp_path / "report.md").write_text("All tests ran.\n")
    result = checked(tmp_path, checker)
    assert (result.complete, result.code) == (False, ReasonCode.NEEDS_HUMAN)
    assert_sentences(result.feedback)
    (tmp_path / "report.md").write_text("Some were skipped.\n")
    assert checked(tmp_path, checker).code == ReasonCode.JUDGE_FAILED


def test_a_judge_that_cant_read_a_rule_that_binds_it_passes_nothing(tmp_path: Path) -> None:
    make(tmp_path / "judge", scaffold=("Work that looks rushed fails.", *SCAFFOLD))
    checker = LLMJudgeChecker(mission=tmp_path / "judge", files=("report.md",))
    (tmp_path / "report.md").write_text("All tests ran.\n")
    result = checked(tmp_path, checker)
    assert (result.complete, result.code) == (False, ReasonCode.NEEDS_HUMAN)
    assert_sentences(result.feedback)
    (tmp_path / "report.md").write_text("Some were skipped.\n")
    assert checked(tmp_path, checker).code == ReasonCode.JUDGE_FAILED


@pytest.mark.parametrize(
    ("votes", "code"),
    [
        (["pass", "pass", "fail"], ReasonCode.NEEDS_HUMAN),
        (["pass", "pass", "nonsense"], ReasonCode.NEEDS_HUMAN),
        (["nonsense", "nonsense", "nonsense"], ReasonCode.NEEDS_HUMAN),
        (["fail", "fail", "pass"], ReasonCode.NEEDS_HUMAN),
        (["fail", "fail", "fail"], ReasonCode.JUDGE_FAILED),
        (["pass", "pass", "pass"], None),
    ],
)
def test_only_votes_that_agree_are_a_verdict(
    project: Path, monkeypatch: pytest.MonkeyPatch, votes: list[str], code: ReasonCode | None
) -> None:
    words = {"nonsense": "I like it."}
    answers = iter([words.get(vote, f"Verdict: {vote}\nReason: so") for vote in votes])
    monkeypatch.setattr(executors, "open_model", lambda _: ScriptedJudge(lambda _: next(answers)))
    result = checked(project, LLMJudgeChecker(mission="reports", files=("report.md",)))
    assert (result.complete, result.code) == (code is None, code), result.feedback


def test_what_the_agent_says_is_never_judged_alone(project: Path) -> None:
    result = checked(project, LLMJudgeChecker(mission="reports"), output="It is all done, believe me.")
    assert (result.complete, result.code) == (False, ReasonCode.JUDGE_UNAVAILABLE)
    assert_sentences(result.feedback)


@dataclass(frozen=True)
class Report:
    text: str


def test_an_output_that_was_asked_for_in_a_shape_can_be_judged(project: Path) -> None:
    unasked = checked(project, LLMJudgeChecker(mission="reports"), output=Report("All tests ran."))
    assert unasked.code == ReasonCode.JUDGE_UNAVAILABLE
    checker = LLMJudgeChecker(mission="reports", output=True)
    assert checked(project, checker, output="All tests ran.").code == ReasonCode.JUDGE_UNAVAILABLE
    assert checked(project, checker, output=Report("All tests ran.")).complete
    assert not checked(project, checker, output=Report("Some were skipped.")).complete


def test_a_change_in_the_repository_is_judged(repository: Path, git: Callable[..., str]) -> None:
    make(repository / "missions" / "reports", settings='\n[from_job]\nparts = ["diff"]\n')
    (repository / "code.py").write_text("x = 1\n")
    git(repository, "add", "--all")
    git(repository, "commit", "-qm", "one")
    checker = LLMJudgeChecker(mission="reports")
    assert checked(repository, checker).code == ReasonCode.JUDGE_UNAVAILABLE
    (repository / "code.py").write_text("x = 1\n# skipped for now\n")
    assert checked(repository, checker).code == ReasonCode.JUDGE_FAILED
    (repository / "code.py").write_text("x = 2\n")
    assert checked(repository, checker).complete


def test_what_an_agent_has_committed_is_judged_from_where_it_began(repository: Path, git: Callable[..., str]) -> None:
    make(repository / "missions" / "reports", settings='\n[from_job]\nparts = ["diff"]\n')
    (repository / "code.py").write_text("x = 1\n")
    git(repository, "add", "--all")
    git(repository, "commit", "-qm", "one")
    began = git(repository, "rev-parse", "HEAD").strip()
    (repository / "code.py").write_text("x = 1  # skipped for now\n")
    git(repository, "commit", "-qam", "two")
    assert checked(repository, LLMJudgeChecker(mission="reports")).code == ReasonCode.JUDGE_UNAVAILABLE
    assert checked(repository, LLMJudgeChecker(mission="reports", since=began)).code == ReasonCode.JUDGE_FAILED
    assert checked(repository, LLMJudgeChecker(mission="reports", since="nowhere")).code == ReasonCode.JUDGE_UNAVAILABLE


def test_a_missing_file_and_a_missing_mission_are_not_a_pass(project: Path) -> None:
    missing = checked(project, LLMJudgeChecker(mission="reports", files=("gone.md",)))
    assert (missing.code, missing.complete) == (ReasonCode.JUDGE_UNAVAILABLE, False)
    nowhere = checked(project, LLMJudgeChecker(mission="nowhere", files=("report.md",)))
    assert (nowhere.code, nowhere.complete) == (ReasonCode.JUDGE_UNAVAILABLE, False)
    assert_sentences(nowhere.feedback)
    bare = LLMJudgeChecker(mission="reports", files=("report.md",)).check(make_context(output="x"))
    assert bare.code == ReasonCode.JUDGE_UNAVAILABLE


def test_files_need_not_be_on_disk(project: Path) -> None:
    context = context_in(InMemoryFilesystem({"report.md": "All tests ran."}))
    assert LLMJudgeChecker(mission=project / "missions" / "reports", files=("report.md",)).check(context).complete


def test_it_can_be_asked_where_a_loop_is_running(project: Path) -> None:
    async def inside() -> TaskCompletionResult:
        return checked(project, LLMJudgeChecker(mission="reports", files=("report.md",)))

    assert asyncio.run(inside()).complete


def test_criteria_and_a_mission_exclude_each_other() -> None:
    with pytest.raises(ValueError) as caught:
        LLMJudgeChecker("It is good.", mission="reports")
    assert_sentences(caught.value)
    with pytest.raises(ValueError, match="empty"):
        LLMJudgeChecker()


def test_an_agent_is_held_back_until_the_judge_accepts_its_report(project: Path) -> None:
    (project / "report.md").write_text("Two tests were skipped.\n")

    def repair(_: Any) -> Any:
        (project / "report.md").write_text("All tests ran.\n")
        return say("Now it is done.")

    adapter = ScriptedAdapter(
        Script(say("Done."), repair),
        task_completion_checker=LLMJudgeChecker(mission="reports", files=("report.md",)),
        filesystem=HostFilesystem(project),
    )
    task = MarkdownSection(title="Task", key="task", template="Write report.md.")
    template = PromptTemplate[None](ns="tests", key="report", sections=[task])
    response = adapter.evaluate(Prompt(template), session=Session())
    assert response.completion is not None
    assert (response.completion.status, response.completion.attempts) == ("verified", 2)


def test_what_looks_like_a_secret_is_judged_here_and_not_sent_elsewhere(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from donewhen.testing.chat_api import ChatServer, Reply

    pytest.importorskip("openai", reason="OPENAI IS NOT INSTALLED: pip install 'donewhen[openai]'")
    monkeypatch.setenv("OPENAI_API_KEY", "for-loopback-only")
    token = "gh" + "p_" + "a1B2" * 9
    mission = next(project.rglob("mission.toml"))
    (project / "secret.md").write_text(f"The numbers are in the table.\n{token}\n")
    with ChatServer([Reply("Verdict: pass\nReason: it is there")] * 9) as server:
        text = mission.read_text()
        model = f'model = "openai:any@{server.base_url}"'
        mission.write_text(
            re.sub(r"^model = .*$", model, text, flags=re.MULTILINE) if "model =" in text else f"{model}\n{text}"
        )
        found = checked(project, LLMJudgeChecker(mission="reports", files=("secret.md",)))
        assert (found.complete, found.code) == (False, ReasonCode.NEEDS_HUMAN)
        assert "secret.md:2 (a GitHub token)" in (found.feedback or "") and token not in (found.feedback or "")
        assert not server.calls
