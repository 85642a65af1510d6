"""How a green test suite is faked, each trick played on a real pytest run next to its innocent twin."""

from __future__ import annotations

import json
import os
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.completion import (
    ReasonCode,
    SuiteBaseline,
    TaskCompletionContext,
    TaskCompletionResult,
    TestSuiteChecker,
)
from donewhen.filesystem import HostFilesystem
from donewhen.runtime import Session
from lean_python import lean_python
from sentences import assert_sentences

PYTEST = (lean_python(), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml={junit}")
# The runner's own plug-ins have no say in these projects.
ENVIRONMENT = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}


class Project:
    """A folder with real tests in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("pytest.ini", "[pytest]\n")

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))

    def checker(self, *more: str, **settings: Any) -> TestSuiteChecker:
        return TestSuiteChecker([*PYTEST, *more], env=ENVIRONMENT, timeout=60.0, **settings)

    def check(self, *more: str, **settings: Any) -> TaskCompletionResult:
        context = TaskCompletionContext(session=Session(), filesystem=HostFilesystem(self.root))
        return self.checker(*more, **settings).check(context)

    def baseline(self) -> SuiteBaseline:
        context = TaskCompletionContext(session=Session(), filesystem=HostFilesystem(self.root))
        report = self.checker().check_with_report(context)[1]
        assert report is not None
        return SuiteBaseline.of(report)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


TWO = """
    def test_one():
        assert 1 + 1 == 2

    def test_two():
        assert 2 + 2 == 4
"""
BASELINE_OF_TWO = SuiteBaseline(frozenset({"test_it::test_one", "test_it::test_two"}))


def test_honest_tests_that_pass_are_complete_and_make_the_baseline(project: Project) -> None:
    project.write("test_it.py", TWO)
    assert project.check() == TaskCompletionResult.ok("All 2 test(s) passing.")
    assert project.baseline() == BASELINE_OF_TWO


def test_a_failing_test_is_incomplete_and_named(project: Project) -> None:
    project.write("test_it.py", TWO + "\n    def test_three():\n        assert 1 == 2, 'no'\n")
    result = project.check()
    assert result.code is ReasonCode.TESTS_FAILED
    assert_sentences(result.feedback or "")


def test_a_module_that_can_not_be_imported_is_incomplete(project: Project) -> None:
    project.write("test_it.py", TWO)
    project.write("test_broken.py", "import no_such_module_anywhere\n")
    result = project.check()
    assert result.code is ReasonCode.TESTS_FAILED
    assert "test_broken" in (result.feedback or "")


def test_a_fixture_that_breaks_at_the_end_of_a_passed_test_is_incomplete(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        import pytest

        @pytest.fixture
        def thing():
            yield 1
            raise RuntimeError("left open")

        def test_one(thing):
            assert thing
        """,
    )
    result = project.check()
    assert result.code is ReasonCode.TESTS_FAILED
    assert "test_it::test_one" in (result.feedback or "")


class TestNoTestsAtAll:
    def test_zero_tests_is_incomplete(self, project: Project) -> None:
        project.write("test_it.py", "ANSWER = 42\n")
        assert project.check().code is ReasonCode.TESTS_NONE

    def test_skipping_everything_is_incomplete(self, project: Project) -> None:
        project.write(
            "test_it.py", "import pytest\npytestmark = pytest.mark.skip(reason='later')\n" + textwrap.dedent(TWO)
        )
        result = project.check()
        assert result.code is ReasonCode.TESTS_NONE
        assert_sentences(result.feedback or "")

    def test_only_collecting_is_incomplete(self, project: Project) -> None:
        project.write("test_it.py", TWO)
        assert project.check("--collect-only").complete is False

    def test_twin_one_skipped_test_among_others_is_complete(self, project: Project) -> None:
        project.write(
            "test_it.py",
            "import pytest\n" + textwrap.dedent(TWO) + "\n@pytest.mark.skip(reason='no GPU')\ndef test_gpu(): ...\n",
        )
        assert project.check() == TaskCompletionResult.ok("All 2 test(s) passing, 1 skipped.")


