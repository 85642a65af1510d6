"""Honest work of every kind is completed, without asking anybody."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

import pytest
from room_kit import GOOD, LAZY, PRICE, PYTHON, RUN_CHECK, RUN_TESTS, SHOP, TESTS, Bench

pytestmark = pytest.mark.scenes


def test_a_bug_fix_with_a_new_test(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop", SHOP | {PRICE: "def total(prices):\n    return sum(prices[:2])\n"})
    job = bench.job(RUN_TESTS, work=["/src/shop/**", "/tests/**"])
    bench.work()
    bench.write("tests/test_price.py", f"{TESTS}\n\ndef test_three():\n    assert total([1, 2, 3]) == 6\n")
    answer = bench.complete(job)
    assert answer.done
    assert answer.tests == {"tests/test_price.py"}


def test_a_refactoring_that_renames_tests(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop", SHOP | {PRICE: GOOD})
    job = bench.job(RUN_TESTS)
    bench.write(PRICE, f"{GOOD}\n\n# shorter\n")
    bench.write("tests/test_price.py", TESTS.replace("test_total", "test_sum_of_prices"))
    assert bench.complete(job).done


def test_a_dependency_in_the_manifest_and_the_lock_file(tmp_path: Path) -> None:
    manifest = '[project]\nname = "shop"\ndependencies = []\n\n[tool.pytest.ini_options]\naddopts = "-q"\n'
    bench = Bench(tmp_path / "shop", SHOP | {"pyproject.toml": manifest, "uv.lock": "version = 1\n"})
    job = bench.job(RUN_TESTS, work=["/src/shop/**", "/pyproject.toml", "/uv.lock"])
    bench.work()
    bench.write("pyproject.toml", manifest.replace("[]", '["httpx>=0.27"]'))
    bench.write("uv.lock", 'version = 1\n\n[[package]]\nname = "httpx"\n')
    answer = bench.complete(job)
    assert answer.done
    assert answer.rooms[0].runs == 1


def test_a_job_about_documentation_needs_no_tests(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop", SHOP | {"docs/index.md": "# Shop\n"})
    job = bench.job("The guide is there\n  check: file /docs/guide.md matches /## Prices/", outputs=["/docs/guide.md"])
    bench.write("docs/guide.md", "# Guide\n\n## Prices\n\nA total is the sum of all prices.\n")
    assert bench.complete(job).done


def test_snapshots_that_may_change(tmp_path: Path) -> None:
    snapshot = TESTS.replace(
        "assert total([1, 2]) == 3", 'assert str(total([1, 2])) == open("tests/total.snap").read()'
    )
    bench = Bench(tmp_path / "shop", SHOP | {"tests/test_price.py": snapshot, "tests/total.snap": "0"})
    job = bench.job(RUN_TESTS, tests_may_change=["/tests/*.snap"])
    bench.work()
    bench.write("tests/total.snap", "3")
    answer = bench.complete(job)
    assert answer.done
    assert answer.tests == set()


def test_a_folder_of_a_larger_repository(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "all", inside="packages/shop")
    (bench.top / "README.md").write_text("All of it\n")
    bench.commit()
    job = bench.job(RUN_TESTS, RUN_CHECK)
    bench.work()
    (bench.top / "packages/other").mkdir()
    (bench.top / "packages/other/notes.txt").write_text("Somebody else's\n")
    answer = bench.complete(job)
    assert answer.done
    assert answer.outside == {"packages/other/notes.txt"}


def test_a_large_output_and_a_pattern_of_outputs_that_git_ignores(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop", SHOP | {".gitignore": "dist/\nbuild/\n__pycache__/\n"})
    finds = "any(path.stat().st_size > 70e6 for path in pathlib.Path('dist').glob('*.whl'))"
    check = f"import pathlib, sys\nsys.exit(not {finds})\n"
    bench.write("check.py", check)
    bench.commit()
    job = bench.job(RUN_CHECK, outputs=["/dist/*.whl"])
    bench.write("dist/shop-1.0.whl", b"wheel" * (15 << 20))
    bench.write("dist/shop-1.0.log", b"x")
    assert bench.complete(job).done


def test_spaces_accents_and_both_forms_of_them_in_names(tmp_path: Path) -> None:
    composed, decomposed = (unicodedata.normalize(form, "Preise für Café") for form in ("NFC", "NFD"))
    files = SHOP | {f"docs/{composed}/a b.md": "# A\n", f"data {decomposed}/x.json": "[1, 2]"}
    check = f"import pathlib\nassert 'B' in pathlib.Path('docs/{composed}/a b.md').read_text()\n"
    bench = Bench(
        tmp_path / "my shop", files | {"check.py": f"{check}assert pathlib.Path('data {decomposed}/x.json').exists()\n"}
    )
    job = bench.job(
        RUN_CHECK,
        outputs=[f"/docs/{composed}/new page.md"],
    )
    bench.write(f"docs/{composed}/a b.md", "# B\n")
    bench.write(f"docs/{composed}/new page.md", "# New\n\nPrices and totals.\n")
    assert bench.complete(job).done


def test_a_file_in_the_other_form_of_an_accent_is_in_the_area(tmp_path: Path) -> None:
    composed, decomposed = (unicodedata.normalize(form, "für") for form in ("NFC", "NFD"))
    check = "import pathlib, sys\nsys.exit(not list(pathlib.Path('docs').glob('*/done.txt')))\n"
    bench = Bench(tmp_path / "shop", SHOP | {"check.py": check})
    job = bench.job(RUN_CHECK, outputs=["/done.txt"], work=[f"/docs/{composed}/**"])
    bench.write(f"docs/{decomposed}/done.txt", "done\n")
    bench.write("done.txt", "Really done\n")
    assert bench.complete(job).done


def test_without_git(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop", git=False)
    job = bench.job(RUN_TESTS, RUN_CHECK)
    tests = bench.root / "tests/test_price.py"
    bench.write(PRICE, LAZY)
    bench.write("check.py", "\n")
    tests.write_text(TESTS.replace("== 3", "== 0"))
    assert not bench.complete(job).done
    tests.write_text(TESTS)
    bench.undo()
    bench.work()
    bench.write("README.md", "Shop\n")
    answer = bench.complete(job)
    assert answer.done
    assert answer.outside == {"README.md"}


@pytest.mark.parametrize("how", ["a path file", "a finder"])
def test_an_editable_installation_in_an_environment_of_the_project(tmp_path: Path, how: str) -> None:
    tests = TESTS.replace('import sys\n\nsys.path.insert(0, "src")\n', "")
    bench = Bench(tmp_path / "shop", SHOP | {"tests/test_price.py": tests})
    environment = bench.root / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    packages = next(environment.glob("lib/python*/site-packages"))
    import pytest as installed

    own = Path(installed.__file__).parent.parent
    if how == "a path file":
        (packages / "shop.pth").write_text(f"{own}\n{bench.root}/src\n")
    else:
        (packages / "__editable___shop_finder.py").write_text(
            "import sys\nfrom importlib.util import spec_from_file_location\n"
            f"MAPPING = {{'shop': '{bench.root}/src/shop'}}\n\n\nclass _EditableFinder:\n    @classmethod\n"
            "    def find_spec(cls, fullname, path=None, target=None):\n        if fullname in MAPPING:\n"
            "            place = MAPPING[fullname]\n            return spec_from_file_location(\n"
            "                fullname, place + '/__init__.py', submodule_search_locations=[place])\n"
            "        return None\n\n\n"
            "def install():\n    sys.meta_path.append(_EditableFinder)\n"
        )
        (packages / "__editable__.shop.pth").write_text(
            f"{own}\nimport __editable___shop_finder; __editable___shop_finder.install()\n"
        )
    job = bench.job("The tests pass\n  check: run .venv/bin/python -m pytest -q -p no:cacheprovider")
    bench.write(PRICE, LAZY)
    assert not bench.complete(job).done
    bench.work()
    answer = bench.complete(job)
    assert answer.done, answer
    assert answer.rooms[0].before >= 1


NODE = {
    "package.json": '{"name": "shop", "workspaces": ["packages/*"], "scripts": {"test": "node check.js"}}\n',
    "packages/price/package.json": '{"name": "price", "main": "index.js"}\n',
    "packages/price/index.js": "exports.total = () => 0\n",
    "check.js": "const {total} = require('price')\nconst limits = require('@shop/limits')\n"
    "process.exit(total([1, 2]) === limits.sum ? 0 : 1)\n",
    ".gitignore": "node_modules/\n",
}


@pytest.mark.skipif(shutil.which("npm") is None, reason="Node.js is not installed")
def test_a_workspace_of_npm_with_installed_packages(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop", NODE)
    bench.write("node_modules/@shop/limits/index.js", "exports.sum = 3\n")
    bench.link("node_modules/price", "../packages/price")
    job = bench.job(
        "npm test\n  check: run npm test", outputs=["/packages/price/index.js"], work=["/packages/price/**"]
    )
    bench.write("packages/price/index.js", "exports.total = () => 0 // done\n")
    assert not bench.complete(job).done
    bench.write("packages/price/index.js", "exports.total = prices => prices.reduce((a, b) => a + b, 0)\n")
    assert bench.complete(job).done


def test_two_jobs_in_one_tree_each_see_the_work_of_the_other_as_outside(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop", SHOP | {"src/bill/__init__.py": ""})
    price = bench.job(RUN_TESTS, work=["/src/shop/**"])
    bill = bench.job(
        f"It can be imported\n  check: run {PYTHON} -c 'import sys; sys.path.insert(0, \"src\"); import bill.text'",
        title="Bill",
        outputs=["/src/bill/text.py"],
        work=["/src/bill/**"],
    )
    bench.work()
    bench.write("src/bill/text.py", "TITLE = 'Bill'\n")
    answer = bench.complete(price)
    assert answer.done
    assert "src/bill/text.py" in answer.outside
    assert bench.complete(bill).done


def test_a_job_on_top_of_a_done_job_that_is_not_committed(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop", SHOP | {"bill.py": "from shop.price import total\n"})
    uses = (
        "import sys\n\nsys.path.insert(0, 'src')\nfrom bill.text import text\n\nsys.exit(text([1, 2]) != 'Total: 3')\n"
    )
    bench.write("uses.py", uses)
    bench.remove("bill.py")
    bench.commit()
    price = bench.job(RUN_TESTS, work=["/src/shop/**"])
    bill = bench.job(
        f"It prints\n  check: run {PYTHON} uses.py", title="Bill", outputs=["/src/bill/text.py"], work=["/src/bill/**"]
    )
    bench.work()
    bench.write("src/shop/rounding.py", "DIGITS = 2\n")
    assert bench.complete(price).done
    text = "from shop.price import total\n\n\ndef text(prices):\n    return f'Total: {total(prices)}'\n"
    bench.write("src/bill/text.py", text)
    answer = bench.complete(bill)
    assert answer.done
    # What the done job made is part of what this one is judged on.
    assert not {name for name in answer.outside if name.startswith("src/")}


def test_a_program_that_the_work_makes_executable_is_a_program(tmp_path: Path) -> None:
    check = "import os, sys\nsys.exit(not os.access('src/shop/run.sh', os.X_OK))\n"
    bench = Bench(tmp_path / "shop", SHOP | {"src/shop/run.sh": "#!/bin/sh\n", "check.py": check})
    job = bench.job(RUN_CHECK)
    bench.work()
    assert not bench.complete(job).done
    (bench.root / "src/shop/run.sh").chmod(0o755)
    assert bench.complete(job).done


def test_a_folder_for_temporary_files_in_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path / "shop", SHOP | {".gitignore": "__pycache__/\ntmp/\n"})
    job = bench.job(RUN_CHECK)
    (bench.root / "tmp").mkdir()
    head = (bench.root / ".git/HEAD").read_text(), (bench.root / ".git/config").read_text()
    monkeypatch.setenv("TMPDIR", str(bench.root / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    bench.work()
    assert bench.complete(job).done
    assert head == ((bench.root / ".git/HEAD").read_text(), (bench.root / ".git/config").read_text())


def test_ten_thousand_new_files_outside_the_area_are_a_note(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_CHECK)
    bench.work()
    for folder in range(100):
        place = bench.root / f"data/{folder}"
        place.mkdir(parents=True)
        for number in range(100):
            (place / f"{number}.txt").write_bytes(b"%d" % number)
    answer = bench.complete(job)
    assert answer.done
    assert answer.rooms[0].runs == 2
    assert len(answer.outside) == 200
