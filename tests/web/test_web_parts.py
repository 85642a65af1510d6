"""What the page is made of, where it needs no server: names of hosts, origins, layers, memory, versions."""

from __future__ import annotations

import asyncio
import re
import threading
from pathlib import Path

import pytest
from web_kit import shop

import donewhen
from donewhen.jobs.ledger.entries import Actor
from donewhen.web.access_rules import AccessPolicy, host_allowed, is_let_in, is_loopback, same_origin
from donewhen.web.evidence import cut_middle
from donewhen.web.file_watch import FileWatch, changed_topics
from donewhen.web.page_cache import PageCache
from donewhen.web.project_folder import ProjectFolder
from donewhen.web.reviewers import SESSION_COOKIE, Reviewers
from donewhen.web.viewers import MOST_VIEWERS, Viewers
from sentences import assert_sentences

HERE = AccessPolicy("127.0.0.1")
EVERYWHERE = "0.0.0.0"  # noqa: S104 - only a name here
ELSEWHERE = AccessPolicy(EVERYWHERE, "secret")
ADA = Actor("ada", "person")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "::1", "[::1]", "a.localhost"])
def test_loopback_is_known_by_all_its_names(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", [EVERYWHERE, "::", "192.168.0.7", "example.org", "localhost.x.org", "127.0.0.1.x.org", ""]
)
def test_everything_else_is_not_loopback(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize("header", ["127.0.0.1:8642", "localhost", "LOCALHOST:1", "[::1]:8642", "127.0.0.1"])
def test_on_loopback_its_own_names_are_allowed_whatever_the_port(header: str) -> None:
    assert host_allowed(header, HERE)


@pytest.mark.parametrize(
    "header",
    [None, "", "evil.example", "evil.example:8642", "127.0.0.1.evil.example", "localhost@evil.example", "a/b", "[::1",
     "127.0.0.1:99999", "127.0.0.1, evil.example", "192.168.0.7", "\\localhost"],
)  # fmt: skip
def test_on_loopback_no_other_name_is_allowed(header: str | None) -> None:
    assert not host_allowed(header, HERE)


def test_elsewhere_addresses_are_allowed_and_names_only_if_they_are_its_own() -> None:
    assert host_allowed("192.168.0.7:8642", ELSEWHERE)
    assert host_allowed("localhost:8642", ELSEWHERE)
    assert not host_allowed("evil.example:8642", ELSEWHERE)
    assert host_allowed("box.lan:8642", AccessPolicy("box.lan", "secret"))
    assert not host_allowed("other.lan:8642", AccessPolicy("box.lan", "secret"))


@pytest.mark.parametrize(
    ("headers", "ours"),
    [
        ({"origin": "http://127.0.0.1:8642"}, True),
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "same-origin", "origin": "http://127.0.0.1:8642"}, True),
        ({}, False),
        ({"origin": "null"}, False),
        ({"origin": "http://127.0.0.1:3000"}, False),
        ({"origin": "https://127.0.0.1:8642"}, False),
        ({"sec-fetch-site": "same-site", "origin": "http://127.0.0.1:8642"}, False),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "none"}, False),
        ({"sec-fetch-site": "same-origin", "origin": "http://evil.example"}, False),
    ],
)
def test_only_a_browser_that_says_so_sends_our_own_forms(headers: dict[str, str], ours: bool) -> None:
    assert same_origin({"host": "127.0.0.1:8642", **headers}) is ours


def test_the_token_is_asked_for_where_there_is_one() -> None:
    assert is_let_in(HERE, {})
    assert not is_let_in(ELSEWHERE, {})
    assert not is_let_in(ELSEWHERE, {"donewhen": "guess"})
    assert is_let_in(ELSEWHERE, {"donewhen": "secret"})


def test_a_link_works_once_and_is_followed_by_another() -> None:
    people = Reviewers((ADA,))
    secret = people.link("ada").rpartition("=")[2]
    assert people.fits("ada", secret)
    assert not people.fits("bo", secret)
    session = people.sign_in("ada", secret)
    assert session is not None
    assert session.by == ADA
    assert people.sign_in("ada", secret) is None
    assert people.link("ada").rpartition("=")[2] != secret


def test_a_session_is_its_path_and_its_cookie_together() -> None:
    people = Reviewers((ADA,))
    one = people.sign_in("ada", people.link("ada").rpartition("=")[2])
    two = people.sign_in("ada", people.link("ada").rpartition("=")[2])
    assert one is not None and two is not None
    assert people.session(one.id, {SESSION_COOKIE: one.secret}) == one
    assert people.session(one.id, {SESSION_COOKIE: two.secret}) is None
    assert people.session(one.id, {}) is None
    assert people.session("", {SESSION_COOKIE: one.secret}) is None
    assert one.csrf != two.csrf
    assert one.secret not in one.csrf
    people.sign_out(one)
    assert people.session(one.id, {SESSION_COOKIE: one.secret}) is None


