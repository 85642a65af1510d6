"""Bad moments of a server, one after the other. Nobody waits: the clock moves when somebody would sleep."""

from __future__ import annotations

import socket
import traceback
from datetime import UTC, datetime
from typing import Any

import pytest

from donewhen.foundation.errors import ConfigError
from donewhen.mirror.http.address import Address
from donewhen.mirror.http.client import Client
from donewhen.mirror.http.errors import GoneError, MirrorError, UnavailableError, UncertainError
from donewhen.mirror.http.retry import next_page, wait_after_failure, wait_before_retry
from donewhen.mirror.http.transport import HttpResponse, HttpTransport, NoResponse
from donewhen.mirror.sync.issue_map import read_map
from sentences import assert_sentences


def test_a_token_that_is_not_accepted_is_told_without_showing_it(place: Any) -> None:
    place.job()
    place.environ["GH_TOKEN"] = "ghs_notthisone0123456789"
    with pytest.raises(MirrorError) as caught:
        place.sync()
    assert_sentences(caught.value)
    message = "".join(traceback.format_exception(caught.value))
    assert "notthisone" not in message
    assert caught.value.exit_code == 2
    assert_sentences(caught.value.next_step)


def test_a_repository_that_one_may_not_see_is_not_there(place: Any) -> None:
    place.double.repo.private_to = "somebody else's"
    with pytest.raises(GoneError) as caught:
        place.sync()
    assert_sentences(caught.value)
    assert caught.value.exit_code == 2
    assert "github_repo" in str(caught.value.next_step)


@pytest.mark.parametrize("told_by", ["the repository", "the list"])
def test_issues_that_are_switched_off_are_told(place: Any, trouble: Any, told_by: str) -> None:
    place.job()
    if told_by == "the repository":
        place.double.repo.has_issues = False
    else:
        body = b'{"message": "Issues are disabled for this repo"}'
        place.double.next(trouble(status=410, body=body), path=".*/issues")
    with pytest.raises(MirrorError) as caught:
        place.sync()
    assert_sentences(str(caught.value.next_step).casefold())


def test_a_token_without_the_right_is_told_and_is_not_waited_for(place: Any, trouble: Any) -> None:
    place.job()
    place.double.next(trouble(status=403, body=b'{"message": "Resource not accessible by integration"}'), method="POST")
    with pytest.raises(MirrorError) as caught:
        place.sync()
    assert_sentences(caught.value)
    assert place.clock.slept == []


def test_the_hourly_limit_is_waited_for_and_told(place: Any, trouble: Any) -> None:
    place.job()
    reset = int(place.clock.now().timestamp()) + 90
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(reset)}
    place.double.next(trouble(status=403, headers=headers), method="POST", path=".*/issues")
    assert place.sync().left == ()
    assert place.clock.slept == [91.0]
    assert_sentences(place.told)
    assert [*place.double.repo.issues] == [1], "what was refused was not taken in"


@pytest.mark.parametrize("status", [403, 429])
def test_a_pause_that_the_server_asks_for_is_made(place: Any, trouble: Any, status: int) -> None:
    place.job()
    place.double.next(trouble(status=status, headers={"retry-after": "7"}), method="POST", path=".*/issues")
    place.sync()
    assert place.clock.slept == [7.0]


def test_a_pause_longer_than_allowed_stops_the_sync_and_says_when_to_go_on(place: Any, trouble: Any) -> None:
    jobs = [place.job(f"Job {number}") for number in range(3)]
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(place.clock.now().timestamp()) + 3000)}
    first = place.double.answer
    made = []

    def limited(asked: Any) -> Any:
        if asked.method == "POST" and asked.path.endswith("/issues"):
            made.append(asked)
            if len(made) == 3:
                return 403, headers, b"{}", None
        return first(asked)

    place.double.answer = limited
    with pytest.raises(UnavailableError) as caught:
        place.sync(max_wait=60)
    assert_sentences(caught.value)
    assert caught.value.exit_code == 3
    assert place.clock.slept == []
    known = read_map(place.workspace)
    assert [known.issue(job.id) for job in jobs] == [1, 2, None]
    assert [len(place.mirrored(job)) for job in jobs] == [1, 1, 0]
    place.double.answer = first
    place.sync()
    assert len(place.double.repo.issues) == 3


