"""What agreed scripts of checks import, run, include and compare with stays as agreed; what they look at is work."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from room_kit import GOOD, LAZY, PRICE, PYTHON, RUN_CHECK, SHOP, Bench, wrote

from donewhen.jobs.room.judging_names import NamedFile, executed_files, named_files
from donewhen.jobs.room.script_mentions import may_be_compared, mentioned_by_scripts

PRODUCT = {"src/shop/price.py": "", "src/shop/cli.py": "", "shop/__init__.py": "", "shop/gate.py": "", "lib/a.js": ""}


def found(script: str, text: str, *others: str, inside: str = "") -> tuple[set[str], set[str]]:
    """The scripts that judge besides this one, and what they include."""
    files = {**PRODUCT, **dict.fromkeys(others, ""), f"{inside}{script}": text}
    named = [(NamedFile(script, whole_folder=True),)]
    mentioned = mentioned_by_scripts(named, inside, files, lambda name: files[name].encode())
    scripts = {file.name for file in mentioned if file.script} - {script}
    return scripts, {file.name for file in mentioned if file.if_there}


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("ci.py", "subprocess.call([sys.executable, 'tools/inner.py'])"),
        ("ci.py", "runpy.run_path(os.path.join(HERE, 'tools', 'inner.py'))"),
        ("ci.py", "run(ROOT / 'tools' / 'inner.py')"),
        ("ci.py", "from tools.inner import wanted"),
        ("ci.py", "from tools import (inner)"),
        ("noxfile.py", "session.run('python', 'tools/inner.py')"),
        ("tools/check.py", "import inner as rules, sys"),
        ("tools/check.py", "from . import inner"),
        ("tools/check.py", "from .inner import wanted"),
        (".pre-commit-config.yaml", "entry: python tools/inner.py"),
        ("tox.ini", "commands = python tools/inner.py"),
        ("pyproject.toml", "[tool.poe.tasks]\ncheck = 'python tools/inner.py'"),
        ("Rakefile", "ruby 'tools/inner'"),
        ("check.js", "require('./tools/inner.py')"),
    ],
)
def test_a_script_that_another_one_has_run_or_loaded_judges(script: str, text: str) -> None:
    assert found(script, text, "tools/inner.py")[0] == {"tools/inner.py"}


def test_scripts_are_followed_and_lie_in_a_folder_of_the_project() -> None:
    files = {
        "web/quality/check.js": "require('./rules/limit')",
        "web/quality/rules/limit.js": "import '../deep/more.mjs'; require('../../src/price')",
        "web/quality/deep/more.mjs": "",
        "web/src/price.js": "",
    }
    named = [(NamedFile("quality/check.js", whole_folder=True),)]
    mentioned = mentioned_by_scripts(named, "web/", files, lambda name: files[name].encode())
    assert {file.name for file in mentioned} == {"quality/check.js", "quality/rules/limit.js", "quality/deep/more.mjs"}


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("check.py", "from shop.price import total\nimport shop.gate"),
        ("check.py", "subprocess.call([sys.executable, 'src/shop/cli.py'])"),
        ("check.sh", "python src/shop/cli.py | diff - docs/usage.md"),
        ("tools/check.js", "require('../lib/a.js')"),
        ("src/tools/check.py", "import inner"),
        ("shop/gate.py", "from shop.deep import rules"),
    ],
)
def test_what_a_script_looks_at_is_work(script: str, text: str) -> None:
    others = ("src/tools/inner.py", "shop/deep/__init__.py", "shop/deep/rules.py", "docs/usage.md")
    assert found(script, text, *others)[0] == set()


@pytest.mark.parametrize(
    ("script", "text", "included"),
    [
        ("Makefile", "include flags\n-include src/local more.inc # for you\n", {"flags", "src/local", "more.inc"}),
        ("ci/rules.mk", "sinclude $(TOP)/local\n", {"local", "ci/local"}),
        ("justfile", "import? 'local.just'\nimport 'x.just'\n", {"local.just", "x.just"}),
        ("check.sh", "set -e\n[ -f src/pre ] && . src/pre\nif x; then source ./a.sh; fi\n", {"src/pre", "a.sh"}),
        ("check.sh", "cp include.txt out.txt\n./run.sh a . b\n. /etc/profile\n", set()),
        ("check.py", "include flags\n. src/pre\n", set()),
    ],
)
def test_what_is_included_judges_as_soon_as_it_is_there(script: str, text: str, included: set[str]) -> None:
    assert found(script, text)[1] == included


@pytest.mark.parametrize(
    ("name", "compared"),
    [
        ("src/shop/totals.json", True),
        ("docs/cases/a.json", True),
        ("data/expected.csv", True),
        ("data/golden/a.txt", True),
        ("data/countries.json", False),
        ("locale/de.json", False),
        ("site/showcases.json", False),
    ],
)
def test_data_that_only_scripts_name_is_compared_or_is_the_work(name: str, compared: bool) -> None:
    assert may_be_compared(name, "", PRODUCT) is compared


@pytest.mark.parametrize(
    ("command", "recipe"),
    [
        ("nox -s tests", "noxfile.py"),
        ("inv check", "tasks.py"),
        ("rake test", "Rakefile"),
        ("pre-commit run --all-files", ".pre-commit-config.yaml"),
        ("hatch run check", "pyproject.toml"),
        ("poe check", "pyproject.toml"),
        ("composer test", "composer.json"),
    ],
)
def test_programs_run_what_a_file_with_a_known_name_says(command: str, recipe: str) -> None:
    assert recipe in {file.name for file in named_files(command.split())}
    assert recipe in {file.name for file in executed_files(command.split())}


def test_an_interpreter_is_no_launcher() -> None:
    assert {file.name for file in named_files(["poetry", "run", "pytest"])} == {"pyproject.toml"}
    assert not [*named_files(["pytest"])]


def test_scripts_and_data_in_the_work_area_stay_as_agreed(tmp_path: Path) -> None:
    inner = (
        SHOP["check.py"]
        .replace("!= 3", "!= expected")
        .replace("from shop", "import json\nfrom limits.numbers import expected\nfrom shop")
    )
    inner += "\n".join(("", "assert json.load(open('docs/cases/a.json')) == json.load(open('src/shop/totals.json'))"))
    files = SHOP | {
        "ci.py": "import runpy\n\nrunpy.run_path('tools/inner.py', run_name='__main__')\n",
        "tools/inner.py": inner.replace("sys.exit(", "assert not (").replace("import sys\n", "import sys\n"),
        "tools/limits/numbers.py": "expected = 3\n",
        "docs/cases/a.json": "[3]",
        "src/shop/totals.json": "[3]",
    }
    files["ci.py"] = "import runpy, sys\n\nsys.path.insert(0, 'tools')\nrunpy.run_path('tools/inner.py')\n"
    bench = Bench(tmp_path / "shop", files)
    job = bench.job(
        f"It passes\n  check: run {PYTHON} ci.py", work=["/src/shop/**", "/tools/**", "/docs/**"], title="Inner"
    )
    answers = bench.refuses(
        job,
        {
            "the script": wrote({"tools/inner.py": "\n"}),
            "what it imports": wrote({"tools/limits/numbers.py": "expected = 0\n"}),
            "what it would import instead": wrote({"tools/limits/numbers/__init__.py": "expected = 0\n"}),
        },
    )
    assert {code for answer in answers.values() for code in answer.codes} == {"outside_work_area"}
    bench.undo()
    data = bench.job(f"It passes\n  check: run {PYTHON} ci.py", work=["/src/shop/**", "/docs/**"], title="Data")
    bench.write(PRICE, f"# Again.\n{GOOD}")
    bench.write("docs/cases/a.json", "[0]")
    bench.write("src/shop/totals.json", "[0]")
    answer = bench.complete(data)
    assert answer.done
    assert answer.tests == {"docs/cases/a.json", "src/shop/totals.json"}


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_a_new_file_that_a_makefile_would_include_is_no_work(tmp_path: Path) -> None:
    makefile = f"PYTHON = {PYTHON}\n-include src/shop/local\ntest:\n\t$(PYTHON) check.py\n"
    bench = Bench(tmp_path / "shop", SHOP | {"Makefile": makefile})
    job = bench.job("It passes\n  check: run make test")
    bench.write(PRICE, LAZY)
    bench.write("src/shop/local", "PYTHON = true\n")
    assert bench.complete(job).codes == {"outside_work_area"}
    bench.undo()
    bench.write(PRICE, GOOD)
    bench.write("src/shop/locale", "de\n")
    answer = bench.complete(job)
    assert answer.done and not answer.outside


def test_data_that_is_the_work_and_a_program_that_a_script_tries_need_nobody(tmp_path: Path) -> None:
    check = "import json, subprocess, sys\n\nname = json.load(open('data/de.json'))['total']\n"
    check += "sys.exit(subprocess.check_output([sys.executable, 'src/shop/cli.py'], text=True).strip() != name)\n"
    files = {"check.py": check, "data/de.json": "{}", "src/shop/cli.py": "print()\n", "src/shop/__init__.py": ""}
    bench = Bench(tmp_path / "shop", files)
    job = bench.job(RUN_CHECK, outputs=["/src/shop/text.py"], work=["/src/shop/**", "/data/**"])
    bench.write("data/de.json", '{"total": "Summe"}')
    bench.write("src/shop/text.py", "TOTAL = 'Summe'\n")
    bench.write("src/shop/cli.py", "from text import TOTAL\n\nprint(TOTAL)\n")
    answer = bench.complete(job)
    assert answer.done and not answer.outside and not answer.tests, answer
