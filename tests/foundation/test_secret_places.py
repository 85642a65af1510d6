"""What looks like a secret, with its line: real ones are found, names, types and placeholders are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from donewhen.foundation.secret_places import find_secrets

# Assembled here, so that no scanner of repositories takes this file for a leak.
TOKEN = "gh" + "p_" + "a1B2" * 9
KEY = "-----BEGIN OPENSSH PRIVATE " + "KEY-----\n" + "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAA\n" * 3
REAL = {
    "token": (TOKEN, "a GitHub token"),
    "model key": ("s" + "k-" + "ant-api03-" + "x9" * 10, "an API key"),
    "aws": ("AK" + "IA" + "ABCDEFGH12345678", "an AWS access key"),
    "jwt": ("ey" + "JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln_1", "a JSON Web Token"),
    "key": (KEY + "-----END OPENSSH PRIVATE " + "KEY-----", "a private key"),
    "key without an end": (KEY, "a private key"),
    "password": ("password = 'hunter2hunter'", "a password or key"),
    "header": ("Authorization: Basic dXNlcjpwYXNzd29yZDE=", "credentials in a header"),
    "address": ("postgres://admin:p4ssw0rd@db/x", "a password in an address"),
}
HARMLESS = [
    "AK" + "IA" + "IOSFODNN7EXAMPLE",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "password: str",
    "password: Optional[str] = None",
    "api_key = os.environ['API_KEY_1']",
    'secret = "${SECRET_2}"',
    "Authorization: Bearer $TOKEN1",
    "Authorization: Bearer <your token 1>",
    "postgres://postgres:postgres@localhost/1",
    "if '-----BEGIN PRIVATE KEY-----' in text:\n    return 1",
    "the secret: nothing was tested",
    "class='sk-estimator-html-doc-link'",
    "password: [redacted]",
    "auth_token: xxxxxxxxxx12",
]


@pytest.mark.parametrize(("text", "kind"), REAL.values(), ids=REAL)
def test_a_real_secret_is_found_on_its_line(text: str, kind: str) -> None:
    (found,) = find_secrets(f"one\ntwo {text}\nfour", {})
    assert (found.line, found.kind) == (2, kind)
    assert found.text in text + "\nfour"


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_talks_about_secrets_is_not_one(text: str) -> None:
    assert find_secrets(text, {}) == ()


def test_the_value_of_a_secret_variable_is_one_if_it_can_be_a_secret() -> None:
    environ = {
        "DEPLOY_KEY": "abcdef0123456789",
        "OTHER_KEY": "nothing",
        "MY_KEY": "plain-looking-words",
        "PLAIN": "b1" * 9,
    }
    text = "x abcdef0123456789\nnothing plain-looking-words " + "b1" * 9
    (found,) = find_secrets(text, environ)
    assert (found.line, found.kind) == (1, "the value of the variable DEPLOY_KEY")


def test_a_long_blank_after_the_heading_of_a_key_takes_no_longer_than_other_text() -> None:
    assert find_secrets("-----BEGIN PRIVATE " + "KEY-----\n" + " \n" * 200_000, {}) == ()


@given(st.text())
def test_any_text_can_be_searched(text: str) -> None:
    assert all(1 <= place.line <= text.count("\n") + 1 for place in find_secrets(text, {}))
