"""What can be set. A new setting is a field here; the loader and ``donewhen config show`` follow."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class TestSettings:
    """A test suite that must pass. ``run`` has ``{junit}`` where the report's path goes."""

    __test__ = False

    run: str
    """The test command; there is no shell."""
    baseline: str | None = None
    """A file of test ids, none of which may get lost; see `donewhen baseline`."""
    timeout: float = 900.0
    """How many seconds the suite may take."""
    pass_env: tuple[str, ...] = ()
    """Environment variables that the suite may see."""


@dataclass(frozen=True)
class GuardSettings:
    """What guards one kind of stop."""

    files: tuple[str, ...] = ()
    """These files exist and are not empty."""
    commands: tuple[str, ...] = ()
    """These commands succeed; there is no shell."""
    tests: TestSettings | None = None
    """This test suite passes."""
    pass_env: tuple[str, ...] = ()
    """Environment variables that the commands may see."""
    command_timeout: float = 300.0
    """How many seconds one command may take."""
    check_timeout: float = 1500.0
    """How many seconds all checks together may take; keep it below the hook's own timeout."""
    max_stalled: int = 5
    """After so many refusals in a row for the same reason the agent is let go, unverified."""
    max_attempts: int = 50
    """After so many refusals in all the agent is let go, unverified."""
    jobs: bool = False
    """The jobs in progress are done, set aside with a reason, or out of budget."""

    @property
    def has_checks(self) -> bool:
        return bool(self.files or self.commands or self.tests or self.jobs)


@dataclass(frozen=True)
class JobSettings:
    """How the commands of jobs are run."""

    command_timeout: float = 900.0
    """How many seconds one command of a job may take."""
    pass_env: tuple[str, ...] = ()
    """Environment variables that the commands of jobs may see."""


@dataclass(frozen=True)
class JudgeSettings:
    """Judges that the gates of jobs ask."""

    missions: str = "missions"
    """The folder of the missions, in the project."""
    trial_accepts: bool = False
    """Whether the gates follow guidance that has stood its trial, without a person who has accepted it."""


@dataclass(frozen=True)
class VerifySettings:
    """How CI runs again what was agreed; see `donewhen verify`."""

    from_base: tuple[str, ...] = (
        *("tests/", "test/", "__tests__/", "test_*.py", "*_test.py", "conftest.py", "pytest.ini", ".pytest.ini"),
        *("*.test.*", "*.spec.*", "*_test.go", "*Test.java", "*Tests.java", "*_spec.rb"),
        *("/pytest.py", "/pytest/", "/_pytest/", "/sitecustomize.py", "/usercustomize.py"),
    )
    """Files that judge the work, and so are taken from the base branch: a name or a folder anywhere, or a path that
    begins with a slash."""


@dataclass(frozen=True)
class ApprovalSettings:
    """Who may agree besides a person at a terminal. It holds once a person has agreed to it."""

    ci: bool = False
    """Whether a CI run may agree and decide."""
    keys: tuple[str, ...] = ()
    """The public keys (`ed25519:…`) whose signatures count; see `donewhen key`."""


@dataclass(frozen=True)
class GitHubSettings:
    """Where jobs are mirrored to."""

    api_url: str = "https://api.github.com"
    """The address of the API, on an Enterprise server `https://HOST/api/v3`; another than this must be agreed to."""


@dataclass(frozen=True)
class Settings:
    """Everything that can be set, with the file it came from."""

    stop: GuardSettings = field(default_factory=GuardSettings)
    """The agent wants to end its turn, or to give its structured output."""
    subagent_stop: GuardSettings = field(default_factory=GuardSettings)
    """A sub-agent wants to end."""
    task_completed: GuardSettings = field(default_factory=GuardSettings)
    """A task of the runtime's own task list is being marked complete."""
    jobs: JobSettings = field(default_factory=JobSettings)
    """Jobs: how their commands are run."""
    judge: JudgeSettings = field(default_factory=JudgeSettings)
    """Jobs: the judges that gates ask."""
    verify: VerifySettings = field(default_factory=VerifySettings)
    """Jobs: what CI takes from the base branch."""
    approval: ApprovalSettings = field(default_factory=ApprovalSettings)
    """Jobs: who may agree."""
    github: GitHubSettings = field(default_factory=GitHubSettings)
    """Jobs: the server that they are mirrored to."""
    root: Path = field(default_factory=Path.cwd, metadata={"setting": False})
    source: Path | None = field(default=None, metadata={"setting": False})
    given: frozenset[str] = field(default_factory=frozenset, metadata={"setting": False})
    """The dotted names of the settings that the file gives; all others are defaults."""
