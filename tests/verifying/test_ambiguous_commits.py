"""A base or a commit that can be read in two ways is refused: what is judged has to be what others see."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from verify_room_kit import RIGHT, WRONG, RoomShop, found_codes

from donewhen.foundation.git import GitError
from donewhen.jobs.verifying.base_branch import BaseError

CHECK = "file /src/shop/price.py matches /sum/"


def test_a_file_of_git_with_the_name_of_the_base_is_not_the_base(tmp_path: Path) -> None:
    shop = RoomShop(tmp_path / "shop")
    job = shop.agreed(CHECK)
    assert not shop.pull_request(job, {"src/shop/price.py": RIGHT}).reasons
    own = shop.git("rev-parse", "HEAD")
    (shop.folder / ".git/main").write_text(own)
    with pytest.raises(BaseError, match="ambiguous"):
        shop.looked(job)
    (shop.folder / ".git/main").unlink()
    # A file with the base's own commit changes nothing.
    (shop.folder / ".git/main").write_text(shop.git("rev-parse", "refs/heads/main"))
    assert not shop.looked(job).reasons


def test_a_commit_that_has_the_result_twice_is_refused(tmp_path: Path) -> None:
    shop = RoomShop(tmp_path / "shop")
    job = shop.agreed(CHECK)
    assert not shop.pull_request(job, {"src/shop/price.py": RIGHT}).reasons
    assert found_codes(shop.pushed(job, {"src/shop/price.py": f"{WRONG}# done\n"})) >= {"criterion_failed"}
    shop.write("good.py", RIGHT)
    good = shop.git("hash-object", "-w", "good.py").strip()
    bad = shop.git("rev-parse", "HEAD:src/shop/price.py").strip()
    empty = shop.git("rev-parse", "HEAD:src/shop/__init__.py").strip()
    entries = [("__init__.py", empty), ("price.py", bad), ("price.py", good)]
    raw = b"".join(f"100644 {name}".encode() + b"\0" + bytes.fromhex(blob) for name, blob in entries)
    (tmp_path / "tree").write_bytes(raw)
    tree = shop.git("hash-object", "-t", "tree", "-w", "--literally", str(tmp_path / "tree")).strip()
    for parent, folder in (("HEAD:src", "shop"), ("HEAD:", "src")):
        rows = shop.git("ls-tree", parent).splitlines()
        listing = "".join(
            f"040000 tree {tree}\t{folder}\n" if row.endswith(f"\t{folder}") else f"{row}\n" for row in rows
        )
        made = subprocess.run(
            ["git", "mktree"], cwd=shop.folder, input=listing, capture_output=True, text=True, check=True
        )
        tree = made.stdout.strip()
    shop.git("update-ref", "refs/heads/agent", shop.git("commit-tree", tree, "-p", "HEAD", "-m", "Both").strip())
    with pytest.raises(GitError, match="two ways"):
        shop.looked(job)
