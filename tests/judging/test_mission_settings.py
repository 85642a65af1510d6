"""mission.toml: the defaults that were agreed, and errors that name the line."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging_kit import write_mission

from donewhen.foundation.errors import ConfigError
from donewhen.judging.mission import read_mission
from donewhen.judging.mission_settings import MissionFile
from sentences import assert_sentences


def settings(folder: Path, toml: str = "") -> MissionFile:
    return read_mission(write_mission(folder, toml)).settings


def refused(folder: Path, toml: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        settings(folder, toml)
    return caught.value


def test_what_is_not_said_is_as_agreed(tmp_path: Path) -> None:
    found = settings(tmp_path)
    assert found.manual_review.min_verdict_agreement == 0.67
    assert [(row.temperature, row.samples) for row in found.sampler] == [(0.1, 1), (0.4, 1), (0.7, 1)]
    reflection = found.reflection
    assert (reflection.batch_size, reflection.max_operations) == (16, 2)
    assert (reflection.retry_budget_per_group_per_epoch, reflection.max_calls_per_epoch) == (2, None)
    assert (reflection.hypothesis_min_support_cycles, reflection.hypothesis_min_unique_ticket_keys) == (2, 6)
    assert reflection.max_promotions_per_epoch > 0
    assert (found.rules.max_length, found.rules.cleanup_below, found.rules.cleanup_misses) == (160, 0.35, 3)
    assert found.trial != "off"
    assert found.trial.max_more_false_releases == 0
    assert found.overrides == ()
    assert found.model == "contrast"
    assert found.split.train + found.split.validation + found.split.test == pytest.approx(1)
    assert set(found.budget.__struct_fields__) >= {"calls", "tokens", "cost", "seconds"}
    assert all(getattr(found.budget, name) is None for name in found.budget.__struct_fields__)
    assert (found.tickets, found.initial_guidance) == (("tickets.jsonl",), "initial_guidance.json")


def test_every_table_can_be_set(tmp_path: Path) -> None:
    found = settings(
        tmp_path,
        """
