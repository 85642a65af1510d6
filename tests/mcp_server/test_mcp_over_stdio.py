"""The real client of the `mcp` package against a real `donewhen mcp` process: what an agent sees and can do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest

from donewhen import __version__
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.lessons.lesson_file import lessons_path
from donewhen.jobs.lessons.lesson_recording import LessonDraft, capture_lesson
from donewhen.jobs.lifecycle.promise import verify_promise
from sentences import assert_sentences

anyio = pytest.importorskip("anyio", reason="LOUD: donewhen[mcp] is not installed, so the MCP server is NOT tested")
SLOW = "It takes long.\n  check: run sh slow.sh"


def test_an_agent_is_refused_with_reasons_does_the_work_and_gets_the_promise(shop: Any, client: Any, play: Any) -> None:
    job = shop.job(started=False)

    async def scene() -> None:
        async with client(shop.command()) as call:
            (listed,) = (await call("list_jobs"))["jobs"]
            assert (listed["id"], listed["status"], listed["agreement"]) == (job.id, "planned", "agreed")
            assert listed["next"] == f'start_job(job="{job.id}")'
            assert [one["id"] for one in (await call("ready_jobs"))["ready"]] == [job.id]
            assert (await call("start_job", job=job.id))["started"]

            early = await call("complete_job", job=job.id)
            assert not early["done"]
            assert early["promise"] is early["receipt"] is None
            codes = {reason["code"] for gate in early["gates"] for reason in gate["reasons"]}
            assert {"criterion_failed", "output_missing"} <= codes
            assert early["iteration"] == 1

            shop.work()
            ran = await call("run_evidence", job=job.id)
            assert [(one["name"], one["passed"]) for one in ran["runs"]] == [("AC-1", True), ("AC-2", True)]
            assert ran["runs"][1]["output"] == "ALL GOOD"
            assert (await call("check_job", job=job.id))["may_complete"]
            done = await call("complete_job", job=job.id)
            assert done["done"]
            promised = f"{done['promise']}\nreceipt: {done['receipt']}"
            assert verify_promise(shop.workspace, promised, approval_policy(shop.workspace)).real
            again = await call("complete_job", job=job.id)
            assert (again["repeated"], again["receipt"]) == (True, done["receipt"])
            assert (await call("check_job", job=job.id))["done"]

    play(scene)
    assert shop.read(job).status == "done"


def test_an_agent_is_told_which_lessons_it_was_given(shop: Any, client: Any, play: Any) -> None:
    job = shop.job(started=False)
    said = LessonDraft(f"{job.title}: it took long.", "Small steps.", f"{job.title}: begin early.\n\x1b[2J")
    lesson = capture_lesson(shop.workspace, said, [], Actor("bot")).lesson
    path = lessons_path(shop.workspace)
    path.write_text(path.read_text().replace("- Linked:", f"- Linked: {job.id}"))

    async def scene() -> None:
        async with client(shop.command()) as call:
            begun = await call("start_job", job=job.id)
            (given,) = begun["lessons"]
            assert (given["id"], given["recommendation"]) == (lesson.id, f"{job.title}: begin early.")
            assert job.id in "\n".join(given["reasons"])
            assert_sentences(given["reasons"])

    play(scene)
    assert lesson.id in shop.read(job).document.body


def test_the_server_says_who_it_is_and_what_it_is_for(shop: Any, client: Any, play: Any) -> None:
    async def scene() -> None:
        async with client(shop.command()) as call:
            assert (call.client.server_info.name, call.client.server_info.version) == ("donewhen", __version__)
            assert_sentences(call.client.instructions)
            tools = (await call.client.list_tools()).tools
            assert all(tool.description and tool.output_schema for tool in tools)
            reading = {tool.name for tool in tools if tool.annotations and tool.annotations.read_only_hint}
            assert reading == {"list_jobs", "show_job", "next_action", "ready_jobs"}

    play(scene)


def test_checking_counts_no_iteration_and_showing_writes_nothing(shop: Any, client: Any, play: Any) -> None:
    job = shop.job()
    before = len(shop.entries(job))

    async def scene() -> None:
        async with client(shop.command()) as call:
            shown = await call("show_job", job=job.id)
            assert not shown["passed"]
            assert shown["contract"]["agreed_by"] == "ada (person)"
            assert "The check runs. [check: run sh check.sh]" in shown["contract"]["terms"]["criteria"]
            assert {one["name"]: (one["how"], one["state"]) for one in shown["needs"]} == {
                "AC-1": ("file /report.txt matches /^ALL GOOD$/", "missing"),
                "AC-2": ("run sh check.sh", "missing"),
            }
            assert shown["outputs"] == [{"path": "/report.txt", "state": "missing", "changed": False}]
            assert len(shop.entries(job)) == before
            for _ in range(3):
                assert not (await call("check_job", job=job.id))["may_complete"]

    play(scene)
    assert shop.read(job).iteration == 0
    assert not any(entry.type in ("ran", "refused") for entry in shop.entries(job)[before:])


def test_evidence_comes_with_progress_and_the_end_of_what_a_failing_command_said(
    shop: Any, client: Any, play: Any
) -> None:
    job = shop.job()
    (shop.root / "check.sh").write_text("seq 1 500; echo the last words; exit 7\n")

    async def scene() -> None:
        async with client(shop.command()) as call:
            ran = await call("run_evidence", job=job.id)
            assert not ran["passed"]
            command = ran["runs"][1]
            assert (command["exit_code"], command["told"]) == (7, "exited, exit status 7")
            assert command["output"].endswith("500\nthe last words")
            assert "\n400\n" not in command["output"]
            assert call.progress == [
                (0, 2, "AC-1: file /report.txt matches /^ALL GOOD$/"),
                (1, 2, "AC-2: sh check.sh"),
            ]
            one = await call("run_evidence", job=job.id, criterion="AC-2")
            assert [run["name"] for run in one["runs"]] == ["AC-2"]

    play(scene)


def test_asking_blocking_and_disputing_are_on_record_and_go_to_people(shop: Any, client: Any, play: Any) -> None:
    asked, blocked, refused = shop.job("One"), shop.job("Two"), shop.job("Three")

    async def scene() -> None:
        async with client(shop.command()) as call:
            resting = await call("ask_person", job=asked.id, question="Which currency?")
            assert (resting["status"], resting["reason"]) == ("blocked", "Which currency?")
            assert (await call("show_job", job=asked.id))["waiting"] == "Which currency?"
            await call("block_job", job=blocked.id, reason="The printer is on fire.")
            assert_sentences(await call.refused("dispute", job=refused.id, reason="I am right."))
            await call("complete_job", job=refused.id)
            disputed = await call("dispute", job=refused.id, reason="The file has another name.")
            assert disputed["status"] == "blocked"

    play(scene)
    last = [shop.entries(one)[-1] for one in (asked, blocked, refused)]
    assert [(one.data["decision"], one.by.kind) for one in last] == [
        ("ask", "agent"),
        ("block", "agent"),
        ("dispute", "agent"),
    ]


def test_jobs_are_listed_by_status_and_page_by_page(shop: Any, client: Any, play: Any) -> None:
    jobs = [shop.job(f"Job {number}", started=number < 2) for number in range(5)]

    async def scene() -> None:
        async with client(shop.command()) as call:
            first = await call("list_jobs", limit=2)
            assert (first["total"], first["next_offset"]) == (5, 2)
            last = await call("list_jobs", limit=2, offset=4)
            assert ([one["id"] for one in last["jobs"]], last["next_offset"]) == ([jobs[4].id], None)
            planned = await call("list_jobs", status="planned")
            assert [one["id"] for one in planned["jobs"]] == [job.id for job in jobs[2:]]
            assert planned["counts"] == {"in_progress": 2, "planned": 3}
            assert (await call("list_jobs", offset=99))["jobs"] == []

    play(scene)


def test_the_next_thing_is_that_of_the_job_in_progress_or_which_one_to_start(shop: Any, client: Any, play: Any) -> None:
    waiting = shop.job("Waiting", started=False)

    async def scene() -> None:
        async with client(shop.command()) as call:
            assert (await call("next_action"))["next"] == f'start_job(job="{waiting.id}")'
            working = shop.job("Working")
            step = await call("next_action")
            assert step["job"] == working.id
            assert not all(gate["passed"] for gate in step["gates"])
            assert (await call("next_action", job=waiting.id))["job"] == waiting.id

    play(scene)


def test_the_contract_and_the_plan_can_be_read_as_resources(shop: Any, client: Any, play: Any) -> None:
    from mcp.shared.exceptions import MCPError

    job = shop.job()

    async def scene() -> None:
        async with client(shop.command()) as call:
            found = (await call.client.list_resources()).resources
            assert [one.uri for one in found] == [
                f"donewhen://jobs/{job.id}/contract",
                f"donewhen://jobs/{job.id}/plan",
            ]
            templates = (await call.client.list_resource_templates()).resource_templates
            assert [template.uri_template for template in templates] == [
                "donewhen://jobs/{job}/contract",
                "donewhen://jobs/{job}/plan",
            ]
            contract = json.loads((await call.client.read_resource(found[0].uri)).contents[0].text)
            assert (contract["state"], contract["terms"]["outputs"]) == ("agreed", ["/report.txt"])
            plan = (await call.client.read_resource(found[1].uri)).contents[0].text
            assert plan == job.path.read_text()
            for address in (
                "donewhen://jobs/../plan",
                f"donewhen://jobs/{job.id}/ledger",
                f"donewhen://jobs/{job.id}/../../donewhen.toml",
                f"file://{job.path}",
            ):
                with pytest.raises(MCPError, match="usage"):
                    await call.client.read_resource(address)

    play(scene)


def test_a_folder_without_jobs_says_so_until_there_are_some(
    repository: Path, client: Any, play: Any, make_shop: Callable[..., Any]
) -> None:
    async def scene() -> None:
        async with client([sys.executable, "-m", "donewhen", "mcp"], repository) as call:
            told = await call.refused("list_jobs")
            assert str(repository) in told
            assert_sentences(told)
            assert (await call.client.list_resources()).resources == []
            make_shop(repository)
            assert (await call("list_jobs"))["total"] == 0

    play(scene)


def test_bad_arguments_are_errors_that_say_what_is_wrong(shop: Any, client: Any, play: Any) -> None:
    from mcp.shared.exceptions import MCPError

    job = shop.job()

    async def scene() -> None:
        async with client(shop.command()) as call:
            told = await call.refused("show_job", job="WI-19990101-001")
            assert told.startswith("[usage] ")
            assert_sentences(told)
            assert told.endswith("next: list_jobs()")
            assert "missing required field `job`" in await call.refused("show_job")
            assert "Expected `str`, got `int`" in await call.refused("show_job", job=7)
            assert "next: It takes: status, offset, limit." in await call.refused("list_jobs", limit=0)
            assert_sentences(await call.refused("run_evidence", job=job.id, criterion="AC-9"))
            with pytest.raises(MCPError) as caught:
                await call.raw("agree", {"job": job.id})
            assert_sentences(caught.value)

    play(scene)


def test_others_are_answered_while_a_command_runs_and_cancelling_ends_it(shop: Any, client: Any, play: Any) -> None:
    job = shop.job(criteria=[SLOW])
    (shop.root / "slow.sh").write_text("echo $$ > started; exec sleep 600\n")

    async def scene() -> None:
        async with client(shop.command()) as call, anyio.create_task_group() as group:
            group.start_soon(call.raw, "run_evidence", {"job": job.id})
            process = await _number_in(shop.root / "started")
            assert (await call("list_jobs"))["total"] == 1
            assert (await call("show_job", job=job.id))["id"] == job.id
            await call("check_job", job=job.id)
            assert _lives(process)
            group.cancel_scope.cancel()
        with anyio.fail_after(30):
            while _lives(process):
                await anyio.sleep(0.02)

    play(scene)
    assert shop.entries(job)[-1].data["ending"] == "cancelled"


@pytest.mark.parametrize("tool", ["complete_job", "run_evidence"])
def test_a_call_that_was_cancelled_is_no_refusal_and_no_iteration(shop: Any, client: Any, play: Any, tool: str) -> None:
    job = shop.job(criteria=[SLOW])
    shop.work()
    (shop.root / "slow.sh").write_text("echo $$ > started; exec sleep 600\n")

    async def scene() -> None:
        async with client(shop.command()) as call, anyio.create_task_group() as group:
            group.start_soon(call.raw, tool, {"job": job.id})
            await _number_in(shop.root / "started")
            group.cancel_scope.cancel()

    # The server has ended when the client has gone, and with it everything that it was doing.
    play(scene)
    assert shop.entries(job)[-1].data["ending"] == "cancelled"
    assert shop.read(job).iteration == 0


@pytest.mark.parametrize(("how", "status"), [("gone", 0), (signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_server_whose_client_is_gone_ends_and_leaves_no_command_behind(
    shop: Any, client: Any, how: signal.Signals | str, status: int
) -> None:
    job = shop.job(criteria=[SLOW])
    (shop.root / "slow.sh").write_text("echo $$ > started; exec sleep 600\n")
    with _Raw(shop.command()) as server:
        server.send(2, "tools/call", name="run_evidence", arguments={"job": job.id})
        process = anyio.run(_number_in, shop.root / "started")
        if isinstance(how, signal.Signals):
            server.process.send_signal(how)
        else:
            server.stdin.close()
        assert server.process.wait(30) == status
    assert not _lives(process)


def test_standard_output_carries_the_protocol_and_nothing_else(shop: Any, client: Any) -> None:
    job = shop.job()
    shop.work()
    (shop.root / "check.sh").write_text('echo to stdout; echo to stderr >&2; printf \'{"jsonrpc": "2.0"}\\n\'\n')
    with _Raw(shop.command()) as server:
        server.send(2, "tools/call", name="run_evidence", arguments={"job": job.id})
        server.write("this is not JSON\n")
        server.write('{"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": 5}}\n')
        server.send(4, "tools/list")
        answers = {}
        while {2, 3, 4} - answers.keys():
            line = json.loads(server.stdout.readline())
            assert line["jsonrpc"] == "2.0"
            answers[line.get("id")] = line
        assert answers[2]["result"]["structuredContent"]["passed"]
        assert "error" in answers[3]
        server.stdin.close()
        assert server.stdout.read() == ""


LONE = "\\ud83d"
"""Half of an emoji, as JSON writes it."""


@pytest.mark.parametrize(
    ("line", "number", "outcome"),
    [
        (f'"method": "tools/call", "params": {{"name": "show_job", "arguments": {{"job": "x{LONE}"}}}}', 7, "result"),
        (f'"method": "tools/call", "params": {{"name": "show_job", "arguments": {{"{LONE}": "x"}}}}', 7, "result"),
        (f'"method": "tools/call", "params": {{"name": "no{LONE}", "arguments": {{}}}}', 7, "error"),
        (f'"method": "resources/read", "params": {{"uri": "donewhen://jobs/{LONE}/plan"}}', 7, "error"),
        (f'"method": "no{LONE}", "params": {{}}', 7, "error"),
        ('"method": "tools/call", "params": {"name": "show_job", "arguments": {"job": NaN}}', 7, "result"),
        ('"method": "tools/call", "params": {"name": "list_jobs", "arguments": {"limit": 1e999}}', 7, "result"),
        (
            f'"method": "tools/call", "params": {{"name": "list_jobs", "arguments": {{"limit": {10**400}}}}}',
            7,
            "result",
        ),
        (
            f'"method": "tools/call", "params": {{"name": "show_job", "arguments": {{"job": {"[" * 90}{"]" * 90}}}}}',
            7,
            "result",
        ),
        *(
            (
                '"method": "tools/call", "params": {"name": "show_job", "arguments": {"job": '
                + "[" * deep
                + "]" * deep
                + "}}",
                7,
                "error",
            )
            for deep in (400, 480, 800, 9999)
        ),
        (f'"method": "tools/list", "params": {{"number": {"9" * 5000}}}', 7, "error"),
        ('"method": "tools/list", "params": {"a": }', 7, "error"),
        ('"method": "tools/call", "params": ["show_job"]', 7, "error"),
        ('"method": "tools/call", "params": {"name": "show_job", "arguments": "x"}', 7, "error"),
        ('"method": 5', 7, "error"),
        ('"method": "tools/list"', "one", "result"),
        ('"method": "tools/list"', "\ud83d", "error"),
        ('"method": "tools/list"', 1.5, "error"),
        ('"method": "tools/list"', None, "error"),
    ],
)
def test_every_call_gets_a_reply(shop: Any, client: Any, line: str, number: Any, outcome: str) -> None:
    with _Raw(shop.command()) as server:
        server.write(f'{{"jsonrpc": "2.0", "id": {json.dumps(number)}, {line}}}\n')
        answer = json.loads(server.stdout.readline())
        assert (answer["id"], list(answer)[-1]) == (number, outcome)
        server.send(8, "tools/call", name="list_jobs", arguments={})
        assert json.loads(server.stdout.readline())["id"] == 8


@pytest.mark.parametrize(
    ("line", "numbers"),
    [
        ("{", [None]),
        ("7", [None]),
        ("[]", [None]),
        ('{"jsonrpc": "2.0", "id": NaN, "method": "ping"}', [None]),
        ('{"jsonrpc": "2.0", "id": -1e999, "method": "ping"}', [None]),
        ('{"jsonrpc": "2.0", "method": "ping", "id": 4', [4]),
        ('{"jsonrpc": "2.0", "params": {"id": 5}, "id": "six", "method": }', ["six"]),
        ('\ufeff{"jsonrpc": "2.0", "id": true, "method": "ping"}', [None]),
        ('[{"id": 1, "method": "x"}, {"id": 2, "method": "y"}]', [1, 2]),
    ],
)
def test_a_line_that_is_no_message_is_answered_with_an_error(
    shop: Any, client: Any, line: str, numbers: list[Any]
) -> None:
    with _Raw(shop.command()) as server:
        server.write("\n" + line + "\n")
        answers = [json.loads(server.stdout.readline()) for _ in numbers]
        assert [(answer["id"], "error" in answer) for answer in answers] == [(number, True) for number in numbers]


def test_an_argument_with_half_an_emoji_is_repaired_and_recorded(shop: Any, client: Any) -> None:
    job = shop.job()
    with _Raw(shop.command()) as server:
        arguments = f'{{"job": "{job.id}", "question": "Is it done? {LONE}"}}'
        call = f'"method": "tools/call", "params": {{"name": "ask_person", "arguments": {arguments}}}'
        server.write(f'{{"jsonrpc": "2.0", "id": 2, {call}}}\n')
        answer = json.loads(server.stdout.readline())
    assert answer["result"]["structuredContent"]["reason"] == "Is it done? \ufffd"
    assert shop.entries(job)[-1].data["reason"] == "Is it done? \ufffd"


STOP = """[stop]
files = ["report.txt"]
commands = ["sh check.sh"]
"""


def test_the_checks_of_a_stop_are_a_tool(repository: Path, client: Any, play: Any, make_shop: Any) -> None:
    shop = make_shop(repository, settings=STOP)
    (shop.root / "check.sh").write_text("echo checking; grep GOOD report.txt\n")

    async def scene() -> None:
        async with client(shop.command()) as call:
            early = await call("check_stop")
            assert not early["may_stop"]
            assert [(check["complete"], check.get("code")) for check in early["checks"]] == [
                (False, "files_missing"),
                (False, "command_failed"),
            ]
            assert early["next"] == "Fix what the failed checks name, then: check_stop()"
            assert call.progress == [(0, 2, "files report.txt"), (1, 2, "sh check.sh")]
            shop.work()
            late = await call("check_stop")
            assert (late["may_stop"], late["next"]) == (True, "You may stop.")

    play(scene)
    assert not [path for path in shop.root.rglob("*") if "attempts" in path.name]


def test_without_checks_of_a_stop_nothing_passes(shop: Any, client: Any, play: Any) -> None:
    async def scene() -> None:
        async with client(shop.command()) as call:
            assert_sentences(await call.refused("check_stop"))

    play(scene)


def test_a_broken_check_of_a_stop_is_no_pass(repository: Path, client: Any, play: Any, make_shop: Any) -> None:
    shop = make_shop(repository, settings='[stop]\ncommands = ["no-such-program-at-all"]\n')

    async def scene() -> None:
        async with client(shop.command()) as call:
            answer = await call("check_stop")
            assert not answer["may_stop"]
            assert answer["checks"][0]["code"] == "command_not_found"
            (shop.root / "donewhen.toml").write_text("[stop]\nfiles = 7\n")
            assert "[config" in await call.refused("check_stop")

    play(scene)


def test_a_person_sees_the_question_and_is_not_notified(shop: Any, client: Any, play: Any) -> None:
    from donewhen_kit import run_main

    job = shop.job()

    async def scene() -> None:
        async with client(shop.command()) as call:
            asked = await call("ask_person", job=job.id, question="Which currency?")
            assert_sentences(asked["next"])

    play(scene)
    assert "asked" in run_main(["status"], shop.root).stdout
    assert "Which currency?" in run_main(["review"], shop.root).stdout
    assert "Which currency?" in run_main(["log", job.id], shop.root).stdout


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


async def _number_in(path: Path) -> int:
    with anyio.fail_after(60):
        while not (path.exists() and path.read_text().strip()):
            await anyio.sleep(0.02)
    return int(path.read_text())


class _Raw:
    """A server and nothing but pipes, so that every byte is seen."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self.process.stdin
        assert self.process.stdout
        self.stdin, self.stdout = self.process.stdin, self.process.stdout

    def __enter__(self) -> Self:
        about = {"name": "test", "version": "1"}
        self.send(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=about)
        assert json.loads(self.stdout.readline())["id"] == 1
        self.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self.stdin.close()
        self.stdout.close()

    def send(self, number: int, method: str, **params: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")

    def write(self, line: str) -> None:
        self.stdin.write(line)
        self.stdin.flush()
