"""Where a token is sent, and where it is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from donewhen.foundation.errors import ConfigError, UsageError
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.mirror.http.address import PUBLIC, address_of, check_address, check_repository_name, repository_of, web_of
from donewhen.mirror.sync.enabling import enable_mirror
from donewhen.mirror.sync.opening import agreed_address
from sentences import assert_sentences

BOTH = {"GH_TOKEN": "public", "GH_ENTERPRISE_TOKEN": "enterprise"}
GHES = "https://git.example.org/api/v3"


@pytest.mark.parametrize(
    ("setting", "environ", "api", "token"),
    [
        (None, {"GH_TOKEN": "a", "GITHUB_TOKEN": "b"}, PUBLIC, "a"),
        (None, {"GITHUB_TOKEN": "b"}, PUBLIC, "b"),
        (None, {"GH_TOKEN": "  ", "GITHUB_TOKEN": "b"}, PUBLIC, "b"),
        ("https://api.x.ghe.com", BOTH, "https://api.x.ghe.com", "public"),
        (GHES, BOTH, GHES, "enterprise"),
        (GHES + "/", {"GITHUB_ENTERPRISE_TOKEN": "e"}, GHES, "e"),
        (PUBLIC, {**BOTH, "GITHUB_API_URL": GHES}, GHES, "enterprise"),
        (None, {"GITHUB_TOKEN": "b", "GITHUB_API_URL": GHES}, GHES, "b"),
    ],
)
def test_each_server_has_its_own_token(setting: str | None, environ: dict[str, str], api: str, token: str) -> None:
    found = address_of(setting, environ)
    assert (found.api, found.token) == (api, token)


def test_a_token_for_github_is_not_sent_elsewhere_because_a_file_says_so() -> None:
    with pytest.raises(ConfigError) as caught:
        address_of(GHES, {"GH_TOKEN": "public", "GITHUB_TOKEN": "public"})
    assert_sentences(caught.value)
    assert "GH_ENTERPRISE_TOKEN or GITHUB_ENTERPRISE_TOKEN" in str(caught.value.next_step)


@pytest.mark.parametrize("token", ["a b", "a\nb", "é"])
def test_a_token_that_could_break_a_header_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(ConfigError) as caught:
        address_of(None, {"GH_TOKEN": token})
    assert_sentences(caught.value)
    assert token not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://api.github.com",
        "http://10.0.0.1",
        "ftp://127.0.0.1",
        "https://user:secret@host",
        "https://host/?x=1",
        "https://host/#x",
        "https://",
        "host/api/v3",
        "https://host:0",
        "https://host:99999",
        "https://ho st",
        "https://h\nx",
    ],
)
def test_an_address_without_encryption_or_sense_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_address(url, "github.api_url")
    assert_sentences(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8000", "http://localhost", "http://[::1]:80", "https://h:8443/api/v3"]
)
def test_this_machine_needs_no_encryption(url: str) -> None:
    assert check_address(url, "x") == url


@pytest.mark.parametrize(
    ("api", "web"),
    [
        (PUBLIC, "https://github.com"),
        (GHES, "https://git.example.org"),
        ("https://api.x.ghe.com", "https://x.ghe.com"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
    ],
)
def test_people_look_at_another_address_than_programs(api: str, web: str) -> None:
    assert web_of(api) == web


@pytest.mark.parametrize("name", ["octo", "octo/", "/demo", "a/b/c", "octo/..", "-x/y", "octo/de mo", "octo/x?y", ""])
def test_a_repository_is_an_owner_and_a_name(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_repository_name(name)
    assert_sentences(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/octo/demo.git",
        "https://github.com/octo/demo/",
        "https://somebody:secret@github.com/octo/demo",
        "git@github.com:octo/demo.git",
        "ssh://git@ssh.github.com:443/octo/demo.git",
    ],
)
def test_the_repository_is_found_by_the_remote(repository: Path, git: Any, url: str) -> None:
    git(repository, "remote", "add", "origin", url)
    assert repository_of(repository, PUBLIC) == "octo/demo"


@pytest.mark.parametrize(
    "url",
    ["https://gitlab.com/octo/demo", "https://u:secret@evil.org/octo/demo", "/srv/demo.git", "git@github.com:demo"],
)
def test_a_remote_elsewhere_is_not_taken(repository: Path, git: Any, url: str) -> None:
    git(repository, "remote", "add", "origin", url)
    with pytest.raises(UsageError) as caught:
        repository_of(repository, PUBLIC)
    assert_sentences(caught.value)
    assert "secret" not in str(caught.value)


def test_without_a_remote_the_repository_is_asked_for(repository: Path) -> None:
    with pytest.raises(UsageError) as caught:
        repository_of(repository, PUBLIC)
    assert_sentences(caught.value)


def test_an_address_in_the_settings_holds_once_a_person_has_agreed_to_it(place: Any) -> None:
    workspace = place.workspace
    (workspace.root / "donewhen.toml").write_text(f'[github]\napi_url = "{GHES}"\n')
    with pytest.raises(ConfigError) as caught:
        agreed_address(workspace, workspace.project(), {})
    assert_sentences(caught.value)
    for proposal in agreement_proposals(workspace, []):
        agree(workspace, proposal, Approval(Actor("bot", "agent")))
    with pytest.raises(ConfigError) as caught:
        agreed_address(workspace, workspace.project(), {})
    assert_sentences(caught.value)
    for proposal in agreement_proposals(workspace, []):
        agree(workspace, proposal, Approval(Actor("ada", "person")))
    assert agreed_address(workspace, workspace.project(), {}) == GHES
    (workspace.root / "donewhen.toml").write_text('[github]\napi_url = "https://evil.example"\n')
    with pytest.raises(ConfigError) as caught:
        agreed_address(workspace, workspace.project(), {})
    assert_sentences(caught.value)


def test_switching_on_keeps_the_rest_of_the_plan(place: Any) -> None:
    plan = place.workspace.project_file
    text = plan.read_text().replace("github_enabled: true", "github_enabled: false  # for now\nmine: [1]")
    plan.write_text(text)
    assert enable_mirror(place.workspace, "octo/other", {}) == "octo/other"
    after = plan.read_text()
    assert "github_enabled: true" in after
    assert "mine: [1]" in after
    assert place.workspace.project().github_repo == "octo/other"
