"""The CI files that `donewhen init` writes."""

from __future__ import annotations

from donewhen.foundation.errors import UsageError
from donewhen.foundation.install_line import reachable_requirement
from donewhen.setup.surroundings import Host

CI_FILES: dict[Host, str] = {"github": ".github/workflows/donewhen.yml", "gitlab": ".gitlab-ci.yml"}

_GITHUB = """\
# Runs the checks of donewhen.toml on every pull request. Docs: how to check in CI.
on:
  pull_request:

permissions:
  contents: read

jobs:
  donewhen:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
        with: {{ fetch-depth: 0 }}
      - uses: actions/setup-python@v5
        with: {{ python-version: "3.12" }}
      # Install here what your tests need.
      - run: pip install "{requirement}"
      - run: {command}
"""

_GITLAB = """\
# Runs the checks of donewhen.toml in every merge request. Docs: GitLab and other CI.
donewhen:
  image: python:3.12
  variables:
    GIT_DEPTH: "0"
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
  script:
    # Install here what your tests need.
    - pip install "{requirement}"
    - {command}
"""

_TEXTS = {"github": _GITHUB, "gitlab": _GITLAB}
_VERIFY = {
    "github": "donewhen verify --base origin/${{ github.base_ref }}",
    "gitlab": "donewhen verify --base origin/$CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
}


def ci_text(host: Host, *, jobs: bool) -> tuple[str, str]:
    """The file's name and its text. Raise UsageError if another machine can't install this copy of donewhen."""
    requirement = reachable_requirement()
    if requirement is None:
        raise UsageError(
            "This copy of donewhen was installed from a folder of this machine, which CI can't install from.",
            next_step="Install donewhen from the package index or from a Git URL first, or leave --ci out.",
        )
    command = _VERIFY[host] if jobs else "donewhen check"
    return CI_FILES[host], _TEXTS[host].format(requirement=requirement, command=command)
