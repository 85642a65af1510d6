"""What people agree to who let a judge be asked: everything that its verdicts depend on but the ticket."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "review"))

from court_kit import RULES, write_mission

from donewhen.foundation.canonical import canonical_json
from donewhen.foundation.errors import UsageError
from donewhen.judging.competence import first_rule, reason_not_competent, unread_by_default_model, unread_problems
from donewhen.judging.guidance import GuidanceError, seed_guidance
from donewhen.judging.mission import read_mission
from donewhen.judging.mission_terms import mission_terms, terms_of_mission
from donewhen.missions.new_mission import create_mission
from sentences import assert_sentences


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_mission(tmp_path / "reports")


def terms(folder: Path, toml: str = "", rules: dict[str, str] = RULES) -> dict[str, Any]:
    write_mission(folder, toml, rules)
    return mission_terms(folder)


def test_the_terms_name_everything_that_a_verdict_depends_on(folder: Path) -> None:
    found = mission_terms(folder)
    assert set(found) == {
        "mission",
        "model",
        "language",
        "words",
        "sampler",
        "min_verdict_agreement",
        "from_job",
        "overrides",
        "initial_guidance",
        "trial",
        "spot_check",
        "alarm_below",
    }
    assert found["model"] == "scripted"
    assert found["sampler"] == ["1 at 0.1", "1 at 0.4", "1 at 0.7"]
    assert found["initial_guidance"] == RULES
    assert found["from_job"] == {"parts": ["task", "outputs", "diff", "evidence"], "max_chars": 40000}
    canonical_json(found)


def test_the_trial_is_agreed_to_and_changes_no_verdict(folder: Path) -> None:
    mission = read_mission(folder)
    assert "trial" not in terms_of_mission(mission)
    assert mission_terms(folder)["trial"]["min_tickets"] == 20
    assert terms(folder, 'trial = "off"')["trial"] == "off"


@pytest.mark.parametrize(
    "toml",
    [
        'language = "zh"',
        "sampler = [{ temperature = 0.1, samples = 3 }]",
        "[manual_review]\nmin_verdict_agreement = 0.5",
        "[from_job]\nparts = ['diff']",
        "[verdict]\nfail = 'refuse'",
    ],
)
def test_each_of_them_makes_other_terms(folder: Path, toml: str) -> None:
    before = mission_terms(folder)
    assert terms(folder, toml) != before


@pytest.mark.parametrize("toml", ["epochs = 2", "seed = 8", "concurrency = 1", "[budget]\ncalls = 9"])
def test_what_changes_no_verdict_makes_the_same_terms(folder: Path, toml: str) -> None:
    before = mission_terms(folder)
    assert terms(folder, toml) == before


def test_what_was_learned_is_no_term(folder: Path) -> None:
    before = mission_terms(folder)
    mission = read_mission(folder)
    mission.store.seed(mission.initial_guidance())
    assert mission_terms(folder) == before


def test_the_code_of_an_override_is_a_term_and_is_not_run(folder: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    (folder / "last.py").write_text(f"import os\nos.mkdir({str(mark)!r})\ndef say(ticket, vote): return None\n")
    first = terms(folder, 'overrides = ["last.py:say"]')
    assert first["overrides"][0].startswith("last.py:say sha256:")
    (folder / "last.py").write_text("def say(ticket, vote): return 'pass'\n")
    assert mission_terms(folder) != first
    assert not mark.exists()


@pytest.mark.parametrize("name", ["somewhere_module", "somewhere_package.inner"])
def test_the_code_of_an_override_in_a_module_is_a_term_too(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    place = tmp_path / "place"
    file = place / f"{name.replace('.', '/')}.py"
    file.parent.mkdir(parents=True)
    mark = tmp_path / "mark"
    (file.parent / "__init__.py").write_text(f"import os\nos.mkdir({str(mark)!r})\n")
    file.write_text("def say(ticket, vote): return None\n")
    monkeypatch.syspath_prepend(str(place))
    first = terms(folder, f'overrides = ["{name}:say"]')
    file.write_text("def say(ticket, vote): return 'pass'\n")
    assert mission_terms(folder)["overrides"] != first["overrides"]
    assert not mark.exists()


@pytest.mark.parametrize(
    "name", ["no_such_module:say", "sys:exit", "json.no_such:say", "textwrap.inner:say", "nowhere:say"]
)
def test_a_module_without_a_file_goes_by_its_name(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "place" / "nowhere").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(tmp_path / "place"))
    assert terms(folder, f'overrides = ["{name}"]')["overrides"] == [name]


def test_a_package_is_its_first_file(folder: Path) -> None:
    (found,) = terms(folder, 'overrides = ["json:loads"]')["overrides"]
    assert found.startswith("json:loads sha256:")


@pytest.mark.parametrize(
    "break_it",
    [
        lambda folder: (folder / "mission.toml").write_text("no TOML at all"),
        lambda folder: (folder / "initial_guidance.json").unlink(),
        lambda folder: write_mission(folder, 'overrides = ["gone.py:say"]'),
    ],
    ids=["settings", "guidance", "override"],
)
def test_a_mission_that_can_not_be_read_has_that_as_its_only_term(folder: Path, break_it: Any) -> None:
    break_it(folder)
    found = mission_terms(folder)
    assert list(found) == ["unreadable"]
    assert_sentences(found["unreadable"])
    # Another clone of the same project must come to the same terms.
    assert str(folder) not in found["unreadable"]


# Missions without tickets


def test_a_new_mission_has_its_scaffold_and_no_tickets(tmp_path: Path) -> None:
    made = create_mission(tmp_path / "new", "new", "en", (), ["Only what is shown counts.", "No number, no pass."])
    assert made.initial_guidance().rules == {
        "S1": "Only what is shown counts.",
        "S2": "No number, no pass.",
        "G0": first_rule("en"),
    }
    assert list(made.tickets()) == []
    assert (tmp_path / "new" / "tickets.jsonl").read_bytes() == b""


def test_a_rule_that_can_not_be_used_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(GuidanceError) as caught:
        create_mission(tmp_path / "new", "new", "en", (), ["  "])
    assert_sentences(caught.value)
    assert not (tmp_path / "new").exists()


def test_a_mission_is_never_made_over_another(tmp_path: Path) -> None:
    create_mission(tmp_path / "new", "new", "en", ())
    with pytest.raises(UsageError) as caught:
        create_mission(tmp_path / "new", "new", "en", ())
    assert_sentences(caught.value)


@pytest.mark.parametrize(
    ("rules", "model", "able"),
    [
        ({"G0": first_rule("en")}, "contrast", False),
        ({"G0": first_rule("en")}, "openai/x", False),
        ({"G0": "If no other rule applies, the verdict is pass."}, "contrast", False),
        ({"S1": "默认判定通过。", "G0": first_rule("en")}, "contrast", False),
        ({"S1": "Be strict.", "G0": first_rule("en")}, "contrast", False),
        ({"S1": "Be strict.", "G0": first_rule("en")}, "openai/x", True),
        ({"G0": first_rule("en"), "G1": "Be strict."}, "contrast", True),
    ],
)
def test_a_judge_that_was_taught_nothing_or_can_not_read_is_not_able(
    tmp_path: Path, rules: dict[str, str], model: str, able: bool
) -> None:
    folder = write_mission(tmp_path / "reports", rules=rules)
    text = (folder / "mission.toml").read_text()
    (folder / "mission.toml").write_text(text.replace("scripted", model))
    why = reason_not_competent(read_mission(folder), seed_guidance("reports", rules, ""))
    assert (why is None) == able
    assert_sentences(why)


@pytest.mark.parametrize(
    ("rules", "model", "unread"),
    [
        ({"S1": "Be strict.", "G0": first_rule("en")}, "contrast", {"S1": False}),
        ({"S1": "Be strict.", "G0": first_rule("en")}, "openai/x", {}),
        ({"G0": first_rule("en"), "G1": "Sloppy work fails."}, "contrast", {"G1": True}),
        ({"G0": "Work fails unless it is good."}, "contrast", {"G0": False}),
        ({"G0": "Sloppy work fails."}, "contrast", {"G0": False}),
        ({"G0": first_rule("en"), "G1": 'When "x" occurs, the verdict is fail.'}, "contrast", {}),
    ],
)
def test_the_rules_that_the_model_of_a_mission_can_not_read_are_known_without_it(
    tmp_path: Path, rules: dict[str, str], model: str, unread: dict[str, bool]
) -> None:
    folder = write_mission(tmp_path / "reports", rules=rules)
    text = (folder / "mission.toml").read_text()
    (folder / "mission.toml").write_text(text.replace("scripted", model))
    found = unread_by_default_model(read_mission(folder), seed_guidance("reports", rules, ""))
    assert {rule.key: rule.fails_only for rule in found} == unread
    assert_sentences([problem.message for problem in unread_problems(found)])


def test_initial_guidance_is_compared_by_what_it_says(folder: Path) -> None:
    before = mission_terms(folder)
    (folder / "initial_guidance.json").write_text(json.dumps(RULES, indent=7) + "\n\n")
    assert mission_terms(folder) == before
