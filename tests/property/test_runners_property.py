"""Test runners: no command line is a crash, and what the command does stays what it was."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from donewhen.test_reports.collected_files import collected_patterns, is_collected
from donewhen.test_reports.reported_command import ReportedCommand, reported_command
from donewhen.test_reports.test_runners import runner_of

PROGRAMS = "env timeout nice python python3.12 pytest unittest coverage uv poetry hatch node make test dev:pytest"
OPTIONS = """-i -u -C -S -n -B -m -Bm -mpytest -X -W -c -- - -a --source --test --test-reporter --import --junitxml
--junitxml=a.xml --junitxml= -p no:junitxml -o python_files=x -k A=b PYTEST_ADDOPTS=-x 60 utf8 error run discover"""
WORDS = st.sampled_from((PROGRAMS + " " + OPTIONS).split()) | st.text(max_size=6)
ARGV = st.lists(WORDS, max_size=10)


@given(ARGV, st.sampled_from(["", "-x"]))
def test_words_are_only_added_and_the_module_replaced(argv: list[str], options: str) -> None:
    runner = runner_of(argv)
    command = reported_command(runner, argv, "/reports", {"PYTEST_ADDOPTS": options})

    remaining = iter(command.words)
    kept = [word for word in argv if word in command.words]
    assert all(word in remaining for word in kept)
    assert set(argv) - set(kept) <= {"-m", "-Bm", "--module", "unittest", "-munittest"} or runner.kind == "unittest"
    assert command.words[runner.arguments + len(command.words) - len(argv) :] == tuple(argv[runner.arguments :])
    assert bool(runner.unknown) is (runner.kind == "wrapper")
    assert command.expected is runner.reports_tests
    if runner.kind == "none":
        assert command == ReportedCommand(tuple(argv), {}, expected=False)


@given(ARGV, st.dictionaries(st.sampled_from(["pytest.ini", "sub/tox.ini", "pyproject.toml"]), st.text(max_size=30)))
def test_every_command_that_may_run_tests_collects_files(argv: list[str], settings: dict[str, str]) -> None:
    runner = runner_of(argv)

    patterns = collected_patterns(runner, argv, settings)

    assert bool(patterns) is (runner.kind != "none")
    assert runner.kind != "none" or not is_collected("tests/test_a.py", patterns)


@given(ARGV)
def test_a_program_in_front_changes_nothing_about_the_runner(argv: list[str]) -> None:
    plain = runner_of(argv)

    behind = runner_of(["nice", "-n", "5", *argv])

    if argv and not argv[0].startswith("-"):
        assert behind.kind == plain.kind
        assert plain.kind == "none" or behind.arguments == plain.arguments + 3
