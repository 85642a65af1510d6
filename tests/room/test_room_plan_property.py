"""Whatever lies on disk: nothing outside of the work area is in the first run, and all of the work is."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from room_kit import RUN_CHECK, SHOP, Bench

from donewhen.foundation.git_objects import FILE, LINK, PROGRAM, TreeFile, folders_of, object_name
from donewhen.jobs.room.judging_names import NamedFile, is_settings, is_test
from donewhen.jobs.room.names import folded
from donewhen.jobs.room.room_plan import RoomPlan, plan_room
from donewhen.jobs.room.work_area import JudgingFiles, WorkArea, judging_files
from donewhen_kit import examples

FOLDERS = ("src", "src/shop", "src/bill", "tests", "docs", "tools", "Src/Shop", "vendor/lib", ".github", "")
LASTS = (
    *(
        "price.py",
        "Price.py",
        "conftest.py",
        "test_a.py",
        "json.py",
        "Makefile",
        "readme.md",
        "data.json",
        "rules",
        "x",
    ),
    *("pyproject.toml", "caf\u00e9.txt", "cafe\u0301.txt", "check.py", ".env", "__init__.py", "a b.txt", "GNUmakefile"),
)
NAMES = st.builds(lambda folder, last: f"{folder}/{last}".lstrip("/"), st.sampled_from(FOLDERS), st.sampled_from(LASTS))
PATTERNS = st.sampled_from(("src/shop/**", "src/bill/*.py", "docs/**", "tests/**", "docs/readme.md", "vendor/**/*.py"))


def blob(text: str) -> str:
    return object_name(text.encode(), "blob", "0" * 40)


def tree_of(whose: str) -> st.SearchStrategy[dict[str, TreeFile]]:
    files = st.builds(
        lambda mode, text: TreeFile(mode, blob(f"{whose} {text}")),
        st.sampled_from((FILE, FILE, PROGRAM, LINK)),
        st.sampled_from("ab"),
    )
    return st.dictionaries(NAMES, files, max_size=14).map(_without_files_as_folders)


def _without_files_as_folders(tree: Mapping[str, TreeFile]) -> dict[str, TreeFile]:
    folders = folders_of(tree)
    return {name: file for name, file in tree.items() if name not in folders}


AREAS = st.builds(
    lambda patterns, outputs, checked: WorkArea("", tuple(patterns), tuple(outputs), tuple(checked)),
    st.lists(PATTERNS, max_size=3),
    st.lists(NAMES, max_size=2),
    st.lists(NAMES, max_size=1),
)


def judges_of(agreed: Mapping[str, TreeFile]) -> JudgingFiles:
    return judging_files(
        "", agreed, folders_of(agreed), [[NamedFile("tools/check.py", True), NamedFile("src/json", False, True)]]
    )


def in_area(name: str, area: WorkArea, agreed: Mapping[str, TreeFile]) -> bool:
    """Said again, without the code that is tested: some spelling of the name is in the area."""
    spellings = {name, *(other for other in agreed if folded(other) == folded(name))}
    parts = folded(name).split("/")
    for other in agreed:
        given = other.split("/")
        for end in range(len(parts), 0, -1):
            if folded("/".join(given[:end])) == "/".join(parts[:end]):
                spellings.add("/".join([*given[:end], *name.split("/")[end:]]))
    return any(area.has(spelling) for spelling in spellings)


@settings(max_examples=examples(600), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(agreed=tree_of("agreed"), changed=tree_of("agent"), kept=st.randoms(use_true_random=False), area=AREAS)
def test_nothing_outside_of_the_area_comes_from_the_agent(
    agreed: dict[str, TreeFile], changed: dict[str, TreeFile], kept: random.Random, area: WorkArea
) -> None:
    remaining = {name: file for name, file in agreed.items() if kept.random() < 0.7}
    disk = _without_files_as_folders({**remaining, **changed})
    plan = plan_room(agreed, disk, area, judges_of(agreed))
    agents = {file.blob for file in changed.values()}
    for name, file in plan.agreed.items():
        if file.blob in agents:
            assert in_area(name, area, agreed), name
            assert not is_test(name) or area.is_named_output(name), name
            assert not is_settings(name) or area.is_named_output(name) or _is_named(name, area), name
    for name, file in agreed.items():
        if not in_area(name, area, agreed):
            assert plan.agreed.get(name) is None or plan.agreed[name].blob == file.blob
            if not _is_blocked(name, agreed):
                assert name in plan.agreed
    _work_is_complete(plan, disk)
    assert {name: file.blob for name, file in plan.whole.items()} == {name: file.blob for name, file in disk.items()}


def _is_named(name: str, area: WorkArea) -> bool:
    return name in area.patterns


def _is_blocked(name: str, agreed: Mapping[str, TreeFile]) -> bool:
    return any(other.startswith(f"{name}/") for other in agreed)


def _work_is_complete(plan: RoomPlan, disk: Mapping[str, TreeFile]) -> None:
    """All of what is called work is in the first run, unless an agreed file or link lies on the way."""
    for change in plan.work:
        if change.how == "removed":
            assert change.name not in plan.agreed
            continue
        on_the_way = [
            name for name in plan.agreed if change.name.startswith(f"{name}/") or name.startswith(f"{change.name}/")
        ]
        assert on_the_way or plan.agreed[change.name].blob == disk[change.name].blob


def test_random_files_outside_of_the_area_are_not_in_a_real_room(tmp_path: Path) -> None:
    """The check lists what it finds around itself, and fails if it finds more than was agreed."""
    check = (
        "import os, sys\nfound = {os.path.relpath(os.path.join(folder, name), '.')\n"
        "    for folder, inner, names in os.walk('.') if '.git' not in folder.split('/')[1:2] for name in names}\n"
        "known = set(open('known.txt').read().split('\\n'))\nmore = {name for name in found - known\n"
        "    if not name.startswith(('src/shop/', 'jobs/', '.git')) and '__pycache__' not in name}\n"
        "print(sorted(more))\nsys.exit(bool(more))\n"
    )
    known = "\n".join([*SHOP, "known.txt", "donewhen.toml", "AGENTS.md"])
    bench = Bench(tmp_path / "shop", SHOP | {"check.py": check, "known.txt": known})
    job = bench.job(RUN_CHECK)
    chosen = random.Random(19)
    names = [*LASTS, "pyvenv.cfg", "bin/python", "index.js", "package.json"]
    folders = [
        "",
        "src",
        "tests",
        "tools",
        "deep/er",
        "Src",
        "src/shop2",
        ".hidden",
        "node_modules/x",
        "json",
        ".venv2",
    ]
    added: set[str] = set()
    for _ in range(60):
        name = f"{chosen.choice(folders)}/{chosen.choice(names)}".lstrip("/")
        path = bench.root / name
        if name in SHOP or path.exists() or any(parent.is_file() for parent in path.parents):
            continue
        if chosen.random() < 0.2:
            bench.link(name, "src/shop")
        else:
            bench.write(name, "import os\nos._exit(1)\n")
        added.add(name)
    bench.work()
    bench.write("src/shop/inside.py", "")
    # The second run has them all, and fails: the first one is what is asked here.
    answer = bench.complete(job)
    assert [room.failed_in for room in answer.rooms] == ["whole"]
    assert len(added) > 40
    for name in sorted(added):
        path = bench.root / name
        path.unlink()
    assert bench.complete(job).done
