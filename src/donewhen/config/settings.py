"""The settings. To add one, add a field here; the loader and ``donewhen config show`` use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from donewhen.isolation.levels import Level
from donewhen.signs.exceptions import SignExceptions

ADDS_TO_DEFAULT: Mapping[str, bool] = {"adds_to_default": True}
"""The metadata of a list whose default protects: what a file gives is added to it and never replaces it."""

RequireJob: TypeAlias = Literal["off", "ask", "on"]
REQUIRE_JOB: tuple[RequireJob, ...] = ("off", "ask", "on")
ProbingTime: TypeAlias = float | Literal["suite", "off"]


@dataclass(frozen=True)
class TestSettings:
    """A test suite that must pass. ``{junit}`` in ``run`` is replaced by the path of the report."""

    __test__ = False

    run: str
    """The test command; it is run without a shell."""
    baseline: str | None = None
    """A file of test ids that must not disappear; see `donewhen baseline`."""
    timeout: float = 900.0
    """Time limit of the suite in seconds."""
    pass_env: tuple[str, ...] = ()
    """Environment variables that are passed to the suite."""


@dataclass(frozen=True)
class GuardSettings:
    """The checks for one kind of stop."""

    files: tuple[str, ...] = ()
    """Files that must exist and not be empty."""
    commands: tuple[str, ...] = ()
    """Commands that must succeed; they are run without a shell."""
    tests: TestSettings | None = None
    """The test suite that must pass."""
    pass_env: tuple[str, ...] = ()
    """Environment variables that are passed to the commands."""
    command_timeout: float = 300.0
    """Time limit of each command in seconds."""
    check_timeout: float = 1500.0
    """Time limit of all checks together in seconds; keep it below the hook's own timeout."""
    max_stalled: int = 5
    """Number of consecutive refusals for the same reason after which the agent may stop, unverified."""
    max_attempts: int = 50
    """Total number of refusals after which the agent may stop, unverified."""
    jobs: bool = False
    """Whether all jobs in progress must be done, set aside with a reason, or out of budget."""
    require_job: RequireJob = "ask"
    """What an agent without a job in progress is told if an agreed one can start: `"off"`: nothing; `"ask"`: once in a
    session which one, if `jobs` is on; `"on"`: it may not stop."""
    base: str | None = None
    """A branch whose checks of this table are run, with its tests and the files that commands name, as CI does."""

    @property
    def has_checks(self) -> bool:
        jobs = self.jobs or self.require_job == "on"
        return bool(self.files or self.commands or self.tests or jobs or self.base)


@dataclass(frozen=True)
class JobSettings:
    """How the commands of jobs are run."""

    command_timeout: float = 900.0
    """Time limit of each command of a job in seconds."""
    pass_env: tuple[str, ...] = ()
    """Environment variables that are passed to the commands of jobs."""
    isolation: Level | None = None
    """How the commands of jobs must at least be kept apart from everything else: `namespaces`, `landlock` or `copy`.
    Default: the best that works on the machine."""
    signs_allowed: SignExceptions = ()
    """Files in which some kinds of signs are expected, so that no person is asked about them: a path or pattern as in
    `work`, a colon, and the kinds. For a plug-in of a test framework: `"/src/plugin/**: test-machinery"`."""


@dataclass(frozen=True)
class StrengthSettings:
    """How much a passed check is worth: whether its tests would notice a defect, and whether they need each other."""

    time: ProbingTime = "suite"
    """How long the tests of a job are probed after they have passed: `"suite"` for as long as they took themselves (but
    at least 3 seconds), a number of seconds, or `"off"`. Guards and hooks never do this."""


@dataclass(frozen=True)
class JudgeSettings:
    """Judges that the gates of jobs use."""

    missions: str = "missions"
    """The folder of the missions, relative to the project."""
    trial_accepts: bool = False
    """Whether the gates use guidance that has passed its trial, without acceptance by a person."""


@dataclass(frozen=True)
class VerifySettings:
    """How CI runs the agreed checks again; see `donewhen verify`."""

    from_base: tuple[str, ...] = field(
        default=(
            *("tests/", "test/", "__tests__/", "test_*.py", "*_test.py", "conftest.py", "pytest.ini", ".pytest.ini"),
            *("*.test.*", "*.spec.*", "*_test.go", "*Test.java", "*Tests.java", "*_spec.rb"),
            *("/pytest.py", "/pytest/", "/_pytest/", "/sitecustomize.py", "/usercustomize.py"),
        ),
        metadata=ADDS_TO_DEFAULT,
    )
    """Obsolete: more files that check the work and are taken from the base branch. They are added to the default: a
    file or folder name anywhere, or a path that starts with a slash."""


@dataclass(frozen=True)
class ApprovalSettings:
    """Who may agree besides a person at a terminal. Takes effect once a person has agreed to it."""

    ci: bool = False
    """Whether a CI run may agree and decide."""
    keys: tuple[str, ...] = ()
    """The public keys (`ed25519:…`) whose signatures count; see `donewhen key`."""
    ssh: tuple[str, ...] = ()
    """The public SSH keys whose signatures count, as in an `id_ed25519.pub`: type, key and a name."""


@dataclass(frozen=True)
class GitHubSettings:
    """Where jobs are mirrored to."""

    api_url: str = "https://api.github.com"
    """The URL of the API (GitHub Enterprise: `https://HOST/api/v3`); any other than the default must be agreed."""


@dataclass(frozen=True)
class Settings:
    """All settings, with the file that they were read from."""

    stop: GuardSettings = field(default_factory=GuardSettings)
    """When the agent wants to end its turn, or to return its structured output."""
    subagent_stop: GuardSettings = field(default_factory=GuardSettings)
    """When a sub-agent wants to end."""
    task_completed: GuardSettings = field(default_factory=GuardSettings)
    """When a task of the runtime's own task list is marked complete."""
    jobs: JobSettings = field(default_factory=JobSettings)
    """Jobs: how their commands are run."""
    strength: StrengthSettings = field(default_factory=StrengthSettings)
    """Jobs: how long their tests are probed."""
    judge: JudgeSettings = field(default_factory=JudgeSettings)
    """Jobs: the judges that gates use."""
    verify: VerifySettings = field(default_factory=VerifySettings)
    """Jobs: what CI takes from the base branch."""
    approval: ApprovalSettings = field(default_factory=ApprovalSettings)
    """Jobs: who may agree."""
    github: GitHubSettings = field(default_factory=GitHubSettings)
    """Jobs: the server that they are mirrored to."""
    root: Path = field(default_factory=Path.cwd, metadata={"setting": False})
    source: Path | None = field(default=None, metadata={"setting": False})
    given: frozenset[str] = field(default_factory=frozenset, metadata={"setting": False})
    """The dotted names of the settings in the file; all others have default values."""