class TestFewerTestsThanAgreed:
    def test_a_deleted_test_is_noticed(self, project: Project) -> None:
        project.write("test_it.py", "def test_one(): ...\n")
        result = project.check(baseline=BASELINE_OF_TWO)
        assert result.code is ReasonCode.TESTS_LOST
        assert "test_it::test_two" in (result.feedback or "")

    def test_a_deselected_test_is_noticed(self, project: Project) -> None:
        project.write("test_it.py", TWO)
        for trick in (("-k", "one"), ("--deselect", "test_it.py::test_two"), ("test_it.py::test_one",)):
            assert project.check(*trick, baseline=BASELINE_OF_TWO).code is ReasonCode.TESTS_LOST

    def test_a_test_that_is_deselected_in_the_configuration_is_noticed(self, project: Project) -> None:
        project.write("test_it.py", TWO)
        project.write("pytest.ini", "[pytest]\naddopts = -k one\n")
        assert project.check(baseline=BASELINE_OF_TWO).code is ReasonCode.TESTS_LOST

    def test_a_test_that_a_conftest_takes_away_is_noticed(self, project: Project) -> None:
        project.write("test_it.py", TWO)
        project.write(
            "conftest.py",
            """
            def pytest_collection_modifyitems(items):
                items[:] = [item for item in items if item.name == "test_one"]
            """,
        )
        assert project.check(baseline=BASELINE_OF_TWO).code is ReasonCode.TESTS_LOST

    def test_a_newly_skipped_test_is_noticed(self, project: Project) -> None:
        project.write(
            "test_it.py",
            """
            import pytest

            def test_one(): ...

            def test_two():
                pytest.skip("too hard")
            """,
        )
        result = project.check(baseline=BASELINE_OF_TWO)
        assert result.code is ReasonCode.TESTS_SKIPPED
        assert "test_it::test_two" in (result.feedback or "")

    def test_a_test_that_is_expected_to_fail_now_is_noticed(self, project: Project) -> None:
        project.write(
            "test_it.py",
            """
            import pytest

            def test_one(): ...

            @pytest.mark.xfail
            def test_two():
                assert False
            """,
        )
        assert project.check(baseline=BASELINE_OF_TWO).code is ReasonCode.TESTS_SKIPPED

    def test_twin_an_added_test_is_complete(self, project: Project) -> None:
        project.write("test_it.py", TWO + "\n    def test_three(): ...\n")
        assert project.check(baseline=BASELINE_OF_TWO) == TaskCompletionResult.ok("All 3 test(s) passing.")

    def test_twin_tests_in_another_order_are_complete(self, project: Project) -> None:
        project.write("test_it.py", "def test_two(): ...\ndef test_one(): ...\n")
        assert project.check(baseline=BASELINE_OF_TWO).complete is True

    def test_twin_a_test_that_was_skipped_before_may_stay_so(self, project: Project) -> None:
        project.write("test_it.py", "import pytest\n\ndef test_one(): ...\n\n@pytest.mark.skip\ndef test_two(): ...\n")
        baseline = SuiteBaseline(frozenset({"test_it::test_one"}), frozenset({"test_it::test_two"}))
        assert project.check(baseline=baseline).complete is True


class TestEndingTheRun:
    @pytest.mark.parametrize("leave", ["sys.exit(0)", "raise SystemExit(0)"])
    def test_sys_exit_zero_in_a_test_is_incomplete(self, project: Project, leave: str) -> None:
        project.write(
            "test_it.py", f"import sys\n\ndef test_one():\n    {leave}\n\ndef test_two():\n    assert False\n"
        )
        assert project.check().complete is False

    def test_pytest_exit_zero_in_a_test_is_noticed(self, project: Project) -> None:
        project.write(
            "test_it.py",
            "import pytest\n\ndef test_one(): ...\n\ndef test_two():\n    pytest.exit('enough', returncode=0)\n",
        )
        result = project.check(baseline=BASELINE_OF_TWO)
        assert result.complete is False
        # Some versions of pytest write a test case without a name for the one that was cut off.
        assert result.code in (ReasonCode.TESTS_LOST, ReasonCode.REPORT_UNREADABLE)

    def test_leaving_the_process_in_a_test_is_incomplete(self, project: Project) -> None:
        project.write(
            "test_it.py", "import os\n\ndef test_one():\n    os._exit(0)\n\ndef test_two():\n    assert False\n"
        )
        assert project.check().code is ReasonCode.REPORT_MISSING

    def test_leaving_the_process_in_a_module_is_incomplete(self, project: Project) -> None:
        project.write("conftest.py", "import os\nos._exit(0)\n")
        project.write("test_it.py", TWO)
        assert project.check().code is ReasonCode.REPORT_MISSING

    def test_twin_a_program_under_test_may_exit(self, project: Project) -> None:
        project.write(
            "test_it.py",
            """
            import sys
            import pytest

            def test_one():
                with pytest.raises(SystemExit):
                    sys.exit(0)

            def test_two(): ...
            """,
        )
        assert project.check(baseline=BASELINE_OF_TWO).complete is True


