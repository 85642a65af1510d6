"""Which variables may come into donewhen's own process, and under which names the others are kept."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import donewhen
from donewhen.config.agent_runtimes import AGENT_VARIABLES
from donewhen.foundation.dependencies import NEEDED
from donewhen.foundation.start_variables import (
    KEPT_AS_DATA,
    acted_before_start,
    caller_name,
    may_come_in,
    start_environment,
)

LIBRARIES = "/opt/python/lib"
SOURCE = Path(donewhen.__file__).parent
# Read before the start, and a stand-in of the isolation that is not there yet.
_NOT_OF_CALLER = {"PYTHONUNBUFFERED", "STUB_NO_NS"}


@pytest.mark.parametrize(
    "name",
    [
        "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "PYTHONPLATLIBDIR", "PYTHONINSPECT",
        "PYTHONPYCACHEPREFIX", "LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "GLIBC_TUNABLES", "GCONV_PATH",
        "GIT_DIR", "GIT_CONFIG_COUNT", "GIT_EXEC_PATH", "GIT_SSH_COMMAND", "BASH_ENV", "OPENSSL_CONF", "LOCPATH",
        "COVERAGE_PROCESS_START", "SETUPTOOLS_USE_DISTUTILS", "RAY_RUNTIME_ENV_HOOK", "MY_MODEL_KEY",
        f"{KEPT_AS_DATA}HOME",
    ],
)  # fmt: skip
def test_a_variable_that_is_not_named_does_not_come_in_and_is_kept_as_data(name: str) -> None:
    kept = start_environment({name: "value"}, LIBRARIES)
    assert kept == {f"{KEPT_AS_DATA}{name}": "value"}
    assert caller_name(f"{KEPT_AS_DATA}{name}") == name


@pytest.mark.parametrize(
    "name", ["HOME", "PATH", "LC_ALL", "XDG_STATE_HOME", "OPENAI_API_KEY", "HTTPS_PROXY", "no_proxy", "DONEWHEN_DEBUG"]
)
def test_a_named_variable_comes_in_as_it_is(name: str) -> None:
    assert start_environment({name: "value"}, LIBRARIES) == {name: "value"}


def test_of_the_library_path_only_the_folder_of_the_interpreter_itself_comes_in() -> None:
    kept = start_environment({"LD_LIBRARY_PATH": f"/evil:{LIBRARIES}"}, LIBRARIES)
    assert kept["LD_LIBRARY_PATH"] == LIBRARIES
    assert "LD_LIBRARY_PATH" not in start_environment({"LD_LIBRARY_PATH": "/evil"}, LIBRARIES)
    assert not acted_before_start(kept, LIBRARIES)
    assert acted_before_start({"LD_LIBRARY_PATH": f"/evil:{LIBRARIES}"}, LIBRARIES)


@pytest.mark.parametrize("name", ["LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "GLIBC_TUNABLES", "GCONV_PATH"])
def test_what_the_loader_reads_needs_a_new_start_even_if_python_is_isolated(name: str) -> None:
    assert acted_before_start({"HOME": "/home/me", name: ""}, LIBRARIES)
    assert not acted_before_start({"HOME": "/home/me", "PYTHONPATH": "/x", "GIT_DIR": "/x"}, LIBRARIES)


def test_starting_twice_changes_nothing_more() -> None:
    once = start_environment({"HOME": "/h", "PYTHONPATH": "/x", "LD_LIBRARY_PATH": LIBRARIES}, LIBRARIES)
    assert not acted_before_start(once, LIBRARIES)
    assert {name: once[name] for name in once if may_come_in(name)} == {"HOME": "/h"}


def test_every_variable_that_the_code_reads_from_the_environment_may_come_in() -> None:
    """Other variables are read from ``CALLER_VARIABLES``; ``os.environ`` does not have them."""
    # The injected code runs in the processes of checks, and not in that of donewhen.
    paths = [path for path in SOURCE.rglob("*.py") if "injected" not in path.parts]
    read = {name: path for path in paths for name in _names_read(path)}
    assert len(read) > 5
    missing = {name: str(path) for name, path in read.items() if not may_come_in(name) and name not in _NOT_OF_CALLER}
    assert missing == {}
    assert {name for name in AGENT_VARIABLES if not may_come_in(name)} == set()


def test_the_packages_that_are_looked_for_are_those_that_an_installation_brings() -> None:
    project = (SOURCE.parents[1] / "pyproject.toml").read_text()
    required = re.findall(r'"([a-z]+)>=', project.partition("\ndependencies = [")[2].partition("]")[0])
    assert sorted({"pyyaml": "yaml"}.get(name, name) for name in required) == sorted(NEEDED)


def _names_read(path: Path) -> set[str]:
    """The literal names in ``os.environ["X"]`` and ``os.environ.get("X")``."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Subscript) and _is_environ(node.value):
            key: ast.expr = node.slice
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_environ(node.func.value):
            if node.func.attr != "get":
                continue
            key = node.args[0]
        else:
            continue
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            found.add(key.value)
    return found


def _is_environ(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "environ"
