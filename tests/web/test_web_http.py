"""The page over the wire: who is let in, what browsers are told, and what is refused."""

from __future__ import annotations

import re
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from web_kit import PATIENCE, Server, asked, path_of, serving, shop

from sentences import assert_sentences, visible

Serve = Callable[..., Server]
EVERYWHERE = "0.0.0.0"  # noqa: S104 - the tests connect by loopback

SECRET = "a-token-of-two-dozen-letters"
PAGES = ("/", "/board.json", "/review", "/missions", "/nowhere", "/static/web.css", "/static/htmx.min.js", "/sign-in")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A page on which nobody can change anything, so one is enough for all who look."""
    folder = tmp_path_factory.mktemp("shop")
    shop(folder, "Greet")
    server = serving(folder)
    yield server
    server.stop()


def test_every_answer_tells_the_browser_what_it_may_not_do(here: Server) -> None:
    for path in PAGES:
        found = here.get(path).headers
        policy = found["content-security-policy"]
        for rule in (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "form-action 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
        ):
            assert rule in policy, (path, rule)
        assert "unsafe" not in policy
        assert found["x-content-type-options"] == "nosniff"
        assert found["x-frame-options"] == "DENY"
        assert found["referrer-policy"] == "same-origin"
        assert found["cache-control"] == "no-store"
        assert "server" not in found


def test_the_page_itself_gets_only_what_changes(here: Server) -> None:
    whole, part = here.get("/review"), here.get("/review", HX_Request="true")
    assert "<html" in whole.text and "<html" not in part.text
    assert part.text.strip() in whole.text
    assert part.headers["vary"] == whole.headers["vary"] == "HX-Request"
    assert part.headers["x-donewhen-mark"] in whole.text


def test_no_page_has_a_script_or_a_style_of_its_own(here: Server) -> None:
    data = '<script type="application/json" id="data">'
    for path in ("/", "/review", "/missions", "/nowhere"):
        text = here.get(path).text
        assert text.count(data) == (path == "/")
        assert re.findall(r"<script(?![^>]* src=\"/static/)", text.replace(data, "")) == []
        assert re.findall(r"<style|\sstyle=|\son\w+=", text) == []


def test_addresses_that_are_not_there_are_a_plain_page(here: Server) -> None:
    for path in ("/nowhere", "/jobs/WI-20200101-001", "/missions/none", "/review/0123456789", "/jobs/", "/static/x.js"):
        got = here.get(path)
        assert got.status == 404, path
        assert "Traceback" not in got.text
        assert got.headers["content-type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize(
    "path",
    [
        "/static/../web.py",
        "/static/..%2fweb.py",
        "/static/%2e%2e/app.py",
        "/static/....//app.py",
        "/static//etc/passwd",
        "/jobs/..%2f..%2fetc%2fpasswd",
        "/jobs/%2e%2e",
        "/missions/..%2f..",
        "/missions/%2e%2e/runs/%2e%2e",
        "/missions/..",
        "/static/templates%2fshell.html",
        "/static/web.css%00",
        "//etc/passwd",
        "/as/x/../../etc/passwd",
    ],
)
def test_no_path_leads_out(here: Server, path: str) -> None:
    got = here.get(path)
    assert got.status in (403, 404)
    assert "root:" not in got.text
    assert "import" not in got.text


@pytest.mark.parametrize(
    "path", ["/", "/board.json", "/missions", "/static/web.js", "/static/dashboard.js", "/events", "/nowhere"]
)
def test_head_is_get_without_the_body(here: Server, path: str) -> None:
    got = here.get(path, method="HEAD")
    assert got.status == (404 if path == "/nowhere" else 200)
    assert got.text == ""


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_other_methods_do_nothing(here: Server, method: str) -> None:
    for path in ("/", "/review", "/events", "/jobs/WI-20260101-001", "/sign-in"):
        assert here.get(path, method=method, Origin=here.url).status == 405, path
        assert here.get(path, method=method).status == 403, path


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:80", "localhost.evil.example", "", "192.168.1.1"]
)
def test_a_name_that_is_not_its_own_is_refused(here: Server, host: str) -> None:
    got = asked(here.port, "GET", "/", headers={"Host": host})
    # An empty name is refused before it comes to us.
    assert got.status in ((421, 400) if not host else (421,))
    assert "Greet" not in got.text


def test_two_names_are_one_too_many(here: Server) -> None:
    with socket.create_connection(("127.0.0.1", here.port), PATIENCE) as wire:
        wire.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
        answer = b""
        while chunk := wire.recv(65536):
            answer += chunk
    assert b"Greet" not in answer
    assert answer.split()[1] in (b"400", b"421")


def test_a_form_from_elsewhere_does_nothing(here: Server) -> None:
    form = {"verdict": "pass"}
    assert here.post("/review/x", form, Origin="http://evil.example").status == 403
    assert here.post("/review/x", form, Origin="null").status == 403
    assert here.post("/review/x", form, Origin="").status == 403
    assert here.post("/review/x", form, Sec_Fetch_Site="cross-site").status == 403
    assert here.post("/review/x", form, Sec_Fetch_Site="same-site").status == 403


def test_without_a_session_no_form_does_anything(here: Server) -> None:
    got = here.post("/review/x", {"verdict": "pass"})
    assert got.status == 403
    assert "donewhen review" in got.text
    assert here.post("/sign-in", {"as": "ada", "secret": "guess"}).status == 403
    assert here.post("/sign-out", {}).status == 303


def test_what_is_sent_is_small_and_a_form(here: Server) -> None:
    assert here.post("/sign-in", {"as": "x" * 17_000}).status == 413
    assert here.post("/sign-in", {"as": "x"}, Content_Type="multipart/form-data; boundary=x").status == 415
    assert here.post("/sign-in", {"as": "x"}, Content_Type="application/json").status == 415
    assert here.post("/sign-in", {f"f{n}": "x" for n in range(30)}).status == 400
    sent = {"Content-Type": "application/x-www-form-urlencoded", "Origin": here.url}
    assert asked(here.port, "POST", "/sign-in", b"as=\xff\xfe", sent).status == 400


def test_a_body_that_never_ends_is_cut_off(here: Server) -> None:
    with socket.create_connection(("127.0.0.1", here.port), PATIENCE) as wire:
        wire.sendall(
            b"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\n"
            b"Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        answer = b""
        for _ in range(40):
            wire.sendall(b"400\r\n" + b"a" * 1024 + b"\r\n")
        while b"\r\n\r\n" not in answer and (chunk := wire.recv(65536)):
            answer += chunk
    assert answer.split()[1] == b"413"


def test_on_loopback_it_may_be_seen_without_a_token(here: Server) -> None:
    assert "Greet" in here.get("/").text
    assert "set-cookie" not in here.get("/").headers


def test_elsewhere_nothing_is_shown_without_the_token(tmp_path: Path, serve: Serve) -> None:
    shop(tmp_path, "Greet")
    server = serve(tmp_path, "--host", EVERYWHERE)
    link = re.search(r"(http://\S+/open\?token=(\S+))", server.screen)
    assert link is not None
    for path in (*PAGES, "/events"):
        got = server.get(path)
        assert got.status == 401, path
        assert "Greet" not in got.text
    assert server.post("/sign-in", {"as": "ada"}).status == 401
    assert server.get("/open?token=guess").status == 403
    opened = server.get(f"/open?token={link[2]}")
    assert (opened.status, path_of(opened.headers["location"])) == (303, "/")
    cookie = opened.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    assert "Greet" in server.get("/", Cookie=cookie.partition(";")[0]).text
    assert server.get("/", Cookie="donewhen=guess").status == 401
    assert server.get("/", Cookie="donewhen=").status == 401


def test_the_token_can_come_from_a_file_that_only_its_owner_reads(tmp_path: Path, serve: Serve) -> None:
    shop(tmp_path, "Greet")
    path = tmp_path.parent / f"{tmp_path.name}-token"
    path.write_text(f"{SECRET}\n", encoding="utf-8")
    path.chmod(0o600)
    server = serve(tmp_path, "--token-file", str(path))
    assert SECRET not in server.screen
    assert server.get("/").status == 401
    cookie = server.get(f"/open?token={SECRET}").headers["set-cookie"].partition(";")[0]
    assert "Greet" in server.get("/", Cookie=cookie).text


def test_a_link_signs_in_once_and_only_by_its_button(tmp_path: Path, serve: Serve) -> None:
    shop(tmp_path, "Greet")
    server = serve(tmp_path, "--reviewer", "ada", person=True)
    link = server.link("ada")
    for _ in range(3):
        looked = server.get(link)
        assert looked.status == 200
        assert "set-cookie" not in looked.headers
    ada = server.signed_in("ada")
    assert "ada" in ada.get("/").text
    used = server.get(link)
    assert used.status == 400
    assert_sentences(visible(used.text))
    query = dict(one.split("=") for one in link.partition("?")[2].split("&"))
    assert server.post("/sign-in", query).status == 403
    server.read_until(r"ada signed in\..*another browser")
    again = server.signed_in("ada")
    assert again.base != ada.base


def test_the_cookie_of_a_session_is_kept_to_its_own_path(tmp_path: Path, serve: Serve) -> None:
    shop(tmp_path, "Greet")
    server = serve(tmp_path, "--reviewer", "ada", person=True)
    query = dict(one.split("=") for one in server.link("ada").partition("?")[2].split("&"))
    answer = server.post("/sign-in", query)
    cookie, base = answer.headers["set-cookie"], answer.headers["location"].removesuffix("/review")
    assert f"Path={base};" in cookie
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    assert len(base) > 30
    # The path without the cookie, and the cookie without the path, are nobody's.
    assert server.get(f"{base}/review").status == 403
    assert "Sign out" not in server.get("/review", Cookie=cookie.partition(";")[0]).text
    assert base not in server.get("/review").text


def test_signing_out_ends_the_session(tmp_path: Path, serve: Serve) -> None:
    shop(tmp_path, "Greet")
    ada = serve(tmp_path, "--reviewer", "ada", person=True).signed_in("ada")
    assert ada.post("/sign-out", {"csrf": "guess"}).status == 403
    assert ada.get("/review").status == 200
    assert ada.post("/sign-out", {}).status == 303
    assert ada.get("/review").status == 403


def test_each_reviewer_has_a_link_of_their_own(tmp_path: Path, serve: Serve) -> None:
    shop(tmp_path, "Greet")
    server = serve(tmp_path, "--reviewer", "ada", "--reviewer", "bo", person=True)
    swapped = server.link("ada").replace("as=ada", "as=bo")
    assert server.get(swapped).status == 400
    assert "bo" in server.signed_in("bo").get("/").text


def test_no_button_agrees_completes_or_sets_a_status(tmp_path: Path, serve: Serve) -> None:
    _, (job,) = shop(tmp_path, "Greet")
    ada = serve(tmp_path, "--reviewer", "ada", person=True).signed_in("ada")
    for path in ("/", f"/jobs/{job.id}", "/missions", "/review"):
        actions = set(re.findall(r'<form[^>]*method="post"[^>]*action="([^"]+)"', ada.get(path).text))
        assert actions == {f"{ada.base}/sign-out"}, path
        assert ada.post(path, {"status": "done"}).status == 405


def test_looking_changes_nothing(tmp_path: Path, serve: Serve) -> None:
    _, (job,) = shop(tmp_path, "Greet")
    server = serve(tmp_path)
    server.get("/")
    kept = {one: one.read_bytes() for one in tmp_path.rglob("*") if one.is_file() and ".sqlite" not in one.name}
    for path in (
        "/",
        "/?q=x&page=2",
        "/board.json",
        f"/jobs/{job.id}",
        "/review",
        "/missions",
        "/sign-in?as=ada&secret=x",
    ):
        server.get(path)
    now = {one: one.read_bytes() for one in tmp_path.rglob("*") if one.is_file() and ".sqlite" not in one.name}
    assert now == kept


def test_a_project_that_donewhen_has_never_written_to_stays_as_it_is(tmp_path: Path, serve: Serve) -> None:
    shop(tmp_path, "Greet", agreed=False)
    shutil.rmtree(tmp_path / ".donewhen")
    server = serve(tmp_path)
    assert "Greet" in server.get("/").text
    assert "Greet" in server.get("/board.json").text
    assert not (tmp_path / ".donewhen").exists()
    assert not (tmp_path / "jobs" / "outputs").exists()