class TestExitStatus:
    HOOK = """
        def pytest_sessionfinish(session, exitstatus):
            session.exitstatus = {status}
    """

    def test_a_failed_command_with_a_green_report_is_incomplete(self, project: Project) -> None:
        project.write("test_it.py", TWO)
        project.write("conftest.py", self.HOOK.format(status=1))
        result = project.check()
        assert result.code is ReasonCode.REPORT_DISAGREES
        assert_sentences(result.feedback or "")

    def test_a_conftest_that_sets_the_exit_status_to_zero_hides_nothing(self, project: Project) -> None:
        project.write("test_it.py", "def test_one():\n    assert False\n")
        project.write("conftest.py", self.HOOK.format(status=0))
        assert project.check().code is ReasonCode.TESTS_FAILED

    def test_twin_a_conftest_with_an_ordinary_hook_is_complete(self, project: Project) -> None:
        project.write("test_it.py", TWO)
        project.write("conftest.py", "def pytest_sessionfinish(session, exitstatus):\n    print('bye')\n")
        assert project.check().complete is True


class TestReports:
    GREEN = '<testsuites><testsuite><testcase classname="test_it" name="test_one"/></testsuite></testsuites>'

    def test_a_report_planted_before_the_run_is_not_read(self, project: Project) -> None:
        project.write("junit.xml", self.GREEN)
        project.write("report.xml", self.GREEN)
        project.write("test_it.py", "import os\nos._exit(0)\n")
        assert project.check().code is ReasonCode.REPORT_MISSING

    def test_a_report_planted_in_every_folder_of_the_kind_is_not_read(
        self, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        temporary = tmp_path / "temporary"
        temporary.mkdir()
        monkeypatch.setenv("TMPDIR", str(temporary))
        monkeypatch.setattr("tempfile.tempdir", None)
        for number in range(20):
            project.write(f"temporary/donewhen-{number}/junit.xml", self.GREEN)
        project.write("test_it.py", "import os\nos._exit(0)\n")
        assert project.check().code is ReasonCode.REPORT_MISSING

    def test_a_link_to_a_planted_report_is_not_read(self, project: Project) -> None:
        project.write("green.xml", self.GREEN)
        project.write(
            "test_it.py",
            f"""
            import os, sys

            def test_one():
                place = next(word for word in sys.argv if word.startswith("--junitxml=")).split("=")[1]
                os.symlink({str(project.root / "green.xml")!r}, place)
                os._exit(0)
            """,
        )
        assert project.check().code is ReasonCode.REPORT_MISSING

    @pytest.mark.parametrize(
        "text",
        [
            "<testsuites><testsuite><testcase name='a'/>",
            "<!DOCTYPE x [<!ENTITY a 'ha'><!ENTITY b '&a;&a;'>]><testsuites><testcase name='&b;'/></testsuites>",
            "<html><testcase name='a'/></html>",
            "",
        ],
        ids=["half a report", "entities", "wrong root", "empty"],
    )
    def test_a_report_that_was_tampered_with_is_unreadable(self, project: Project, text: str) -> None:
        project.write("test_it.py", TWO)
        project.write(
            "conftest.py",
            f"""
            import pytest

            @pytest.hookimpl(wrapper=True, tryfirst=True)
            def pytest_sessionfinish(session):
                yield
                with open(session.config.getoption("xmlpath"), "w") as file:
                    file.write({text!r})
            """,
        )
        result = project.check()
        assert result.code is ReasonCode.REPORT_UNREADABLE
        assert result.complete is False

    def test_a_report_that_is_taken_away_is_missing(self, project: Project) -> None:
        project.write("test_it.py", TWO)
        project.write(
            "conftest.py",
            """
            import os
            import pytest

            @pytest.hookimpl(wrapper=True, tryfirst=True)
            def pytest_sessionfinish(session):
                yield
                os.remove(session.config.getoption("xmlpath"))
            """,
        )
        assert project.check().code is ReasonCode.REPORT_MISSING

    def test_a_child_left_behind_that_rewrites_the_report_wins_nothing_and_is_killed(self, project: Project) -> None:
        project.write("green.xml", self.GREEN)
        project.write(
            "rewriter.py",
            """
            import os, sys, time

            while True:
                with open(sys.argv[1] + ".new", "w") as file:
                    file.write(open("green.xml").read())
                os.replace(sys.argv[1] + ".new", sys.argv[1])
                time.sleep(0.001)
            """,
        )
        project.write(
            "test_it.py",
            """
            import subprocess, sys

            def test_one():
                place = next(word for word in sys.argv if word.startswith("--junitxml=")).split("=")[1]
                child = subprocess.Popen([sys.executable, "rewriter.py", place])
                with open("pid", "w") as file:
                    file.write(str(child.pid))
                assert False
            """,
        )
        assert project.check().complete is False
        pid = int((project.root / "pid").read_text())
        assert wait_until(lambda: not alive(pid))

    def test_twin_a_report_of_ones_own_in_the_project_does_no_harm(self, project: Project) -> None:
        project.write("reports/junit.xml", "<testsuites><tests")
        project.write("test_it.py", TWO)
        assert project.check() == TaskCompletionResult.ok("All 2 test(s) passing.")


class TestTheCommand:
    @pytest.mark.parametrize("words", [("||", "true"), ("|", "tail"), (";", "true")], ids=" ".join)
    def test_shell_operators_are_arguments_and_hide_nothing(self, project: Project, words: tuple[str, ...]) -> None:
        project.write("test_it.py", "def test_one():\n    assert False\n")
        assert project.check(*words).complete is False

    def test_options_smuggled_in_through_the_environment_do_not_arrive(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        project.write("test_it.py", TWO)
        monkeypatch.setenv("PYTEST_ADDOPTS", "-k one")
        monkeypatch.setenv("PYTHONPATH", str(project.root / "evil"))
        project.write("evil/pytest.py", "import os; os._exit(0)")
        assert project.check(baseline=BASELINE_OF_TWO) == TaskCompletionResult.ok("All 2 test(s) passing.")


class TestBaselineFile:
    def test_a_saved_baseline_guards_the_next_run(self, project: Project) -> None:
        project.write("test_it.py", TWO)
        project.baseline().save(project.root / "baseline.json")
        assert project.check(baseline="baseline.json").complete is True
        project.write("test_it.py", "def test_one(): ...\n")
        assert project.check(baseline="baseline.json").code is ReasonCode.TESTS_LOST

    @pytest.mark.parametrize("damage", ["gone", "half", "schema", "directory", "not text"])
    def test_a_damaged_baseline_is_no_pass(self, project: Project, damage: str) -> None:
        project.write("test_it.py", TWO)
        path = project.root / "baseline.json"
        BASELINE_OF_TWO.save(path)
        whole = path.read_text()
        match damage:
            case "gone":
                path.unlink()
            case "half":
                path.write_text(whole[: len(whole) // 2])
            case "schema":
                path.write_text(json.dumps({**json.loads(whole), "schema": "donewhen/suite-baseline/v0"}))
            case "directory":
                path.unlink()
                path.mkdir()
            case "not text":
                path.write_bytes(b"\xff\xfe\x00")
        assert project.check(baseline="baseline.json").code is ReasonCode.BASELINE_UNREADABLE


def test_nothing_is_left_in_the_project_by_the_check_itself(project: Project) -> None:
    project.write("test_it.py", TWO)
    before = sorted(os.listdir(project.root))
    project.check()
    assert sorted(os.listdir(project.root)) == before


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state.rsplit(")", 1)[1].split()[0] != "Z"


def wait_until(condition: Callable[[], bool]) -> bool:
    patience = threading.Event()
    for _ in range(1500):
        if condition():
            return True
        patience.wait(0.02)
    return condition()
