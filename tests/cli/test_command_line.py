"""The command line as a person or a program meets it: real processes, real exit statuses."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from donewhen import __version__
from donewhen.cli._app import _MODULES, VERBS
from donewhen.cli._groups import FIRST, GROUPS
from donewhen.cli._output import harmless_text
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.ledger.gate_results import GateCode
from donewhen.learning.measuring import trial
from donewhen.learning.reflection import rejections, unlearnable
from donewhen.protocols import ReasonCode
from donewhen_kit import run_main
from lean_python import lean_python
from sentences import assert_sentences

DONEWHEN = [sys.executable, "-m", "donewhen"]


def run(*arguments: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    surroundings = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    return run_main(arguments, cwd, surroundings | env)


def envelope(*arguments: str, cwd: Path | None = None) -> dict[str, Any]:
    done = run(*arguments, cwd=cwd)
    data: dict[str, Any] = json.loads(done.stdout)
    assert data["schema"] == "donewhen/v1"
    assert set(data) == {"schema", "command", "ok", "data", "findings"}
    assert data["ok"] is (done.returncode == 0)
    assert done.stderr == ""
    for finding in data["findings"]:
        assert set(finding) == {"code", "message", "where", "next"}
    return data


def test_help_fits_on_one_screen_and_names_the_groups() -> None:
    shown = run("--help").stdout
    assert len(shown.splitlines()) <= 45
    for name in ("init", "agree", "complete", "review", "last", "job", "prove", "mission", "guard", "--help --all"):
        assert name in shown
    assert "truth-eval" not in shown
    assert_sentences(" ".join(shown.split()))


def test_every_verb_stands_on_the_first_screen_or_in_a_group_or_is_of_the_original_tool() -> None:
    shown = {name for names in FIRST.values() for name in names} | {*GROUPS}
    shown |= {verb for group in GROUPS.values() for verb in group.verbs.values()}
    assert {*_MODULES} - shown == {*VERBS["Jobs: commands of the original tool"], *VERBS["Pages"], "completion"} - {
        "serve"
    }
    assert shown - {*_MODULES} <= {*GROUPS}


@pytest.mark.parametrize(
    ("group", "name", "verb"), [(group, name, verb) for group in GROUPS for name, verb in GROUPS[group].verbs.items()]
)
def test_a_verb_of_a_group_is_the_verb(group: str, name: str, verb: str) -> None:
    if verb == "hook":
        assert run(group, name, "--help").stdout == run(verb, "--help").stdout != ""
        return
    shown = run(group, name, "--help")
    assert shown.returncode == 0
    assert shown.stdout == run(verb, "--help").stdout
    assert run(group, name, "--no-such-option").stderr == run(verb, "--no-such-option").stderr


@pytest.mark.parametrize("group", [*GROUPS])
def test_a_group_shows_its_verbs(group: str) -> None:
    shown = run(group, "--help")
    assert shown.returncode == 0
    assert all(name in shown.stdout for name in GROUPS[group].verbs)


def test_the_common_options_may_stand_before_the_group(tmp_path: Path) -> None:
    done = run("--project", str(tmp_path), "--json", "--no-color", "prove", "audit")
    data = json.loads(done.stdout)
    assert (done.returncode, data["command"]) == (2, "audit")
    assert str(tmp_path) in data["findings"][0]["where"]


def test_all_help_is_grouped_and_names_every_verb_and_exit_status() -> None:
    shown = run("--help", "--all")
    assert shown.stdout == run("--all", "--help").stdout
    assert shown.returncode == 0
    for word in (
        "Demo",
        "Check whether work is done",
        "Judge: learn from people's verdicts",
        "Help and diagnosis",
        "demo",
        "check",
        "baseline",
        "mission",
        "judge",
        "guidance",
        "doctor",
        "explain",
        "completion",
    ):
        assert word in shown.stdout
    assert_sentences(" ".join(shown.stdout.split()))


@pytest.mark.parametrize("verb", ["demo", "check", "baseline", "judge", "doctor", "explain", "completion"])
def test_every_verb_explains_itself(verb: str) -> None:
    shown = run(verb, "--help")
    assert shown.returncode == 0
    assert shown.stdout.startswith(f"Usage: donewhen {verb}")
    assert "--json" in shown.stdout


@pytest.mark.parametrize("words", [(), ("lessons",), ("github",), ("attest",), ("key",), ("mission",)])
def test_a_group_of_commands_without_one_shows_its_help_and_is_a_mistake(words: tuple[str, ...]) -> None:
    shown = run(*words)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr == run(*words, "--help").stdout
    (finding,) = envelope("--json", *words)["findings"]
    assert finding["code"] == "usage"
    assert "\n" not in finding["message"]


def test_help_imports_no_verb_and_nothing_heavy() -> None:
    code = (
        "import sys; from donewhen.cli import main; main(['--help']);"
        "print(sorted(n for n in sys.modules if n.split('.')[0] in ('rich', 'msgspec', 'asyncio')"
        " or n.startswith(('donewhen.cli.check', 'donewhen.cli.demo', 'donewhen.completion'))), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize(
    ("call", "own"), [("sys.argv[1:] = ['--version']; main()", True), ("main(['--version'])", False)]
)
def test_only_a_process_of_its_own_collects_garbage_rarely(call: str, own: bool) -> None:
    script = (
        f"import gc, sys; from donewhen.cli import main; before = gc.get_threshold(); {call};"
        "print(gc.get_threshold() == before, gc.get_freeze_count() == 0)"
    )
    ran = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == f"{not own} {not own}"


def test_the_version_is_the_packages() -> None:
    assert run("--version").stdout == f"donewhen {__version__}\n"


def test_an_unknown_verb_is_a_usage_error_with_a_suggestion() -> None:
    done = run("chek")
    assert done.returncode == 2
    assert_sentences(done.stderr)


def test_an_unknown_option_is_a_usage_error_that_names_the_help_to_read() -> None:
    done = run("check", "--fil", "x")
    assert done.returncode == 2
    assert "No such option" in done.stderr
    assert "donewhen check --help" in done.stderr


def test_usage_errors_are_an_envelope_too_when_json_was_asked_for() -> None:
    data = envelope("check", "--no-such", "--json")
    assert data["findings"][0]["code"] == "usage"
    assert envelope("--json", "nothing")["findings"][0]["code"] == "usage"


def test_json_after_a_double_dash_belongs_to_the_command_that_is_run(tmp_path: Path) -> None:
    done = run("baseline", "--out", "b.json", "--", "no-such-tool", "{junit}", "--json", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    assert_sentences(done.stderr)


def test_check_passes_when_everything_is_there(tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("x")
    done = run("check", "--file", "out.txt", "--run", "true", cwd=tmp_path)
    assert done.returncode == 0
    assert_sentences(done.stdout)


def test_check_fails_with_1_and_shows_every_failure(tmp_path: Path) -> None:
    data = envelope("check", "--file", "out.txt", "--run", "false", "--json", cwd=tmp_path)
    assert [one["code"] for one in data["findings"]] == ["files_missing", "command_failed"]
    assert run("check", "--file", "out.txt", cwd=tmp_path).returncode == 1


def test_check_of_nothing_is_a_usage_error() -> None:
    done = run("check")
    assert done.returncode == 2
    assert_sentences(done.stderr)


def test_a_path_outside_the_workspace_is_a_broken_gate_and_exits_3(tmp_path: Path) -> None:
    done = run("check", "--file", "../x", cwd=tmp_path)
    assert done.returncode == 3
    assert "gate_error" in done.stdout


@pytest.mark.parametrize(
    "line", ["true || true", "a | tail", "a && b", "a > b", "echo $HOME", "echo `id`", "echo $(id)"]
)
def test_shell_syntax_is_refused_with_a_hint(line: str) -> None:
    done = run("check", "--run", line)
    assert done.returncode == 2
    assert_sentences(done.stderr)


def test_quoted_operators_are_plain_text(tmp_path: Path) -> None:
    assert run("check", "--run", "test 'a|b' = 'a|b'", cwd=tmp_path).returncode == 0


def test_check_runs_in_the_folder_given_with_dash_c(tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("x")
    assert run("-C", str(tmp_path), "check", "--file", "out.txt").returncode == 0
    missing = run("-C", str(tmp_path / "nowhere"), "check", "--file", "out.txt")
    assert missing.returncode == 2
    assert "nowhere" in missing.stderr


def test_check_compares_tests_with_a_recorded_baseline(tmp_path: Path) -> None:
    tests = tmp_path / "test_it.py"
    tests.write_text("def test_a(): pass\ndef test_b(): pass\n")
    command = f"{lean_python()} -m pytest -q -p no:cacheprovider --junitxml={{junit}}"
    recorded = run("baseline", "--out", "b.json", "--", *command.split(), cwd=tmp_path)
    assert recorded.returncode == 0, recorded.stderr
    assert json.loads((tmp_path / "b.json").read_text())["executed"] == ["test_it::test_a", "test_it::test_b"]
    assert run("check", "--tests", command, "--baseline", "b.json", cwd=tmp_path).returncode == 0
    tests.write_text("def test_a(): pass\n")
    lost = envelope("check", "--tests", command, "--baseline", "b.json", "--json", cwd=tmp_path)
    assert lost["findings"][0]["code"] == "tests_lost"
    assert "test_it::test_b" in lost["findings"][0]["message"]
    before = (tmp_path / "b.json").read_bytes()
    refused = run("baseline", "--out", "b.json", "--", *command.split(), cwd=tmp_path)
    assert refused.returncode == 1
    assert "--accept-losses" in refused.stderr
    assert (tmp_path / "b.json").read_bytes() == before
    accepted = run("baseline", "--out", "b.json", "--accept-losses", "--", *command.split(), cwd=tmp_path)
    assert accepted.returncode == 0
    assert run("check", "--tests", command, "--baseline", "b.json", cwd=tmp_path).returncode == 0


def test_a_bad_run_makes_no_baseline(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_a(): assert False\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml={junit}"]
    done = run("baseline", "--out", "b.json", "--", *command, cwd=tmp_path)
    assert done.returncode == 1
    assert_sentences(done.stderr)
    assert not (tmp_path / "b.json").exists()


def test_a_broken_baseline_file_is_kept_and_named(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_a(): pass\n")
    (tmp_path / "b.json").write_text('{"schema": ')
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml={junit}"]
    done = run("baseline", "--out", "b.json", "--", *command, cwd=tmp_path)
    assert done.returncode == 2
    assert "b.json" in done.stderr
    assert (tmp_path / "b.json").read_text() == '{"schema": '


def test_a_baseline_that_cannot_be_written_is_an_error_with_the_place(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_a(): pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml={junit}"]
    done = run("baseline", "--out", "nowhere/b.json", "--", *command, cwd=tmp_path)
    assert done.returncode == 3
    assert "nowhere" in done.stderr


def test_a_test_command_without_a_place_for_the_report_is_explained() -> None:
    done = run("check", "--tests", "pytest")
    assert done.returncode == 2
    assert "{junit}" in done.stderr


def test_explain_knows_every_code_and_suggests_near_ones() -> None:
    everything = envelope("explain", "--json")["data"]["reasons"]
    codes = {code.value for kind in (ReasonCode, GateCode, FindingCode) for code in kind}
    for told in (rejections.MEANINGS, trial.MEANINGS, unlearnable.MEANINGS):
        codes |= set(told)
    assert set(everything) == codes
    one = run("explain", "gate_error")
    assert one.returncode == 0
    assert_sentences(one.stdout)
    wrong = run("explain", "gate_eror")
    assert wrong.returncode == 2
    assert_sentences(wrong.stderr)


def test_doctor_tries_things_and_finds_this_machine_fit(tmp_path: Path) -> None:
    data = envelope("doctor", "--json", cwd=tmp_path)
    health = {one["name"]: one["health"] for one in data["data"]["diagnoses"]}
    assert health["package"] == health["commands"] == health["files"] == "ok"


def test_doctor_finds_a_package_that_lacks_a_room(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['donewhen.contrib'] = None;"
        "from donewhen.cli import main; sys.exit(main(['doctor', '--json']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert json.loads(done.stdout)["findings"][0]["code"] == "doctor_package"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_each_shell(shell: str) -> None:
    done = run("completion", shell)
    assert done.returncode == 0
    assert "_DONEWHEN_COMPLETE" in done.stdout


def test_completion_completes_verbs_and_options() -> None:
    words = {"_DONEWHEN_COMPLETE": "bash_complete", "COMP_WORDS": "donewhen ch", "COMP_CWORD": "1"}
    assert "check" in run(**words).stdout  # type: ignore[arg-type]
    words = {"_DONEWHEN_COMPLETE": "bash_complete", "COMP_WORDS": "donewhen check --ba", "COMP_CWORD": "2"}
    assert "--baseline" in run(**words).stdout  # type: ignore[arg-type]


def _on_a_terminal(*arguments: str, cwd: Path, **env: str) -> bytes:
    """What the command prints when standard output is a terminal."""
    surroundings = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [*DONEWHEN, *arguments], stdout=follower, stderr=follower, cwd=cwd, env=surroundings | {"TERM": "xterm"} | env
    )
    os.close(follower)
    printed = b""
    while True:
        try:
            chunk = os.read(leader, 65536)
        except OSError:
            break
        if not chunk:
            break
        printed += chunk
    os.close(leader)
    process.wait(60)
    return printed


def test_colour_is_for_terminals_and_can_be_switched_off(tmp_path: Path) -> None:
    assert b"\x1b[3" in _on_a_terminal("check", "--run", "true", cwd=tmp_path)
    assert b"\x1b[3" not in _on_a_terminal("check", "--run", "true", "--no-color", cwd=tmp_path)
    assert b"\x1b[3" not in _on_a_terminal("check", "--run", "true", cwd=tmp_path, NO_COLOR="1")
    assert "\x1b" not in run("check", "--run", "true", cwd=tmp_path).stdout


def test_what_a_command_prints_cannot_drive_the_terminal(tmp_path: Path) -> None:
    evil = tmp_path / "evil.py"
    evil.write_text("import sys; print('\\x1b]0;owned\\x07\\x1b[2Jgone\\u202eright'); sys.exit(1)")
    shown = _on_a_terminal("check", "--run", f"{sys.executable} evil.py", "--no-color", cwd=tmp_path)
    text = shown.decode().split("evil.py", 1)[1]
    assert "\x1b]0" not in text
    assert "owned" not in text
    assert "\u202e" not in text
    assert "goneright" in text


def test_ctrl_c_exits_with_130_and_leaves_no_child(tmp_path: Path) -> None:
    script = tmp_path / "slow.py"
    script.write_text("import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(60)")
    process = subprocess.Popen(
        [*DONEWHEN, "check", "--run", f"{sys.executable} slow.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    pid_file = tmp_path / "pid"
    give_up = time.monotonic() + 60
    while not (pid_file.exists() and pid_file.read_text()) and time.monotonic() < give_up:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Interrupted" in errors
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*DONEWHEN, "explain"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, bufsize=0
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    process.wait(60)
    assert b"Traceback" not in errors


def test_a_terminal_that_lacks_characters_gets_a_question_mark_not_a_crash(tmp_path: Path) -> None:
    done = run("check", "--run", "true", cwd=tmp_path, PYTHONIOENCODING="latin-1", PYTHONUTF8="0")
    assert done.returncode == 0
    assert "? true" in done.stdout


def test_an_internal_error_exits_3_without_a_traceback_unless_debugging(tmp_path: Path) -> None:
    code = (
        "import sys, donewhen.cli.explain as e; e._CODES = None;"
        "from donewhen.cli import main; sys.exit(main(['explain']))"
    )
    state = os.environ | {"XDG_STATE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=state)
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    (log,) = (tmp_path / "donewhen" / "crashes").iterdir()
    assert str(log) in done.stderr
    assert "Traceback" in log.read_text()
    assert "command: donewhen explain" in log.read_text()
    assert_sentences(done.stderr.replace(log.name, "LOG"))
    debugging = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"DONEWHEN_DEBUG": "1"},
    )
    assert "Traceback" in debugging.stderr


def test_json_holds_nothing_that_a_runner_of_ci_would_take_for_a_command() -> None:
    told = {"title": "##[error]it is all good", "other": "# #[ stays"}
    text = harmless_text(json.dumps(told))
    assert "##[" not in text
    assert json.loads(text) == told
