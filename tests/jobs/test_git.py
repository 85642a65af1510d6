"""What git is asked, and what becomes of an answer that is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from donewhen.foundation.git import GitError, blob_contents
from sentences import assert_sentences


def test_an_object_that_git_has_lost_is_an_error_that_says_so(repository: Path, git: Callable[..., str]) -> None:
    (repository / "a").write_text("a")
    git(repository, "add", "a")
    git(repository, "commit", "-q", "-m", "a")
    lost = "0123456789" * 4
    with pytest.raises(GitError) as caught:
        list(blob_contents(repository, [lost]))
    assert "012345678901" in str(caught.value)
    assert_sentences(caught.value)
    blob = git(repository, "rev-parse", "HEAD:a").strip()
    assert list(blob_contents(repository, [blob])) == [b"a"]