def test_sessions_are_not_kept_without_end() -> None:
    people = Reviewers((ADA,))
    made = [people.sign_in("ada", people.link("ada").rpartition("=")[2]) for _ in range(150)]
    alive = [one for one in made if one and people.session(one.id, {SESSION_COOKIE: one.secret})]
    assert len(alive) == 100
    assert alive[-1] == made[-1]


def test_of_a_long_output_the_beginning_and_the_end_are_shown() -> None:
    text, left_out = cut_middle("a" * 3000 + "middle" + "z" * 9000, 10, 20)
    assert left_out == 3000 + 6 + 9000 - 30
    assert text.startswith("a" * 10 + "\n[… ")
    assert text.endswith("z" * 20)
    assert cut_middle("short") == ("short", 0)


def test_what_many_ask_for_is_made_once_while_nothing_changes() -> None:
    async def story() -> None:
        memory, made = PageCache(), []

        def make() -> str:
            made.append(1)
            return "page"

        assert await asyncio.gather(*(memory.get_or_make("/", 1, make) for _ in range(200))) == ["page"] * 200
        assert await memory.get_or_make("/", 1, make) == "page"
        assert len(made) == 1
        await memory.get_or_make("/", 2, make)
        assert len(made) == 2

    asyncio.run(story())


def test_what_may_change_unseen_is_shared_only_while_it_is_made() -> None:
    async def story() -> None:
        memory, made, gate = PageCache(), [], threading.Event()

        def make() -> int:
            made.append(1)
            gate.wait(100)
            return len(made)

        waiting = [asyncio.create_task(memory.get_or_make("/", 1, make, keep=False)) for _ in range(50)]
        await asyncio.sleep(0)
        gate.set()
        assert await asyncio.gather(*waiting) == [1] * 50
        assert await memory.get_or_make("/", 1, make, keep=False) == 2

    asyncio.run(story())


def test_what_failed_is_not_remembered() -> None:
    async def story() -> None:
        memory, fails = PageCache(), [True, False]

        def make() -> str:
            if fails.pop(0):
                raise OSError("once")
            return "page"

        with pytest.raises(OSError) as caught:
            await memory.get_or_make("/", 1, make)
        assert_sentences(caught.value)
        assert await memory.get_or_make("/", 1, make) == "page"

    asyncio.run(story())


def test_one_who_leaves_takes_the_page_from_nobody() -> None:
    async def story() -> None:
        memory, gate = PageCache(), threading.Event()
        make = lambda: gate.wait(100) and "page"  # noqa: E731
        first = asyncio.create_task(memory.get_or_make("/", 1, make))
        second = asyncio.create_task(memory.get_or_make("/", 1, make))
        await asyncio.sleep(0)
        first.cancel()
        gate.set()
        assert await second == "page"

    asyncio.run(story())


def test_memory_is_bounded() -> None:
    async def story() -> None:
        memory = PageCache(most=3)
        for number in range(10):
            await memory.get_or_make(number, 1, lambda: "page")
        await memory.get_or_make(9, 1, lambda: "page")
        assert memory.count == 10
        await memory.get_or_make(0, 1, lambda: "page")
        assert memory.count == 11

    asyncio.run(story())


def test_a_change_of_a_job_a_mission_or_a_run_is_seen_and_told_apart(tmp_path: Path) -> None:
    workspace, (job,) = shop(tmp_path, "Greet")
    mission = tmp_path / "missions" / "tone"
    run = mission / "runs" / "20260101-001"
    run.mkdir(parents=True)
    (mission / "mission.toml").write_text('mission = "tone"\n', encoding="utf-8")
    (run / "events.jsonl").write_text("{}\n", encoding="utf-8")

    async def story() -> None:
        watch = FileWatch(ProjectFolder(tmp_path))
        before = await watch.refresh()
        assert changed_topics(before, await watch.refresh()) == ()
        workspace.ledger.append(job.id, "unverified", {"why": "a test"}, Actor("bot"))
        before, now = watch.versions, await watch.refresh()
        assert changed_topics(before, now) == ("jobs",)
        (run / "events.jsonl").write_text("{}\n{}\n", encoding="utf-8")
        before, now = now, await watch.refresh()
        assert changed_topics(before, now) == ("runs",)
        (mission / "guidance.json").write_text("{}", encoding="utf-8")
        before, now = now, await watch.refresh()
        assert changed_topics(before, now) == ("missions",)
        (run / "answers.sqlite-wal").write_text("not worth a look", encoding="utf-8")
        assert changed_topics(now, await watch.refresh()) == ()

    asyncio.run(story())


