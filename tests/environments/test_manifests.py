"""What manifests and lock files declare."""

from __future__ import annotations

import json

import pytest

from donewhen.environments.manifests import declared_changes, is_manifest, locked_packages

PYTHON = {
    "pyproject.toml": "[project]\ndependencies = [\"Foo_Bar[x]==1.0; python_version > '3'\"]\n",
    "sub/pyproject.toml": '[dependency-groups]\ntest = ["foo.bar===1.0", {include-group = "x"}]\n',
    "requirements.txt": "# all\n-r other.txt\nfoo-bar == 1.0 \\\n    --hash=sha256:aa  # why\n",
    "requirements/test.txt": "foo-bar==1.0\n",
    "dev-requirements.in": "foo-bar==1.0\n",
    "setup.cfg": "[options]\ninstall_requires =\n    other\n    foo-bar==1.0\n",
    "setup.py": "from setuptools import setup\nsetup(install_requires=['foo-bar==1.0'])\n",
    "Pipfile": '[packages]\nfoo-bar = "==1.0"\n',
    "Pipfile.lock": json.dumps({"default": {"foo-bar": {"version": "==1.0"}}}),
    "poetry.lock": '[[package]]\nname = "foo-bar"\nversion = "1.0"\n',
    "uv.lock": '[[package]]\nname = "foo-bar"\nversion = "1.0"\nsource = { registry = "https://pypi.org/simple" }\n',
    "pdm.lock": '[[package]]\nname = "foo-bar"\nversion = "1.0"\n',
    "pylock.toml": '[[packages]]\nname = "foo-bar"\nversion = "1.0"\n',
    "environment.yml": "dependencies:\n  - python=3.11\n  - conda-forge::foo-bar=1.0=build\n  - pip:\n    - x==1\n",
}
NODE = {
    "package.json": '{"devDependencies": {"@a/b": "1.0.0"}}',
    "package-lock.json": '{"packages": {"": {}, "node_modules/x/node_modules/@a/b": {"version": "1.0.0"}}}',
    "npm-shrinkwrap.json": '{"dependencies": {"x": {"dependencies": {"@a/b": {"version": "1.0.0"}}}}}',
    "yarn.lock": '# yarn\n\n"@a/b@^1.0.0", "@a/b@~1":\n  version "1.0.0"\n  resolved "https://registry.yarnpkg.com/x"\n',
    "web/yarn.lock": '"@a/b@npm:^1.0.0":\n  version: 1.0.0\n  resolution: "@a/b@npm:1.0.0"\n',
    "pnpm-lock.yaml": "packages:\n\n  '@a/b@1.0.0(react@18.0.0)':\n    resolution: {integrity: x}\n",
    "old/pnpm-lock.yaml": "packages:\n\n  /@a/b/1.0.0:\n    resolution: {integrity: x}\n",
    "bun.lock": '{"packages": {\n    "@a/b": ["@a/b@1.0.0", "", {}, "sha512-x"],\n}}',
}
ELSEWHERE = {
    "pyproject.toml": '[project]\ndependencies = ["foo-bar @ git+https://example.org/x"]\n',
    "a/pyproject.toml": '[project]\ndependencies = ["foo-bar"]\n[tool.uv.sources]\nfoo-bar = { path = "x" }\n',
    "b/pyproject.toml": '[tool.poetry.dependencies]\nfoo-bar = { git = "https://example.org/x" }\n',
    "requirements.txt": "--extra-index-url https://evil.example/simple\nfoo-bar==1.0\n",
    "other-requirements.txt": "--find-links wheels\nfoo-bar==1.0\n",
    "uv.lock": '[[package]]\nname = "foo-bar"\nversion = "1.0"\nsource = { git = "https://example.org/x" }\n',
    "poetry.lock": '[[package]]\nname = "foo-bar"\nversion = "1.0"\nsource = { type = "url", url = "https://x.y/z" }\n',
    "Pipfile.lock": json.dumps({"default": {"foo-bar": {"git": "https://example.org/x"}}}),
    "pylock.toml": '[[packages]]\nname = "foo-bar"\nversion = "1.0"\narchive = { url = "https://x.y/z" }\n',
}
NODE_ELSEWHERE = {
    "package.json": '{"dependencies": {"@a/b": "github:a/b"}}',
    "x/package.json": '{"dependencies": {"@a/b": "https://x.y/b.tgz"}}',
    "package-lock.json": '{"packages": {"node_modules/@a/b": {"version": "1.0.0", "resolved": "git+ssh://x"}}}',
    "yarn.lock": '"@a/b@^1.0.0":\n  version "1.0.0"\n  resolved "https://evil.example/x"\n',
    "pnpm-lock.yaml": "packages:\n\n  '@a/b@1.0.0':\n    resolution: {tarball: https://evil.example/x}\n",
    "bun.lock": '{"packages": {\n    "@a/b": ["@a/b@git+ssh://x", {}],\n}}',
}


