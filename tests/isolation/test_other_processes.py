"""What a command that is kept apart can do to other programs, and what it gets from the one that has started it."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from isolation.isolation_kit import Apart, need

_CONNECT = """
import socket, sys
s = socket.socket({family}, socket.SOCK_STREAM)
s.settimeout(20)
try:
    s.connect({address!r})
    print(s.recv(10).decode())
except OSError as error:
    print("refused", error)
"""


@contextmanager
def listening(family: int, address: object) -> Iterator[object]:
    """A server that says hello to everybody."""
    with socket.socket(family, socket.SOCK_STREAM) as server:
        server.bind(address)  # type: ignore[arg-type]
        server.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                connection.send(b"hello")
                connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield server.getsockname()
        finally:
            server.shutdown(socket.SHUT_RDWR)
    thread.join()


def connect(apart: Apart, family: str, address: object) -> str:
    return apart.python(_CONNECT.format(family=f"socket.{family}", address=address)).output


def test_sockets_of_other_programs_can_not_be_opened(namespaces: Apart) -> None:
    # One that is not in a hidden folder anyway.
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent) as folder:
        path = f"{folder}/s"
        if len(path) > 100:
            pytest.skip("LOUD: the path of these tests is too long for a socket; sockets are NOT tested")
        with listening(socket.AF_UNIX, path):
            assert connect(namespaces, "AF_UNIX", path).startswith("refused")


def test_sockets_in_temporary_folders_and_in_the_home_folder_are_not_there(namespaces: Apart) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        for path in (f"{folder}/s", f"{namespaces.person}/s"):
            if len(path) <= 100:
                with listening(socket.AF_UNIX, path):
                    assert connect(namespaces, "AF_UNIX", path).startswith("refused")


def test_abstract_sockets_of_other_programs_can_not_be_opened(apart: Apart) -> None:
    name = f"\0donewhen-{os.urandom(6).hex()}"
    with listening(socket.AF_UNIX, name):
        assert connect(apart, "AF_UNIX", name).startswith("refused")


def test_the_command_s_own_sockets_work(supervised: Apart) -> None:
    code = """
import socket, threading
for family, address in ((socket.AF_UNIX, "s"), (socket.AF_UNIX, chr(0) + "own"), (socket.AF_INET, ("127.0.0.1", 0))):
    server = socket.socket(family)
    server.bind(address); server.listen()
    threading.Thread(target=lambda: server.accept()[0].send(b"hello")).start()
    client = socket.socket(family); client.connect(server.getsockname()); print(client.recv(10).decode())
"""
    assert supervised.python(code).output == "hello\nhello\nhello\n"


def test_servers_of_the_machine_are_out_of_reach_with_a_network_of_its_own(namespaces: Apart) -> None:
    with listening(socket.AF_INET, ("127.0.0.1", 0)) as address:
        assert connect(namespaces, "AF_INET", address).startswith("refused")
    assert "refused" in connect(namespaces, "AF_INET", ("192.0.2.1", 9))


def test_servers_of_the_machine_are_in_reach_with_its_network(tmp_path: Path) -> None:
    need("namespaces", "host")
    apart = Apart(tmp_path, "namespaces", "host")
    with listening(socket.AF_INET, ("127.0.0.1", 0)) as address:
        assert connect(apart, "AF_INET", address) == "hello\n"
    assert apart.sh("cat /etc/resolv.conf").succeeded == os.path.isfile("/etc/resolv.conf")


def test_no_other_process_can_be_signaled_or_looked_into(apart: Apart) -> None:
    with subprocess.Popen(["sleep", "600"], env={"CANARY": "secret-of-another"}) as other:
        try:
            result = apart.sh(
                f"kill -9 {other.pid} {os.getpid()}; for p in {other.pid} {os.getpid()} $PPID; do "
                "cat /proc/$p/environ; ls -l /proc/$p/fd; ls /proc/$p/root/; cat /proc/$p/maps; done; echo tried"
            )
            assert result.output.endswith("tried\n")
            assert "secret-of-another" not in result.output
            assert "PYTEST" not in result.output
            assert other.poll() is None
        finally:
            other.kill()


def test_other_processes_are_not_even_seen(namespaces: Apart) -> None:
    result = namespaces.sh("ls /proc | grep -c '^[0-9]'; echo $$")
    number, own = (int(line) for line in result.output.split())
    assert number <= 6
    assert own < 20


def test_nothing_is_inherited_but_the_standard_streams(supervised: Apart) -> None:
    read, write = os.pipe()
    os.set_inheritable(write, True)
    try:
        code = (
            "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:-1], os.readlink('/proc/self/fd/0'))"
        )
        assert supervised.python(code).output == "[0, 1, 2] /dev/null\n"
    finally:
        os.close(read)
        os.close(write)


def test_there_is_no_terminal(supervised: Apart) -> None:
    assert not supervised.sh("exec 3<> /dev/tty").succeeded


def test_no_privileges_can_be_gained(supervised: Apart) -> None:
    assert "NoNewPrivs:\t1" in supervised.sh("cat /proc/self/status").output


def test_root_has_no_powers(apart: Apart) -> None:
    assert "CapEff:\t0000000000000000" in apart.sh("cat /proc/self/status").output
    closed = apart.room / "agreed.txt"
    closed.write_text("agreed")
    closed.chmod(0o444)
    apart.sh("echo changed > agreed.txt")
    assert closed.read_text() == "agreed"


def test_mounts_can_not_be_taken_away(apart: Apart) -> None:
    result = apart.sh(
        f"unshare -Urm sh -c 'umount {apart.place}; umount {apart.person}; mount --bind / /mnt; "
        f"cat /mnt{apart.person}/key'; umount {apart.person}; cat {apart.person}/key; echo tried"
    )
    assert "secret" not in result.output
    assert result.output.endswith("tried\n")


def test_no_namespaces_can_be_made_inside(namespaces: Apart) -> None:
    from donewhen.isolation.bubblewrap import bubblewrap

    if not bubblewrap().can_forbid_namespaces:
        pytest.skip("LOUD: this bubblewrap can't forbid nested namespaces; that is NOT tested")
    assert not namespaces.sh("unshare -Ur true").succeeded


def test_variables_are_those_that_were_given(supervised: Apart, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/nowhere")
    output = supervised.run("/usr/bin/env", GIVEN="with\nnew line = ü").output
    assert "GIVEN=with\nnew line = ü\n" in output
    assert "SSH_AUTH_SOCK" not in output
    assert "PYTEST" not in output


@pytest.mark.parametrize("variable", ["LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "BASH_ENV"])
def test_variables_for_the_command_don_t_change_what_keeps_it_apart(supervised: Apart, variable: str) -> None:
    (supervised.room / "marshal.py").write_text("raise SystemExit(0)")
    (supervised.room / "ctypes.py").write_text("raise SystemExit(0)")
    result = supervised.run("/bin/sh", "-c", "exit 7", **{variable: str(supervised.top)})
    assert result.exit_code == 7
