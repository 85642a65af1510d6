"""A file beside the one that judges takes over: it is not in the room, whatever tool would have found it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from room_kit import BAD, ENDS, FORGES, GOOD, HOLLOW, LAZY, PYTHON, RUN_CHECK, RUN_TESTS, SHOP, Bench, wrote

from donewhen.jobs.room.shadowing_names import is_shadowing

pytestmark = pytest.mark.scenes

PLUGIN = {
    "evil.egg-info/PKG-INFO": "Metadata-Version: 2.1\nName: evil\nVersion: 1\n",
    "evil.egg-info/entry_points.txt": "[pytest11]\nevil = evil\n",
    "evil.py": ENDS,
}
IMPORTS_JSON = SHOP | {"check.py": f"import json\nimport rules\n{SHOP['check.py']}", "rules.py": "LIMIT = 3\n"}


def test_no_module_beside_a_script_is_imported_instead_of_the_one_that_was_meant(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop", IMPORTS_JSON)
    job = bench.job(RUN_CHECK)
    bench.refuses(
        job,
        {
            "a module of the standard library": wrote({"json.py": ENDS}),
            "a package of the standard library": wrote({"json/__init__.py": ENDS}),
            "the package that comes before an agreed module": wrote({"rules/__init__.py": ENDS}),
            "an environment that is a package": wrote({"json/pyvenv.cfg": "home = /usr\n", "json/__init__.py": ENDS}),
            "an environment over an agreed module": wrote({"rules/pyvenv.cfg": "", "rules/__init__.py": ENDS}),
            "startup files": wrote({"sitecustomize.py": ENDS, "usercustomize.py": ENDS, "src/sitecustomize.py": ENDS}),
            "a module where the script looks first": wrote({"src/json.py": ENDS, "src/rules.py": ENDS}),
            "a link to a package in the work": lambda bench: (
                bench.write("src/shop/fake/__init__.py", ENDS),
                bench.link("src/json", "shop/fake"),
                bench.link("json", "src/shop/fake"),
                bench.link("rules", "src/shop/fake"),
            ),
        },
    )


def test_no_settings_or_plugin_beside_the_tests_decide_for_pytest(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_TESTS)
    deselects = "addopts = --deselect=tests/test_price.py::test_total"
    bench.refuses(
        job,
        {
            "conftest.py everywhere": wrote(
                dict.fromkeys(("conftest.py", "tests/conftest.py", "src/shop/conftest.py", "src/conftest.py"), FORGES)
            ),
            "settings of several forms": wrote(
                {
                    "pytest.ini": f"[pytest]\n{deselects}\n",
                    ".pytest.ini": f"[pytest]\n{deselects}\n",
                    "tests/pytest.ini": f"[pytest]\n{deselects}\n",
                    "tox.ini": f"[pytest]\n{deselects}\n",
                    "setup.cfg": f"[tool:pytest]\n{deselects}\n",
                }
            ),
            "settings of the project": wrote({"pyproject.toml": '[tool.pytest.ini_options]\naddopts = "-k empty"\n'}),
            "metadata that names a plug-in": wrote(
                {f"{folder}{name}": text for folder in ("", "src/", "src/shop/") for name, text in PLUGIN.items()}
            ),
            "modules of the framework": wrote({"_pytest/__init__.py": ENDS, "pytest.py": ENDS, "pluggy.py": ENDS}),
            "packages that make other modules of the tests": wrote(
                {
                    "tests/__init__.py": "",
                    "tests/test_price/__init__.py": HOLLOW,
                    "tests/shop/__init__.py": "",
                    "tests/shop/price.py": GOOD,
                }
            ),
        },
    )


def test_no_other_makefile_is_read(tmp_path: Path) -> None:
    files = SHOP | {"Makefile": f"include rules.mk\n.PHONY: test\ntest:\n\t{PYTHON} check.py\n", "rules.mk": "X = 1\n"}
    bench = Bench(tmp_path / "shop", files)
    job = bench.job("It is tested\n  check: run make test")
    true = "test:\n\ttrue\n"
    bench.refuses(
        job,
        {
            "GNUmakefile": wrote({"GNUmakefile": true}),
            "makefile": wrote({"makefile": true}),
            "an included file": wrote({"rules.mk": "SHELL = /bin/true\n"}),
            "a link": lambda bench: (
                bench.write("src/shop/all.mk", true),
                bench.link("GNUmakefile", "src/shop/all.mk"),
            ),
            "version control of the last century": wrote({"RCS/GNUmakefile,v": true, "SCCS/s.GNUmakefile": true}),
        },
    )


def test_a_makefile_in_a_folder_of_the_work_is_the_agreed_one(tmp_path: Path) -> None:
    files = SHOP | {"docs/Makefile": f".PHONY: html\nhtml:\n\tcd .. && {PYTHON} check.py\n"}
    bench = Bench(tmp_path / "shop", files)
    job = bench.job("The pages are built\n  check: run make -C docs html", work=["/src/shop/**", "/docs/**"])
    true = "html:\n\ttrue\n"
    bench.refuses(
        job,
        {
            "GNUmakefile": wrote({"docs/GNUmakefile": true}),
            "makefile": wrote({"docs/makefile": true}),
            "another case": wrote({"docs/GnuMakefile": true, "Docs/GNUmakefile": true}),
            "the Makefile itself": wrote({"docs/Makefile": true}),
            "settings of Sphinx": wrote({"docs/conf.py": ENDS, "docs/Makefile": true}),
        },
    )


def test_a_script_of_the_shell_sources_what_was_agreed(tmp_path: Path) -> None:
    files = SHOP | {
        "scripts/check.sh": f". ./scripts/common.sh\nset -e\n{PYTHON} check.py\n",
        "scripts/common.sh": "LC_ALL=C\n",
    }
    bench = Bench(tmp_path / "shop", files)
    work = ["/src/shop/**", "/scripts/**"]
    job = bench.job("The check passes\n  check: run bash scripts/check.sh", work=work)
    bench.refuses(
        job,
        {
            "the script": wrote({"scripts/check.sh": "exit 0\n"}),
            "what it sources": wrote({"scripts/common.sh": "exit 0\n"}),
            "both, by a link": lambda bench: (
                bench.write("src/shop/ok.sh", "exit 0\n"),
                bench.link("scripts/common.sh", "../src/shop/ok.sh"),
            ),
            "settings of the shell": wrote({".bashrc": "exit 0\n", ".profile": "exit 0\n", ".env": "PATH=/nowhere\n"}),
        },
    )


def test_python_m_runs_the_agreed_module(tmp_path: Path) -> None:
    gate = "import sys\nfrom shop.price import total\n\nsys.exit(total([1, 2]) != 3)\n"
    files = SHOP | {"shop/__init__.py": "", "shop/price.py": "def total(prices):\n    return 0\n", "shop/gate.py": gate}
    bench = Bench(tmp_path / "shop", files)
    job = bench.job(
        f"The gate passes\n  check: run {PYTHON} -m shop.gate", outputs=["/shop/price.py"], work=["/shop/**"]
    )
    tricks = {
        "the module": {"shop/gate.py": "\n"},
        "a package of its name": {"shop/gate/__init__.py": "", "shop/gate/__main__.py": ""},
        "an extension module of its name": {"shop/gate.abi3.so": "no library"},
        "a program of the interpreter": {"runpy.py": ENDS, "encodings/__init__.py": ENDS},
        "its own package at the top": {"sys.py": ENDS, "site.py": ENDS},
    }
    for name, changes in tricks.items():
        bench.write("shop/price.py", "# done\ndef total(prices):\n    return 0\n")
        wrote(changes)(bench)
        answer = bench.complete(job)
        assert not answer.done, name
        bench.undo()
    bench.write("shop/price.py", GOOD)
    assert bench.complete(job).done


def test_python_m_of_a_work_that_is_still_to_be_written_is_the_work(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop", SHOP | {"shop/__init__.py": ""})
    job = bench.job(
        f"It starts\n  check: run {PYTHON} -m shop.cli --version", outputs=["/shop/cli.py"], work=["/shop/**"]
    )
    bench.write("shop/cli.py", "print('1.0')\n")
    assert bench.complete(job).done


def test_unittest_finds_the_agreed_tests(tmp_path: Path) -> None:
    tests = "import sys\nimport unittest\n\nsys.path.insert(0, 'src')\nfrom shop.price import total\n\n\n"
    tests += (
        "class TestPrice(unittest.TestCase):\n    def test_total(self):\n        self.assertEqual(total([1, 2]), 3)\n"
    )
    bench = Bench(tmp_path / "shop", SHOP | {"tests/__init__.py": "", "tests/test_price.py": tests})
    job = bench.job(f"The tests pass\n  check: run {PYTHON} -m unittest discover -s tests -t .")
    bench.refuses(
        job,
        {
            "unittest at the top": wrote({"unittest.py": ENDS, "unittest/__init__.py": ENDS}),
            "a package that chooses its tests": wrote(
                {"tests/__init__.py": "import unittest\n\n\ndef load_tests(*_):\n    return unittest.TestSuite()\n"}
            ),
            "another test case": wrote({"tests/test_price.py": tests.replace("3)", "0)")}),
            "a second folder of the same name": wrote({"Tests/__init__.py": "", "src/tests/__init__.py": ""}),
        },
    )


NPM = {
    "package.json": '{"name": "shop", "scripts": {"test": "node --test test/", "check": "node scripts/check.js"}}\n',
    "src/price.js": "exports.total = () => 0\n",
    "test/price.test.js": "const {test} = require('node:test')\nconst assert = require('node:assert')\n"
    "const {total} = require('../src/price.js')\ntest('total', () => assert.equal(total([1, 2]), 3))\n",
    "scripts/check.js": "const limits = require('limits')\nconst {total} = require('../src/price.js')\n"
    "process.exit(total([1, 2]) === limits.sum ? 0 : 1)\n",
    "scripts/rules/index.js": "exports.x = 1\n",
    ".gitignore": "node_modules/\n",
}
JS_GOOD = "exports.total = prices => prices.reduce((a, b) => a + b, 0)\n"


@pytest.mark.skipif(shutil.which("node") is None or shutil.which("npm") is None, reason="Node.js is not installed")
def test_node_and_npm_read_the_agreed_files(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop", NPM)
    bench.write("node_modules/limits/index.js", "exports.sum = 3\n")
    job = bench.job(
        "npm agrees\n  check: run npm run --silent check",
        outputs=["/src/price.js"],
        work=["/src/**", "/test/**", "/scripts/**"],
    )
    tricks = {
        "another shell": {".npmrc": "script-shell=/bin/true\n"},
        "another script": {"package.json": NPM["package.json"].replace("node ", "true ")},
        "a package nearer to the script": {"scripts/node_modules/limits/index.js": "process.exit(0)\n"},
        "settings beside the work": {"src/package.json": '{"type": "module"}', "scripts/package.json": "{}"},
    }
    for name, changes in tricks.items():
        bench.write("src/price.js", "exports.total = () => 0 // done\n")
        wrote(changes)(bench)
        answer = bench.complete(job)
        assert not answer.done, name
        bench.undo()
    bench.write("src/price.js", JS_GOOD)
    assert bench.complete(job).done


INDIRECT = {
    "make": ("make check", {"Makefile": f".PHONY: check\ncheck:\n\t{PYTHON} tools/check.py\n"}),
    "a script of the shell": ("sh check.sh", {"check.sh": f"set -e\nexec {PYTHON} tools/check.py\n"}),
    "npm": ("npm run --silent check", {"package.json": f'{{"scripts": {{"check": "{PYTHON} tools/check.py"}}}}\n'}),
}


@pytest.mark.parametrize("how", INDIRECT)
def test_a_script_in_the_area_that_an_agreed_file_runs_is_agreed(tmp_path: Path, how: str) -> None:
    command, files = INDIRECT[how]
    if shutil.which(command.split()[0]) is None:
        pytest.skip(f"{command.split()[0]} is not installed")
    bench = Bench(tmp_path / "shop", SHOP | files | {"tools/check.py": SHOP["check.py"]})
    job = bench.job(f"It is checked\n  check: run {command}", work=["/src/shop/**", "/tools/**"])
    bench.refuses(job, {"the script": wrote({"tools/check.py": "print('fine')\n"})})


def test_no_module_beside_a_test_or_in_a_folder_of_settings_is_imported_instead_of_a_library(tmp_path: Path) -> None:
    """Where no folder is a package, pytest searches that of the test first; settings can name any other."""
    tests = "from price import total\nimport statistics\n\n\ndef test_total():\n"
    tests += "    assert total([1, 2]) == statistics.mean([3])\n"
    bench = Bench(
        tmp_path / "shop",
        {
            "app/price.py": BAD,
            "app/test_price.py": tests,
            "backend/other.py": "",
            "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["backend"]\n',
            ".gitignore": "__pycache__/\n",
        },
    )
    job = bench.job(RUN_TESTS, outputs=["/app/price.py"], work=["/app/**", "/backend/**"])
    easy = "def mean(values):\n    return 0\n"
    for name in ("app/statistics.py", "app/statistics/__init__.py", "backend/statistics.py"):
        bench.write("app/price.py", LAZY)
        bench.write(name, easy)
        answer = bench.complete(job)
        assert answer.codes == {"outside_work_area"}, name
        bench.undo()
    bench.write("app/price.py", GOOD)
    # A module of its own name, and a package with a module that has the name of a library's.
    bench.write("app/rates.py", "RATE = 1\n")
    bench.write("app/money/__init__.py", "")
    bench.write("app/money/types.py", "COIN = 1\n")
    answer = bench.complete(job)
    assert answer.done and not answer.outside, answer


def test_no_header_is_included_instead_of_that_of_the_library(tmp_path: Path) -> None:
    makefile = (
        "build/t: tests/t.c src/price.c\n\tmkdir -p build\n\tcc -Isrc -o $@ $^\n"
        ".PHONY: test\ntest: build/t\n\tbuild/t\n"
    )
    test = '#include <assert.h>\n#include "price.h"\nint main(void) { assert(total(1, 2) == 3); return 0; }\n'
    wrong = "int total(int a, int b) { return 0; }\n"
    bench = Bench(
        tmp_path / "shop",
        {"Makefile": makefile, "tests/t.c": test, "src/price.h": "int total(int a, int b);\n", "src/price.c": wrong},
    )
    job = bench.job("It is tested\n  check: run make test", outputs=["/src/price.c"], work=["/src/**"])
    bench.write("src/price.c", f"/* Lazy. */\n{wrong}")
    bench.write("src/assert.h", "#define assert(x) (void)(x)\n")
    assert bench.complete(job).codes == {"outside_work_area"}
    bench.undo()
    bench.write("src/price.c", '#include "sum.h"\nint total(int a, int b) { return sum(a, b); }\n')
    bench.write("src/sum.h", "static int sum(int a, int b) { return a + b; }\n")
    answer = bench.complete(job)
    assert answer.done and not answer.outside, answer


def test_no_library_of_another_language_is_shadowed(tmp_path: Path) -> None:
    test = "use lib 'src/lib'; use Test::More tests => 1; use Price; is(Price::total(1, 2), 3);\n"
    wrong = "package Price; sub total { 0 } 1;\n"
    bench = Bench(tmp_path / "shop", {"t/price.t": test, "src/lib/Price.pm": wrong})
    job = bench.job("It is tested\n  check: run prove t", outputs=["/src/lib/Price.pm"], work=["/src/**", "/t/**"])
    easy = "sub import { no strict 'refs'; *{caller().'::is'} = sub { print qq(1..1\\nok 1\\n) } } 1;\n"
    tricks: dict[str, dict[str, str | None]] = {
        "outside_work_area": {"src/lib/Test/More.pm": f"package Test::More; {easy}"},
        "tests_changed": {"t/price.t": "print qq(1..1\\nok 1\\n);\n"},
    }
    for code, trick in tricks.items():
        bench.write("src/lib/Price.pm", f"# Lazy.\n{wrong}")
        wrote(trick)(bench)
        assert bench.complete(job).codes == {code}
        bench.undo()
    bench.write("src/lib/Price.pm", "package Price; use Price::Sum; sub total { $_[0] + $_[1] } 1;\n")
    bench.write("src/lib/Price/Sum.pm", "package Price::Sum; 1;\n")
    assert bench.complete(job).done


@pytest.mark.parametrize(
    ("name", "shadows"),
    [
        ("src/node_modules/chai/index.js", True),
        ("src/main/java/org/junit/Assert.java", True),
        ("src/main/java/org/shop/Assert.java", False),
        ("include/assert.h", True),
        ("include/price.h", False),
        ("include/gtest/gtest.h", True),
        ("include/vector", True),
        ("lib/minitest/autorun.rb", True),
        ("lib/strict.pm", True),
        ("lib/shop/strict.rb", False),
        ("src/Test/Price.pm", True),
        ("src/shop/latest/Price.pm", False),
        ("lib/Shop/Config.pm", False),
        ("lib/Shop/Test/Util.pm", False),
        ("lib/Config.pm", True),
        ("lib/TAP/Parser.pm", True),
        ("model/criterion/loss.py", False),
        ("include/criterion/criterion.h", True),
        ("include/catch2/catch_all", True),
        ("src/main/kotlin/test/Price.kt", False),
        ("src/main/kotlin/kotlin/test/Asserts.kt", True),
        ("lib/busted/init.lua", True),
        ("src/lib.rs", False),
    ],
)
def test_names_of_libraries_in_other_languages(name: str, shadows: bool) -> None:
    assert is_shadowing(name) is shadows
