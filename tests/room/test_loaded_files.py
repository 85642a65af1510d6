"""Files in the work area that agreed settings have a tool load judge the work; product files that they name don't."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from room_kit import ENDS, FORGES, GOOD, LAZY, PRICE, PYTEST, PYTHON, RUN_TESTS, SHOP, Bench, wrote

from donewhen.jobs.room.judging_names import named_files
from donewhen.jobs.room.loaded_files import loaded_by
from donewhen.jobs.room.nested_commands import with_nested
from donewhen.jobs.room.work_area import WorkArea, area_of, judging_files

pytestmark = pytest.mark.scenes


def kinds(
    files: Mapping[str, str], name: str, command: str = "make check", work: tuple[str, ...] = ("/src/**",)
) -> str:
    """What a changed file is, if these files were agreed."""
    folders = {"/".join(file.split("/")[:end]) for file in files for end in range(1, file.count("/") + 1)}
    nested = with_nested([tuple(named_files(command.split()))], "", files, lambda path: files[path].encode())
    area: WorkArea = area_of("", "jobs/x", work, ())
    return judging_files("", files, folders, nested).kind_of(name, area)


PYTEST_OPTIONS = '[tool.pytest.ini_options]\naddopts = "-q -p shop.plugin"\n'


@pytest.mark.parametrize(
    ("settings", "content", "file"),
    [
        ("jest.config.js", "module.exports = {setupFilesAfterEach: ['<rootDir>/src/setup.js']}", "src/setup.js"),
        ("jest.config.ts", "export default {\n  globalSetup: './src/begin',\n}", "src/begin.ts"),
        ("vitest.config.mts", "import { rule } from './src/rule.mjs'\nexport default rule", "src/rule.mjs"),
        ("src/app/jest.config.cjs", "module.exports = {transform: {'^.+$': './change.cjs'}}", "src/app/change.cjs"),
        ("package.json", '{"jest": {"setupFiles": ["./src/setup.js"]}}', "src/setup.js"),
        ("package.json", '{"mocha": {"require": "./src/register"}}', "src/register/index.js"),
        (".mocharc.yml", "require:\n  - ./src/register.js\n", "src/register.js"),
        (".eslintrc.json", '// comment\n{"extends": ["./src/lint.json"]}', "src/lint.json"),
        (".pylintrc", "[MAIN]\nload-plugins=shop.lint,\n    shop.more\n", "src/shop/more.py"),
        ("setup.cfg", "[flake8:local-plugins]\nextension =\n    X1 = shop.lint:Checker\n", "src/shop/lint.py"),
        ("pyproject.toml", '[tool.mypy]\nplugins = ["shop.types"]\n', "src/shop/types.py"),
        ("pyproject.toml", PYTEST_OPTIONS, "src/shop/plugin/__init__.py"),
        ("pytest.ini", "[pytest]\naddopts = -pshop.plugin\n", "src/shop/plugin.py"),
        ("conftest.py", 'pytest_plugins = ["shop.plugin"]\n', "src/shop/plugin.py"),
        ("mkdocs.yml", "hooks: [src/hook.py]\nx: !!python/name:a.b\n", "src/hook.py"),
        ("phpunit.xml", '<phpunit bootstrap="src/start.php"/>', "src/start.php"),
        ("Makefile", "check:\n\tpytest -p shop.plugin\n", "src/shop/plugin.py"),
    ],
)
def test_what_agreed_settings_have_loaded_judges(settings: str, content: str, file: str) -> None:
    files = {settings: content, file: "old", "src/shop/__init__.py": "", "src/shop/other.py": ""}
    assert kinds(files, file) == "judges"
    assert kinds({**files, settings: ""}, file) == "work"
    assert kinds(files, "src/shop/other.py") == "work"


def test_a_file_that_would_be_loaded_instead_judges_too() -> None:
    files = {"jest.config.js": "module.exports = {setupFiles: ['./src/setup']}", "src/setup.ts": ""}
    assert kinds(files, "src/setup.js") == "judges"
    files = {"pyproject.toml": PYTEST_OPTIONS, "src/shop/__init__.py": "", "src/shop/plugin.py": ""}
    assert kinds(files, "src/shop/plugin/__init__.py") == "judges"


def test_a_folder_of_rules_that_settings_name_judges() -> None:
    files = {".eslintrc.json": '{"rulesdir": "./src/rules"}', "src/rules/a.js": ""}
    assert kinds(files, "src/rules/a.js") == kinds(files, "src/rules/b.js") == "judges"


@pytest.mark.parametrize(
    ("settings", "content", "file"),
    [
        ("package.json", '{"main": "src/index.js", "bin": {"shop": "./src/index.js"}}', "src/index.js"),
        ("package.json", '{"exports": {".": {"import": "./src/index.js"}}}', "src/index.js"),
        ("jest.config.js", "module.exports = {collectCoverageFrom: ['src/index.js']}", "src/index.js"),
        ("webpack.config.js", "module.exports = {entry: './src/index.js'}", "src/index.js"),
        ("tsconfig.json", '{"files": ["src/index.ts"], "include": ["src"]}', "src/index.ts"),
        ("pyproject.toml", '[project.scripts]\nshop = "shop.cli:main"\n', "src/shop/cli.py"),
        ("pyproject.toml", '[tool.ruff.lint.per-file-ignores]\n"src/shop/cli.py" = ["T201"]\n', "src/shop/cli.py"),
        ("pyproject.toml", '[tool.ruff]\nextend-exclude = ["src/shop/cli.py"]\n', "src/shop/cli.py"),
        ("pyproject.toml", '[tool.setuptools]\npy-modules = ["shop.cli"]\n', "src/shop/cli.py"),
        ("pyproject.toml", '[tool.importlinter]\nroot_package = "shop.cli"\n', "src/shop/cli.py"),
        ("setup.cfg", "[options.entry_points]\nconsole_scripts =\n  shop = shop.cli:main\n", "src/shop/cli.py"),
        ("conftest.py", "from shop.cli import main\n", "src/shop/cli.py"),
        ("src/app/app.config.ts", "import {routes} from './app.routes'\n", "src/app/app.routes.ts"),
        (".coveragerc", "[run]\nomit = src/shop/cli.py\n", "src/shop/cli.py"),
        (".github/workflows/ci.yml", "jobs: {setup: {run: src/shop/cli.py}}", "src/shop/cli.py"),
    ],
)
def test_product_files_that_settings_name_are_work(settings: str, content: str, file: str) -> None:
    assert kinds({settings: content, file: "old", "src/shop/__init__.py": ""}, file) == "work"


@pytest.mark.parametrize(
    "name",
    [
        *("src/setupTests.js", "src/setupTests.ts", "src/test-setup.ts", "web/jest.setup.js", "src/global-setup.mjs"),
        *("src/vitest.workspace.ts", "src/biome.json", "src/webpack.prod.js", "src/karma.conf.cjs", "docs/mkdocs.yml"),
        *(
            "docs/conf.py",
            "docs/source/conf.py",
            "src/vite.config.ts",
            "web/app.config.ts",
            "src/ui/postcss.config.cjs",
        ),
    ],
)
def test_files_that_tools_load_by_themselves_judge(name: str) -> None:
    work = ("/src/**", "/web/**", "/docs/**")
    assert kinds({name: "old", "docs/index.rst": ""}, name, work=work) == "judges"
    assert kinds({name: "old"}, name, work=(*work, f"/{name}")) == "work"


@pytest.mark.parametrize(
    "name",
    [
        *(
            "features/steps/price.py",
            "cypress/support/e2e.js",
            "src/price.cy.ts",
            "src/price.bats",
            "src/PriceSpec.scala",
        ),
        *("web/step_definitions/price.rb", "features/support/env.rb", "features/environment.py"),
        *("spec/support/matchers.rb", "packages/ui/e2e/pages/login.ts", "t/lib/Helper.pm", "Shop.Tests/Stubs.cs"),
        *("src/integrationTest/java/shop/Server.java", "internal/testutil/db.go", "src/test-utils/render.tsx"),
        *("ShopTests/Stubs.swift", "integration-tests/support.py", "src/testutils.ts"),
    ],
)
def test_files_of_more_runners_are_tests(name: str) -> None:
    assert kinds({name: "old"}, name, work=("/**",)) == "tests"


@pytest.mark.parametrize(
    "name",
    [
        *("src/shop/conf.py", "src/features/price.py", "src/setup_wizard.py", "src/webpack.js", "src/shop/tasks.py"),
        *("src/app/app.config.ts", "src/config/database.config.js", "src/shop/spec/parser.py", "src/ab_tests/split.py"),
        *("src/shop/t/lib.py", "src/latest/index.ts", "src/contests/list.rb"),
    ],
)
def test_names_that_look_alike_are_work(name: str) -> None:
    assert kinds({name: "old"}, name) == "work"


def test_documentation_that_gets_its_first_settings_is_work() -> None:
    assert kinds({"docs/index.rst": ""}, "docs/conf.py", work=("/docs/**",)) == "work"


def test_settings_that_cannot_be_read_name_nothing() -> None:
    for name in ("package.json", "pyproject.toml", ".mocharc.yml", "setup.cfg"):
        assert loaded_by(name, b"\xff[[[{{{ : - ]\n:") == ()
    assert loaded_by("pyproject.toml", b'[tool.pytest.ini_options]\naddopts = ["-p", 1, "\'"]') == ("1",)
    assert loaded_by("pytest.ini", b"[pytest]\naddopts = -p 'open\n") == ()


def test_a_plug_in_of_the_tests_that_lies_in_the_work_is_the_agreed_one(tmp_path: Path) -> None:
    files = {**SHOP, "pytest.ini": "[pytest]\npythonpath = src\naddopts = -p shop.fixtures\n"}
    bench = Bench(tmp_path / "shop", files | {"src/shop/fixtures.py": "import pytest\n"})
    job = bench.job(RUN_TESTS)
    answers = bench.refuses(
        job,
        {
            "the plug-in": wrote({"src/shop/fixtures.py": FORGES}),
            "a package in its place": wrote({"src/shop/fixtures/__init__.py": FORGES}),
        },
    )
    assert answers["the plug-in"].outside == {"src/shop/fixtures.py"}


def test_a_change_of_such_a_file_that_nothing_needs_is_a_note(tmp_path: Path) -> None:
    files = {**SHOP, "pytest.ini": "[pytest]\npythonpath = src\naddopts = -p shop.fixtures\n"}
    bench = Bench(tmp_path / "shop", files | {"src/shop/fixtures.py": "import pytest\n"})
    job = bench.job(RUN_TESTS)
    bench.work()
    bench.write("src/shop/fixtures.py", "import pytest\n\n\n@pytest.fixture\ndef price():\n    return 3\n")
    answer = bench.complete(job)
    assert answer.done
    assert answer.outside == {"src/shop/fixtures.py"}


def test_an_option_of_the_check_names_a_plug_in(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop", SHOP | {"pytest.ini": "[pytest]\npythonpath = src\n", "src/shop/p.py": ""})
    job = bench.job(f"The tests pass\n  check: run {PYTEST} -p shop.p")
    bench.refuses(job, {"the plug-in": wrote({"src/shop/p.py": FORGES})})


def test_settings_of_documentation_in_the_area_are_the_agreed_ones(tmp_path: Path) -> None:
    """`build.py` stands for a builder of documentation: it runs the settings in the folder that it is given."""
    build = "import runpy, sys\nrunpy.run_path(sys.argv[1] + '/conf.py')\nsys.path.insert(0, 'src')\n"
    build += "from shop.price import total\nsys.exit(total([1]) != 1)\n"
    files = {**SHOP, "tools/build.py": build, "docs/conf.py": "project = 'shop'\n", "docs/index.rst": "Shop\n"}
    bench = Bench(tmp_path / "shop", files)
    job = bench.job(f"It is built\n  check: run {PYTHON} tools/build.py docs", work=["/src/shop/**", "/docs/**"])
    bench.refuses(job, {"the settings": wrote({"docs/conf.py": ENDS})})


def test_the_bad_work_fails_without_any_trick(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_TESTS)
    bench.write(PRICE, LAZY)
    assert not bench.complete(job).done
    bench.write(PRICE, GOOD)
    assert bench.complete(job).done


@pytest.mark.parametrize("name", ["specs/001-prices/plan.md", "spec/openapi.yaml", "t/README.md"])
def test_specifications_are_work(name: str) -> None:
    assert kinds({name: "old"}, name, work=("/**",)) == "work"
