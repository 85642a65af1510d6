"""Of a manifest, only the dependencies are work."""

from __future__ import annotations

import pytest

from donewhen.jobs.room.judging_names import DEPENDENCY_FILES
from donewhen.jobs.room.manifests import only_dependencies_differ

POM = "<project><artifactId>shop</artifactId>{}<build><plugins>{}</plugins></build></project>"
JUNIT = "<dependency><groupId>org.junit</groupId><artifactId>junit</artifactId></dependency>"
PYPROJECT = '[project]\nname = "shop"\n{}\n[tool.pytest.ini_options]\naddopts = "-q"\n'

HONEST = {
    "pyproject.toml": [
        (PYPROJECT.format(""), PYPROJECT.format('dependencies = ["httpx"]')),
        (PYPROJECT.format('dependencies = ["httpx"]'), PYPROJECT.format("dependencies = []\n# none\n")),
        (PYPROJECT.format(""), PYPROJECT.format('[project.optional-dependencies]\ntest = ["attrs"]')),
        (PYPROJECT.format(""), PYPROJECT.format('[dependency-groups]\ndev = ["attrs", {include-group = "x"}]')),
        (PYPROJECT.format(""), PYPROJECT.format('[tool.poetry.dependencies]\npython = "^3.11"\nhttpx = "*"')),
        (PYPROJECT.format(""), PYPROJECT.format('[tool.poetry.group.dev.dependencies]\nattrs = "*"')),
        (PYPROJECT.format(""), PYPROJECT.format('[tool.pdm.dev-dependencies]\ntest = ["attrs"]')),
        (PYPROJECT.format(""), PYPROJECT.format('[tool.uv]\ndev-dependencies = ["attrs"]')),
        (PYPROJECT.format(""), PYPROJECT.format('[tool.hatch.envs.test]\ndependencies = ["attrs"]')),
    ],
    "package.json": [
        ('{"name": "shop"}', '{"name": "shop", "dependencies": {"a": "1"}, "devDependencies": {"b": "2"}}'),
        ('{"name": "shop", "peerDependencies": {"a": "1"}}', '{"name": "shop", "optionalDependencies": {"a": "1"}}'),
    ],
    "composer.json": [("{}", '{"require": {"php": "8"}, "require-dev": {"phpunit/phpunit": "10"}}')],
    "Cargo.toml": [
        ('[package]\nname = "shop"\n', '[package]\nname = "shop"\n[dependencies]\nserde = "1"\n'),
        ("[workspace]\nmembers = []\n", '[workspace]\nmembers = []\n[workspace.dependencies]\nserde = "1"\n'),
        ("", '[target."cfg(unix)".dependencies]\nlibc = "1"\n[dev-dependencies]\nx = "1"\n'),
    ],
    "setup.cfg": [
        ("[metadata]\nname = shop\n", "[metadata]\nname = shop\n[options]\ninstall_requires =\n  httpx\n"),
        ("[options]\nzip_safe = no\n", "[options]\nzip_safe = no\n[options.extras_require]\ntest = attrs\n"),
    ],
    "go.mod": [
        ("module shop\n\ngo 1.22\n", "module shop\n\ngo 1.22\n\nrequire example.com/a v1.2.3 // indirect\n"),
        (
            "module shop\ngo 1.22\nrequire (\n\texample.com/a v1.2.3\n)\n",
            "module shop\ngo 1.22\nrequire (\n\texample.com/a v1.3.0\n\t// why\n\tb.dev/c v0.0.0+incompatible\n)\n",
        ),
    ],
    "Gemfile": [
        ("source 'https://rubygems.org'\n", "source 'https://rubygems.org'\ngem 'rails', '~> 7.1', '>= 7.1.2' # web\n"),
        ("", 'gem "puma", require: false\ngem "pg", group: [:production, :test]\n'),
    ],
    "pom.xml": [
        (POM.format("", ""), POM.format(f"\n  <dependencies>{JUNIT}</dependencies>", "")),
        (
            POM.format(f"<dependencies>{JUNIT}</dependencies>", ""),
            POM.format(f"<dependencyManagement><dependencies>{JUNIT}</dependencies></dependencyManagement>", ""),
        ),
    ],
}
CHEATS = {
    "pyproject.toml": [
        (PYPROJECT.format(""), PYPROJECT.format('dependencies = ["httpx"]').replace("-q", "-k nothing")),
        (PYPROJECT.format(""), PYPROJECT.format("[build-system]\nrequires = ['evil']")),
        (PYPROJECT.format(""), PYPROJECT.format('[tool.uv.sources]\nhttpx = {path = "evil"}')),
        (PYPROJECT.format(""), PYPROJECT.format('[tool.hatch.envs.test.scripts]\nrun = "true"')),
        (PYPROJECT.format(""), "[project\n"),
        (PYPROJECT.format(""), PYPROJECT.format('[project.entry-points.pytest11]\nx = "evil"')),
    ],
    "package.json": [
        ('{"scripts": {"test": "node check.js"}}', '{"scripts": {"test": "true"}, "dependencies": {"a": "1"}}'),
        ("{}", '{"overrides": {"jest": "file:./evil"}}'),
        ("{}", '{"jest": {"setupFiles": ["./evil.js"]}}'),
        ("{}", "[" * 100_000),
    ],
    "composer.json": [("{}", '{"scripts": {"test": "true"}}'), ("{}", '{"autoload-dev": {"files": ["x.php"]}}')],
    "Cargo.toml": [("", '[patch.crates-io]\nserde = {path = "evil"}\n'), ("", '[[test]]\nname = "x"\n')],
    "setup.cfg": [
        ("[options]\n", "[options]\ninstall_requires = httpx\n[tool:pytest]\naddopts = -k nothing\n"),
        ("[options]\n", "[options]\ninstall_requires = a\ninstall_requires = b\n"),
        ("[options]\n", "[flake8]\nextend-ignore = E\n"),
    ],
    "go.mod": [
        ("module shop\n", "module shop\nreplace example.com/a => ./evil\n"),
        ("module shop\n", "module shop\nrequire (\n\treplace x => ./evil\n)\n"),
        ("module shop\n", "module other\nrequire example.com/a v1.0.0\n"),
        ("module shop\ngo 1.22\n", "module shop\ngo 1.22\ntoolchain evil\n"),
    ],
    "Gemfile": [
        ("", "gem 'a'; system('true')\n"),
        ("", 'gem "#{system(1)}"\n'),
        ("", "gem 'a', path: 'evil'\n"),
        ("", "gem 'a', git: 'https://example.com/evil'\n"),
        ("", "eval_gemfile 'evil'\n"),
    ],
    "pom.xml": [
        (POM.format("", ""), POM.format("", "<plugin><artifactId>evil</artifactId></plugin>")),
        (POM.format("", ""), POM.format("<properties><skipTests>true</skipTests></properties>", "")),
        (POM.format("", ""), f'<!DOCTYPE p [<!ENTITY a "b">]>{POM.format("", "")}'),
        (POM.format("", ""), POM.format("", f"<plugin><dependencies>{JUNIT}</dependencies></plugin>")),
        (POM.format("", ""), "<project>"),
    ],
}


def test_there_are_cases_for_every_kind_of_manifest() -> None:
    assert {name.casefold() for name in HONEST} == {name.casefold() for name in CHEATS} == DEPENDENCY_FILES


@pytest.mark.parametrize(("name", "before", "after"), [(n, *pair) for n, pairs in HONEST.items() for pair in pairs])
def test_dependencies_may_change(name: str, before: str, after: str) -> None:
    assert only_dependencies_differ(name, before.encode(), after.encode())
    assert only_dependencies_differ(f"sub/{name.casefold()}", after.encode(), before.encode())


@pytest.mark.parametrize(("name", "before", "after"), [(n, *pair) for n, pairs in CHEATS.items() for pair in pairs])
def test_nothing_else_may_change(name: str, before: str, after: str) -> None:
    assert not only_dependencies_differ(name, before.encode(), after.encode())


def test_what_is_no_text_and_what_is_no_manifest_is_not_compared() -> None:
    assert not only_dependencies_differ("package.json", b"{}", b"\xff")
    assert not only_dependencies_differ("settings.toml", b"", b"x = 1\n")