def test_many_who_look_at_once_share_a_look_that_began_after_they_asked(tmp_path: Path) -> None:
    shop(tmp_path, "Greet")

    async def story() -> None:
        watch = FileWatch(ProjectFolder(tmp_path))
        first = await watch.refresh()
        (tmp_path / "jobs" / "plan.md").touch()
        assert {*await asyncio.gather(*(watch.refresh() for _ in range(100)))} == {watch.versions}
        assert changed_topics(first, watch.versions) == ("jobs",)

    asyncio.run(story())


def test_a_viewer_that_reads_nothing_is_told_everything_at_once_later(tmp_path: Path) -> None:
    async def story() -> None:
        viewers = Viewers(FileWatch(ProjectFolder(tmp_path)))
        slow = viewers.join()
        assert slow is not None
        for _ in range(10_000):
            slow.notify(("jobs",))
            slow.notify(("runs",))
        messages = slow.messages()
        assert (await anext(messages)).startswith(b"retry: 2000\nevent: hello\n")
        assert await anext(messages) == b"event: changed\ndata: jobs runs\n\n"
        viewers.close()
        with pytest.raises(StopAsyncIteration):
            await anext(messages)

    asyncio.run(story())


def test_there_is_room_for_many_viewers_but_not_without_end(tmp_path: Path) -> None:
    async def story() -> None:
        viewers = Viewers(FileWatch(ProjectFolder(tmp_path)))
        found = [viewers.join() for _ in range(MOST_VIEWERS)]
        assert None not in found
        assert viewers.join() is None
        viewers.leave(found[0])  # type: ignore[arg-type]
        assert viewers.join() is not None
        viewers.close()
        assert viewers.join() is None

    asyncio.run(story())


def test_names_of_missions_never_become_paths(tmp_path: Path) -> None:
    mission = tmp_path / "missions" / "tone"
    mission.mkdir(parents=True)
    (mission / "mission.toml").write_text('mission = "tone"\n', encoding="utf-8")
    (tmp_path / "mission.toml").write_text('mission = "here"\n', encoding="utf-8")
    place = ProjectFolder(tmp_path / "missions" / "tone")
    assert set(ProjectFolder(tmp_path).missions()) == {"tone", tmp_path.name}
    assert set(place.missions()) == {"tone"}
    for name in ("..", ".", "../tone", "", "tone/../tone", "/"):
        with pytest.raises(Exception) as caught:
            ProjectFolder(tmp_path).mission(name)
        assert_sentences(caught.value)


def test_an_error_that_nobody_foresaw_is_a_plain_page_and_a_line_on_the_terminal(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    from donewhen.web.access_middleware import AccessMiddleware
    from donewhen.web.server_state import Message, Receive, Scope, Send, ServerState

    told: list[str] = []
    sent: list[Message] = []

    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise ZeroDivisionError("a secret of the inside")

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def story() -> None:
        site = ServerState(ProjectFolder(tmp_path), HERE, Reviewers((), "it is for reading"), told.append)
        headers = [(b"host", b"127.0.0.1")]
        scope = {"type": "http", "method": "GET", "path": "/x\x1b[31m", "query_string": b"", "headers": headers}
        await AccessMiddleware(site, broken)(scope, receive, send)

    asyncio.run(story())
    assert sent[0]["status"] == 500
    assert (b"x-frame-options", b"DENY") in sent[0]["headers"]
    body = sent[1]["body"].decode()
    assert "secret" not in body and "Traceback" not in body
    reported, log = told
    assert reported == "The page /x\x1b[31m could not be shown: ZeroDivisionError: a secret of the inside"
    assert "ZeroDivisionError" in Path(log.removeprefix("Crash log: ")).read_text()


def test_plots_and_the_layout_of_the_graph_are_made_in_one_place_each() -> None:
    package = Path(donewhen.__file__).parent
    sources = {
        path.relative_to(package).as_posix(): path.read_text(encoding="utf-8")
        for path in package.rglob("*")
        if path.suffix in (".py", ".js", ".html")
    }

    def having(pattern: str) -> list[str]:
        return sorted(name for name, text in sources.items() if re.search(pattern, text))

    assert having(r"marker-end") == ["dashboard/graph.js"]
    assert having(r"<figure|figure\(title") == ["dashboard/plots.js", "reports/plots.py"]
    assert [name for name in having(r"reports import plots|reports\.plots") if not name.startswith("reports/")] == []
    assert having(r"def (drift_plot|learning_curve)\(") == ["reports/judge_plots.py"]
