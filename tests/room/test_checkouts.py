"""Honest checkouts: what git does to files when it checks them out is no change, and the room has the same files."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.foundation.errors import DonewhenError
from donewhen.jobs.room import checkout_forms, large_files
from room.checkout_kit import Checkout, git, outcome, room_of

pytestmark = pytest.mark.scenes

CONTENT = b"large \x00\xff content\n" * 100


def pointer(content: bytes) -> bytes:
    """What Git LFS commits instead of a content."""
    digest = hashlib.sha256(content).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {len(content)}\n".encode()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "shop")


def with_large_file(checkout: Checkout, content: bytes = CONTENT) -> None:
    """Commit the pointer of a large file, and have its content on disk."""
    checkout.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
    checkout.write("data/a.bin", pointer(content))
    checkout.commit()


HASH = hashlib.sha256(CONTENT).hexdigest()
IS_CONTENT = f"echo '{HASH}  data/a.bin' | sha256sum --check --quiet"


def test_a_large_file_is_unmodified_by_the_hash_in_its_pointer_and_the_room_has_its_content(checkout: Checkout) -> None:
    with_large_file(checkout)
    job = checkout.add(IS_CONTENT)
    checkout.write("data/a.bin", CONTENT)
    checkout.agree(job)
    assert outcome(checkout, job) == (True, "", [])
    assert room_of(checkout, job).runs == 1


def test_a_large_file_with_another_content_is_a_change(checkout: Checkout) -> None:
    with_large_file(checkout)
    job = checkout.add("grep -q small data/a.bin")
    checkout.write("data/a.bin", CONTENT)
    checkout.agree(job)
    checkout.write("data/a.bin", CONTENT.replace(b"large", b"small"))
    done, needs, outside = outcome(checkout, job)
    assert (done, needs, outside) == (False, "outside_work_area", ["data/a.bin"])
    assert "git lfs fetch" in (checkout.last_run(job).told or "")


def test_the_agreed_content_of_a_changed_large_file_comes_from_what_was_downloaded(checkout: Checkout) -> None:
    with_large_file(checkout)
    job = checkout.add(f"grep -q large data/a.bin || {IS_CONTENT}")
    stored = checkout.top / ".git" / "lfs" / "objects" / HASH[:2] / HASH[2:4] / HASH
    stored.parent.mkdir(parents=True)
    stored.write_bytes(CONTENT)
    checkout.agree(job)
    checkout.write("data/a.bin", b"small")
    done, needs, outside = outcome(checkout, job)
    # Passes as agreed, with the content; fails as the agent has it.
    assert (done, needs, outside) == (False, "", ["data/a.bin"])
    assert room_of(checkout, job).failed_in == "whole"


def test_a_pointer_on_disk_has_the_downloaded_content_in_the_room(checkout: Checkout) -> None:
    with_large_file(checkout)
    job = checkout.add(IS_CONTENT)
    checkout.write("data/a.bin", CONTENT)
    stored = checkout.top / ".git" / "lfs" / "objects" / HASH[:2] / HASH[2:4] / HASH
    stored.parent.mkdir(parents=True)
    stored.write_bytes(CONTENT)
    checkout.agree(job)
    checkout.write("data/a.bin", pointer(CONTENT))
    assert outcome(checkout, job) == (True, "", [])


def test_a_downloaded_file_with_another_content_is_not_used(checkout: Checkout) -> None:
    with_large_file(checkout)
    job = checkout.add("grep -q small data/a.bin")
    checkout.agree(job)
    stored = checkout.top / ".git" / "lfs" / "objects" / HASH[:2] / HASH[2:4] / HASH
    stored.parent.mkdir(parents=True)
    stored.write_bytes(CONTENT.replace(b"large", b"small"))
    done, needs, outside = outcome(checkout, job)
    assert (done, needs, outside) == (False, "", [])


def test_each_large_file_is_hashed_once(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout.write(".gitattributes", "*.bin filter=lfs -text\n")
    contents = {f"data/{number}.bin": f"{checkout.top} {number}".encode() for number in range(30)}
    for name, content in contents.items():
        checkout.write(name, pointer(content))
    job = checkout.add("true")
    for name, content in contents.items():
        checkout.write(name, content)
    hashed: list[Path] = []
    names = large_files._names

    def counted(path: Path, like: str) -> tuple[str, str]:
        hashed.append(path)
        return names(path, like)

    monkeypatch.setattr(large_files, "_names", counted)
    checkout.agree(job)
    assert outcome(checkout, job) == (True, "", [])
    assert len(hashed) == len(contents)


def test_without_attributes_that_convert_git_is_not_asked(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout.write(".gitattributes", "* text=auto\n*.png binary\n")
    job = checkout.add("true")
    monkeypatch.setattr(checkout_forms, "temporary_repository", None)
    checkout.agree(job)
    assert outcome(checkout, job) == (True, "", [])


def checked_out(checkout: Checkout, name: str) -> bytes:
    """Have git check out a file anew, and return what it wrote."""
    path = checkout.root / name
    path.unlink()
    git(checkout.top, "checkout", "--", str(path))
    return path.read_bytes()


HAS_CR = """grep -q "$(printf '\\r')" data/dos.txt"""


def test_line_ends_that_the_attributes_ask_for_are_no_change_and_are_in_the_room(checkout: Checkout) -> None:
    checkout.write(".gitattributes", "data/*.txt text eol=crlf\n")
    checkout.write("data/dos.txt", "a\nb\n")
    job = checkout.add(f'{HAS_CR}; test -z "$(git status --porcelain)"')
    assert checked_out(checkout, "data/dos.txt") == b"a\r\nb\r\n"
    checkout.agree(job)
    assert outcome(checkout, job) == (True, "", [])


def test_a_file_with_the_stored_line_ends_has_those_of_a_checkout_in_the_room(checkout: Checkout) -> None:
    checkout.write(".gitattributes", "data/*.txt text eol=crlf\n")
    checkout.write("data/dos.txt", "a\nb\n")
    job = checkout.add(HAS_CR)
    checked_out(checkout, "data/dos.txt")
    checkout.agree(job)
    # git reports no change here, and neither does the room.
    checkout.write("data/dos.txt", "a\nb\n")
    assert outcome(checkout, job) == (True, "", [])


def test_line_ends_by_the_settings_of_a_user_are_no_change(checkout: Checkout) -> None:
    checkout.write("data/a.txt", "a\nb\n")
    job = checkout.add('test -z "$(git status --porcelain)"')
    git(checkout.top, "config", "core.autocrlf", "true")
    assert checked_out(checkout, "data/a.txt") == b"a\r\nb\r\n"
    checkout.agree(job)
    assert outcome(checkout, job) == (True, "", [])


def test_a_file_in_another_encoding_is_unmodified_and_in_that_encoding_in_the_room(checkout: Checkout) -> None:
    checkout.write(".gitattributes", "*.u16 text working-tree-encoding=UTF-16\n")
    checkout.write("data/a.u16", "Grüße\n".encode("utf-16"))
    job = checkout.add('test "$(iconv -f UTF-16 -t UTF-8 data/a.u16)" = Grüße')
    checkout.agree(job)
    assert outcome(checkout, job) == (True, "", [])
    checkout.write("data/a.u16", "Grusel\n".encode("utf-16"))


def test_what_an_agent_writes_into_an_ident_is_not_in_the_room(checkout: Checkout) -> None:
    checkout.write(".gitattributes", "*.sh ident\n")
    checkout.write("version.sh", 'VERSION="$Id$"\n')
    job = checkout.add('. ./version.sh; test -z "$CHEATED"; grep -q "Id: [0-9a-f]" version.sh')
    assert b"$Id: " in checked_out(checkout, "version.sh")
    checkout.agree(job)
    checkout.write("version.sh", 'VERSION="$Id: "; CHEATED=yes; echo "$"\n')
    assert outcome(checkout, job) == (True, "", [])


UPPER = "data/*.up filter=upper\n"


def with_filter(checkout: Checkout, clean: str = "tr a-z A-Z", smudge: str = "tr A-Z a-z") -> None:
    git(checkout.top, "config", "filter.upper.clean", clean)
    git(checkout.top, "config", "filter.upper.smudge", smudge)
    checkout.write(".gitattributes", UPPER)
    checkout.write("data/a.up", "hello\n")
    checkout.commit()
    assert git(checkout.top, "show", "HEAD:data/a.up") == "HELLO"


def test_filter_commands_are_sealed_with_the_agreement(checkout: Checkout) -> None:
    with_filter(checkout)
    git(checkout.top, "config", "filter.other.clean", "cat")
    job = checkout.add("grep -q hello data/a.up")
    agreed = checkout.agree(job)
    assert agreed.tree is not None
    assert agreed.tree.filters == {"upper.clean": "tr a-z A-Z", "upper.smudge": "tr A-Z a-z"}
    # The agent's settings and attributes decide nothing any more.
    git(checkout.top, "config", "filter.upper.clean", "false")
    git(checkout.top, "config", "filter.upper.smudge", "echo cheated")
    (checkout.top / ".git" / "info").mkdir(exist_ok=True)
    (checkout.top / ".git" / "info" / "attributes").write_text("*.up -filter\n")
    assert outcome(checkout, job) == (True, "", [])


def test_a_setting_that_an_agent_makes_hides_no_change(checkout: Checkout) -> None:
    with_filter(checkout)
    job = checkout.add("grep -q goodbye data/a.up")
    checkout.agree(job)
    git(checkout.top, "config", "filter.upper.clean", "echo HELLO")
    checkout.write("data/a.up", "goodbye\n")
    assert git(checkout.top, "diff", "--stat", "--", "data") == ""
    assert outcome(checkout, job) == (False, "outside_work_area", ["data/a.up"])


def test_the_agreed_content_of_a_changed_file_is_that_of_a_checkout(checkout: Checkout) -> None:
    with_filter(checkout)
    job = checkout.add("grep -qx hello data/a.up")
    checkout.agree(job)
    checkout.write("data/a.up", "goodbye\n")
    done, needs, _ = outcome(checkout, job)
    assert (done, needs, room_of(checkout, job).failed_in) == (False, "", "whole")


def test_the_program_of_a_filter_is_the_agreed_one_where_it_lies_in_the_project(checkout: Checkout) -> None:
    checkout.write("tools/upper.sh", '. "$(dirname "$0")/letters.sh"\ntr a-z "$LETTERS"\n', program=True)
    checkout.write("tools/letters.sh", "LETTERS=A-Z\n")
    with_filter(checkout, clean="sh tools/upper.sh")
    job = checkout.add("grep -q hello data/a.up")
    checkout.agree(job)
    checkout.write("tools/letters.sh", "LETTERS=B-ZA\n")
    assert outcome(checkout, job) == (True, "", ["tools/letters.sh"])


def test_a_filter_that_is_gone_makes_its_files_count_as_changed_and_says_so(checkout: Checkout, tmp_path: Path) -> None:
    program = tmp_path / "upper.sh"
    program.write_text("tr a-z A-Z\n")
    with_filter(checkout, clean=f"sh {program}", smudge=f"sh {program}")
    job = checkout.add("grep -q hello data/a.up")
    checkout.agree(job)
    program.unlink()
    assert outcome(checkout, job) == (False, "outside_work_area", ["data/a.up"])
    assert "The filter upper failed, so data/a.up counts as changed" in (checkout.last_run(job).told or "")


def test_a_filter_without_commands_makes_its_files_uncommitted_and_says_so(checkout: Checkout) -> None:
    with_filter(checkout)
    job = checkout.add("true")
    git(checkout.top, "config", "--remove-section", "filter.upper")
    with pytest.raises(DonewhenError, match="The filter upper is not part of the agreement"):
        checkout.agree(job)
    # What is stored is what is agreed.
    checkout.write("data/a.up", "HELLO\n")
    checkout.agree(job)
    assert outcome(checkout, job) == (True, "", [])


def test_a_filter_is_shown_to_the_person_who_agrees(checkout: Checkout, as_person: Callable[..., Any]) -> None:
    with_filter(checkout)
    checkout.add("true")
    played = as_person(["agree"], checkout.root)
    assert played.status == 0
    assert "filter upper: clean `tr a-z A-Z`, smudge `tr A-Z a-z`" in played.screen


# A program that encrypts, as git-crypt does: its key is in the repository, and it refuses what it did not write.
CRYPT = """\
#!/usr/bin/env python3
import hashlib, pathlib, subprocess, sys

