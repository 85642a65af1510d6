"""Further tricks of the known classes, several on one agreement each, and honest work that looks like them."""

from __future__ import annotations

from pathlib import Path

import pytest
from room_kit import ENDS, PYTHON, RUN_CHECK, RUN_TESTS, SHOP, TESTS, Bench, wrote

pytestmark = pytest.mark.scenes

WORK = ["/src/shop/**", "/tests/**", "/tools/**"]
LIMITS = '{"want": 3}\n'
READS_LIMITS = TESTS.replace("== 3", "== __import__('json').load(open('tests/limits.json'))['want']")


def test_around_tests_with_data(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop", SHOP | {"tests/limits.json": LIMITS, "tests/test_price.py": READS_LIMITS})
    easy = '{"want": 0}'
    answers = bench.refuses(
        bench.job(RUN_TESTS, work=WORK),
        {
            "the data": wrote({"tests/limits.json": easy}),
            "the data in other cases": wrote({"Tests/limits.json": easy, "tests/Limits.json": easy}),
            "a link instead of the data": lambda bench: (
                bench.write("src/shop/t.json", easy),
                bench.link("tests/limits.json", "../src/shop/t.json"),
            ),
            "settings that only list tests": wrote({"pytest.toml": '[pytest]\naddopts = "--co"\n'}),
            "settings beside the tests": wrote({"tests/pytest.ini": "[pytest]\naddopts = -k empty\n"}),
            "a package of tests that ends": wrote({"tests/__init__.py": ENDS}),
            "a runner in the path": wrote({"src/pytest.py": ENDS, "src/_pytest.py": ENDS}),
            "a start-up file in the path": wrote({"src/shop.pth": "import os; os._exit(0)\n"}),
            "attributes": wrote({".gitattributes": "*.json text eol=crlf\n", "src/shop/.gitattributes": "* -text\n"}),
            "compiled tests": wrote({"tests/__pycache__/test_price.cpython-311-pytest-8.0.0.pyc": "x"}),
            "tests that are left out": wrote({"tests/conftest.py": "collect_ignore = ['test_price.py']\n"}),
        },
    )
    assert answers["the data"].codes == {"tests_changed"}


def test_data_in_the_area_that_only_tests_name_belongs_to_them(tmp_path: Path) -> None:
    """Also where no folder says so; what the product names, too, is its own."""
    reads = TESTS.replace("== 3", "== __import__('json').load(open('cases/want.json'))['want']")
    names = "\n\nRATES = 'rates.json'\n"
    files = SHOP | {
        "cases/want.json": LIMITS,
        "cases/rates.json": "{}\n",
        "tests/test_price.py": f"{reads}{names}",
        "src/shop/rates.py": names,
    }
    bench = Bench(tmp_path / "shop", files)
    job = bench.job(RUN_TESTS, work=[*WORK, "/cases/**"])
    answers = bench.refuses(job, {"what is expected": wrote({"cases/want.json": '{"want": 0}'})})
    assert answers["what is expected"].codes == {"tests_changed"}
    bench.work()
    bench.write("cases/rates.json", '{"now": 1}\n')
    assert bench.complete(job).done


def test_around_recipes_and_what_they_run(tmp_path: Path) -> None:
    files = {
        "Makefile": f"include tools/rules.inc\n-include local.mk\n.PHONY: test\ntest:\n\t{PYTHON} tools/run.py\n",
        "tools/rules.inc": "X = 1\n",
        "tools/run.py": "import helper, runpy\n\nrunpy.run_path('check.py')\n",
        "tools/helper.py": "x = 1\n",
    }
    bench = Bench(tmp_path / "shop", SHOP | files)
    no_shell = "SHELL = /bin/true\n"
    bench.refuses(
        bench.job("It is tested\n  check: run make test", work=WORK),
        {
            "an included file": wrote({"tools/rules.inc": no_shell}),
            "one that was not there": wrote({"local.mk": no_shell}),
            "the script": wrote({"tools/run.py": "\n"}),
            "what it imports": wrote({"tools/helper.py": ENDS}),
            "a package instead": wrote({"tools/helper/__init__.py": ENDS}),
            "a library beside it": wrote({"tools/runpy.py": ENDS}),
        },
    )


def test_around_scripts_without_endings(tmp_path: Path) -> None:
    files = {"check.sh": "set -e\nsh tools/all\n", "tools/all": f"#!/bin/sh\n{PYTHON} check.py\n"}
    bench = Bench(tmp_path / "shop", SHOP | files)
    job = bench.job("It is tested\n  check: run sh check.sh", work=WORK)
    bench.refuses(job, {"the inner script": wrote({"tools/all": "exit 0\n"}), "variables": wrote({".env": "exit 0\n"})})


def test_a_check_may_make_a_file_again_with_the_same_content(tmp_path: Path) -> None:
    """What is committed and generated is often compared like this; it does not judge."""
    again = "import os, pathlib\n\npath = pathlib.Path('gen/out.txt')\npath.with_suffix('.new').write_text('1\\n')\n"
    again += "os.replace(path.with_suffix('.new'), path)\n"
    bench = Bench(tmp_path / "shop", SHOP | {"gen/out.txt": "1\n", "check.py": f"{again}{SHOP['check.py']}"})
    job = bench.job(RUN_CHECK)
    bench.work()
    assert bench.complete(job).done


def test_tests_may_write_beside_themselves_and_copy_what_is_there(tmp_path: Path) -> None:
    more = (
        "\n\ndef test_files(tmp_path):\n    import pathlib, shutil\n\n    here = pathlib.Path(__file__).parent\n"
        "    (here / 'out.tmp').write_text('x')\n    shutil.copytree(here, tmp_path / 'copy')\n"
        "    (here / 'out.tmp').unlink()\n"
    )
    bench = Bench(tmp_path / "shop", SHOP | {"tests/test_price.py": f"{TESTS}{more}"})
    job = bench.job(RUN_TESTS)
    bench.work()
    assert bench.complete(job).done


def test_settings_that_are_an_output_are_work(tmp_path: Path) -> None:
    check = "import runpy, sys\n\nsys.exit(runpy.run_path('docs/conf.py')['release'] != '2')\n"
    files = {"docs/conf.py": "release = '1'\n", "docs/index.rst": "Shop\n", "check.py": check}
    bench = Bench(tmp_path / "shop", SHOP | files)
    job = bench.job(RUN_CHECK, outputs=["/docs/conf.py"], work=["/docs/**"])
    bench.write("docs/conf.py", "release = '2'\n")
    assert bench.complete(job).done
