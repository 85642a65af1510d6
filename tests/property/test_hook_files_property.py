"""Any settings file, however oddly it is written: what we put in comes out again, and nothing else is touched."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from donewhen.adapters.hook_files import BACKUP_SUFFIX, install_hooks, installed_hooks, uninstall_hooks
from donewhen.adapters.hook_targets import HOOK_TARGETS, HookTarget
from donewhen.foundation.errors import ConfigError
from donewhen_kit import examples

EVENTS = ("Stop", "SubagentStop", "TaskCompleted", "PreToolUse", "SessionStart", "Custom")
WHITE = st.sampled_from(["", "", " ", "\n", "\t", "\r\n", "\n    ", " \n\t "])
TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
QUICK = settings(
    max_examples=examples(70),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)
# Every write is flushed to the disk, which is the one thing that these tests are not about.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
foreign_hooks = st.fixed_dictionaries(
    {"type": st.just("command"), "command": st.sampled_from(["beep", "say 'done'", "donewhen check", "é && x", ""])},
    optional={"timeout": st.integers(0, 600) | st.floats(0, 9), "x": plain},
)
groups = st.fixed_dictionaries(
    {"hooks": st.lists(foreign_hooks, max_size=3)},
    optional={"matcher": st.sampled_from(["", "*", "Bash", "StructuredOutput"]), "note": plain},
)
events = st.dictionaries(st.sampled_from(EVENTS), st.lists(groups | plain, max_size=4), max_size=5)
documents = st.builds(
    lambda before, hooks, after: before | ({} if hooks is None else {"hooks": hooks}) | after,
    st.dictionaries(TEXT.filter(lambda key: key != "hooks"), plain, max_size=3),
    st.none() | events,
    st.dictionaries(TEXT.filter(lambda key: key != "hooks"), plain, max_size=2),
)
runtimes = st.sampled_from(list(HOOK_TARGETS.values()))


@st.composite
def odd_files(draw: st.DrawFn) -> bytes:
    """A document with white space and spellings as nobody would choose them."""

    def spelled(value: Any) -> str:
        if isinstance(value, dict):
            members = [f"{spelled(key)}{draw(WHITE)}:{draw(WHITE)}{spelled(one)}" for key, one in value.items()]
            return "{" + draw(WHITE) + f"{draw(WHITE)},{draw(WHITE)}".join(members) + draw(WHITE) + "}"
        if isinstance(value, list):
            return "[" + draw(WHITE) + f",{draw(WHITE)}".join(map(spelled, value)) + draw(WHITE) + "]"
        if isinstance(value, str):
            return json.dumps(value, ensure_ascii=draw(st.booleans()))
        if isinstance(value, float):
            return draw(st.sampled_from([repr(value), f"{value:.17E}"]))
        return json.dumps(value)

    return (draw(WHITE) + spelled(draw(documents)) + draw(WHITE)).encode()


@contextmanager
def settings_file(content: bytes | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="donewhen-", dir=MEMORY) as folder:
        path = Path(folder, "settings.json")
        if content is not None:
            path.write_bytes(content)
        yield path


def put_in(path: Path, runtime: HookTarget) -> None:
    install_hooks(path, runtime.entries("user", path.parent, {}))


def take_out(path: Path, runtime: HookTarget) -> None:
    uninstall_hooks(path, keep_places=runtime.positions_matter)


def foreign(content: bytes) -> str:
    """Everything but our own groups, in order; an event that has nothing else does not count."""
    data = json.loads(content)
    for event_, found in list(data.get("hooks", {}).items()):
        data["hooks"][event_] = [one for one in found if "donewhen/hook" not in json.dumps(one)]
        if not data["hooks"][event_]:
            del data["hooks"][event_]
    if not data.get("hooks"):
        data.pop("hooks", None)
    return json.dumps(data)


@QUICK
@given(odd_files(), runtimes)
def test_uninstalling_after_installing_puts_back_every_byte(content: bytes, runtime: HookTarget) -> None:
    with settings_file(content) as path:
        put_in(path, runtime)
        take_out(path, runtime)
        assert path.read_bytes() == content
        assert os.listdir(path.parent) == [path.name]


@QUICK
@given(odd_files(), runtimes)
def test_installing_twice_is_installing_once(content: bytes, runtime: HookTarget) -> None:
    with settings_file(content) as path:
        put_in(path, runtime)
        once = path.read_bytes()
        put_in(path, runtime)
        assert path.read_bytes() == once
        assert path.with_name(path.name + BACKUP_SUFFIX).read_bytes() == content
        assert sorted(map(str, installed_hooks(path))) == sorted(map(str, runtime.entries("user", path.parent, {})))


@QUICK
@given(odd_files(), runtimes)
def test_installing_leaves_everything_that_is_foreign_as_it_was(content: bytes, runtime: HookTarget) -> None:
    before = json.loads(content)
    with settings_file(content) as path:
        put_in(path, runtime)
        after = json.loads(path.read_bytes())
    assert foreign(json.dumps(after).encode()) == foreign(content)
    for name, found in before.get("hooks", {}).items():
        event("with foreign hooks")
        assert json.dumps(after["hooks"][name][: len(found)]) == json.dumps(found)


@QUICK
@given(odd_files(), runtimes)
def test_without_its_backup_uninstalling_still_leaves_everything_that_is_foreign(
    content: bytes, runtime: HookTarget
) -> None:
    with settings_file(content) as path:
        put_in(path, runtime)
        path.with_name(path.name + BACKUP_SUFFIX).unlink()
        take_out(path, runtime)
        left = path.read_bytes() if path.exists() else b"{}"
        assert foreign(left) == foreign(content)
        assert installed_hooks(path) == []


@QUICK
@given(odd_files(), odd_files(), runtimes)
def test_what_was_edited_in_between_is_kept(content: bytes, edited: bytes, runtime: HookTarget) -> None:
    """Somebody replaces all but our hooks: uninstalling gives what they wrote, and never the backup."""
    theirs = json.loads(edited)
    with settings_file(content) as path:
        put_in(path, runtime)
        ours = json.loads(path.read_bytes())["hooks"]
        both = dict(theirs)
        both["hooks"] = {**theirs.get("hooks", {})}
        for entry in runtime.entries("user", path.parent, {}):
            own = [one for one in ours[entry.event] if "donewhen/hook" in json.dumps(one)]
            both["hooks"][entry.event] = [*both["hooks"].get(entry.event, []), *own]
        path.write_text(json.dumps(both), encoding="utf-8")
        take_out(path, runtime)
        left = path.read_bytes() if path.exists() else b"{}"
        assert foreign(left) == foreign(edited)


@QUICK
@given(st.binary(max_size=60) | odd_files().map(lambda content: content[:-1]))
def test_whatever_stands_in_the_file_it_is_either_understood_or_left_untouched(content: bytes) -> None:
    runtime = HOOK_TARGETS["claude"]
    with settings_file(content) as path:
        try:
            put_in(path, runtime)
        except ConfigError:
            event("refused")
            assert path.read_bytes() == content
            assert os.listdir(path.parent) == [path.name]
        else:
            event("understood")
            assert foreign(path.read_bytes()) == foreign(content)
