"""Links, special files, nested repositories, files above the room, planted rooms: nothing else gets in."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

import pytest
from room_kit import (
    ENDS,
    FORGES,
    GOOD,
    HOLLOW,
    LAZY,
    PRICE,
    RUN_CHECK,
    RUN_TESTS,
    SHOP,
    Bench,
)

from donewhen.foundation.errors import DonewhenError
from donewhen_kit import git_command

pytestmark = pytest.mark.scenes

USES = (
    "import pathlib\n\n\ndef total(prices):\n"
    "    return sum(prices) if pathlib.Path(__file__).with_name('answer').read_text() == 'sum' else 0\n"
)


def test_a_link_of_the_work_leads_to_nothing_outside_of_the_room(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop", SHOP | {"elsewhere.txt": "0"})
    job = bench.job(RUN_CHECK)
    outside = tmp_path / "outside.txt"
    outside.write_text("sum")
    up = "../" * 40
    targets = {
        "absolute, to a file outside": str(outside),
        "absolute, into the checkout": f"{bench.root}/answer.txt",
        "relative, to a file outside": "../../../outside.txt",
        "from the top of the file system into the checkout": f"{up.rstrip('/')}{bench.root}/answer.txt",
        "out and in again": f"../../../{bench.root.name}/answer.txt",
        "to a file outside of the area": "../../answer.txt",
        "into the repository": "../../.git/answer.txt",
        "into the record": "../../.donewhen/answer.txt",
        "to an ignored file": "../../build/answer.txt",
    }
    for name, target in targets.items():
        bench.write(PRICE, USES)
        for place in ("answer.txt", ".git/answer.txt", ".donewhen/answer.txt", "build/answer.txt"):
            bench.write(place, "sum")
        bench.link("src/shop/answer", target)
        assert not bench.complete(job).done, name
        bench.remove("src/shop/answer")
        bench.link("src/shop/deep", os.path.dirname(target) or ".")
        bench.write(PRICE, USES.replace("with_name('answer')", f"with_name('deep').joinpath('{Path(target).name}')"))
        assert not bench.complete(job).done, f"{name}, by a folder"
        bench.undo()
        assert "elsewhere.txt" not in bench.git("status", "--short")
    bench.write(PRICE, USES)
    bench.write("src/shop/data/answer.txt", "sum")
    bench.link("src/shop/answer", "data/answer.txt")
    assert bench.complete(job).done


def test_a_chain_of_links_does_not_leave_either(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_CHECK)
    bench.write(PRICE, USES)
    bench.write("answer.txt", "sum")
    bench.link("src/shop/a", ".")
    bench.link("src/shop/b", "a/../../../../../../../../../../../../../../../../..")
    bench.link("src/shop/answer", f"a/b{bench.root}/answer.txt")
    assert not bench.complete(job).done


def test_circles_of_links_are_left_alone(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_CHECK)
    bench.work()
    bench.link("src/shop/one", "two")
    bench.link("src/shop/two", "one")
    bench.link("src/shop/here", ".")
    bench.link("src/shop/above", "..")
    assert bench.complete(job).done


def test_an_agreed_link_that_leads_out_is_in_nobodys_way(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop", git=True)
    bench.link("latest.log", "/var/log/syslog")
    bench.link("shared", "../shared")
    bench.commit()
    job = bench.job(RUN_CHECK)
    bench.work()
    answer = bench.complete(job)
    assert answer.done
    assert answer.outside == set()


def test_a_folder_of_agreed_files_that_became_a_link_is_the_agreed_folder(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_TESTS)
    bench.write(PRICE, LAZY)
    bench.write("src/shop/fakes/test_price.py", HOLLOW)
    bench.remove("tests/test_price.py")
    (bench.root / "tests").rmdir()
    bench.link("tests", "src/shop/fakes")
    assert not bench.complete(job).done


def test_pipes_sockets_and_devices_are_no_work_and_nobody_waits_for_them(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_CHECK)
    bench.work()
    os.mkfifo(bench.root / "src/shop/pipe")
    os.mkfifo(bench.root / "pipe")
    before = Path.cwd()
    os.chdir(bench.root / "src/shop")
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("socket")
    finally:
        os.chdir(before)
    if os.getuid() == 0:
        os.mknod(bench.root / "src/shop/null", 0o20666, os.makedev(1, 3))
    answer = bench.complete(job)
    assert answer.done
    assert {"src/shop/pipe", "src/shop/socket"} <= {name for room in answer.rooms for name in room.left_out}


def test_a_pipe_instead_of_a_file_is_a_missing_file(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_TESTS, RUN_CHECK)
    bench.write(PRICE, LAZY)
    for name in ("tests/test_price.py", "check.py", "src/shop/__init__.py"):
        bench.remove(name)
        os.mkfifo(bench.root / name)
    assert not bench.complete(job).done


def test_a_repository_inside_the_work_is_only_files(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_TESTS, RUN_CHECK)
    inner = bench.root / "src/shop/inner"
    inner.mkdir()
    bench.write(PRICE, "from shop.inner.summing import total as total\n")
    bench.write("src/shop/inner/summing.py", GOOD)
    for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "Inner")):
        git_command(inner, *arguments)
    assert bench.complete(job).done


def test_a_repository_below_or_above_the_project_does_not_move_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "all", git=True, inside="shop")
    job = bench.job(RUN_CHECK)
    bench.write(PRICE, LAZY)
    bench.write("check.py", "\n")
    for folder in (bench.root, bench.root / "src", tmp_path):
        git_command(folder, "init", "-q")
        (folder / ".git/objects/info/alternates").write_text(f"{bench.top}/.git/objects\n")
        git_command(folder, "add", "-A")
        git_command(folder, "commit", "-q", "-m", "Other")
        try:
            assert not bench.complete(job).done
        except DonewhenError as error:
            assert error.code in ("commit_missing", "content_missing")


def test_a_submodule_is_the_agreed_one(tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    git_command(library, "init", "-q", "-b", "main")
    (library / "limits.py").write_text("SUM = 3\n")
    git_command(library, "add", "-A")
    git_command(library, "commit", "-q", "-m", "Library")
    check = "import sys\n\nsys.path[:0] = ['src', 'vendor/library']\nimport limits\nfrom shop.price import total\n"
    bench = Bench(tmp_path / "shop", SHOP | {"check.py": f"{check}sys.exit(total([1, 2]) != limits.SUM)\n"})
    bench.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "vendor/library")
    bench.commit()
    job = bench.job(RUN_CHECK)
    bench.write(PRICE, LAZY)
    bench.write("vendor/library/limits.py", "SUM = 0\n")
    assert not bench.complete(job).done
    git_command(bench.root / "vendor/library", "commit", "-q", "-a", "-m", "Zero")
    bench.commit()
    assert not bench.complete(job).done
    bench.work()
    bench.write("vendor/library/limits.py", "SUM = 3\n")
    assert bench.complete(job).done


ABOVE = (
    "conftest.py", "pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini", "package.json", ".npmrc", ".git",
    "node_modules", "go.mod", "jest.config.cjs", ".mocharc.json", ".eslintrc.yaml", "biome.json", "justfile",
    "Rakefile", "settings.gradle", "rust-toolchain.toml", ".golangci.yml", "Taskfile.yml", ".coveragerc", "uv.toml",
)  # fmt: skip


@pytest.mark.usefixtures("kept_rooms")
@pytest.mark.parametrize("where", ["the folder for temporary files", "the folder of rooms", "the folder of the room"])
def test_settings_above_the_room_are_not_read(tmp_path: Path, where: str) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_CHECK)
    bench.write(PRICE, LAZY)
    assert not bench.complete(job).done
    temporary = Path(tempfile.gettempdir())
    rooms = temporary / f"donewhen-rooms-{os.getuid()}"
    folder = {"the folder for temporary files": temporary, "the folder of rooms": rooms}.get(where)
    for name in ABOVE:
        found = [folder] if folder is not None else [path for path in rooms.iterdir() if path.is_dir()]
        assert found
        for place in found:
            (place / name).write_text("[pytest]\n")
        if where == "the folder of the room":
            assert not bench.complete(job).done
            assert not any((place / name).exists() for place in found), name
            continue
        with pytest.raises(DonewhenError, match=r"would be read by checks|can't create a temporary repository"):
            bench.complete(job)
        (found[0] / name).unlink()
    bench.work()
    assert bench.complete(job).done


def _rooms() -> list[Path]:
    rooms = Path(tempfile.gettempdir()) / f"donewhen-rooms-{os.getuid()}"
    return [path for path in rooms.iterdir() if path.is_dir()]


@pytest.mark.usefixtures("kept_rooms")
def test_files_that_were_planted_in_a_room_are_gone_before_a_check(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_TESTS)
    bench.write(PRICE, LAZY)
    assert not bench.complete(job).done
    for folder in _rooms():
        room = folder / "shop"
        (room / "conftest.py").write_text(FORGES)
        (room / "tests").chmod(0o755)
        (room / "tests/test_price.py").chmod(0o644)
        (room / "tests/test_price.py").write_text(HOLLOW)
        (room / "tests/__pycache__").mkdir(exist_ok=True)
        (room / "src/json").mkdir()
        (room / "src/json/__init__.py").write_text(ENDS)
        (room / ".git").unlink() if (room / ".git").is_symlink() else None
    assert not bench.complete(job).done


@pytest.mark.usefixtures("kept_rooms")
def test_a_room_that_was_planted_as_a_link_is_not_used(tmp_path: Path) -> None:
    """Otherwise the files there would be judged, or removed."""
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_CHECK)
    bench.write(PRICE, LAZY)
    assert not bench.complete(job).done
    other = tmp_path / "other"
    other.mkdir()
    (other / "precious.txt").write_text("mine")
    import shutil

    for folder in _rooms():
        shutil.rmtree(folder / "shop")
        (folder / "shop").symlink_to(other)
    bench.write("src/shop/more.py", "")
    try:
        assert not bench.complete(job).done
    except DonewhenError as error:
        assert error.code == "room"
    assert (other / "precious.txt").exists()
    assert sorted(path.name for path in other.iterdir()) == ["precious.txt"]


@pytest.mark.usefixtures("kept_rooms")
def test_files_of_a_room_are_never_hard_links_to_files_that_others_can_write(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_CHECK)
    bench.write(PRICE, LAZY)
    assert not bench.complete(job).done
    for folder in _rooms():
        for name in ("check.py", PRICE):
            (folder / "shop" / name).unlink()
            os.link(bench.root / name, folder / "shop" / name)
    assert not bench.complete(job).done
    for folder in _rooms():
        assert (folder / "shop/check.py").stat().st_nlink == 1
        assert (folder / "shop" / PRICE).stat().st_nlink == 1
