"""What became of running a contract again: one case a gate and a criterion, each with its reasons and its place."""

from __future__ import annotations

from typing import Literal, NamedTuple

Outcome = Literal["passed", "failed", "skipped", "error"]
CaseKind = Literal["gate", "criterion", "command", "project"]


class CaseReason(NamedTuple):
    """Why a case did not pass: a code, one sentence, the place in the branch's files, and what to do next."""

    code: str
    message: str
    where: str
    next: str | None = None


class VerificationCase(NamedTuple):
    """One thing that was looked at."""

    name: str
    kind: CaseKind
    outcome: Outcome
    reasons: tuple[CaseReason, ...] = ()
    text: str = ""
    """What was asked for, or what was found."""
    output: str = ""
    """The end of what a command said that did not pass; anybody's words."""


class JobCases(NamedTuple):
    """A job of the base branch, and what running its contract again came to."""

    id: str
    title: str
    where: str
    claimed: bool
    """Whether the branch says that it is done, or somebody asked for it."""
    cases: tuple[VerificationCase, ...]

    @property
    def passed(self) -> bool:
        """Whether everything that could be run again was, and passed."""
        return self.claimed and bool(self.cases) and all(case.outcome in ("passed", "skipped") for case in self.cases)


class Verification(NamedTuple):
    """A branch, looked at with the contract of the base branch."""

    base: str
    commit: str
    """The commit of the base branch that the contract was taken from; empty where there is none."""
    project: tuple[VerificationCase, ...]
    jobs: tuple[JobCases, ...]
    notes: tuple[CaseReason, ...] = ()
    """Worth knowing, and nothing against the branch."""
    inside: str = ""
    """The project's folder in the repository, with a slash at its end; places are relative to the project."""
    project_file: str = "jobs/plan.md"
    """The project's plan, in the project: the place of what has no other."""

    @classmethod
    def of_error(cls, base: str, code: str, message: str, where: str, next_step: str | None) -> Verification:
        """A look that could not be taken at all: that is reported, too, and is no pass."""
        case = VerificationCase("verify", "project", "error", (CaseReason(code, message, where, next_step),))
        return cls(base, "", (case,), ())

    @property
    def cases(self) -> tuple[VerificationCase, ...]:
        return (*self.project, *(case for job in self.jobs for case in job.cases))

    @property
    def broken(self) -> bool:
        """Whether something could not be asked at all."""
        return any(case.outcome == "error" for case in self.cases)

    @property
    def passed(self) -> bool:
        """Whether something was verified, and nothing spoke against it. Zero jobs is never a pass."""
        return any(job.passed for job in self.jobs) and all(
            case.outcome in ("passed", "skipped") for case in self.cases
        )

    @property
    def reasons(self) -> tuple[CaseReason, ...]:
        return tuple(reason for case in self.cases for reason in case.reasons if case.outcome != "skipped")