folder = subprocess.run(["git", "rev-parse", "--git-dir"], stdout=-1, text=True, check=True).stdout.strip()
key = int((pathlib.Path(folder) / "git-crypt" / "keys" / "default").read_text())
data = sys.stdin.buffer.read()
if sys.argv[1] == "clean":
    sys.stdout.buffer.write(hashlib.sha256(data).digest() + bytes((byte + key) % 256 for byte in data))
else:
    plain = bytes((byte - key) % 256 for byte in data[32:])
    if hashlib.sha256(plain).digest() != data[:32]:
        sys.exit("this was not encrypted with this key")
    sys.stdout.buffer.write(plain)
"""


def with_encrypted_file(checkout: Checkout, programs: Path) -> Path:
    programs.mkdir()
    (programs / "git-crypt").write_text(CRYPT)
    (programs / "git-crypt").chmod(0o755)
    key = checkout.top / ".git" / "git-crypt" / "keys" / "default"
    key.parent.mkdir(parents=True)
    key.write_text("7")
    for kind in ("clean", "smudge"):
        git(checkout.top, "config", f"filter.git-crypt.{kind}", f'"{programs}/git-crypt" {kind}')
    git(checkout.top, "config", "filter.git-crypt.required", "true")
    checkout.write(".gitattributes", "secrets/* filter=git-crypt diff=git-crypt\n")
    checkout.write("secrets/price.txt", "three\n")
    checkout.commit()
    return key


def test_files_that_git_crypt_keeps_encrypted_are_no_change_and_are_readable_in_the_room(
    checkout: Checkout, tmp_path: Path
) -> None:
    key = with_encrypted_file(checkout, tmp_path / "programs")
    job = checkout.add("grep -qx three secrets/price.txt")
    checkout.agree(job)
    assert key.is_file()
    assert outcome(checkout, job) == (True, "", [])


def test_another_content_of_an_encrypted_file_is_a_change(checkout: Checkout, tmp_path: Path) -> None:
    key = with_encrypted_file(checkout, tmp_path / "programs")
    job = checkout.add("grep -qx four secrets/price.txt")
    checkout.agree(job)
    checkout.write("secrets/price.txt", "four\n")
    assert outcome(checkout, job) == (False, "outside_work_area", ["secrets/price.txt"])
    # A key of the agent's own opens nothing, so the agreed content can't be had: that is said.
    key.write_text("8")
    assert outcome(checkout, job)[0] is False
    assert "The filter git-crypt failed" in (checkout.last_run(job).told or "")


@pytest.mark.skipif(shutil.which("git-crypt") is None, reason="LOUD: git-crypt is not installed")
def test_the_real_git_crypt(checkout: Checkout) -> None:
    subprocess.run(["git-crypt", "init"], cwd=checkout.top, check=True, capture_output=True)
    checkout.write(".gitattributes", "secrets/* filter=git-crypt diff=git-crypt\n")
    checkout.write("secrets/price.txt", "three\n")
    checkout.commit()
    assert git(checkout.top, "grep", "-c", "--no-textconv", "-a", "GITCRYPT", "HEAD", "--", "secrets")
    job = checkout.add("grep -qx three secrets/price.txt")
    checkout.agree(job)
    assert outcome(checkout, job) == (True, "", [])
