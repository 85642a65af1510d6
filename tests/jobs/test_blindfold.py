"""What a judge is shown is what is there: nothing that looks like a secret, like another letter or like nothing at all
keeps a bad sentence from it. What may not leave the machine goes to a person instead.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "review"))

from court_kit import ADA, CHECKED, JUDGED, TAUGHT, Court, write_mission

from donewhen.jobs.contract.agreement import project_agreement
from donewhen.models.addresses import other_address, runs_in_process
from donewhen.models.roles import Completion, RolloutRequest
from donewhen.review.queue import review_queue
from donewhen.review.verdicts import record_verdict
from donewhen.testing.chat_api import ChatServer, Reply
from sentences import assert_sentences

TOKEN = "gh" + "p_" + "a1B2" * 9
KEY = "-----BEGIN PRIVATE " + "KEY-----\n{}\n-----END PRIVATE " + "KEY-----\n"
BAD = "lorem ipsum"
"""The rule of ``TAUGHT`` fails it."""


@pytest.fixture
def court(repository: Path, git: Callable[..., str]) -> Court:
    """The judge is contrast, which fails what says *lorem*."""
    return Court(repository, git, rules=TAUGHT)


@pytest.fixture
def scripted(repository: Path, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> Court:
    return Court(repository, git, monkeypatch)


HIDDEN = {
    "a private key": KEY.format(BAD),
    "a private key without an end": f"-----BEGIN PRIVATE {'KEY-----'}\n{BAD}\n",
    "a password": f'password = "{BAD}"\n',
    "a password of one word": "password: lorem.ipsum\n",
    "a token": f"{TOKEN} {BAD}\n",
    "a bearer": "Bearer lorem.and.so.on\n",
    "an address": "https://me:lorem@example.org/\n",
}
DISGUISED = {
    "Cyrillic letters": "lоrеm ipsum\n",
    "wide letters": "ｌｏｒｅｍ ipsum\n",
    "bold letters": "𝐥𝐨𝐫𝐞𝐦 ipsum\n",
    "a zero-width space": "lo\u200brem ipsum\n",
    "a soft hyphen": "lo\u00adrem ipsum\n",
    "struck out": "l\u0336o\u0336r\u0336e\u0336m\u0336 ipsum\n",
    "a split word": "It is lo-\nrem ipsum.\n",
    "tags": "lo\U000e0061rem ipsum\n",
}


@pytest.mark.parametrize("text", HIDDEN.values(), ids=HIDDEN)
def test_nothing_is_hidden_in_what_looks_like_a_secret(court: Court, text: str) -> None:
    job = court.job(JUDGED, work=f"The report.\n{text}")
    assert not court.ask(job).passed
    assert court.standing(job).state == "failed"
    assert not court.complete(job).done


@pytest.mark.parametrize("value", ["lorem ipsum", "lorem1", "loremipsum"])
def test_a_variable_of_the_caller_hides_nothing(court: Court, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("MY_KEY", value)
    job = court.job(JUDGED, work=f"{value} lorem\n")
    assert not court.ask(job).passed
    assert court.standing(job).state == "failed"


@pytest.mark.parametrize("text", DISGUISED.values(), ids=DISGUISED)
def test_a_disguised_sentence_fails_or_goes_to_a_person(court: Court, text: str) -> None:
    job = court.job(JUDGED, work=f"The report says a lot. {text}")
    ran = court.ask(job)
    assert not ran.passed
    assert court.standing(job).state in ("failed", "needs_human")
    assert not court.complete(job).done


def test_a_difference_between_both_readings_is_said_and_costs_no_iteration(court: Court) -> None:
    job = court.job(JUDGED, work="The report says lоrеm ipsum.\n")
    assert court.codes(job) == {"needs_human"}
    assert court.read(job).iteration == 0
    assert court.kinds() == ["low_agreement"]
    assert_sentences(court.standing(job).why[0])
    court.overrule(job, "pass")
    assert court.complete(job).done


HONEST = {
    "Russian": "Отчёт готов, все тесты прошли, и он не падает в Docker.\n",
    "Greek": "Όλα τα τεστ πέρασαν και ο κώδικας είναι έτοιμος.\n",
    "Chinese": "报告已完成，所有测试都通过了。\n",
    "German": "Größere Prüfungen mit weichen Tren\u00adnungen.\n",
    "emoji": "All of the forty-two lines were parsed 👨\u200d👩\u200d👧 ❤\ufe0f\n",
    "split accents": "Cafe\u0301 a\u0300 la carte\n",
    "wrapped": "# Report\n\nAll of the lines were parsed, and none of them was left out of\nthe summary below.\n",
    "examples": "Set AWS_ACCESS_KEY_ID=" + "AK" + "IA" + "IOSFODNN7EXAMPLE and password: secret\n",
    "hashes": "sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n",
}


@pytest.mark.parametrize("text", HONEST.values(), ids=HONEST)
def test_honest_text_passes(court: Court, text: str) -> None:
    job = court.job(JUDGED, work=text)
    assert court.complete(job).done


def test_the_same_text_is_not_asked_twice_and_a_wrapped_one_costs_one_more_answer(scripted: Court) -> None:
    scripted.settings("[from_job]\nparts = ['outputs']\n")
    job = scripted.job(JUDGED, work="One line. Größe. Все тесты прошли.\n")
    scripted.ask(job)
    assert scripted.asked == 3
    scripted.write("report.md", "A line that was wrapped\nas editors do it.\n")
    assert scripted.ask(job).passed
    assert scripted.asked == 3 + 3 + 1


def test_a_judge_is_also_shown_joined_lines(scripted: Court, monkeypatch: pytest.MonkeyPatch) -> None:
    def vote(request: RolloutRequest) -> Completion:
        word = "fail" if any("not run" in text for text in request.evidence.values()) else "pass"
        return Completion(f"Verdict: {word}\nReason: it says so")

    monkeypatch.setattr(scripted, "_vote", vote)
    monkeypatch.setattr(scripted.model, "_roll", vote)
    scripted.settings("[from_job]\nparts = ['outputs']\n")
    job = scripted.job(JUDGED, work="The tests were not\nrun.\n")
    assert scripted.ask(job).entry.data["needs_human"]
    assert scripted.asked == 3 + 1 + 3


def test_without_calls_left_for_the_second_reading_a_person_decides(scripted: Court) -> None:
    scripted.settings("[from_job]\nparts = ['outputs']\n\n[budget]\ncalls = 3\n")
    job = scripted.job(JUDGED, work="A line that was wrapped\nas editors do it.\n")
    ran = scripted.ask(job)
    assert (ran.passed, ran.entry.data["needs_human"]) == (False, True)
    assert_sentences(str(ran.entry.data["told"]))


def test_output_that_was_redacted_in_the_record_is_not_passed_unseen(court: Court) -> None:
    court.write("check.sh", f"echo {TOKEN}\n")
    court.commit()
    job = court.job(CHECKED, JUDGED)
    assert court.codes(job) == {"needs_human"}
    assert_sentences(court.standing(job, "AC-2").why[0])


def test_the_record_has_no_secret_and_is_about_the_exact_text(court: Court) -> None:
    job = court.job(JUDGED, work=f"A report with {TOKEN} in it.\n")
    ran = court.ask(job)
    assert ran.passed
    assert ran.entry.data["parts"]["ticket"] == court.question(job).subject
    court.write("report.md", f"A report with {TOKEN[:-1]}x in it.\n")
    assert court.standing(job).state == "stale"
    stored = b"".join(path.read_bytes() for path in (court.root / ".donewhen").rglob("*") if path.is_file())
    assert TOKEN.encode() not in stored


def test_a_person_reviews_without_seeing_the_secret_and_the_audit_finds_the_label_proved(court: Court) -> None:
    from donewhen.jobs.audit.audit_labels import label_problems

    job = court.job(JUDGED, work=f"The report says lоrеm ipsum with {TOKEN}.\n")
    court.complete(job)
    (item,) = review_queue(court.workspace)
    assert TOKEN not in json.dumps(dict(item.evidence))
    done = record_verdict(court.workspace, item, "pass", ADA, "it is only an example")
    assert done.counts
    assert TOKEN not in (court.folder / "reviews.jsonl").read_text()
    chains = {name: court.workspace.ledger.read(name) for name in (job.id, court.workspace.project().id)}
    assert [*label_problems(court.workspace, chains)] == []
    assert court.complete(job).done


# A model on a server


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    pytest.importorskip("openai", reason="OPENAI IS NOT INSTALLED: pip install 'donewhen[openai]'")
    monkeypatch.setenv("OPENAI_API_KEY", "for-loopback-only")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with ChatServer([Reply("Verdict: pass\nReason: it is there")] * 50) as chat:
        yield chat


def with_model(court: Court, model: str, toml: str = "") -> None:
    write_mission(court.folder, toml, TAUGHT, model=model)


def agree_again(court: Court) -> None:
    from donewhen.jobs.contract.agreeing import agree, agreement_proposals

    for proposal in agreement_proposals(court.workspace, []):
        agree(court.workspace, proposal, ADA)


SECRET = {
    "a token": (f"one\ntwo {TOKEN}\n", "report.md:2"),
    "a private key": ("one\n" + KEY.format("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ"), "report.md:2"),
    "a password": ("password = 'hunter2hunter'\n", "report.md:1"),
}


@pytest.mark.parametrize(("text", "place"), SECRET.values(), ids=SECRET)
def test_a_secret_is_not_sent_and_a_person_learns_where_it_is(
    court: Court, server: ChatServer, text: str, place: str
) -> None:
    with_model(court, f"openai:any@{server.base_url}")
    job = court.job(JUDGED, work=text)
    assert court.codes(job) == {"needs_human"}
    (why,) = court.standing(job).why
    assert place in why
    assert TOKEN not in why and "hunter2" not in why
    assert not server.calls
    assert court.read(job).iteration == 0
    assert court.kinds() == ["low_agreement"]
    before = len(court.entries(job))
    assert court.ask(job).reused
    assert len(court.entries(job)) == before
    # The agent may remove it, or a person may decide.
    court.write("report.md", "one\ntwo\n")
    assert court.complete(job).done
    assert server.calls


def test_a_person_decides_about_work_that_is_not_sent(court: Court, server: ChatServer) -> None:
    with_model(court, f"openai:any@{server.base_url}")
    job = court.job(JUDGED, work=f"The token is {TOKEN}.\n")
    court.complete(job)
    court.overrule(job, "pass")
    assert court.complete(job).done
    assert not server.calls


@pytest.mark.parametrize("allowed", [TOKEN, f"The  token is {TOKEN}."], ids=["the text", "the line"])
def test_what_a_person_has_agreed_to_send_is_sent(court: Court, server: ChatServer, allowed: str) -> None:
    with_model(court, f"openai:any@{server.base_url}")
    job = court.job(JUDGED, work=f"The token is {TOKEN}.\n")
    assert court.codes(job) == {"needs_human"}
    with_model(court, f"openai:any@{server.base_url}", f"[from_job]\nmay_send = [{json.dumps(allowed)}]\n")
    assert project_agreement(court.workspace, court.workspace.project()).state == "voided"
    agree_again(court)
    assert court.complete(job).done
    assert any(TOKEN in json.dumps(dict(call.body)) for call in server.calls)


def test_the_line_of_a_change_is_that_of_its_file(court: Court, server: ChatServer) -> None:
    with_model(court, f"openai:any@{server.base_url}", "[from_job]\nparts = ['diff', 'outputs']\n")
    court.write("src/app.py", "".join(f"x{number} = {number}\n" for number in range(30)))
    court.commit()
    job = court.job(JUDGED, work="All of the forty-two lines were parsed.\n")
    lines = "".join(f"x{number} = {number}\n" for number in range(30) if number != 2)
    court.write("src/app.py", lines.replace("x20 = 20\n", f"x20 = '{TOKEN}'\n"))
    court.complete(job)
    assert court.standing(job).why[0].startswith("src/app.py:20 (a GitHub token) looks like a secret")


def test_the_line_is_that_of_the_file_even_if_its_middle_is_left_out(court: Court, server: ChatServer) -> None:
    with_model(court, f"openai:any@{server.base_url}", "[from_job]\nmax_chars = 2000\nparts = ['outputs']\n")
    job = court.job(JUDGED, work="A line.\n" * 999 + f"{TOKEN}\n")
    court.complete(job)
    assert "report.md:1000 (a GitHub token)" in court.standing(job).why[0]


@pytest.mark.parametrize(("kind", "variable"), [("openai", "OPENAI_BASE_URL"), ("anthropic", "ANTHROPIC_BASE_URL")])
def test_a_variable_that_leads_the_model_elsewhere_goes_to_a_person(
    court: Court, server: ChatServer, monkeypatch: pytest.MonkeyPatch, kind: str, variable: str
) -> None:
    with_model(court, f"{kind}:any")
    job = court.job(JUDGED)
    monkeypatch.setenv(variable, server.base_url)
    assert court.codes(job) == {"needs_human"}
    assert variable in court.standing(job).why[0]
    assert not server.calls
    # The address in the mission is agreed to, and then the variable does not matter.
    with_model(court, f"openai:any@{server.base_url}")
    assert project_agreement(court.workspace, court.workspace.project()).state == "voided"
    agree_again(court)
    monkeypatch.setenv(variable, "http://127.0.0.1:9/v1")
    assert court.complete(job).done


def test_an_address_in_the_mission_that_changes_voids_the_agreement(court: Court, server: ChatServer) -> None:
    with_model(court, f"openai:any@{server.base_url}")
    job = court.job(JUDGED)
    with_model(court, "openai:any@http://127.0.0.1:9/v1")
    assert "agreement_voided" in court.codes(job)
    assert not server.calls


def test_which_variable_leads_elsewhere() -> None:
    default = {"OPENAI_BASE_URL": "https://api.openai.com/v1/", "ANTHROPIC_BASE_URL": "https://api.anthropic.com"}
    assert other_address("openai:a", {}) is None
    assert other_address("openai:a", default) is None
    assert other_address("anthropic:a", default) is None
    assert other_address("openai:a", {"ANTHROPIC_BASE_URL": "http://x"}) is None
    assert other_address("openai:a@http://x", {"OPENAI_BASE_URL": "http://y"}) is None
    assert other_address("local", {"OPENAI_BASE_URL": "http://y"}) is None
    found = other_address("openai:a", {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"})
    assert found is not None and found.variable == "OPENAI_BASE_URL"
    # A proxy can answer in the place of a server without TLS.
    proxy = {"HTTP_PROXY": "http://127.0.0.1:9"}
    found = other_address("openai:a@http://gpu.example.org:8000/v1", proxy)
    assert found is not None and found.variable == "HTTP_PROXY"
    assert other_address("openai:a@https://gpu.example.org/v1", {**proxy, "HTTPS_PROXY": "http://127.0.0.1:9"}) is None
    for exempt in ("gpu.example.org", ".example.org", "localhost, example.org", "*"):
        assert other_address("openai:a@http://gpu.example.org:8000/v1", {**proxy, "NO_PROXY": exempt}) is None


def test_only_models_in_this_process_keep_the_text_here() -> None:
    assert runs_in_process("contrast") and runs_in_process("local") and runs_in_process("local:/weights.gguf")
    assert not any(map(runs_in_process, ("openai:a", "openai:a@http://127.0.0.1:1/v1", "anthropic:a", "other:x", "")))
