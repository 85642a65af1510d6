"""What is listed of `node_modules`, and which differences a person sees."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from donewhen.environments.listing import Listing
from environments.environment_kit import listing_of, package, same_times, sentences

LOCK = "package-lock.json"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project whose tests are run by `jest`, which needs `chalk`; the product uses `express`."""
    root = Path(os.path.realpath(tmp_path)) / "shop"
    modules = root / "node_modules"
    package(modules, "jest", bin={"jest": "bin.js"}, dependencies={"chalk": "1"})
    package(modules, "chalk")
    package(modules, "express", "4.0.0", dependencies={"ms": "1"})
    package(modules, "ms")
    package(modules, "@types/node", "20.0.0")
    (modules / ".bin").mkdir()
    (modules / ".bin" / "jest").symlink_to("../jest/bin.js")
    (root / "packages" / "own").mkdir(parents=True)
    return root


def now(root: Path) -> Listing:
    return listing_of(root, root / "node_modules")


def lock(**packages: str) -> dict[str, str]:
    """A lock file; `__` in a name is a slash."""
    found = {
        f"node_modules/{name.replace('__', '/')}": {
            "version": version,
            "resolved": f"https://registry.npmjs.org/{name}.tgz",
        }
        for name, version in packages.items()
    }
    return {LOCK: json.dumps({"lockfileVersion": 3, "packages": found})}


def manifest(**wanted: str) -> dict[str, str]:
    return {"package.json": json.dumps({"dependencies": wanted})}


def edited(path: Path) -> None:
    before = path.stat()
    path.write_text(path.read_text().replace("1", "2", 1))
    same_times(path, before)


def link(path: Path, target: str) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(target)


CHEATS = {
    "a changed package": lambda modules: edited(modules / "express" / "index.js"),
    "a changed test runner": lambda modules: edited(modules / "jest" / "index.js"),
    "a test runner of another version": lambda modules: package(modules, "jest", "99.0.0", "module.exports = 0\n"),
    "what the test runner needs": lambda modules: package(modules, "chalk", "99.0.0", "module.exports = 0\n"),
    "something nearer to the test runner": lambda modules: package(
        modules / "jest" / "node_modules", "chalk", "99.0.0"
    ),
    "a program of the same name": lambda modules: link(modules / ".bin" / "jest", "../express/index.js"),
    "a program without a link": lambda modules: (modules / ".bin" / "node").write_text("exit 0"),
    "a file of no package": lambda modules: (modules / "chalk.js").write_text(""),
    "a folder without a manifest": lambda modules: (
        (modules / "colors").mkdir() or (modules / "colors/index.js").touch()
    ),
    "a link to elsewhere": lambda modules: link(modules / "colors", "/tmp"),
    "a plug-in that is loaded by its name": lambda modules: package(modules, "karma-quick"),
    "a package that calls itself differently": lambda modules: package(modules, "colors").rename(modules / "assert"),
}
DECLARED = {
    **manifest(jest="99.0.0", chalk="99.0.0", colors="1.0.0", assert_="1", express="4.0.0"),
    **lock(jest="99.0.0", chalk="99.0.0", **{"karma-quick": "1.0.0"}),
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_a_person_sees_what_could_judge_even_if_a_manifest_declares_it(root: Path, cheat: str) -> None:
    before = now(root)
    CHEATS[cheat](root / "node_modules")
    assert sentences(before, now(root), {}, DECLARED, words=("jest", "node"))


def test_what_is_declared_explains_itself_what_it_needs_and_its_programs(root: Path) -> None:
    modules = root / "node_modules"
    before = now(root)
    package(modules, "left-pad", "1.3.0", dependencies={"pad": "1"}, bin="cli.js")
    package(modules / "left-pad" / "node_modules", "pad")
    link(modules / ".bin" / "left-pad", "../left-pad/cli.js")
    (modules / ".package-lock.json").write_text("{}")
    (modules / ".cache").mkdir()
    (modules / ".cache" / "x").write_text("")
    words = ("jest",)
    assert len(sentences(before, now(root), words=words)) == 3
    assert sentences(before, now(root), {}, manifest(**{"left-pad": "^1.3.0"}), words=words) == []
    assert sentences(before, now(root), {}, lock(**{"left-pad": "1.3.0"}), words=words) == []
    assert sentences(before, now(root), {}, lock(**{"left-pad": "1.2.0"}), words=words)
    assert sentences(before, now(root), {}, manifest(**{"left-pad": "file:../x"}), words=words)
    elsewhere = lock(**{"left-pad": "1.3.0"})[LOCK].replace("registry.npmjs.org", "evil.example")
    assert sentences(before, now(root), {}, {LOCK: elsewhere}, words=words)


def test_an_upgrade_in_a_lock_file_explains_itself(root: Path) -> None:
    before = now(root)
    package(root / "node_modules", "express", "5.0.0", "module.exports = 5\n", dependencies={"ms": "2"})
    package(root / "node_modules", "ms", "2.0.0", "module.exports = 5\n")
    old, new = lock(express="4.0.0", ms="1.0.0"), lock(express="5.0.0", ms="2.0.0")
    assert sentences(before, now(root), old, new, words=("jest",)) == []


def test_a_package_of_the_project_s_own_is_found_through_its_link(root: Path) -> None:
    before = now(root)
    link(root / "node_modules" / "own", "../packages/own")
    assert sentences(before, now(root), words=("jest",)) == []
    link(root / "node_modules" / "chalk2", "../node_modules/.evil")
    assert sentences(before, now(root), words=("jest",))


def test_a_store_of_links_is_listed_by_what_they_lead_to(root: Path) -> None:
    modules = root / "node_modules"
    place = package(modules / ".pnpm" / "left@1.0.0" / "node_modules", "left")
    before = now(root)
    link(modules / "left", ".pnpm/left@1.0.0/node_modules/left")
    (modules / ".pnpm" / "lock.yaml").write_text("x")
    locked = {"pnpm-lock.yaml": "packages:\n\n  left@1.0.0:\n    resolution: {integrity: sha512-x}\n"}
    assert sentences(before, now(root), words=("jest",))
    assert sentences(before, now(root), {}, locked, words=("jest",)) == []
    edited(place / "index.js")
    assert sentences(before, now(root), {}, locked, words=("jest",))
