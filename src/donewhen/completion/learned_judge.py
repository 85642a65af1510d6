"""Ask a mission's learned judge about the work when an agent wants to stop."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.plain_text import shorten
from donewhen.jobs.contract.mission_folders import mission_folders
from donewhen.jobs.evidence.tree_diff import diff_since, resolve_commit
from donewhen.jobs.judge.job_ticket import fit_to_size
from donewhen.jobs.judge.missions import gate_guidance, gate_mission_name
from donewhen.jobs.judge.verdict_record import verdict_data
from donewhen.jobs.judge.withheld import why_withheld
from donewhen.jobs.plan.workspace import Workspace, find_workspace
from donewhen.judging.mission import MISSION_FILE, Mission, read_mission
from donewhen.judging.ticket import Ticket
from donewhen.judging.two_readings import judge_both_readings
from donewhen.prompt.structured import as_json
from donewhen.protocols import ReasonCode, TaskCompletionContext, TaskCompletionResult

if TYPE_CHECKING:
    from donewhen.judging.guidance import Guidance


def ask_learned_judge(
    mission: str | Path, files: Sequence[str], context: TaskCompletionContext, *, since: str, output: bool
) -> TaskCompletionResult:
    """Return the verdict of a mission's judge on the agent's work."""
    root = getattr(context.filesystem, "root", None)
    start = root if isinstance(root, Path) else Path.cwd()
    try:
        loaded, guidance = _mission(mission, start)
        evidence = _evidence(loaded, files, context, root if isinstance(root, Path) else None, since, output)
        if isinstance(evidence, TaskCompletionResult):
            return evidence
        name = digest_of([loaded.name, evidence]).partition(":")[2][:12]
        ticket = Ticket(f"stop.{name}", loaded.name, None, evidence, f"stop.{name}")
        withheld = why_withheld(loaded, evidence)
        if withheld is not None:
            message = f"{loaded.name}: {withheld}. A person decides."
            return TaskCompletionResult.incomplete(message, code=ReasonCode.NEEDS_HUMAN)
        readings = judge_both_readings(ticket, loaded, guidance)
    except DonewhenError as error:
        return _unavailable(str(error))
    data = verdict_data(readings, loaded, guidance, ticket)
    message = f"{loaded.name}: {data['told']}."
    if data["passed"]:
        return TaskCompletionResult.ok(message)
    if data["needs_human"]:
        return TaskCompletionResult.incomplete(f"{message} A person decides.", code=ReasonCode.NEEDS_HUMAN)
    return TaskCompletionResult.incomplete(message, code=ReasonCode.JUDGE_FAILED)


def _mission(mission: str | Path, start: Path) -> tuple[Mission, Guidance]:
    """Return a mission and its guidance: the accepted guidance if gates use the mission, otherwise the newest."""
    workspace: Workspace | None = None
    try:
        workspace = find_workspace(start)
    except DonewhenError:
        # Without jobs there is no accepted guidance.
        workspace = None
    folder = start / mission
    if workspace is not None and not (folder / MISSION_FILE).is_file():
        folder = mission_folders(workspace.root, workspace.settings()).get(str(mission), folder)
    elif workspace is None and not (folder / MISSION_FILE).is_file():
        folder = start / "missions" / mission
    loaded = read_mission(folder)
    name = None if workspace is None else gate_mission_name(workspace, loaded)
    if workspace is None or name is None:
        return loaded, loaded.guidance()
    return loaded, gate_guidance(workspace, name, loaded)


def _evidence(
    mission: Mission,
    files: Sequence[str],
    context: TaskCompletionContext,
    root: Path | None,
    since: str,
    output_counts: bool,
) -> dict[str, str] | TaskCompletionResult:
    wanted = mission.settings.from_job
    material: dict[str, str] = {}
    for path in files:
        if context.filesystem is None or not context.filesystem.is_file(path):
            return TaskCompletionResult.incomplete(
                f"The file to be judged is missing: {path}", code=ReasonCode.JUDGE_UNAVAILABLE
            )
        content = context.filesystem.read_bytes(path).decode("utf-8", errors="replace")
        material[f"output {path}"] = content
    if "diff" in wanted.parts and root is not None and (commit := resolve_commit(root, since)) is not None:
        diff = diff_since(Workspace(root, "small"), commit)
        material |= {"diff": diff} if diff else {}
    output = context.tentative_output
    agent_text = "" if output is None else output if isinstance(output, str) else as_json(output)
    output_is_work = output_counts and not isinstance(output, str) and bool(agent_text)
    if output_is_work:
        material["output"] = agent_text
    if not any(text.strip() for text in material.values()):
        return _unavailable("there is nothing to judge except the agent's own words")
    if not output_is_work and agent_text.strip() and "task" in wanted.parts:
        material["what the agent says"] = agent_text
    return fit_to_size(material, wanted.max_chars)


def _unavailable(why: str) -> TaskCompletionResult:
    return TaskCompletionResult.incomplete(
        shorten(f"The judge could not be asked: {why.rstrip('.')}.", 400), code=ReasonCode.JUDGE_UNAVAILABLE
    )
