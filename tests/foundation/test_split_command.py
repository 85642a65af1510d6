"""A command line is split as a shell would split it; what only a shell can do is refused."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from donewhen.foundation.errors import UsageError
from donewhen.foundation.process import split_command
from sentences import assert_sentences


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("pytest -q", ("pytest", "-q")),
        ("  make   test  ", ("make", "test")),
        ("echo 'a b' \"c d\"", ("echo", "a b", "c d")),
        ("echo a\\ b", ("echo", "a b")),
        ("echo ''", ("echo", "")),
        ("echo 'a | b'", ("echo", "a | b")),
        ('echo "a; b"', ("echo", "a; b")),
        ("echo a\\;b", ("echo", "a;b")),
        ("echo '$HOME' '`id`'", ("echo", "$HOME", "`id`")),
        ("echo \\$HOME", ("echo", "$HOME")),
        ("grep 'x$' file", ("grep", "x$", "file")),
        ("grep x$ file", ("grep", "x$", "file")),
        ('echo "it\'s"', ("echo", "it's")),
        ("echo 'say \"x\"'", ("echo", 'say "x"')),
        ("a'b'c\"d\"", ("abcd",)),
    ],
)
def test_a_plain_command_is_split_into_its_words(line: str, words: tuple[str, ...]) -> None:
    assert split_command(line) == words


@pytest.mark.parametrize(
    ("line", "piece"),
    [
        ("make | tee log", "|"),
        ("make && make test", "&"),
        ("make &", "&"),
        ("make; true", ";"),
        ("make > log", ">"),
        ("make < input", "<"),
        ("(make)", "("),
        ("make\ntrue", "\n"),
        ("echo $HOME", "$H"),
        ("echo ${HOME}", "${"),
        ("echo $(id)", "$("),
        ("echo `id`", "`"),
        ('echo "$HOME"', "$H"),
        ('echo "`id`"', "`"),
        ("echo '$A' $B", "$B"),
        ("pytest || true", "|"),
        ("echo \\\\; true", ";"),
        ("echo 'a\\' ; true", ";"),
    ],
)
def test_what_only_a_shell_can_do_is_refused_and_named(line: str, piece: str) -> None:
    with pytest.raises(UsageError) as caught:
        split_command(line)
    assert f"uses {piece!r}" in str(caught.value)
    assert caught.value.next_step


@pytest.mark.parametrize("line", ["", "   ", "\t"])
def test_an_empty_command_is_refused(line: str) -> None:
    with pytest.raises(UsageError) as caught:
        split_command(line)
    assert_sentences(caught.value)


@pytest.mark.parametrize("line", ["echo 'open", 'echo "open', "echo \\"])
def test_a_quotation_that_is_never_closed_is_refused(line: str) -> None:
    with pytest.raises(UsageError) as caught:
        split_command(line)
    assert_sentences(caught.value)


# No globs, tildes, assignments or comments: those a shell would expand.
LINES = st.text(alphabet="ab '\"\\|;&\n-", min_size=1, max_size=12)


@settings(max_examples=150, deadline=None)
@given(LINES)
def test_what_is_accepted_means_the_same_to_a_real_shell(line: str) -> None:
    try:
        words = split_command(line)
    except UsageError:
        return
    # For a shell, too, the words are what a command would get as its arguments.
    ran = subprocess.run(["/bin/sh", "-c", f'printf "%s\\0" {line}'], capture_output=True, check=True)
    assert ran.stdout.decode().split("\0")[:-1] == list(words)


@pytest.mark.parametrize("line", ['echo "\\$HOME"', 'echo "a\\`b"', "pytest \\\n -q", 'echo "a\\\nb"'])
def test_a_backslash_means_what_it_means_to_a_shell_or_is_refused(line: str) -> None:
    try:
        words = split_command(line)
    except UsageError:
        return
    ran = subprocess.run(["/bin/sh", "-c", f'printf "%s\\0" {line}'], capture_output=True, check=True)
    assert ran.stdout.decode().split("\0")[:-1] == list(words)