def test_many_short_pauses_come_to_an_end_as_well(place: Any, trouble: Any) -> None:
    place.double.next(trouble(status=429, headers={"retry-after": "0"}), times=100)
    with pytest.raises(UnavailableError) as caught:
        place.sync(max_wait=10)
    assert "10 seconds" in str(caught.value)
    assert_sentences(caught.value)
    assert place.clock.slept == [1.0] * 10


def test_a_bad_moment_passes(place: Any, trouble: Any) -> None:
    place.job()
    place.double.next(trouble(status=502), times=3, method="GET")
    assert place.sync().left == ()
    assert place.clock.slept == [0.5, 1.0, 2.0]


def test_a_server_that_stays_broken_is_left_alone_after_five_tries(place: Any, trouble: Any) -> None:
    place.double.next(trouble(status=503), times=99)
    with pytest.raises(UnavailableError) as caught:
        place.sync()
    assert_sentences(caught.value)
    assert len(place.double.log) == 5


@pytest.mark.parametrize("created", [True, False], ids=["made", "not made"])
@pytest.mark.parametrize("how", ["cut", "status"])
def test_an_issue_is_made_once_whatever_became_of_the_answer(place: Any, trouble: Any, how: str, created: bool) -> None:
    job = place.job()
    bad = {"cut": True} if how == "cut" else {"status": 504}
    place.double.next(trouble(**bad, after=created), method="POST", path=".*/issues")
    assert place.sync().left == ()
    assert [*place.double.repo.issues] == [1]
    assert len(place.double.asked("POST", ".*/issues")) == (1 if created else 2)
    assert place.fact(job).current


def test_an_issue_that_shows_in_the_list_a_moment_later_is_not_made_twice(place: Any, trouble: Any) -> None:
    place.job()
    place.double.next(trouble(cut=True, after=True), method="POST", path=".*/issues")
    listed = place.double._list_issues
    late = [0, 0]

    def lagging(repo: Any, asked: Any) -> Any:
        late[0] += asked.query.get("direction") == "desc"
        return (200, {}, []) if late[0] == 1 else listed(repo, asked)

    place.double._list_issues = lagging
    assert place.sync().left == ()
    assert [*place.double.repo.issues] == [1]


def test_where_nobody_ever_answers_it_is_said_that_it_is_not_known(place: Any, trouble: Any) -> None:
    place.job()
    place.double.next(trouble(cut=True), times=9, method="POST", path=".*/issues")
    with pytest.raises(UncertainError) as caught:
        place.sync()
    assert_sentences(caught.value)


@pytest.mark.parametrize("path", [".*/labels", ".*/milestones"])
def test_a_label_or_milestone_that_was_made_without_an_answer_is_the_one(place: Any, trouble: Any, path: str) -> None:
    job = place.job()
    place.edit(place.workspace.project_file, "waves: []", "waves:\n  - id: W1\n    title: One")
    place.edit(job.path, 'wave_id: ""', "wave_id: W1")
    place.double.next(trouble(cut=True, after=True), method="POST", path=path)
    assert place.sync().left == ()
    assert (len(place.double.repo.labels), len(place.double.repo.milestones)) == (1, 1)
    assert place.gaps() == []


def test_a_change_that_was_cut_off_is_sent_again(place: Any, trouble: Any) -> None:
    job = place.job()
    place.sync()
    place.edit(job.path, "title: Parser", "title: Other")
    place.double.next(trouble(cut=True, after=True), method="PATCH")
    assert place.sync().left == ()
    assert place.issue()["title"] == f"[{job.id}] Other"


def test_what_has_not_changed_is_not_sent_again(place: Any) -> None:
    place.job()
    place.sync()
    place.gaps()
    place.double.log.clear()
    assert place.gaps() == []
    assert all("if-none-match" in request.headers for request in place.double.log)
    kept = sorted((place.workspace.folder / "cache" / "github").iterdir())
    assert kept
    assert place.double.token not in "".join(path.read_text() for path in kept)
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}


def test_a_kept_answer_that_is_broken_is_as_good_as_none(place: Any) -> None:
    place.job()
    place.sync()
    place.gaps()
    for path in (place.workspace.folder / "cache" / "github").iterdir():
        path.write_text('{"url": 1')
    assert place.gaps() == []


def test_a_kept_answer_is_not_believed_once_something_has_changed(place: Any) -> None:
    place.job()
    place.sync()
    assert place.gaps() == []
    place.issue()["title"] = "other"
    assert [gap.field for gap in place.gaps()] == ["title"]


