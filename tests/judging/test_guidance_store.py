"""guidance.json: whole or not at all, with its past, whoever writes and whenever they are killed."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from judging_kit import RULES, Noon

from donewhen.judging.guidance import Guidance, GuidanceChange, GuidanceError, seed_guidance
from donewhen.judging.guidance_store import GuidanceStore, Revision, read_guidance, read_initial
from sentences import assert_sentences

NOON = "2026-02-14T12:00:00Z"


def add(text: str, **fields: Any) -> GuidanceChange:
    return GuidanceChange(op="add", text=text, evidence=("QC-1::fail",), **fields)


@pytest.fixture
def store(tmp_path: Path) -> GuidanceStore:
    made = GuidanceStore(tmp_path / "guidance.json", "cabinets", clock=Noon())
    made.seed(seed_guidance("cabinets", RULES, NOON))
    return made


def files(store: GuidanceStore) -> dict[str, bytes]:
    """All that is in the folder."""
    folder = store.path.parent
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(item.relative_to(folder)): item.read_bytes() for item in found}


def test_a_seed_is_written_as_step_0(store: GuidanceStore) -> None:
    assert store.exists
    assert json.loads(store.path.read_bytes()) == {
        "cabinets": {"step": 0, "updated_at": NOON, "experiences": RULES, "metadata": {}}
    }
    assert store.read() == Guidance("cabinets", 0, NOON, RULES, {})
    assert store.history() == ()


def test_a_seed_that_has_no_time_gets_that_of_now(tmp_path: Path) -> None:
    store = GuidanceStore(tmp_path / "new" / "guidance.json", "cabinets", clock=Noon())
    assert not store.exists
    assert store.seed(seed_guidance("cabinets", RULES, "")).updated_at == NOON
    store.path.unlink()
    assert store.seed(seed_guidance("cabinets", RULES, "2026-01-01T00:00:00Z")).updated_at == "2026-01-01T00:00:00Z"


def test_a_second_seed_changes_nothing(store: GuidanceStore) -> None:
    store.apply(add("New."), "me")
    before = files(store)
    found = store.seed(seed_guidance("cabinets", {"G0": "Other.", "S1": "Anything goes."}, ""))
    assert (files(store), found) == (before, store.read())
    assert found.experiences["G1"] == "New."


def test_a_seed_may_be_what_was_learned_elsewhere(store: GuidanceStore, tmp_path: Path) -> None:
    store.apply(add("New."), "me")
    learned = store.credit({"G1": (2, 1)})
    other = GuidanceStore(tmp_path / "run" / "guidance.json", "cabinets", clock=Noon())
    assert other.seed(learned) == learned == other.read()
    assert other.apply(add("Newer."), "me").step == 2


def test_a_seed_belongs_to_the_mission_of_the_store(tmp_path: Path) -> None:
    store = GuidanceStore(tmp_path / "guidance.json", "cabinets", clock=Noon())
    assert store.seed(seed_guidance("shelves", RULES, "")).mission == "cabinets"


def test_a_seed_is_checked_like_everything_else(tmp_path: Path) -> None:
    store = GuidanceStore(tmp_path / "guidance.json", "cabinets")
    with pytest.raises(GuidanceError) as caught:
        store.seed(seed_guidance("cabinets", RULES, "").without("G0"))
    assert_sentences(caught.value)
    assert not store.exists


def test_each_change_is_a_step_with_a_snapshot_before_it_and_a_line_of_history(store: GuidanceStore) -> None:
    states = [store.read()]
    changes = [
        add("New.", rationale="why", reflection_id="r1"),
        GuidanceChange(op="update", key="G1", text="Newer.", evidence=("QC-2::pass",)),
        GuidanceChange(op="delete", key="G1", evidence=("QC-3::fail",)),
    ]
    for number, change in enumerate(changes, 1):
        written = store.apply(change, f"writer {number}")
        assert written == store.read()
        states.append(written)
        snapshots = sorted((store.path.parent / "snapshots").iterdir())
        assert [snapshot.name for snapshot in snapshots] == [f"guidance-{step:05d}.json" for step in range(number)]
        assert read_guidance(snapshots[-1], "cabinets") == states[-2]
    assert [store.at(step) for step in range(4)] == states
    assert store.history() == tuple(
        Revision(step, NOON, f"writer {step}", change, states[step].hash) for step, change in enumerate(changes, 1)
    )


def test_nothing_else_is_left_in_the_folder(store: GuidanceStore) -> None:
    store.apply(add("New."), "me")
    store.credit({"G1": (1, 0)})
    store.rollback(0, "me")
    assert list(files(store)) == [
        "guidance.history.jsonl",
        "guidance.json",
        "snapshots/guidance-00000.json",
        "snapshots/guidance-00001.json",
    ]


def test_a_refused_change_leaves_every_file_as_it_was(store: GuidanceStore) -> None:
    store.apply(add("New."), "me")
    before = files(store)
    refused = [
        GuidanceChange(op="update", key="S1", text="x", evidence=("QC-1::fail",)),
        GuidanceChange(op="delete", key="G0", evidence=("QC-1::fail",)),
        GuidanceChange(op="add", text="No evidence."),
        GuidanceChange(op="add", text=RULES["S1"], evidence=("QC-1::fail",)),
        GuidanceChange(op="rollback", evidence=("QC-1::fail",)),
        add("half a \ud800"),
        add("Fine.", rationale="half a \ud800"),
    ]
    for change in refused:
        with pytest.raises(GuidanceError):
            store.apply(change, "me")
    for step in (-1, 2, 99):
        with pytest.raises(GuidanceError) as caught:
            store.rollback(step, "me")
        assert str(step) in str(caught.value)
        assert_sentences(caught.value)
    with pytest.raises(GuidanceError):
        store.credit({"S1": (1, 1)})
    assert files(store) == before


def test_a_rollback_is_a_new_step_and_can_be_rolled_back(store: GuidanceStore) -> None:
    first = store.read()
    second = store.apply(add("New."), "me")
    back = store.rollback(0, "ada")
    assert (back.step, back.experiences, back.hash) == (2, first.experiences, first.hash)
    assert store.read() == back
    assert store.history()[-1] == Revision(
        2, NOON, "ada", GuidanceChange(op="rollback", rationale="back to step 0"), first.hash
    )
    again = store.rollback(1, "ada")
    assert (again.step, again.experiences) == (3, second.experiences)
    assert [revision.step for revision in store.history()] == [1, 2, 3]


def test_a_rollback_to_a_snapshot_with_another_scaffold_is_refused(store: GuidanceStore) -> None:
    store.apply(add("New."), "me")
    snapshot = store.path.parent / "snapshots" / "guidance-00000.json"
    for old, new in (("the whole cabinet", "anything"), ('"S2":', '"S3":'), ('"G0":', '"G9":')):
        text = snapshot.read_text()
        snapshot.write_text(text.replace(old, new))
        before = files(store)
        with pytest.raises(GuidanceError):
            store.rollback(0, "me")
        assert files(store) == before
        snapshot.write_text(text)
    assert store.rollback(0, "me").step == 2


def test_a_step_without_its_snapshot_is_said_to_be_missing(store: GuidanceStore) -> None:
    store.apply(add("New."), "me")
    (store.path.parent / "snapshots" / "guidance-00000.json").unlink()
    with pytest.raises(GuidanceError) as caught:
        store.at(0)
    assert_sentences(caught.value)
    assert caught.value.next_step == "donewhen guidance log"


def test_a_file_that_was_put_back_has_no_steps_after_its_own(store: GuidanceStore) -> None:
    before = store.path.read_bytes()
    store.apply(add("One."), "me")
    store.apply(add("Two."), "me")
    store.path.write_bytes(before)
    assert store.history() == ()
    for step in (1, 2):
        with pytest.raises(GuidanceError) as caught:
            store.at(step)
        assert str(step) in str(caught.value)
        assert_sentences(caught.value)
    store.apply(add("Other."), "ada")
    assert [(revision.step, revision.by, revision.hash) for revision in store.history()] == [
        (1, "ada", store.read().hash)
    ]
    store.apply(add("And another."), "ada")
    assert [revision.by for revision in store.history()] == ["ada", "ada"]
    assert store.at(1).learned["G1"] == "Other."


def test_credit_is_written_without_a_step(store: GuidanceStore) -> None:
    store.apply(add("New."), "me")
    found = store.credit({"G1": (4, 0)})
    assert found == store.read()
    assert (found.step, found.metadata["G1"].hit_count, found.metadata["G1"].sources) == (1, 4, ("QC-1::fail",))
    assert len(store.history()) == 1


def test_a_key_is_not_given_twice_though_its_rule_is_gone_from_the_file(store: GuidanceStore) -> None:
    store.apply(add("One."), "me")
    store.apply(GuidanceChange(op="delete", key="G1", evidence=("QC-1::fail",)), "me")
    again = GuidanceStore(store.path, "cabinets").apply(add("Two."), "me")
    assert list(again.learned) == ["G0", "G2"]
    store.rollback(0, "me")
    assert list(store.apply(add("Three."), "me").learned) == ["G0", "G3"]


def test_rules_are_written_in_their_order_and_as_they_are_read(store: GuidanceStore) -> None:
    for number in range(1, 12):
        store.apply(add(f"规则 {number}：不通过"), "me")
    text = store.path.read_text(encoding="utf-8")
    assert "规则 11：不通过" in text
    keys = list(json.loads(text)["cabinets"]["experiences"])
    assert keys == ["S1", "S2", *(f"G{number}" for number in range(12))]


def test_the_permissions_of_the_file_stay(store: GuidanceStore) -> None:
    store.path.chmod(0o600)
    store.apply(add("New."), "me")
    assert store.path.stat().st_mode & 0o777 == 0o600


# Broken files


def broken(path: Path, content: bytes | str) -> GuidanceError:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(GuidanceError) as caught:
        read_guidance(path, "cabinets")
    assert str(caught.value.where).startswith(str(path))
    return caught.value


def whole(**fields: Any) -> str:
    return json.dumps({"cabinets": {"step": 0, "updated_at": "", "experiences": {"G0": "x"}, "metadata": {}} | fields})


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        '{"cabinets": ',
        "[" * 100_000,
        "[]",
        '{"cabinets": []}',
        '{"cabinets": {}}',
        "{}",
        '{"shelves": {}}',
        whole(experiences={}),
        whole(experiences={"G0": "x", "G01": "y"}),
        whole(experiences={"G0": ""}),
        whole(experiences={"G0": "\ud800"}),
        whole(step=-1),
        whole(step="1"),
        whole(step=True),
        whole(step=None),
        whole(updated_at=None),
        whole(metadata=[]),
        whole(metadata={"G0": {"hit_count": "x"}}),
        '{"cabinets": {"step": 0, "updated_at": "", "experiences": {"G0": "x", "S1": "y", "S1": "z"}}}',
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_broken_file_is_an_error_that_says_what_is_wrong_and_where(tmp_path: Path, content: bytes | str) -> None:
    assert_sentences(broken(tmp_path / "guidance.json", content).message)


def test_json_that_ends_too_early_is_an_error_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "guidance.json"
    assert broken(path, '{\n"cabinets":\n').where == f"{path}:3"


def test_a_file_with_other_missions_is_refused_because_they_would_be_lost(tmp_path: Path) -> None:
    path = tmp_path / "guidance.json"
    data = json.loads(whole()) | {"shelves": json.loads(whole())["cabinets"]}
    assert_sentences(broken(path, json.dumps(data)).message)
    with pytest.raises(GuidanceError):
        GuidanceStore(path, "cabinets").apply(add("New."), "me")
    assert json.loads(path.read_bytes()) == data


def test_metadata_of_nothing_that_could_be_a_rule_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "guidance.json"
    path.write_text(whole(metadata={"G0": {"rationale": "r", "later": 1}, "note": {}}))
    found = read_guidance(path, "cabinets")
    assert {key: meta.rationale for key, meta in found.metadata.items()} == {"G0": "r"}


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.json", tmp_path):
        for read in (read_guidance, read_initial):
            with pytest.raises(GuidanceError) as caught:
                read(path, "cabinets")
            assert_sentences(caught.value)
            assert caught.value.where == str(path)


def test_initial_guidance_is_checked_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "initial_guidance.json"
    for content in (
        '{"G1": "x"}',
        '{"G0": "x", "S0": "y"}',
        '{"G0": 5}',
        "[]",
        '{"cabinets": 5}',
        '{"shelves": {"G0": "x"}}',
        '{"G0": "x", "G0": "y"}',
    ):
        path.write_text(content)
        with pytest.raises(GuidanceError) as caught:
            read_initial(path, "cabinets")
        assert_sentences(caught.value)
        assert str(caught.value.where).startswith(str(path))
    path.write_bytes(b'\xef\xbb\xbf{"G0": "x"}')
    assert read_initial(path, "cabinets", "now") == Guidance("cabinets", 0, "now", {"G0": "x"}, {})


@pytest.mark.parametrize(
    ("line", "place"),
    [(b"{", ":2"), (b"[]", ":2"), (b'{"step": 1}', ":2"), (b'{"step":1,"at":"","by":"","hash":"","change":{}}', ":2")],
)
def test_a_broken_history_is_an_error_with_its_line(store: GuidanceStore, line: bytes, place: str) -> None:
    store.apply(add("New."), "me")
    path = store.path.with_name("guidance.history.jsonl")
    with path.open("ab") as file:
        file.write(line + b"\n")
    with pytest.raises(GuidanceError) as caught:
        store.history()
    assert_sentences(caught.value)
    assert caught.value.where == f"{path}{place}"


def test_a_history_that_can_not_be_read_is_an_error_and_nothing_is_written(store: GuidanceStore) -> None:
    path = store.path.with_name("guidance.history.jsonl")
    path.write_bytes(b"\xff\n")
    before = store.path.read_bytes()
    with pytest.raises(GuidanceError) as caught:
        store.apply(add("New."), "me")
    assert_sentences(caught.value)
    assert (caught.value.where, store.path.read_bytes()) == (str(path), before)
    path.unlink()
    path.mkdir()
    with pytest.raises(GuidanceError) as caught:
        store.history()
    assert_sentences(caught.value)


# Killed, and many


KILLED = """
import os, signal, sys
from pathlib import Path
import donewhen.judging.guidance_store as module
from donewhen.judging.guidance import GuidanceChange
path, fatal = Path(sys.argv[1]), int(sys.argv[2])
real, count = module.write_atomically, 0
def write(target, data, **options):
    global count
    if count == fatal:
        os.kill(os.getpid(), signal.SIGKILL)
    real(target, data, **options)
    count += 1
    if count == fatal:
        os.kill(os.getpid(), signal.SIGKILL)
