"""One string chooses a model; what can't be one is refused with what there is."""

from __future__ import annotations

import builtins
import sys
from typing import Any

import pytest

from donewhen.foundation.errors import ConfigError, MissingExtraError
from donewhen.models import open_model
from donewhen.models.contrast import Contrast
from donewhen.models.registry import KNOWN
from donewhen.models.roles import Closable, Priced
from sentences import assert_sentences

KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
KINDS = sorted(KEYS)


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*KEYS.values(), "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "DONEWHEN_PRICES"):
        monkeypatch.delenv(name, raising=False)


def installed(kind: str) -> None:
    pytest.importorskip(kind, reason=f"{kind.upper()} IS NOT INSTALLED: pip install 'donewhen[{kind}]'")


def test_contrast_needs_nothing() -> None:
    assert isinstance(open_model("contrast"), Contrast)


@pytest.mark.parametrize("choice", ["", "contrast ", "gpt-4o", "openai", "openai:", "anthropic:", "google:x", ":x"])
def test_what_is_no_model_is_refused_with_what_there_is(choice: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_model(choice)
    assert_sentences(caught.value)
    assert repr(choice) in str(caught.value)
    assert all(name in str(caught.value.message) for name in KNOWN)


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_of_ones_own_needs_no_key(kind: str) -> None:
    installed(kind)
    model = open_model(f"{kind}:qwen@http://127.0.0.1:1/v1")
    assert model.name == f"{kind}:qwen@http://127.0.0.1:1/v1"
    assert not model.free
    assert isinstance(model, Closable)
    assert isinstance(model, Priced)
    assert not model.priced


@pytest.mark.parametrize("kind", KINDS)
def test_the_makers_own_server_needs_one_and_says_which(kind: str) -> None:
    installed(kind)
    with pytest.raises(ConfigError) as caught:
        open_model(f"{kind}:any")
    assert str(KEYS[kind]) in str(caught.value)
    assert_sentences(caught.value)


@pytest.mark.parametrize(("kind", "name"), [("openai", "gpt-4o-mini"), ("anthropic", "claude-haiku-4-5")])
def test_a_known_model_has_a_price_and_its_name_has_no_key(
    kind: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(kind)
    monkeypatch.setenv(KEYS[kind], "sk-a-key-that-nobody-may-see")
    model = open_model(f"{kind}:{name}")
    assert isinstance(model, Priced)
    assert model.priced
    assert model.name.startswith(f"{kind}:{name}")
    assert "sk-a-key" not in model.name
    assert "sk-a-key" not in repr(model)


@pytest.mark.parametrize("kind", KINDS)
def test_a_models_name_may_hold_an_at_and_a_colon(kind: str) -> None:
    installed(kind)
    assert open_model(f"{kind}:me@home:7b@https://host/v1").name == f"{kind}:me@home:7b@https://host/v1"


@pytest.mark.parametrize("kind", KINDS)
def test_without_the_extra_it_says_how_to_get_it(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [module for module in sys.modules if module.partition(".")[0] == kind]:
        monkeypatch.delitem(sys.modules, name)
    real = builtins.__import__

    def missing(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == kind:
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtraError) as caught:
        open_model(f"{kind}:any@http://127.0.0.1:1")
    assert f"donewhen[{kind}]" in f"{caught.value} {caught.value.next_step}"
