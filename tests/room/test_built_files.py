"""What stands in the way of a check without being its file: a finished target, a stub, a test by another name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from room_kit import CHECK, LAZY, PRICE, PYTHON, RUN_CHECK, RUN_TESTS, SHOP, TESTS, Bench, wrote

from donewhen.jobs.room.built_files import BuiltFiles, age_files, built_files
from donewhen.jobs.room.judging_names import executed_files, is_test, named_files

pytestmark = pytest.mark.scenes

WORK = ["/src/shop/**", "/docs/**"]


def rules(text: str, name: str = "Makefile", inside: str = "") -> BuiltFiles:
    return built_files(inside, {name}, lambda _: text.encode())


@pytest.mark.parametrize(
    ("makefile", "name", "target"),
    [
        ("docs/a.txt: src/a.py\n\ttrue\n", "docs/a.txt", "docs/a.txt"),
        ("docs/a.txt docs/b.txt: src/a.py\n", "docs/b.txt", "docs/b.txt"),
        ("OUT = docs\n$(OUT)/a.txt: src/a.py\n", "docs/a.txt", "docs/a.txt"),
        ("OUT := $(TOP)docs\nTOP =\n${OUT}/a.txt: src/a.py\n", "docs/a.txt", "docs/a.txt"),
        ("$(shell pwd)/a.txt: src/a.py\n", "docs/a.txt", "docs/a.txt"),
        ("docs/%.txt: src/%.py\n", "docs/a.txt", "docs/a.txt"),
        ("docs/%.txt: src/%.py\n", "docs/b.txt", None),
        ("docs/a.txt: docs/%.txt: src/%.py\n", "docs/a.txt", "docs/a.txt"),
        ("docs/a.txt: \\\n  src/a.py\n", "docs/a.txt", "docs/a.txt"),
        ("docs/a.txt:: src/a.py ; true\n", "docs/a.txt", "docs/a.txt"),
        ("docs/a: src/a.py\n", "docs/a/inner.txt", "docs/a"),
        ("docs/a.txt: | src/a.py\n", "docs/a.txt", None),
        ("docs/a.txt:\n", "docs/a.txt", None),
        (".PHONY: docs/a.txt\ndocs/a.txt: src/a.py\n", "docs/a.txt", None),
        ("%: src/a.py\n", "docs/a.txt", None),
        ("docs/a.txt := src/a.py\n", "docs/a.txt", None),
        ("\tdocs/a.txt: src/a.py\n", "docs/a.txt", None),
        ("# docs/a.txt: src/a.py\n", "docs/a.txt", None),
    ],
)
def test_targets_with_sources_are_built(makefile: str, name: str, target: str | None) -> None:
    assert rules(makefile).built_path(name, {"src/a.py"}.__contains__) == target


def test_names_are_relative_to_the_makefile_and_to_the_project() -> None:
    found = rules("a.txt: a.py\n", "part/docs/Makefile", "part/")
    assert [found.built_path(name, str) for name in ("part/docs/a.txt", "part/a.txt", "a.txt")] == [
        "part/docs/a.txt",
        "part/a.txt",
        None,
    ]


def test_a_new_file_can_be_all_that_a_rule_asks_for() -> None:
    found = rules("docs/ok:\n\tpython check.py\ndocs/a: src/a.py\n")
    assert found.prevents_building("docs/ok", ())
    assert found.prevents_building("docs/ok/inner", ())
    assert not found.prevents_building("docs/ok/inner", ("docs/ok",))
    assert not found.prevents_building("docs/a", ())
    assert not BuiltFiles().prevents_building("docs/ok", ())


def test_changed_targets_are_old_and_other_changes_new(tmp_path: Path) -> None:
    for name in ("a.txt", "a.py", "b.py"):
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (1_000_000_000, 1_000_000_000))
    found = rules("a.txt: a.py\n")
    age_files(tmp_path, ["a.txt", "a.py", "gone"], found, {"a.txt", "a.py", "b.py"})
    times = [(tmp_path / name).stat().st_mtime for name in ("a.txt", "b.py", "a.py")]
    assert times == sorted(times) and len(set(times)) == 3


def test_no_target_is_finished_because_the_agent_wrote_it(tmp_path: Path) -> None:
    recipe = f"\n\t{PYTHON} check.py\n\techo ok > $@\n"
    makefile = f"all: docs/report.txt docs/ok\ndocs/report.txt: {PRICE} check.py{recipe}docs/ok:{recipe}"
    bench = Bench(tmp_path / "shop", SHOP | {"Makefile": makefile, "docs/a.txt": "a\n"})
    job = bench.job("It is built\n  check: run make all", work=WORK)
    answers = bench.refuses(
        job,
        {
            "both targets": wrote({"docs/report.txt": "ok\n", "docs/ok": "ok\n"}),
            "a folder with that name": wrote({"docs/report.txt/a": "ok\n", "docs/ok/a": "ok\n"}),
            "one by one": wrote({"docs/report.txt": "ok\n"}),
        },
    )
    assert answers["both targets"].codes == {"criterion_failed"}


def test_whoever_commits_what_was_built_is_not_kept_from_it(tmp_path: Path) -> None:
    makefile = f"all: docs/report.txt\ndocs/report.txt: {PRICE}\n\t{PYTHON} check.py\n\techo ok > $@\n"
    bench = Bench(tmp_path / "shop", SHOP | {"Makefile": makefile, "docs/report.txt": "before\n"})
    job = bench.job("It is built\n  check: run make all", RUN_TESTS, work=WORK)
    bench.work()
    bench.write("docs/report.txt", "ok\n")
    answer = bench.complete(job)
    assert answer.done, answer
    assert not answer.outside


def test_a_new_stub_does_not_hide_a_module_from_a_type_checker(tmp_path: Path) -> None:
    wrong = "def total(prices: list[int]) -> int:\n    return 'x'\n"
    stub = "def total(prices: list[int]) -> int: ...\n"
    bench = Bench(tmp_path / "shop", SHOP | {PRICE: wrong})
    job = bench.job(f"Types fit\n  check: run {PYTHON} -m mypy --no-incremental src/shop", work=WORK)
    for trick in (
        {PRICE: f"# Lazy.\n{wrong}", "src/shop/price.pyi": stub},
        {PRICE: "from shop.other import total\n", "src/shop/other.py": wrong, "src/shop/other.pyi": stub},
    ):
        wrote(trick)(bench)
        assert "outside_work_area" in bench.complete(job).codes
        bench.undo()
    bench.write(PRICE, "def total(prices: list[int]) -> int:\n    return sum(prices)\n")
    # For a module in another language, a stub is all that type checkers have.
    bench.write("src/shop/fast.pyi", stub)
    assert bench.complete(job).done


@pytest.mark.parametrize(
    "name",
    [
        *("src/price-test.js", "src/price_test.mjs", "src/test-price.ts", "src/test.js", "t/price.t", "spec/a-spec.ts"),
        *("src/TestPrice.java", "src/PriceTestCase.java", "src/PriceSuite.scala", "test_price.rb", "a_SUITE.erl"),
        *("test_price.c", "price_unittest.cc", "runtests.jl", "a.phpt", "a.robot", "price.golden", "a.approved.txt"),
        *("part/test-data/a.json", "part/cassettes/a.yaml"),
    ],
)
def test_tests_of_other_languages_are_known_by_their_names(name: str) -> None:
    assert is_test(name)


@pytest.mark.parametrize("name", ["src/latest.js", "src/attest.ts", "src/contest.py", "src/tester.rb", "src/a.ts"])
def test_other_files_are_not(name: str) -> None:
    assert not is_test(name)


def test_data_in_a_folder_that_only_tests_name_belongs_to_them(tmp_path: Path) -> None:
    each = (
        "\n\nimport json, pathlib, pytest\n\n\n"
        "@pytest.mark.parametrize('name', sorted(str(path) for path in pathlib.Path('cases').iterdir()))\n"
        "def test_case(name):\n    case = json.loads(pathlib.Path(name).read_text())\n"
        "    assert total(case['of']) == case['is']\n"
    )
    tests = TESTS.partition("def test_total")[0] + each
    files = SHOP | {"tests/test_price.py": tests, "cases/one.json": '{"of": [1, 2], "is": 3}'}
    bench = Bench(tmp_path / "shop", files)
    job = bench.job(RUN_TESTS, work=[*WORK, "/cases/**"])
    answers = bench.refuses(job, {"another sum": wrote({"cases/one.json": '{"of": [1, 2], "is": 0}'})})
    assert answers["another sum"].codes == {"tests_changed"}
    # A new case is a new test.
    bench.work()
    bench.write("cases/two.json", '{"of": [2, 2], "is": 4}')
    assert bench.complete(job).done


def test_pages_that_tests_look_at_are_work(tmp_path: Path) -> None:
    page = "docs/examples/guide.md"
    looks = f"\n\ndef test_page():\n    assert 'total' in open({page!r}).read()\n"
    files = SHOP | {"tests/test_price.py": TESTS + looks, page: "Nothing yet.\n", "check.py": CHECK}
    bench = Bench(tmp_path / "shop", files)
    job = bench.job(RUN_TESTS, RUN_CHECK, work=WORK)
    bench.write(PRICE, LAZY)
    bench.write(page, "Use `total`.\n")
    assert "tests_changed" not in bench.complete(job).codes
    bench.work()
    answer = bench.complete(job)
    assert answer.done, answer


def test_data_of_a_folder_that_the_product_reads_is_work(tmp_path: Path) -> None:
    looks = "\n\ndef test_rates():\n    assert 'eur' in open('data/rates.json').read()\n"
    files = SHOP | {"tests/test_price.py": TESTS + looks, "data/rates.json": "{}\n"}
    bench = Bench(
        tmp_path / "shop", files | {"src/shop/rates.py": "from pathlib import Path\n\nRATES = Path('data')\n"}
    )
    job = bench.job(RUN_TESTS, work=[*WORK, "/data/**"])
    bench.work()
    bench.write("data/rates.json", '{"eur": 1}\n')
    answer = bench.complete(job)
    assert answer.done, answer


@pytest.mark.parametrize(
    ("command", "recipe"),
    [
        (["make", "-C", "docs", "html"], "docs/Makefile"),
        (["make", "-Cdocs"], "docs/Makefile"),
        (["make", "--directory=docs"], "docs/GNUmakefile"),
        (["npm", "--prefix", "web", "test"], "web/package.json"),
        (["make", "html"], "Makefile"),
    ],
)
def test_what_a_program_runs_in_another_folder_is_named(command: list[str], recipe: str) -> None:
    for files in (named_files(command), executed_files(command)):
        assert recipe in {file.name for file in files}


def test_recipes_elsewhere_are_no_files_of_the_project() -> None:
    found = {file.name for file in executed_files(["make", "-C", "../other"])}
    assert not [name for name in found if name.startswith("..")]
