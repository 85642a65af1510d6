"""A job that a judge decides, by the tools: its verdict is evidence that the gate asks for, and nobody sets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from donewhen.models.contrast import default_rule
from sentences import assert_sentences

JUDGED = "The report reads well.\n  check: judge:tone"
WRITTEN = "The report is written.\n  check: file /report.txt"


def make_mission(root: Path, **rules: str) -> Path:
    folder = root / "missions" / "tone"
    folder.mkdir(parents=True)
    (folder / "mission.toml").write_text('mission = "tone"\n')
    ticket = {"group_id": "t-1", "mission": "tone", "label": "pass", "text": "Dear reader, all is well."}
    (folder / "tickets.jsonl").write_text(json.dumps(ticket) + "\n")
    (folder / "initial_guidance.json").write_text(json.dumps({"G0": default_rule("pass", "en"), **rules}))
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_the_verdict_of_the_judge_is_evidence_that_no_tool_sets(shop: Any, client: Any, play: Any) -> None:
    rules = {"G1": 'When "hopefully" occurs, the verdict is fail.', "G2": 'When "lorem" occurs, the verdict is fail.'}
    folder = make_mission(shop.root, **rules)
    before = contents(folder)
    job = shop.job(criteria=[JUDGED, WRITTEN])

    async def scene() -> None:
        async with client(shop.command()) as call:
            shown = await call("show_job", job=job.id)
            assert (shown["needs"][0]["check"], shown["needs"][0]["how"]) == ("judge", "judge tone")
            early = await call("run_evidence", job=job.id)
            assert [(one["name"], one["passed"]) for one in early["runs"]] == [("AC-1", False), ("AC-2", False)]
            assert_sentences(early["runs"][0]["told"])
            assert_sentences(await call.refused("run_evidence", job=job.id, criterion="AC-1"))

            shop.work("Dear reader, hopefully all is well.\n")
            judged = (await call("run_evidence", job=job.id))["runs"][0]
            assert (judged["name"], judged["evidence"], judged["passed"]) == ("AC-1", "judge tone", False)
            assert_sentences(judged["told"])
            refusal = await call("complete_job", job=job.id)
            assert "criterion_failed" in json.dumps(refusal["gates"])
            assert (await call("dispute", job=job.id, reason="It reads very well."))["status"] == "blocked"
            assert not (await call("complete_job", job=job.id))["done"]

            shop.work("Dear reader, all is well.\n")
            assert (await call("run_evidence", job=job.id))["passed"]
            assert (await call("complete_job", job=job.id))["done"]

    play(scene)
    assert contents(folder) == before
    assert {entry.by.kind for entry in shop.entries(job) if entry.type != "agreed"} == {"agent"}


def test_a_judge_that_leaves_it_open_leaves_it_to_a_person_and_that_is_no_iteration(
    shop: Any, client: Any, play: Any
) -> None:
    make_mission(shop.root)
    job = shop.job(criteria=[JUDGED, WRITTEN])
    shop.work("Dear reader, all is well.\n")

    async def scene() -> None:
        async with client(shop.command()) as call:
            judged = (await call("run_evidence", job=job.id))["runs"][0]
            assert (judged["passed"], judged["needs_human"]) == (False, True)
            assert (await call("show_job", job=job.id))["needs"][0]["state"] == "needs_human"
            refusal = await call("complete_job", job=job.id)
            assert (refusal["done"], refusal["iteration"]) == (False, 0)
            assert "needs_human" in json.dumps(refusal["gates"])

    play(scene)
    assert shop.read(job).status != "done"
