"""The map of issues: read as it is, or said to be broken; never overwritten in doubt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from donewhen.mirror.http.errors import MirrorError
from donewhen.mirror.sync.issue_map import map_path, read_map
from sentences import assert_sentences

GOOD = {"schema": "theworkshop.githubmap.v1", "repo": "octo/demo", "issues": {}, "milestones": {}}
BROKEN = {
    "half": '{"schema": "theworkshop.githubmap.v1", "issues": {',
    "no JSON": "issues: 1",
    "a list": "[]",
    "another schema": json.dumps(GOOD | {"schema": "theworkshop.githubmap.v2"}),
    "no schema": json.dumps({"issues": {}}),
    "a name twice": '{"schema": "theworkshop.githubmap.v1", "issues": {"A": {"number": 1}, "A": {"number": 2}}}',
    "issues as a list": json.dumps(GOOD | {"issues": []}),
    "milestones as a word": json.dumps(GOOD | {"milestones": "none"}),
    "a number as a word": json.dumps(GOOD | {"issues": {"A": {"number": "1"}}}),
    "zero": json.dumps(GOOD | {"issues": {"A": {"number": 0}}}),
    "true": json.dumps(GOOD | {"milestones": {"A": {"number": True}}}),
    "no number": json.dumps(GOOD | {"issues": {"A": {}}}),
    "a list as repository": json.dumps(GOOD | {"repo": ["octo/demo"]}),
    "a bare number": json.dumps(GOOD | {"issues": {"A": 1}}),
    "very deep": "[" * 100_000,
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_broken_map_is_told_and_left_as_it_is(place: Any, content: str) -> None:
    place.job()
    path = map_path(place.workspace)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    with pytest.raises(MirrorError) as caught:
        place.sync()
    assert_sentences(caught.value)
    assert (caught.value.exit_code, caught.value.where) == (2, "jobs/notes/github-map.json")
    assert path.read_text() == content
    assert place.double.writes == []


def test_a_folder_or_a_link_in_the_place_of_the_map_is_told(place: Any, tmp_path: Path) -> None:
    path = map_path(place.workspace)
    path.mkdir(parents=True)
    with pytest.raises(MirrorError) as caught:
        read_map(place.workspace)
    assert_sentences(caught.value)
    path.rmdir()
    (tmp_path / "elsewhere").write_text(json.dumps(GOOD))
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(MirrorError) as caught:
        read_map(place.workspace)
    assert_sentences(caught.value)


@pytest.mark.powerless
def test_a_map_that_one_may_not_read_is_told(place: Any) -> None:
    path = map_path(place.workspace)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(GOOD))
    path.chmod(0)
    with pytest.raises(MirrorError) as caught:
        read_map(place.workspace)
    assert "Permission denied" in str(caught.value)


def test_a_map_of_the_existing_tool_goes_on_here(big_place: Any) -> None:
    job = big_place.job("Parser", workstream="Work")
    big_place.double.open_issue("other")
    big_place.double.open_issue(f"[{job.id}] An older title", "As the other tool wrote it.", author_association="NONE")
    path = map_path(big_place.workspace)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps(GOOD | {"enabled": True, "last_sync_at": "", "issues": {job.id: {"number": 2, "url": "u"}}})
    )
    assert path.parent == big_place.workspace.root / "notes"
    big_place.sync()
    assert [*big_place.double.repo.issues] == [1, 2]
    assert big_place.issue(2)["title"] == f"[{job.id}] Parser"
    assert big_place.fact(job).current


def test_a_map_is_not_written_through_a_link_out_of_the_project(place: Any, tmp_path: Path) -> None:
    place.job()
    notes, elsewhere = map_path(place.workspace).parent, tmp_path / "elsewhere"
    elsewhere.mkdir()
    if notes.is_dir():
        notes.rmdir()
    notes.symlink_to(elsewhere)
    with pytest.raises(MirrorError) as caught:
        place.sync()
    assert_sentences(caught.value)
    assert list(elsewhere.iterdir()) == []
    assert place.double.repo.issues == {}
