"""What a command that is kept apart can read and change, and what it finds where."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from isolation.isolation_kit import STORE, Apart, need


def test_the_room_is_read_and_written(apart: Apart) -> None:
    assert apart.sh("cat answer.txt; echo new > made.txt; mkdir a b; mv made.txt a/; mv a/made.txt b/").output == (
        "the room's"
    )
    assert (apart.room / "b/made.txt").read_text() == "new\n"


@pytest.mark.parametrize("name", ["shop/answer.txt", "shop/.donewhen/ledger", "person/key", "rooms/other/answer.txt"])
def test_what_judges_and_what_is_private_can_not_be_read(apart: Apart, name: str) -> None:
    secret = apart.base / name
    secret.parent.mkdir(exist_ok=True)
    if not secret.exists():
        secret.write_text("another room's")
    content = secret.read_text()
    result = apart.sh(f"cat '{secret}'; cat /proc/self/root/'{secret}'; cat '{secret.parent}'/*; echo tried")
    assert content not in result.output
    assert result.output.endswith("tried\n")


def test_what_judges_can_not_be_changed_or_removed(apart: Apart) -> None:
    ledger, key = apart.place / ".donewhen/ledger", apart.person / "key"
    apart.sh(f"for f in {ledger} {key}; do echo forged > $f; rm -f $f; mv $f $f.x; ln -f $f mine; chmod 777 $f; done")
    apart.python(f"import os; os.truncate({str(key)!r}, 0)")
    assert (ledger.read_text(), key.read_text()) == ("{}", "secret")
    assert [path.name for path in ledger.parent.iterdir()] == ["ledger"]


def test_the_rest_of_the_machine_can_be_used_and_not_written_to(apart: Apart) -> None:
    # A folder that is not hidden: below the home folder or a temporary one it would be.
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent) as folder:
        result = apart.sh(f"touch {folder}/new; touch /etc/donewhen-test; touch /usr/donewhen-test; ls /etc/passwd")
        assert result.output.endswith("/etc/passwd\n")
        assert os.listdir(folder) == []
    assert not os.path.exists("/etc/donewhen-test")
    assert not os.path.exists("/usr/donewhen-test")


def test_stores_are_read_and_not_written_to(apart: Apart) -> None:
    store = apart.person / "store"
    store.mkdir()
    (store / "package").write_text("installed")
    apart.changed(read_only={STORE: STORE, store: store})
    result = apart.sh(f"cat {store}/package; echo spoiled > {store}/package; touch {store}/new; rm {store}/package")
    assert result.output.startswith("installed")
    assert {path.name: path.read_text() for path in store.iterdir()} == {"package": "installed"}


def test_reports_can_be_written(apart: Apart) -> None:
    reports = apart.confinement.writable[0]
    assert apart.sh(f"echo '<x/>' > {reports}/junit.xml").succeeded
    assert (reports / "junit.xml").exists()


def test_home_and_temporary_folders_are_new_and_empty_and_private(apart: Apart) -> None:
    with tempfile.NamedTemporaryFile(dir="/tmp", prefix="donewhen-canary-") as canary:
        scratch = "/tmp" if apart.confinement.level == "namespaces" else str(apart.confinement.scratch)
        result = apart.sh(
            f"ls -A $HOME; cat {canary.name}; cd; touch {scratch}/donewhen-left $HOME/left && echo written",
            TMPDIR=scratch,
        )
    assert "written" in result.output
    assert "No such file" in result.output or "Permission denied" in result.output
    assert not os.path.exists("/tmp/donewhen-left")
    assert os.listdir(apart.person) == ["key"]


def test_large_folders_of_the_machine_are_empty(namespaces: Apart) -> None:
    listed = namespaces.sh("ls -A /run /var/tmp /dev/shm; touch /dev/shm/a /var/tmp/b /run/c && echo written").output
    assert listed.replace("\n", "").endswith("written")
    names = [line for line in listed.splitlines() if line and not line.endswith(":") and line != "written"]
    # The way to what lies below the temporary folder, and nothing else.
    assert names == []
    assert not os.path.exists("/dev/shm/a")


def test_shared_locks_of_processes_work(apart: Apart) -> None:
    code = "import multiprocessing as m; lock = m.Lock(); lock.acquire(); print('locked')"
    assert apart.python(code).output == "locked\n"


def test_a_link_out_of_the_room_leads_nowhere(apart: Apart) -> None:
    (apart.room / "link").symlink_to(apart.person / "key")
    os.link(apart.room / "answer.txt", apart.room / "hard")
    result = apart.sh("cat link; cat hard")
    assert result.output.endswith("the room's")
    assert "secret" not in result.output


@pytest.mark.parametrize("name", ["plain", "with space", "größe ü", "new\nline", "quote'\"$x"])
def test_the_room_is_at_the_project_s_own_path(tmp_path: Path, name: str) -> None:
    need("namespaces")
    apart = Apart(tmp_path, "namespaces", place=tmp_path / name)
    result = apart.sh('pwd -P; cat "$PLACE/answer.txt"', PLACE=str(tmp_path / name))
    assert result.output == f"{tmp_path / name}\nthe room's"


def test_an_editable_installation_means_the_room(namespaces: Apart) -> None:
    for folder, whose in ((namespaces.place, "the checkout's"), (namespaces.room, "the room's")):
        (folder / "src").mkdir()
        (folder / "src/shop.py").write_text(f"whose = {whose!r}\n")
    # As the path file of an editable installation does.
    result = namespaces.python("import shop; print(shop.whose, shop.__file__)", PYTHONPATH=f"{namespaces.place}/src")
    assert result.output == f"the room's {namespaces.place}/src/shop.py\n"


def test_commands_run_in_folders_of_the_room(supervised: Apart) -> None:
    (supervised.room / "packages/one").mkdir(parents=True)
    assert supervised.sh("pwd -P", inside="packages/one").output == f"{supervised.top}/packages/one\n"


def test_projects_below_the_home_folder_have_their_room_there(tmp_path: Path) -> None:
    need("namespaces")
    apart = Apart(tmp_path, "namespaces", place=tmp_path / "person/work/shop")
    result = apart.sh("pwd -P; ls -A $HOME $HOME/work; touch $HOME/new")
    assert result.output == f"{apart.place}\n{apart.person}:\nwork\n\n{apart.person}/work:\nshop\n"
    assert sorted(os.listdir(apart.person)) == ["key", "work"]


@pytest.mark.parametrize("parent", ["person", "elsewhere"])
def test_a_project_is_found_through_its_link_too(tmp_path: Path, parent: str) -> None:
    need("namespaces")
    (tmp_path / parent).mkdir()
    (tmp_path / "real").mkdir()
    link = tmp_path / parent / "link"
    link.symlink_to(tmp_path / "real")
    apart = Apart(tmp_path, "namespaces", place=link)
    result = apart.sh(f"pwd -P; cat {link}/answer.txt {tmp_path}/real/answer.txt")
    assert result.output == f"{tmp_path}/real\nthe room'sthe room's"


def test_packages_lie_where_the_project_has_them(namespaces: Apart) -> None:
    environment = namespaces.place / ".venv"
    (environment / "lib").mkdir(parents=True)
    (environment / "lib/package.py").write_text("")
    (environment / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (environment / "planted.py").write_text("")
    (namespaces.room / ".venv").mkdir()
    parts = {environment / name: environment / name for name in ("lib", "pyvenv.cfg")}
    namespaces.changed(read_only={STORE: STORE, **parts})
    result = namespaces.sh("ls .venv .venv/lib; cat .venv/pyvenv.cfg; touch .venv/lib/new")
    assert result.output.startswith(".venv:\nlib\npyvenv.cfg\n\n.venv/lib:\npackage.py\nhome = /usr/bin\n")
    assert os.listdir(environment / "lib") == ["package.py"]


def test_programs_in_the_home_folder_are_in_reach_only_if_they_are_named(apart: Apart) -> None:
    tools = apart.person / "tools"
    tools.mkdir()
    (tools / "tool").write_text("#!/bin/sh\necho runs\n")
    (tools / "tool").chmod(0o755)
    assert "runs" not in apart.sh(f"{tools}/tool; cat {tools}/tool").output
    apart.changed(read_only={tools: tools})
    assert apart.sh(f"{tools}/tool").output == "runs\n"
