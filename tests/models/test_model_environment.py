"""An address from the environment is part of a model's name, like one that was given."""

from __future__ import annotations

import pytest

from donewhen.models import open_model


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_a_server_from_the_environment_is_named(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(kind, reason=f"{kind.upper()} IS NOT INSTALLED: pip install 'donewhen[{kind}]'")
    monkeypatch.delenv(f"{kind.upper()}_API_KEY", raising=False)
    monkeypatch.setenv(f"{kind.upper()}_BASE_URL", "http://127.0.0.1:1/v1")
    assert open_model(f"{kind}:any").name == f"{kind}:any@http://127.0.0.1:1/v1"
    assert open_model(f"{kind}:any@http://127.0.0.1:2/v1").name == f"{kind}:any@http://127.0.0.1:2/v1"
