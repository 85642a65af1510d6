"""What is written down holds no secrets, and everything else stays as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from donewhen.foundation.secrets import REDACTED, redact_secrets

KEY_BLOCK = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAK\n-----END RSA PRIVATE KEY-----"

# Assembled here, so that no scanner of repositories takes this file for a leak.
SECRETS = {
    "private key": KEY_BLOCK,
    "private key of no kind": KEY_BLOCK.replace("RSA ", ""),
    "private key without an end": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\nAAAA",
    "github token": "gh" + "p_" + "a1B2" * 9,
    "github oauth token": "gh" + "o_" + "a1B2" * 4,
    "github user token": "gh" + "u_" + "a1B2" * 4,
    "github server token": "gh" + "s_" + "a1B2" * 4,
    "github refresh token": "gh" + "r_" + "a1B2" * 4,
    "github fine-grained token": "github" + "_pat_" + "11AB_" * 5,
    "gitlab token": "gl" + "pat-" + "a_1-" * 5,
    "model provider key": "s" + "k-" + "ant-api03_" + "x9" * 10,
    "slack token": "xo" + "xb-" + "123456789012-abc",
    "aws key id": "AK" + "IA" + "ABCDEFGH12345678",
    "aws temporary key id": "AS" + "IA" + "ABCDEFGH12345678",
    "google key": "AI" + "za" + "Sy_-" * 9,
    "pypi token": "py" + "pi-" + "AgEI_-" * 4,
    "npm token": "np" + "m_" + "a1B2c3" * 6,
    "json web token": "ey" + "JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln_-",
    "json web token without a signature": "ey" + "JhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.",
}

NAMED = {
    "bearer header": ("Authorization: Bearer ", "abc.def-123"),
    "basic header": ("authorization: basic ", "dXNlcjpwYXNz"),
    "token header": ("Proxy-Authorization=token ", "0123456789"),
    "header without a scheme": ("Authorization: ", "0123456789abcdef"),
    "header with the scheme ApiKey": ("Authorization: ApiKey ", "0123456789abcdef"),
    "basic header in a dictionary": ("{'Authorization': 'Basic ", "dXNlcjpwYXNz"),
    "bearer in prose": ("sent with bearer ", "abcdefghijkl"),
    "url": ("postgres://admin:", "p4$$:w0rd"),
    "url with a mixed scheme": ("git+https://me:", "pw"),
    "url without a user": ("redis://:", "hunter2"),
    "password": ("password=", "hunter2"),
    "passwd": ("db_passwd: ", "hunter2"),
    "passphrase": ("PASSPHRASE = ", "correct-horse"),
    "secret in JSON": ('{"client_secret": "', "s3cr3t!"),
    "api key": ("X-Api-Key: ", "0123abcd"),
    "api_key": ("api_key='", "0123abcd"),
    "apikey": ("?apikey=", "0123abcd"),
    "access token": ("access_token=", "0123abcd"),
    "auth token": ("AUTH-TOKEN:", "0123abcd"),
}

HARMLESS = [
    "-----BEGIN CERTIFICATE-----\nMIIEow\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIEow\n-----END PUBLIC KEY-----",
    "the words BEGIN PRIVATE KEY without dashes",
    "gh" + "p_short",
    "highp_aaaaaaaaaaaaaaaaaaaaaaaa",
    "github" + "_pat_short",
    "gl" + "pat-short",
    "task-list: disk-aaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "s" + "k-short",
    "xo" + "xb-1",
    "xo" + "xz-123456789012",
    "AK" + "IA" + "TOOSHORT",
    "AK" + "IA" + "ABCDEFGH12345678" + "LONGER",
    "ak" + "ia" + "abcdefgh12345678",
    "AI" + "za" + "tooshort",
    "py" + "pi-short",
    "np" + "m_short",
    "eyJ is how base64 of a brace begins",
    "ey" + "JhbGciOiJIUzI1NiJ9.short.x",
    "authorization is required",
    "Authorization: none",
    "the bearer of good news",
    "https://example.org:8443/path@version",
    "git@github.com:owner/name.git",
    "postgres://admin@localhost/db",
    "10:30:00 mailto:me@example.org",
    "password:",
    "password: ***",
    "the password must have 12 characters",
    "secretary=Miss Moneypenny",
    "passwords are hashed; tokens=12",
    "tests/test_tokens.py::test_api_keys PASSED",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "commit 9d9e0a4f3c2b1a0918273645546372819a0b1c2d",
    "123e4567-e89b-12d3-a456-426614174000",
    "",
]


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS.keys())
def test_what_looks_like_a_secret_is_taken_out_and_its_surroundings_stay(secret: str) -> None:
    # A key without an end hides all that follows, for nobody knows where it ends.
    after = "" if "BEGIN" in secret and "END" not in secret else "\nafter"
    assert redact_secrets(f"before {secret}{after}", {}) == f"before {REDACTED}{after}"
    assert redact_secrets(f'"{secret}"', {}).startswith(f'"{REDACTED}')


@pytest.mark.parametrize(("name", "value"), NAMED.values(), ids=NAMED.keys())
def test_what_is_named_as_a_secret_is_taken_out_and_its_name_stays(name: str, value: str) -> None:
    at = "@host/db" if "://" in name else ""
    assert redact_secrets(f"{name}{value}{at}", {}) == f"{name}{REDACTED}{at}"
    assert redact_secrets(f"first\n{name}{value}{at}\nlast", {}) == f"first\n{name}{REDACTED}{at}\nlast"


@pytest.mark.parametrize("text", HARMLESS, ids=[f"twin {number}" for number in range(len(HARMLESS))])
def test_what_only_looks_similar_stays_as_it_is(text: str) -> None:
    assert redact_secrets(text, {}) == text


def test_every_secret_in_a_text_is_taken_out_not_only_the_first() -> None:
    token, key = SECRETS["github token"], SECRETS["aws key id"]
    assert redact_secrets(f"{token} {token}\n{key} {token}", {}) == f"{REDACTED} {REDACTED}\n{REDACTED} {REDACTED}"
    two_keys = f"{KEY_BLOCK}\nbetween\n{KEY_BLOCK}"
    assert redact_secrets(two_keys, {}) == f"{REDACTED}\nbetween\n{REDACTED}"


@pytest.mark.parametrize(
    "name",
    [
        "TOKEN",
        "GITHUB_TOKEN",
        "TOKEN_OF_MINE",
        "MY_SECRET_THING",
        "db_password",
        "PASSWD",
        "KEY_PASSPHRASE",
        "GOOGLE_CREDENTIALS",
        "A_CREDENTIAL",
        "ANTHROPIC_API_KEY",
        "GH_PAT",
        "REDIS_AUTH",
        "SENTRY_DSN",
        "PGPASSWORD",
    ],
)
def test_the_value_of_a_variable_that_is_named_like_a_secret_is_taken_out_wherever_it_stands(name: str) -> None:
    assert redact_secrets("xxplain-valuexx plain-value", {name: "plain-value"}) == f"xx{REDACTED}xx {REDACTED}"


@pytest.mark.parametrize("name", ["HOME", "KEYBOARD", "TOKENIZERS_PARALLELISM", "GIT_AUTHOR_NAME", "PATH", "OLDPWD"])
def test_the_value_of_any_other_variable_stays(name: str) -> None:
    assert redact_secrets("plain-value", {name: "plain-value"}) == "plain-value"


def test_a_value_that_is_too_short_to_be_a_secret_stays() -> None:
    assert redact_secrets("1 23456", {"A_KEY": "1", "B_TOKEN": "", "C_TOKEN": "23456"}) == "1 23456"
    assert redact_secrets("123456", {"A_KEY": "123456"}) == REDACTED


def test_of_two_values_of_which_one_holds_the_other_nothing_is_left_over() -> None:
    environ = {"A_TOKEN": "abcdef", "B_TOKEN": "abcdef-and-more", "C_TOKEN": "more-abcdef"}
    assert redact_secrets("abcdef-and-more", environ) == REDACTED
    assert redact_secrets("abcdef", environ) == REDACTED


def test_a_value_is_taken_as_it_is_and_never_as_a_pattern() -> None:
    assert redact_secrets(r"a.c*d+\1 abcccd", {"A_TOKEN": r"a.c*d+\1"}) == f"{REDACTED} abcccd"


def test_without_an_environment_of_its_own_it_looks_at_the_real_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEMO_TOKEN", "plain-value")
    assert redact_secrets("plain-value") == REDACTED
    assert redact_secrets("plain-value", {}) == "plain-value"


ALL = {**SECRETS, **{name: f"{before}{value}@h" for name, (before, value) in NAMED.items()}}


@pytest.mark.parametrize("text", ALL.values(), ids=ALL.keys())
def test_what_was_redacted_once_does_not_change_again(text: str) -> None:
    once = redact_secrets(text, {})
    assert once != text
    assert redact_secrets(once, {}) == once


PIECES = st.sampled_from(
    [*SECRETS.values(), *(one for pair in NAMED.values() for one in pair), REDACTED, "word", "-----", *" \n\"'@:=/;"]
)


@given(st.lists(PIECES, max_size=12))
def test_redacting_twice_is_redacting_once_whatever_stands_side_by_side(pieces: list[str]) -> None:
    once = redact_secrets("".join(pieces), {})
    assert redact_secrets(once, {}) == once


@given(st.lists(st.sampled_from(sorted(set(SECRETS.values()) - {SECRETS["private key without an end"]})), min_size=1))
def test_no_secret_survives_among_others(secrets: list[str]) -> None:
    found = redact_secrets(" , ".join(secrets), {})
    assert not any(secret in found for secret in secrets)


LONG = 200_000


@pytest.mark.parametrize(
    "line",
    {
        "a word": "a" * LONG,
        "words with dashes": "a-" * (LONG // 2),
        "half a web token, often": "eyJ-" * (LONG // 4),
        "white space after a header": "authorization:" + " " * LONG + ";",
        "white space after a name": "password" + " " * LONG + "!",
        "names without values": "password " * (LONG // 9),
        "a scheme without an end": "a" * LONG + "://u:p",
        "an address without an end": "a://b:" + "c" * LONG,
        "beginnings of keys": "-----BEGIN " * (LONG // 11),
        "capitals after a beginning": "-----BEGIN " + "A " * (LONG // 2),
    }.items(),
    ids=lambda item: item[0],
)
def test_a_long_line_without_secrets_is_read_in_one_go(line: tuple[str, str]) -> None:
    # Where the time grows with the square of the length this takes many minutes: nobody has to look at a watch.
    assert redact_secrets(line[1], {}) == line[1]