def test_the_token_goes_to_no_other_server_by_a_redirect_or_a_next_page(place: Any, trouble: Any) -> None:
    with type(place.double)() as other:
        place.job()
        place.double.next(trouble(status=302, headers={"location": f"{other.api}/repos/octo/demo"}))
        with pytest.raises(UnavailableError) as caught:
            place.sync()
        assert_sentences(caught.value)
        link = f'<{other.api}/repos/octo/demo/issues?page=2>; rel="next"'
        place.double.next(trouble(status=200, headers={"link": link}, body=b"[]"), path=".*/issues")
        with pytest.raises(UnavailableError) as caught:
            place.sync()
        assert_sentences(caught.value)
        assert other.log == []


def test_redirects_in_a_circle_end(place: Any, trouble: Any) -> None:
    place.double.next(trouble(status=302, headers={"location": "/repos/octo/demo"}), times=50)
    with pytest.raises(UnavailableError) as caught:
        place.sync()
    assert_sentences(caught.value)
    assert len(place.double.log) == 6


def test_a_list_that_goes_in_a_circle_ends(place: Any, trouble: Any) -> None:
    place.job()
    link = f'<{place.double.api}/repos/octo/demo/issues?page=1>; rel="next"'
    place.double.next(trouble(status=200, headers={"link": link}, body=b"[]"), times=50, path=".*/issues")
    with pytest.raises(UnavailableError) as caught:
        place.sync()
    assert_sentences(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"{",
        b"[]",
        b'{"full_name": 7}',
        b"[" * 100_000,
    ],
    ids=["a page", "half", "a list", "another type", "very deep"],
)
def test_an_answer_without_sense_is_told(place: Any, trouble: Any, body: bytes) -> None:
    place.double.next(trouble(status=200, body=body))
    with pytest.raises(UnavailableError) as caught:
        place.sync()
    assert_sentences(caught.value)


@pytest.mark.parametrize("row", [b"7", b'{"number": 0, "title": "t", "state": "open"}', b'{"number": 1}'])
def test_an_issue_without_sense_is_told(place: Any, trouble: Any, row: bytes) -> None:
    place.job()
    place.double.next(trouble(status=200, body=b"[" + row + b"]"), path=".*/issues")
    with pytest.raises(UnavailableError) as caught:
        place.sync()
    assert_sentences(caught.value)


def test_a_name_that_the_server_gives_is_checked_before_it_is_used(place: Any, trouble: Any) -> None:
    place.double.next(trouble(status=200, body=b'{"full_name": "octo/../../admin"}'))
    with pytest.raises(Exception) as caught:
        place.sync()
    assert_sentences(caught.value)


