"""Prices: data, the first line that fits, and a table of one's own before the one that is shipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from donewhen.foundation.errors import ConfigError
from donewhen.models.remote.prices import SHIPPED, VARIABLE, Price, price_of
from donewhen.models.roles import Usage
from sentences import assert_sentences


@pytest.fixture(autouse=True)
def _no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Path:
    path = tmp_path / "prices.toml"
    path.write_text(text, encoding="utf-8")
    monkeypatch.setenv(VARIABLE, str(path))
    return path


def test_an_answer_costs_by_the_million_and_what_was_cached_by_its_own_price() -> None:
    price = Price("any", input=2.0, output=10.0, cached=0.5)
    assert price.of(Usage(1_000_000, 0)) == 2.0
    assert price.of(Usage(0, 1_000_000)) == 10.0
    assert price.of(Usage(1_000_000, 100_000, 400_000)) == pytest.approx(1.2 + 0.2 + 1.0)
    assert price.of(Usage()) == 0.0


def test_without_a_price_of_its_own_what_was_cached_costs_like_the_rest() -> None:
    assert Price("any", input=2.0, output=10.0).of(Usage(1_000_000, 0, 400_000)) == 2.0


def test_more_cached_than_there_was_never_earns_anything() -> None:
    assert Price("any", input=2.0, output=0.0, cached=0.0).of(Usage(10, 0, 20)) == 0.0


@pytest.mark.parametrize("model", ["gpt-4o-mini", "gpt-4o-mini-2024-07-18", "gpt-5", "claude-haiku-4-5", "gpt-4.1"])
def test_well_known_models_have_a_price(model: str) -> None:
    price = price_of(model)
    assert price is not None
    assert 0 < price.input < price.output
    assert price.cached is not None
    assert price.cached < price.input


def test_the_more_precise_line_comes_first() -> None:
    mini, whole = price_of("gpt-5-mini-2025"), price_of("gpt-5-2025")
    assert mini is not None
    assert whole is not None
    assert mini.output < whole.output
    newer, older = price_of("claude-opus-4-5-x"), price_of("claude-opus-4-1")
    assert newer is not None
    assert older is not None
    assert newer.output < older.output


def test_a_model_that_is_in_no_table_has_no_price() -> None:
    assert price_of("qwen-of-my-own") is None


def test_every_line_that_is_shipped_can_be_reached() -> None:
    lines = [line.split('"')[1] for line in SHIPPED.read_text().splitlines() if line.startswith("model")]
    assert len(lines) > 5
    for line in lines:
        found = price_of(line.rstrip("*"))
        assert found is not None
        assert found.model == line


def test_a_table_of_ones_own_goes_first_and_the_shipped_one_holds_for_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table(tmp_path, monkeypatch, '[[price]]\nmodel = "gpt-4o*"\ninput = 7\noutput = 8\n')
    assert price_of("gpt-4o-mini") == Price("gpt-4o*", 7.0, 8.0)
    shipped = price_of("gpt-5")
    assert shipped is not None
    assert shipped.model == "gpt-5*"


@pytest.mark.parametrize(
    "text",
    [
        "[[price]\n",
        '[[price]]\nmodel = "a"\ninput = 1\n',
        '[[price]]\nmodel = "a"\ninput = -1\noutput = 1\n',
        '[[price]]\nmodel = "a"\ninput = 1\noutput = 1\nper = "token"\n',
        "[prices]\n",
    ],
)
def test_a_table_that_can_not_be_used_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    path = table(tmp_path, monkeypatch, text)
    with pytest.raises(ConfigError) as caught:
        price_of("a")
    assert_sentences(caught.value)
    assert caught.value.where == str(path)


def test_a_table_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none.toml"))
    with pytest.raises(ConfigError) as caught:
        price_of("a")
    assert_sentences(caught.value)
    assert caught.value.where == str(tmp_path / "none.toml")
