"""Test runners are recognised in command lines, also behind the programs that start them."""

from __future__ import annotations

import shlex

import pytest

from donewhen.test_reports.test_runners import own_report, runner_of

PYTEST = [
    "pytest",
    "py.test -q",
    "/usr/bin/pytest-3 tests",
    ".venv/bin/pytest",
    "python -m pytest",
    "python3.12 -m pytest -q tests",
    "python -B -m pytest",
    "python -Bm pytest",
    "python -mpytest",
    "python -X utf8 -W error -O -m pytest",
    "python -Xutf8 -Werror -OO -I -m pytest.__main__",
    "python --check-hash-based-pycs always -m pytest",
    "python .venv/bin/pytest -q",
    "env python -m pytest",
    "/usr/bin/env python3 -m pytest",
    "env -i PATH=/usr/bin A=b pytest",
    "env -u HOME -C tests -- python -m pytest",
    "env -v --unset=HOME --chdir=tests pytest",
    "timeout -k 5 60 pytest",
    "nice -n 10 python -m pytest",
    "xvfb-run -a -s '-screen 0' pytest",
    "coverage run -m pytest -q",
    "coverage run --source src --branch -m pytest",
    "coverage run --source=src -pm pytest",
    "coverage run .venv/bin/pytest",
    "python -m coverage run -m pytest",
    "python3-coverage run -m pytest",
    "uv run pytest",
    "uv run --frozen python -m pytest",
    "uv run --with pytest-cov --extra test -p 3.12 -- pytest -q",
    "uv run -m pytest",
    "uv run --module pytest -q",
    "uv --directory sub run pytest",
    "uvx --from pytest pytest",
    "uv tool run pytest",
    "pipx run pytest",
    "poetry run pytest",
    "poetry -C sub run python -m pytest",
    "python -m poetry run pytest",
    "pdm run pytest",
    "pdm run -p sub python -m pytest",
    "hatch run pytest",
    "hatch -e dev run dev:pytest",
    "pipenv run python -m pytest",
    "env A=b uv run coverage run -m pytest",
]
UNITTEST = [
    "python -m unittest",
    "python -Bm unittest discover -s tests",
    "python -munittest -v",
    "python3 -X utf8 -m unittest.__main__ tests.test_shop",
    "env python -m unittest",
    "coverage run -m unittest",
    "uv run python -m unittest",
]
NODE = [
    "node --test",
    "node --test test/a.test.js",
    "node --import tsx --test",
    "node --test-reporter=tap --test --test-concurrency 2 test",
    "env CI=1 node --test",
]
WRAPPERS = [
    "make",
    "make test",
    "gmake -C sub check",
    "just test",
    "task test",
    "tox",
    "nox -s tests",
    "npm test",
    "npm t",
    "npm run test:unit",
    "yarn test",
    "pnpm test",
    "bun test",
    "npx jest",
    "jest",
    "cargo test --all",
    "cargo nextest run",
    "go test ./...",
    "mvn verify",
    "./gradlew check",
    "gradle test",
    "bash run.sh",
    "sh -c 'pytest -q'",
    "./scripts/run-tests.sh",
    "python run_tests.py",
    "python tests/test_shop.py",
    "python manage.py test",
    "django-admin test",
    "python -m django test",
    "python -m nose2",
    "python -m tox",
    "python -m cProfile -m pytest",
    "python -m project.tests",
    "uv run -m unittest",
    "uv run tox",
    "poetry run test",
    "hatch test",
    "hatch run test",
    "docker compose run app pytest",
    "docker run --rm app python -m unittest",
    "node --run test",
    "node test.js",
    "node node_modules/.bin/jest.js",
    "env -S 'python -m pytest'",
    "pytest --junitxml=",
    "pytest --junitxml=~/report.xml",
    "pytest --junitxml=$OUT/report.xml",
    "pytest -p no:junitxml",
    "pytest -pno:junitxml",
]
NOTHING = [
    "true",
    "ruff check tests",
    "mypy src",
    "grep -r pytest .",
    "pip install pytest",
    "python check.py",
    "python tests/run.py",
    "python -c 'import pytest'",
    "python",
    "python -",
    "python -V",
    "python -m",
    "python -m pytest_cov",
    "python -m build",
    "python -B check.py -m pytest",
    "python manage.py migrate",
    "coverage report",
    "coverage run check.py",
    "npm run build",
    "cargo build",
    "go vet ./...",
    "uv sync",
    "uv run",
    "uv run ruff check tests",
    "poetry run mypy src",
    "hatch build",
    "node check.js --test",
    "node -e 'test()'",
    "env",
    "env A=b",
    "timeout",
    "",
]
EXAMPLES = {"pytest": PYTEST, "unittest": UNITTEST, "node": NODE, "wrapper": WRAPPERS, "none": NOTHING}


