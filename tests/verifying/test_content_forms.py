"""What git converts in a checkout is converted in CI as in a local room, by agreed attributes and agreed filters."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from verify_kit import outcome
from verify_room_kit import PYTHON, RIGHT, RoomShop, found_codes

from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.job import Job
from donewhen.jobs.verifying import Verification

pytestmark = pytest.mark.scenes

ROT = "tr a-zA-Z n-za-mN-ZA-M"
FORMS: Mapping[str, tuple[str, bytes, str]] = {
    "line ends": ("* text=auto\n*.bat eol=crlf\n", b"one\r\ntwo\r\n", "go.bat"),
    "another encoding": ("*.txt working-tree-encoding=UTF-16\n", "aé\n".encode("utf-16"), "a.txt"),
    "a filter": ("*.rot filter=rot\n", b"hello\n", "a.rot"),
}


def shop_with(folder: Path, attributes: str, name: str, content: bytes) -> tuple[RoomShop, Job]:
    """A job whose check asks for a file with these bytes, and for the work."""
    check = (
        "import pathlib, sys\n\n"
        f"sys.path.insert(0, 'src')\nfrom shop.price import total\n\n"
        f"found = pathlib.Path({name!r}).read_bytes()\nassert found == {content!r}, found\n"
        "sys.exit(total([1, 2]) != 3)\n"
    )
    shop = RoomShop(folder, {"check.py": check, ".gitattributes": attributes})
    shop.git("config", "filter.rot.clean", ROT)
    shop.git("config", "filter.rot.smudge", ROT)
    (shop.root / name).write_bytes(content)
    return shop, shop.agreed()


@pytest.mark.parametrize("kind", FORMS)
def test_a_file_has_the_bytes_of_a_checkout_locally_and_in_ci(tmp_path: Path, kind: str) -> None:
    attributes, content, name = FORMS[kind]
    shop, job = shop_with(tmp_path / "shop", attributes, name, content)
    stored = shop.git("cat-file", "blob", f"HEAD:{name}").encode("utf-8", "surrogateescape")
    assert stored != content
    shop.git("switch", "-q", "-c", "agent")
    shop.write("src/shop/price.py", RIGHT)
    start_job(shop.workspace, job.id, unproved_actor())
    assert complete(shop.workspace, job.id, unproved_actor()).done
    shop.commit("The work")
    found = shop.looked(job)
    assert found.passed, found.reasons
    assert found.notes == ()


def test_a_branch_without_the_work_is_red_whatever_it_does_to_attributes(tmp_path: Path) -> None:
    attributes, content, name = FORMS["a filter"]
    shop, job = shop_with(tmp_path / "shop", attributes, name, content)
    shop.git("config", "filter.evil.smudge", "printf 'import sys; sys.exit(0)'")
    shop.git("config", "filter.rot.smudge", "cat")
    found = shop.pull_request(job, {".gitattributes": f"{attributes}check.py filter=evil\n"})
    assert outcome(found, job) == "failed"
    # The agreed filter is used, and not the one that the clone has now.
    found = shop.pull_request(job, {"src/shop/price.py": RIGHT})
    assert found.passed, found.reasons


def test_attributes_and_ignore_files_of_the_user_decide_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attributes, content, name = FORMS["line ends"]
    shop, job = shop_with(tmp_path / "shop", attributes, name, content)
    settings = tmp_path / "settings"
    (settings / "git").mkdir(parents=True)
    (settings / "git" / "attributes").write_text("*.py working-tree-encoding=UTF-16\n*.bat -text\n")
    (settings / "git" / "ignore").write_text("*.txt\n")
    assert shop.pull_request(job, {"src/shop/price.py": RIGHT}).passed
    monkeypatch.setenv("XDG_CONFIG_HOME", str(settings))
    found = shop.looked(job)
    assert found.passed, found.reasons
    shop.write("forgotten.txt", "")
    assert any("forgotten.txt" in note.message for note in shop.looked(job).notes)


def test_a_filter_that_fails_in_ci_is_named_and_so_is_one_that_was_not_agreed(tmp_path: Path) -> None:
    attributes, content, name = FORMS["a filter"]
    shop, _ = shop_with(tmp_path / "shop", attributes + "*.bat eol=crlf\n", name, content)
    shop.write("go.bat", "one\n")
    tool = tmp_path / "tool"
    tool.write_text(f"#!/bin/sh\n{ROT}\n")
    tool.chmod(0o755)
    for way in ("clean", "smudge"):
        shop.git("config", f"filter.rot.{way}", str(tool))
    shop.commit()
    agreed = shop.agreed(title="With a program", outputs=("/src/shop/price.py",))
    assert shop.pull_request(agreed, {"src/shop/price.py": RIGHT}).passed
    tool.unlink()
    found = shop.looked(agreed)
    assert outcome(found, agreed) == "failed"
    message = _filter_note(found)
    assert "rot failed here" in message and name in message
    for way in ("clean", "smudge"):
        shop.git("config", "--unset", f"filter.rot.{way}")
    shop.git("switch", "-q", "main")
    (shop.root / name).unlink()
    shop.git("restore", name)
    unknown = shop.agreed(f"run {PYTHON} -c pass", title="Without")
    message = _filter_note(shop.pull_request(unknown, {"src/shop/price.py": RIGHT}))
    assert "rot is not part of the agreement" in message and name in message


def _filter_note(found: Verification) -> str:
    notes = [note.message for note in found.notes if "filter" in note.message]
    assert len(notes) == 1, found.notes
    return notes[0]


def test_large_files_and_line_ends_side_by_side(tmp_path: Path) -> None:
    """A large file is converted only where the attributes say so; what looks like a pointer elsewhere is text."""
    content = b"\0large\n"
    hashed = hashlib.sha256(content).hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{hashed}\nsize {len(content)}\n"
    check = f"import pathlib\nassert pathlib.Path('a.bin').read_bytes() == {content!r}\n"
    check += f"assert pathlib.Path('doc.txt').read_text() == {pointer!r}\n"
    shop = RoomShop(tmp_path / "shop", {"check.py": check, ".gitattributes": "*.bin filter=lfs -text\n"})
    shop.write("a.bin", pointer)
    shop.write("doc.txt", pointer)
    stored = shop.write(f".git/lfs/objects/{hashed[:2]}/{hashed[2:4]}/{hashed}", "")
    stored.write_bytes(content)
    job = shop.agreed()
    found = shop.pull_request(job, {"src/shop/price.py": RIGHT})
    assert found.passed, found.reasons
    stored.write_bytes(b"\0other\n")
    found = shop.looked(job)
    assert outcome(found, job) == "failed"
    assert any("Git LFS" in note.message for note in found.notes)


def test_packages_of_the_repository_come_from_the_room(tmp_path: Path) -> None:
    """`node_modules` has links to the project's own packages: they are those that are judged."""
    check = "import pathlib, sys\n\nsys.exit('3' not in pathlib.Path('node_modules/sum/index.js').read_text())\n"
    files = {"check.py": check, "package.json": "{}\n", "packages/sum/index.js": "0\n", ".gitignore": "node_modules/\n"}
    shop = RoomShop(tmp_path / "shop", files)
    job = shop.agreed(work=("/src/shop/**",), outputs=("/src/shop/price.py",))
    (shop.root / "node_modules").mkdir()
    os.symlink("../packages/sum", shop.root / "node_modules" / "sum")
    shop.write("node_modules/other/index.js", "1\n")
    found = shop.pull_request(job, {"packages/sum/index.js": "3\n"})
    assert outcome(found, job) == "failed"
    assert "outside_work_area" in found_codes(found)
    shop.git("switch", "-q", "main")
    package = shop.agreed(title="The sum", work=("/packages/sum/**",), outputs=("/packages/sum/index.js",))
    found = shop.pull_request(package, {"packages/sum/index.js": "3\n"})
    assert found.passed, found.reasons
