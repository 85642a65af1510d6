"""The programs that run tests or start other programs, and those of their options that take the next word."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


@dataclass(frozen=True)
class Options:
    """The options of a program that starts another one."""

    values: frozenset[str] = frozenset()
    """Those that take the next word."""
    folder: frozenset[str] = frozenset()
    """Those that name the folder in which the other program runs."""
    skipped: int = 0
    """The number of arguments before the other program."""


PYTHON = re.compile(r"(python|pypy)w?(\d+(\.\d+)*)?[td]?")
PYTEST = re.compile(r"pytest(-\d+(\.\d+)*)?|py\.test")
COVERAGE = re.compile(r"(python\d*-)?coverage(-?\d+(\.\d+)*)?")
TEST_WORD = re.compile(r"(?<![a-z])(unit)?tests?(?![a-z])", re.IGNORECASE)

# Programs that run tests whatever their arguments are.
TEST_PROGRAMS = _words(
    "tox nox jest vitest mocha ava tap tape karma cypress ctest rspec phpunit bats prove nextest stestr trial nose2 "
    "nosetests green behave robot lit"
)
TEST_MODULES = TEST_PROGRAMS | _words("twisted.trial nose xmlrunner testtools.run doctest subunit.run")
# Programs that may run anything, and often tests.
TASK_RUNNERS = _words(
    "make gmake bmake just task go-task invoke inv mage rake bash sh dash zsh ksh fish mvn mvnw gradle gradlew ant sbt"
)
# Programs that run tests if an argument says so.
TOOLS = _words(
    "npm npx yarn pnpm pnpx bun bunx deno cargo go dotnet swift mix zig cabal stack bazel bazelisk meson ninja cmake "
    "dune dart flutter composer bundle php ruby perl tsx ts-node django-admin manage.py docker podman docker-compose "
    "conda mamba micromamba sudo doas ssh nix nix-shell devbox direnv watchexec xargs time strace"
)
NPM_TEST = _words("t tst it cit")

COVERAGE_VALUES = _words("--concurrency --context --data-file --debug --include --omit --source --rcfile --save-signal")
NODE_VALUES = _words(
    "-r --require --import --loader --experimental-loader -C --conditions --env-file --env-file-if-exists "
    "--test-name-pattern --test-skip-pattern --test-reporter --test-reporter-destination --test-concurrency "
    "--test-timeout --test-shard --test-isolation --test-coverage-include --test-coverage-exclude "
    "--test-coverage-lines --test-coverage-branches --test-coverage-functions --test-global-setup --watch-path "
    "--input-type --experimental-default-type --unhandled-rejections --title --icu-data-dir --openssl-config"
)

# Programs that only change the surroundings of the program that they start.
PREFIXES: Mapping[str, Options] = MappingProxyType(
    {
        "env": Options(_words("-u --unset -C --chdir"), _words("-C --chdir")),
        "timeout": Options(_words("-k --kill-after -s --signal"), skipped=1),
        "nice": Options(_words("-n --adjustment")),
        "nohup": Options(),
        "stdbuf": Options(_words("-i -o -e --input --output --error")),
        "xvfb-run": Options(
            _words("-e --error-file -f --auth-file -n --server-num -p --xauth-protocol -s --server-args -w --wait")
        ),
    }
)

_UV = _words(
    "--with --with-requirements --with-editable --extra --no-extra --group --no-group --only-group --package --python "
    "-p --project --directory --index --default-index --index-url -i --extra-index-url --env-file --refresh-package "
    "--reinstall-package --upgrade-package -P --find-links -f --cache-dir --color --config-file --config-setting -C "
    "--link-mode --resolution --prerelease --exclude-newer --index-strategy --keyring-provider --allow-insecure-host "
    "--python-platform -w --from"
)
# Programs that start another one in the environment of the project, with the verb `run`.
LAUNCHERS: Mapping[str, Options] = MappingProxyType(
    {
        "uv": Options(_UV, _words("--directory")),
        "uvx": Options(_UV, _words("--directory")),
        "pipx": Options(_words("--spec --python --pip-args --index-url -i")),
        "poetry": Options(_words("-C --directory -P --project"), _words("-C --directory")),
        "pdm": Options(_words("-p --project -c --config --venv")),
        "hatch": Options(_words("-e --env -p --project --config --data-dir --cache-dir")),
        "pipenv": Options(_words("--python --categories")),
        "rye": Options(_words("--pyproject")),
        "pixi": Options(_words("-e --environment --manifest-path -p --platform")),
    }
)