module.write_atomically = write
store = module.GuidanceStore(path, "cabinets")
store.apply(GuidanceChange(op="add", text="From one that was killed.", evidence=("QC-1::fail",)), "killed")
"""


@pytest.mark.parametrize("writes", [0, 1, 2, 3])
@pytest.mark.parametrize("before", [0, 2])
def test_a_writer_killed_between_its_files_has_made_its_change_or_has_not(
    store: GuidanceStore, writes: int, before: int
) -> None:
    for number in range(before):
        store.apply(add(f"Rule {number}."), "me")
    start = store.read()
    done = subprocess.run([sys.executable, "-c", KILLED, str(store.path), str(writes)], check=False)
    assert done.returncode == -signal.SIGKILL
    made = writes == 3
    found = store.read()
    assert (found.step, "From one that was killed." in found.experiences.values()) == (before + made, made)
    assert found == start or made
    assert [revision.step for revision in store.history()] == list(range(1, before + made + 1))
    after = store.apply(add("The next."), "me")
    assert after.step == before + made + 1
    history = store.history()
    assert [revision.step for revision in history] == list(range(1, after.step + 1))
    assert [revision.by for revision in history] == ["me"] * before + ["killed"] * made + ["me"]
    for revision in history:
        assert store.at(revision.step).hash == revision.hash
    assert store.at(before) == start


HALF = """
import os, sys
from pathlib import Path
from donewhen.judging.guidance import GuidanceChange
from donewhen.judging.guidance_store import GuidanceStore
def stop(*_, **__):
    os.kill(os.getpid(), 9)