@pytest.mark.parametrize(
    ("kind", "command"), [(kind, command) for kind, commands in EXAMPLES.items() for command in commands]
)
def test_a_command_is_recognised_by_the_program_that_it_starts(kind: str, command: str) -> None:
    runner = runner_of(shlex.split(command))

    assert runner.kind == kind
    assert runner.reports_tests == (kind in ("pytest", "unittest", "node"))
    assert bool(runner.unknown) == (kind == "wrapper")


@pytest.mark.parametrize("command", [*PYTEST, *UNITTEST])
def test_the_arguments_of_the_runner_begin_after_its_name(command: str) -> None:
    argv = [*shlex.split(command), "--an-argument"]

    runner = runner_of(argv)

    assert "--an-argument" in argv[runner.arguments :]
    assert argv[runner.arguments - 1].rpartition("/")[2].rpartition(":")[2].endswith(("test", "test.__main__", "-3"))


def test_the_notice_names_the_command_and_what_is_not_noticed() -> None:
    notice = runner_of(["make", "test"]).unknown

    assert notice == "`make test` does not report test ids, so lost tests would not be noticed."


def test_a_task_runner_that_may_not_run_tests_gets_a_careful_notice() -> None:
    notice = runner_of(["make", "lint"]).unknown

    assert notice == "`make lint` does not report test ids: if it runs tests, lost ones would not be noticed."


def test_a_notice_hides_no_characters_and_is_short() -> None:
    notice = runner_of(["make", "test\u200b\x1b[2K\n", "x" * 500]).unknown

    assert notice.isprintable()
    assert len(notice) < 200


@pytest.mark.parametrize(
    ("command", "folder"),
    [("pytest", ""), ("env -C sub pytest", "sub"), ("env -Csub nice env --chdir=in pytest", "sub/in")],
)
def test_the_folder_in_which_the_runner_runs_is_known(command: str, folder: str) -> None:
    assert runner_of(shlex.split(command)).folder == folder


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ("-q", None),
        ("--junitxml=a.xml", "a.xml"),
        ("--junit-xml=a.xml", "a.xml"),
        ("--junit-xml a.xml tests", "a.xml"),
        ("--junitxml=a.xml --junit-xml b.xml", "b.xml"),
        ("-o junit_family=xunit1 --junitxml 'a b.xml'", "a b.xml"),
        ("-- --junitxml=a.xml", None),
        ("--junitxml", ""),
    ],
)
def test_the_last_report_that_pytest_is_asked_for_is_its_own(arguments: str, path: str | None) -> None:
    report = own_report(shlex.split(arguments))

    assert (None if report is None else report.path) == path


def test_hundreds_of_programs_that_start_one_another_are_no_crash() -> None:
    assert runner_of(["nice"] * 5000 + ["pytest"]).kind == "wrapper"
    assert runner_of(["coverage", "run"] * 5000).kind == "wrapper"


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ("python check.py", 1),
        ("python -B -W error tools/check.py --all", 4),
        ("env -i X=1 python3.12 check.py", 4),
        ("uv run python check.py", 3),
        ("python tests/run_tests.py", 1),
        ("python -m check", 0),
        ("python -c pass check.py", 0),
        ("python -m pytest check.py", 0),
        ("python folder", 0),
        ("./check.py", 0),
        ("make check.py", 0),
    ],
)
def test_a_python_script_is_found(command: str, script: int) -> None:
    assert runner_of(command.split()).script == script