language = "zh"
model = "other"
tickets = ["a.jsonl", "b.jsonl"]
seed = 0
epochs = 2
concurrency = 3
verdict = { pass = "ok" }
[[sampler]]
temperature = 0
samples = 5
[manual_review]
min_verdict_agreement = 1
[reflection]
max_calls_per_epoch = 0
retry_budget_per_group_per_epoch = 0
[rules]
max_length = 20
[split]
train = 0.5
validation = 0.3
test = 0.2
[budget]
calls = 1
cost = 0.01
""",
    )
    assert (found.language, found.model, found.tickets) == ("zh", "other", ("a.jsonl", "b.jsonl"))
    assert (found.seed, found.epochs, found.concurrency, found.verdict.pass_) == (0, 2, 3, "ok")
    assert [(row.temperature, row.samples) for row in found.sampler] == [(0.0, 5)]
    assert (found.manual_review.min_verdict_agreement, found.rules.max_length) == (1.0, 20)
    assert (found.reflection.max_calls_per_epoch, found.reflection.retry_budget_per_group_per_epoch) == (0, 0)
    assert (found.split.train, found.budget.calls, found.budget.cost) == (0.5, 1, 0.01)
    assert (found.reflection.batch_size, found.budget.tokens, found.verdict.fail) == (16, None, None)


def test_the_trial_can_be_off_and_nothing_else_in_words(tmp_path: Path) -> None:
    assert settings(tmp_path, 'trial = "off"\n').trial == "off"
    error = refused(tmp_path, '\ntrial = "on"\n')
    assert error.where == f"{tmp_path / 'mission.toml'}:3"
    assert error.message.startswith("trial: ")
    assert refused(tmp_path, "trial = false\n").where == f"{tmp_path / 'mission.toml'}:2"


def test_a_trial_has_its_own_numbers(tmp_path: Path) -> None:
    found = settings(tmp_path, "[trial]\nmin_tickets = 7\n").trial
    assert found != "off"
    assert found.min_tickets == 7
    assert found.resamples > 0


@pytest.mark.parametrize(
    ("toml", "line", "named", "advice"),
    [
        ("epoch = 3\n", 2, "epoch", "Did you mean epochs?"),
        ("\n\nmanual_reviews = 1\n", 4, "manual_reviews", "Did you mean manual_review?"),
        ("[reflection]\nbatch_size = 3\nbatchsize = 3\n", 4, "reflection.batchsize", "Did you mean batch_size?"),
        ("[trial]\n\nmin_ticket = 3\n", 4, "trial.min_ticket", "Did you mean min_tickets?"),
        ("[verdict]\npasses = 'x'\n", 3, "verdict.passes", "Did you mean pass?"),
        ("[[sampler]]\ntemprature = 1.0\n", 3, "sampler.temprature", "Did you mean temperature?"),
        ("[budgets]\ncalls = 1\n", 2, "budgets", "Did you mean budget?"),
        ("budget = { call = 1 }\n", 2, "budget.call", "Did you mean calls?"),
        ("[split]\nxyzzy = 1\n", 3, "split.xyzzy", "Known here: train, validation, test."),
        ("[rules]\nmax_rules = 3\n[budget]\nmax_rules = 3\n", 5, "budget.max_rules", None),
    ],
)
def test_an_unknown_key_is_an_error_with_its_line_and_a_suggestion(
    tmp_path: Path, toml: str, line: int, named: str, advice: str | None
) -> None:
    error = refused(tmp_path, toml)
    assert error.where == f"{tmp_path / 'mission.toml'}:{line}"
    assert error.message.startswith(f"{named}: ")
    assert "unknown" in error.message
    if advice is not None:
        assert_sentences(error.next_step)


@pytest.mark.parametrize(
    "toml",
    [
        "seed = -1",
        "seed = true",
        "seed = 1.5",
        'seed = "1"',
        "epochs = 0",
        "epochs = 1001",
        "concurrency = 0",
        "concurrency = 1025",
        "sampler = []",
        "sampler = [{ samples = 1 }]",
        "sampler = [{ temperature = -0.1 }]",
        "sampler = [{ temperature = 2.1 }]",
        "sampler = [{ temperature = nan }]",
        "sampler = [{ temperature = 1, samples = 0 }]",
        "sampler = [{ temperature = 1, samples = 101 }]",
        "manual_review = { min_verdict_agreement = 1.01 }",
        "manual_review = { min_verdict_agreement = -0.01 }",
        "manual_review = { min_verdict_agreement = nan }",
        "reflection = { batch_size = 0 }",
        "reflection = { max_operations = -1 }",
        "reflection = { retry_budget_per_group_per_epoch = -1 }",
        "reflection = { max_calls_per_epoch = -1 }",
        "reflection = { max_prompt_chars = 1999 }",
        "reflection = { hypothesis_min_support_cycles = 0 }",
        "reflection = { hypothesis_min_unique_ticket_keys = 0 }",
        "reflection = { max_promotions_per_epoch = -1 }",
        "rules = { max_length = 19 }",
        "rules = { similar = 1.1 }",
        "rules = { cleanup_below = 1.1 }",
        "rules = { cleanup_misses = 0 }",
        "trial = { min_tickets = 0 }",
        "trial = { confidence = 1.1 }",
        "trial = { max_more_false_releases = -1 }",
        "split = { train = nan, validation = 0.2, test = 0.2 }",
        "budget = { calls = 0 }",
        "budget = { tokens = 0 }",
        "budget = { cost = 0 }",
        "budget = { seconds = -1 }",
        "tickets = 'tickets.jsonl'",
        "language = 1",
        "verdict = { pass = 1 }",
    ],
)
def test_a_value_out_of_bounds_is_an_error_with_its_line(tmp_path: Path, toml: str) -> None:
    error = refused(tmp_path, f"# first\n\n{toml}\n")
    assert error.where == f"{tmp_path / 'mission.toml'}:4"
    assert error.message.startswith(toml.partition(" ")[0])
    assert error.exit_code == 2


@pytest.mark.parametrize(
    "toml",
    [
        "seed = 0",
        "epochs = 1000",
        "concurrency = 1024",
        "sampler = [{ temperature = 0, samples = 100 }, { temperature = 2 }]",
        "manual_review = { min_verdict_agreement = 0 }",
        "manual_review = { min_verdict_agreement = 1.0 }",
        "reflection = { batch_size = 1, max_operations = 0, max_promotions_per_epoch = 0, max_prompt_chars = 2000 }",
        "rules = { max_length = 2000, cleanup_misses = 1, credit_tickets = 0 }",
        "trial = { min_tickets = 1, confidence = 0, min_gain = 0 }",
        "split = { train = 1, validation = 0, test = 0 }",
        "budget = { calls = 1, tokens = 1, cost = 0.0001, seconds = 0.1, calls_per_epoch = 1 }",
    ],
)
def test_a_value_on_the_bounds_is_none(tmp_path: Path, toml: str) -> None:
    assert settings(tmp_path, toml + "\n") is not None


def test_a_key_is_found_in_its_own_table_and_not_in_another(tmp_path: Path) -> None:
    error = refused(tmp_path, "[budget]\ncalls_per_epoch = 5\n[reflection]\nmax_calls_per_epoch = -1\n")
    assert error.where == f"{tmp_path / 'mission.toml'}:5"
    error = refused(tmp_path, '[rules]\nmax_rules = 4\n[trial]\nmin_tickets = "x"\n')
    assert error.where == f"{tmp_path / 'mission.toml'}:5"


def test_a_mission_without_a_name_is_none(tmp_path: Path) -> None:
    write_mission(tmp_path)
    (tmp_path / "mission.toml").write_text("language = 'en'\n")
    with pytest.raises(ConfigError) as caught:
        read_mission(tmp_path)
    assert_sentences(caught.value)
    (tmp_path / "mission.toml").write_text("\nmission = ''\n")
    with pytest.raises(ConfigError, match="mission") as caught:
        read_mission(tmp_path)
    assert caught.value.where == f"{tmp_path / 'mission.toml'}:2"


@pytest.mark.parametrize("shares", ["train = 0.5", "train = 0.6\nvalidation = 0.3\ntest = 0.2", "test = 0.21"])
def test_shares_that_do_not_add_up_are_refused(tmp_path: Path, shares: str) -> None:
    error = refused(tmp_path, f"[split]\n{shares}\n")
    assert_sentences(error.message)
    assert error.where == f"{tmp_path / 'mission.toml'}:2"


def test_thirds_add_up(tmp_path: Path) -> None:
    assert settings(tmp_path, "[split]\ntrain = 0.333\nvalidation = 0.333\ntest = 0.334\n").split.test == 0.334
