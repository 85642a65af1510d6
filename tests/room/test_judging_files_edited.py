"""The file that judges is edited: checks read the agreed one, wherever it lies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from room_kit import (
    HOLLOW,
    LAZY,
    PRICE,
    PYTEST,
    PYTHON,
    RUN_CHECK,
    RUN_TESTS,
    SHOP,
    TESTS,
    Bench,
    wrote,
)

from donewhen.foundation.errors import ConfigError

pytestmark = pytest.mark.scenes

READS_DATA = """\
import json
import pathlib
import sys

sys.path.insert(0, "src")
from shop.price import total

limits = json.loads(pathlib.Path("checks/limits.json").read_text())
golden = pathlib.Path("src/shop/golden/total.txt").read_text()
sys.exit(str(total(limits["prices"])) != golden.strip())
"""


def test_data_beside_a_check_is_agreed_and_so_is_its_folder(tmp_path: Path) -> None:
    files = SHOP | {
        "checks/run.py": READS_DATA,
        "checks/limits.json": '{"prices": [1, 2]}\n',
        "src/shop/golden/total.txt": "3\n",
    }
    bench = Bench(tmp_path / "shop", files)
    job = bench.job(
        f"The check passes\n  check: run {PYTHON} checks/run.py src/shop/golden/total.txt",
        work=["/src/shop/**", "/checks/**"],
    )
    answers = bench.refuses(
        job,
        {
            "the script": wrote({"checks/run.py": "\n"}),
            "its data": wrote({"checks/limits.json": '{"prices": []}'}),
            "a golden file that the command names": wrote({"src/shop/golden/total.txt": "0\n"}),
            "a file beside that": wrote({"src/shop/golden/total.txt": "0", "src/shop/golden/more.txt": "0"}),
            "a link instead of the data": lambda bench: (
                bench.write("src/shop/data.json", '{"prices": []}'),
                bench.link("checks/limits.json", "../src/shop/data.json"),
            ),
            "a folder that is a link": lambda bench: (
                bench.write("src/shop/other/total.txt", "0\n"),
                bench.remove("src/shop/golden/total.txt"),
                bench.root.joinpath("src/shop/golden").rmdir(),
                bench.link("src/shop/golden", "other"),
            ),
        },
    )
    assert answers["its data"].outside == {"checks/limits.json"}


def test_a_script_that_is_named_in_other_ways_is_named(tmp_path: Path) -> None:
    ways = {
        "by the shell": "sh -c 'exec python3 tools/check.py'",
        "by env": f"env SHOP=1 {PYTHON} -B tools/check.py",
        "with a dot": f"{PYTHON} ./tools//check.py",
        "as an option": f"{PYTHON} -W ignore -X utf8 tools/check.py --strict",
        "as a program": "./tools/check.py",
        "after a time limit": f"timeout 60 {PYTHON} tools/check.py",
    }
    script = f"#!/usr/bin/env python3\n{SHOP['check.py']}"
    bench = Bench(tmp_path / "shop", SHOP | {"tools/check.py": script})
    (bench.root / "tools/check.py").chmod(0o755)
    bench.commit()
    for title, command in ways.items():
        job = bench.job(f"It passes\n  check: run {command}", title=title.title(), work=["/src/shop/**", "/tools/**"])
        bench.write("tools/check.py", "#!/usr/bin/env python3\n")
        bench.write(PRICE, LAZY)
        answer = bench.complete(job)
        assert not answer.done, title
        assert "outside_work_area" in answer.codes, title
        bench.undo()


def test_settings_of_linters_inside_the_work_are_agreed(tmp_path: Path) -> None:
    """`check.py` stands for a linter: it reads the settings in each folder from the file upwards."""
    lint = (
        "import pathlib, sys\n"
        "names = ('ruff.toml', '.ruff.toml', 'pyproject.toml', '.flake8', 'setup.cfg', 'mypy.ini')\n"
        "found = [f for f in pathlib.Path('src').rglob('*') if f.name.lower() in names]\n"
        "text = pathlib.Path('src/shop/price.py').read_text()\nsys.exit('sum' not in text and not found)\n"
    )
    bench = Bench(tmp_path / "shop", SHOP | {"check.py": lint})
    job = bench.job(RUN_CHECK)
    names = ("ruff.toml", ".ruff.toml", "pyproject.toml", ".flake8", "setup.cfg", "mypy.ini", "PyProject.toml")
    bench.refuses(job, {name: wrote({f"src/shop/{name}": "x = 1\n"}) for name in names})


def test_a_schema_is_the_agreed_one(tmp_path: Path) -> None:
    schema = {"type": "object", "required": ["total"], "properties": {"total": {"const": 3}}}
    bench = Bench(tmp_path / "shop", SHOP | {"schemas/report.json": json.dumps(schema)})
    job = bench.job(
        "The report has the form\n  check: file /report.json schema /schemas/report.json",
        outputs=["/report.json"],
        work=["/schemas/**"],
    )
    bench.write("report.json", '{"total": 0}')
    for loose in ("{}", "true", '{"type": "object"}'):
        bench.write("schemas/report.json", loose)
        assert not bench.complete(job).done
    bench.remove("schemas/report.json")
    with pytest.raises(ConfigError):
        bench.complete(job)
    bench.undo()
    bench.write("report.json", '{"total": 3}')
    assert bench.complete(job).done


MANIFEST = """\
[project]
name = "shop"
dependencies = ["httpx"]