@pytest.mark.parametrize("name", PYTHON)
def test_python_distributions_with_their_versions(name: str) -> None:
    declared = declared_changes({}, {name: PYTHON[name].encode()})
    assert is_manifest(name)
    assert declared.has("python", "foo-bar", "1.0")
    assert declared.has("python", "foo-bar", "1.0+cpu")
    assert not declared.has("python", "foo-bar", "1.1")
    assert not declared_changes({name: PYTHON[name].encode()}, {name: PYTHON[name].encode()}).packages


@pytest.mark.parametrize("name", NODE)
def test_packages_of_node_with_their_versions(name: str) -> None:
    declared = declared_changes({}, {name: NODE[name].encode()})
    assert is_manifest(name)
    assert declared.has("node", "@a/b", "1.0.0")
    assert not declared.has("node", "@a/b", "1.1.0")


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_comes_from_elsewhere_is_not_declared(name: str) -> None:
    assert not declared_changes({}, {name: ELSEWHERE[name].encode()}).has("python", "foo-bar", "1.0")


@pytest.mark.parametrize("name", NODE_ELSEWHERE)
def test_packages_from_elsewhere_are_not_declared(name: str) -> None:
    assert not declared_changes({}, {name: NODE_ELSEWHERE[name].encode()}).has("node", "@a/b", "1.0.0")


def test_a_registry_that_was_agreed_to_is_known() -> None:
    lock = '[[package]]\nname = "{}"\nversion = "1.0"\nsource = {{ registry = "https://own.example/simple" }}\n'
    before, after = lock.format("old"), lock.format("old") + lock.format("foo-bar")
    assert declared_changes({"uv.lock": before.encode()}, {"uv.lock": after.encode()}).has("python", "foo-bar", "1.0")
    assert not declared_changes({}, {"uv.lock": after.encode()}).has("python", "foo-bar", "1.0")


def test_a_range_leaves_the_version_open() -> None:
    assert declared_changes({}, {"requirements.txt": b"foo>=1,<3"}).has("python", "foo", "2.5")
    assert not declared_changes({}, {"requirements.txt": b"foo>=1,<3"}).has("python", "bar", "2.5")


def test_what_can_t_be_read_declares_nothing() -> None:
    broken = dict.fromkeys((*PYTHON, *NODE, "Cargo.lock", "Cargo.toml", "go.mod", "go.sum"), b"\xff{[(")
    assert not declared_changes({}, broken).packages


def test_locks_say_which_packages_of_a_store_are_used() -> None:
    lock = '[[package]]\nname = "serde"\nversion = "1.0.1"\nsource = "registry+https://github.com/rust-lang/crates.io-index"\n'
    sums = "golang.org/x/text v0.3.0 h1:aa\ngolang.org/x/text v0.3.0/go.mod h1:bb\n"
    found = locked_packages({"a/Cargo.lock": lock.encode(), "go.sum": sums.encode(), "x.py": b""})
    assert found == {"serde-1.0.1", "golang.org/x/text@v0.3.0"}
    declared = declared_changes(
        {}, {"go.mod": b"module x\n\nrequire golang.org/x/text v0.3.0\n", "Cargo.lock": lock.encode()}
    )
    assert declared.has("go", "golang.org/x/text", "v0.3.0")
    assert declared.has("cargo", "serde", "1.0.1")


def test_other_files_are_no_manifests() -> None:
    assert not any(map(is_manifest, ("README.md", "src/requirements.py", "package.json.bak", "lock")))