os.replace = stop
GuidanceStore(Path(sys.argv[1]), "cabinets").credit({"G0": (1, 1)})
"""


def test_a_writer_killed_before_its_file_is_in_place_leaves_the_old_one(store: GuidanceStore) -> None:
    before = store.path.read_bytes()
    done = subprocess.run([sys.executable, "-c", HALF, str(store.path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert store.path.read_bytes() == before
    assert store.credit({"G0": (1, 1)}).metadata["G0"].hit_count == 1


MANY = """
import sys
from pathlib import Path
from donewhen.judging.guidance import GuidanceChange
from donewhen.judging.guidance_store import GuidanceStore
store = GuidanceStore(Path(sys.argv[1]), "cabinets")
for number in range(int(sys.argv[3])):
    change = GuidanceChange(op="add", text=f"Rule {number} of {sys.argv[2]}.", evidence=("QC-1::fail",))
    store.apply(change, sys.argv[2])
"""


def test_many_writers_lose_no_change(store: GuidanceStore) -> None:
    names = ["ann", "bob", "cy", "dee"]
    command = [sys.executable, "-c", MANY, str(store.path)]
    writers = [subprocess.Popen([*command, name, "6"], stderr=subprocess.PIPE) for name in names]
    ends = [writer.communicate()[1] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 4, ends
    found = store.read()
    assert found.step == 24
    assert list(found.learned) == [f"G{number}" for number in range(25)]
    history = store.history()
    assert [revision.step for revision in history] == list(range(1, 25))
    for name in names:
        assert [revision.change.text for revision in history if revision.by == name] == [
            f"Rule {n} of {name}." for n in range(6)
        ]
    assert [store.at(revision.step).hash for revision in history] == [revision.hash for revision in history]


FULL = """
import resource, sys
from pathlib import Path
from donewhen.judging.guidance import GuidanceChange
from donewhen.judging.guidance_store import GuidanceStore
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
try:
    GuidanceStore(Path(sys.argv[1]), "cabinets").apply(
        GuidanceChange(op="add", text="x" * 3000, evidence=("QC-1::fail",)), "me")
except OSError as error:
    print(error.errno)
"""


@pytest.mark.parametrize("room", [0, 100, 2000])
def test_a_full_disk_fails_loudly_and_leaves_the_guidance_as_it_was(store: GuidanceStore, room: int) -> None:
    before = store.read()
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(store.path), str(room)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(errno.EFBIG), done.stderr
    assert (store.read(), store.history()) == (before, ())
    assert not [name for name in os.listdir(store.path.parent) if name.endswith(".tmp")]
    assert store.apply(add("New."), "me").step == 1