def test_an_answer_that_is_cut_short_or_too_long_is_no_answer(
    place: Any, trouble: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.double.next(trouble(status=200, headers={"content-length": "999"}, body=b"{}"), times=9)
    with pytest.raises(UnavailableError) as caught:
        place.sync()
    assert_sentences(caught.value)
    monkeypatch.setattr("donewhen.mirror.http.transport.LARGEST", 10)
    before = len(place.double.log)
    with pytest.raises(UnavailableError) as caught:
        place.sync()
    assert_sentences(caught.value)
    assert len(place.double.log) - before <= 5


def test_a_server_that_says_nothing_is_not_waited_for_for_ever(place: Any, trouble: Any) -> None:
    place.timeout = 0.05
    place.double.next(trouble(hang=True), times=5)
    with pytest.raises(UnavailableError) as caught:
        place.sync()
    assert_sentences(caught.value)


def test_nobody_at_the_address_is_told(place: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    place.environ["GITHUB_API_URL"] = f"http://127.0.0.1:{port}"
    with pytest.raises(UnavailableError) as caught:
        place.sync()
    assert_sentences(caught.value)


def test_an_answer_that_drips_is_not_waited_for_for_ever() -> None:
    class Slow:
        moment = 0.0

        def monotonic(self) -> float:
            self.moment += 20
            return self.moment

        def now(self) -> Any:
            raise AssertionError

    class Dripping:
        def read1(self, _: int) -> bytes:
            return b"x"

    transport = HttpTransport(clock=Slow())
    with pytest.raises(NoResponse) as caught:
        transport._read(Dripping(), {}, 30.0)  # type: ignore[arg-type]
    assert "30 seconds" in str(caught.value)
    assert_sentences(caught.value)


def test_the_headers_are_those_of_the_api(place: Any) -> None:
    place.job()
    place.sync()
    assert {request.headers["x-github-api-version"] for request in place.double.log} == {"2022-11-28"}
    assert {request.headers["accept"] for request in place.double.log} == {"application/vnd.github+json"}
    assert all(request.headers["user-agent"].startswith("donewhen/") for request in place.double.log)


def test_a_post_that_surely_was_not_sent_is_sent_again() -> None:
    class Refusing:
        tries = 0

        def send(self, *_: Any) -> HttpResponse:
            self.tries += 1
            if self.tries < 3:
                raise NoResponse("it takes no connections", sent=False)
            return HttpResponse(201, {}, b"{}")

    transport = Refusing()
    client = Client(Address("https://h", "t"), transport=transport, sleep=lambda _: None)
    assert client.create("/x", {}) == {}
    assert transport.tries == 3


def test_a_certificate_that_is_not_trusted_is_not_tried_again() -> None:
    class Untrusted:
        tries = 0

        def send(self, *_: Any) -> HttpResponse:
            self.tries += 1
            raise NoResponse("its certificate is not trusted", sent=False, hopeless=True)

    transport = Untrusted()
    with pytest.raises(UnavailableError) as caught:
        Client(Address("https://h", "t"), transport=transport).get("/x")
    assert_sentences(caught.value)
    assert transport.tries == 1


def test_without_a_token_nothing_is_sent(place: Any) -> None:
    del place.environ["GH_TOKEN"]
    with pytest.raises(ConfigError) as caught:
        place.sync()
    assert_sentences(caught.value)
    assert place.double.log == []


def test_a_token_that_the_server_repeats_is_not_shown(place: Any, trouble: Any) -> None:
    body = f'{{"message": "bad {place.double.token}"}}'.encode()
    place.double.next(trouble(status=403, body=body))
    with pytest.raises(MirrorError) as caught:
        place.sync()
    assert place.double.token not in str(caught.value)
    assert place.double.token not in repr(Address("https://h", place.double.token))


def test_an_enterprise_server_has_its_api_below_a_path(place: Any) -> None:
    place.double.prefix = "/api/v3"
    place.environ["GITHUB_API_URL"] = f"{place.double.api}/api/v3/"
    job = place.job()
    place.double.page_size = 1
    place.job("Two")
    assert place.sync().left == ()
    assert place.gaps() == []
    assert place.read(job).document.fields["github_issue_url"] == f"{place.double.api}/octo/demo/issues/1"


@pytest.mark.parametrize(
    ("status", "headers", "body", "wait"),
    [
        (429, {"retry-after": "Sat, 14 Feb 2026 10:00:30 GMT"}, b"", 30.0),
        (429, {"retry-after": "soon"}, b"", 120.0),
        (429, {}, b"", 120.0),
        (403, {}, b"You have exceeded a secondary rate limit.", 120.0),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "0"}, b"", 1.0),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "soon"}, b"", None),
        (403, {"x-ratelimit-remaining": "7"}, b"", None),
        (408, {}, b"", 2.0),
        (503, {}, b"", 2.0),
        (404, {}, b"", None),
        (200, {}, b"", None),
        (304, {}, b"", None),
    ],
)
def test_which_answers_mean_later(status: int, headers: dict[str, str], body: bytes, wait: float | None) -> None:
    now = datetime(2026, 2, 14, 10, tzinfo=UTC).timestamp()
    found = wait_before_retry(HttpResponse(status, headers, body), 2, now, jitter=1.0)
    assert (None if found is None else found.seconds) == wait


def test_pauses_grow_and_end_growing() -> None:
    assert [wait_after_failure(attempt, 1.0) for attempt in (1, 2, 3, 9)] == [1.0, 2.0, 4.0, 30.0]
    assert wait_after_failure(3, 0.0) == 2.0


@pytest.mark.parametrize(
    ("link", "url"),
    [
        ('<https://h/a?page=2>; rel="next", <https://h/a?page=9>; rel="last"', "https://h/a?page=2"),
        ('<https://h/a?page=1>; rel="prev", <https://h/a?page=3>; rel="next"', "https://h/a?page=3"),
        ('<https://h/a?page=1>; rel="prev"', None),
        ("https://h/a; rel=next", None),
        ("", None),
    ],
)
def test_the_next_page_is_named_by_a_header(link: str, url: str | None) -> None:
    assert next_page({"link": link}) == url
