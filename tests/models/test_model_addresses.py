"""The address behind a model's name."""

from __future__ import annotations

import pytest

from donewhen.foundation.errors import ConfigError
from donewhen.models import open_model
from sentences import assert_sentences


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
@pytest.mark.parametrize("who", ["me:open-sesame", "open-sesame"])
def test_a_password_in_an_address_is_refused_and_not_repeated(kind: str, who: str) -> None:
    pytest.importorskip(kind, reason=f"{kind.upper()} IS NOT INSTALLED: pip install 'donewhen[{kind}]'")
    with pytest.raises(ConfigError) as caught:
        open_model(f"{kind}:any@https://{who}@host/v1")
    assert_sentences(caught.value)
    assert "open-sesame" not in f"{caught.value} {caught.value.where} {caught.value.next_step}"
