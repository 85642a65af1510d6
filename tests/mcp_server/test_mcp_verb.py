"""`donewhen mcp` as a command: what it needs, and what does not need it. And the page that describes it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from donewhen.foundation.install_line import install_line
from donewhen.mcp.tools import TOOLS

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "use-the-mcp-server.md"


def python(code: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )


def test_without_the_extra_the_command_says_what_to_install(tmp_path: Path) -> None:
    done = python(
        "import sys; sys.modules['mcp'] = None; from donewhen.cli import main; sys.exit(main(['mcp']))", tmp_path
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert "donewhen mcp needs the optional dependency donewhen[mcp]" in done.stderr
    assert install_line("mcp") in done.stderr


def test_an_older_package_of_that_name_is_as_good_as_none(tmp_path: Path) -> None:
    old = "import sys, types; m = types.ModuleType('mcp.server'); sys.modules['mcp.server'] = m"
    done = python(f"{old}; from donewhen.cli import main; sys.exit(main(['mcp']))", tmp_path)
    assert done.returncode == 2
    assert install_line("mcp") in done.stderr


def test_a_project_that_is_not_there_is_a_mistake_on_the_command_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "donewhen", "mcp", "--project", "nowhere"]
    done = subprocess.run(command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "nowhere" in done.stderr


def test_a_server_without_a_client_ends_at_once(tmp_path: Path) -> None:
    pytest.importorskip("mcp.server", reason="LOUD: donewhen[mcp] is not installed, so the MCP server is NOT tested")
    command = [sys.executable, "-m", "donewhen", "mcp"]
    done = subprocess.run(command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_neither_hooks_nor_the_tools_themselves_import_the_package(tmp_path: Path) -> None:
    hook = "from donewhen.cli import main; main(['hook', 'stop', '--runtime', 'claude'])"
    tools = "import donewhen.mcp.server"
    for code, ours in ((hook, False), (tools, True)):
        done = python(f"{code}\nimport sys; print([one for one in sys.modules if 'mcp' in one])", tmp_path)
        assert done.returncode == 0, done.stderr
        found = eval(done.stdout.splitlines()[-1])  # noqa: S307 - a list of names that we have just printed
        assert bool(found) is ours
        assert all(one.startswith("donewhen.mcp") for one in found)


def test_the_page_lists_every_tool_and_no_other() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [one.name for one in TOOLS]