[tool.pytest.ini_options]
pythonpath = ["src"]
"""


def test_of_a_manifest_in_the_area_only_the_dependencies_change(tmp_path: Path) -> None:
    tests = TESTS.replace('import sys\n\nsys.path.insert(0, "src")\n', "")
    bench = Bench(tmp_path / "shop", SHOP | {"pyproject.toml": MANIFEST, "tests/test_price.py": tests})
    job = bench.job(RUN_TESTS, work=["/src/shop/**", "/pyproject.toml"])
    only = '\naddopts = "-k empty"\n'
    bench.refuses(
        job,
        {
            "options": wrote({"pyproject.toml": MANIFEST.rstrip() + only}),
            "options with a dependency": wrote(
                {"pyproject.toml": MANIFEST.replace('"httpx"', '"httpx", "attrs"').rstrip() + only}
            ),
            "other tests": wrote({"pyproject.toml": f'{MANIFEST}testpaths = ["src"]\n'}),
            "what can't be read": wrote({"pyproject.toml": "[tool.pytest.ini_options\n"}),
        },
    )


def test_a_manifest_that_is_an_output_is_still_a_manifest(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop", SHOP | {"pyproject.toml": MANIFEST})
    job = bench.job(RUN_TESTS, outputs=[f"/{PRICE}", "/pyproject.toml"], work=["/src/shop/**"])
    bench.write(PRICE, LAZY)
    bench.write("pyproject.toml", f'{MANIFEST}addopts = "-k empty"\n')
    assert not bench.complete(job).done
    bench.work()
    bench.write("pyproject.toml", MANIFEST.replace('"httpx"', '"httpx", "attrs"'))
    answer = bench.complete(job)
    assert answer.done
    assert not answer.outside


def test_what_a_settings_file_names_is_as_agreed(tmp_path: Path) -> None:
    """The tests have other names than usual: the agreed settings say which."""
    settings = '[tool.pytest.ini_options]\npython_files = ["check_*.py"]\ntestpaths = ["src"]\n'
    files = {name: text for name, text in SHOP.items() if name != "tests/test_price.py"}
    bench = Bench(tmp_path / "shop", files | {"pyproject.toml": settings, "src/shop/check_price.py": TESTS})
    job = bench.job(RUN_TESTS)
    bench.refuses(job, {"hollowed": wrote({"src/shop/check_price.py": HOLLOW})})


def test_doctests_in_documentation_that_is_checked_are_agreed_unless_the_file_is_what_is_checked(
    tmp_path: Path,
) -> None:
    page = ">>> import sys; sys.path.insert(0, 'src')\n>>> from shop.price import total\n>>> total([1, 2])\n{}\n"
    bench = Bench(tmp_path / "shop", SHOP | {"docs/usage.txt": page.format(3)})
    job = bench.job(
        f"The examples hold\n  check: run {PYTEST} --doctest-glob=*.txt docs",
        work=["/src/shop/**", "/docs/**"],
    )
    bench.write(PRICE, LAZY)
    bench.write("docs/usage.txt", page.format(0))
    assert not bench.complete(job).done


def test_ignore_files_are_the_agreed_ones(tmp_path: Path) -> None:
    """An agent can't hide a file by ignoring it, nor bring in one that was ignored."""
    uses = "import pathlib\n\n\ndef total(prices):\n    return eval(pathlib.Path('{}').read_text())\n"
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_CHECK)
    for name, made in {
        "a file that is ignored": "build/answer.txt",
        "one that is not any more": "build/other.txt",
    }.items():
        bench.write(PRICE, uses.format(made))
        bench.write(made, "3")
        if "any more" in name:
            bench.write(".gitignore", "__pycache__/\n")
        assert not bench.complete(job).done, name
        bench.undo()


def test_an_ignored_file_in_the_area_is_absent(tmp_path: Path) -> None:
    """Nobody else would have it after a clone."""
    reads = "sum(prices) if pathlib.Path('src/shop/build/answer.txt').read_text() == 'sum' else 0"
    uses = f"import pathlib\n\n\ndef total(prices):\n    return {reads}\n"
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_CHECK)
    bench.write(PRICE, uses)
    bench.write("src/shop/build/answer.txt", "sum")
    assert not bench.complete(job).done
    bench.remove("src/shop/build/answer.txt")
    bench.write("src/shop/answer.txt", "sum")
    bench.write(PRICE, uses.replace("build/", ""))
    assert bench.complete(job).done
