"""The results of running a contract again: one case per gate and per criterion, each with its reasons."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

Outcome = Literal["passed", "failed", "skipped", "error"]
CaseKind = Literal["gate", "criterion", "command", "project"]


class CaseReason(NamedTuple):
    """Why a case did not pass: a code, a sentence, the location in the branch's files, and what to do next."""

    code: str
    message: str
    where: str
    next: str | None = None


class VerificationCase(NamedTuple):
    """The result of one check."""

    name: str
    kind: CaseKind
    outcome: Outcome
    reasons: tuple[CaseReason, ...] = ()
    text: str = ""
    """The requirement, or the result."""
    output: str = ""
    """The end of a failed command's output; untrusted text."""


def case_from_reasons(name: str, kind: CaseKind, reasons: Iterable[CaseReason]) -> VerificationCase:
    """A case that fails if there are reasons, else passes."""
    failures = tuple(reasons)
    return VerificationCase(name, kind, "failed" if failures else "passed", failures)


class JobCases(NamedTuple):
    """A job of the base branch, and the results of running its contract again."""

    id: str
    title: str
    where: str
    claimed: bool
    """Whether the branch claims that it is done, or it was selected."""
    cases: tuple[VerificationCase, ...]

    @property
    def passed(self) -> bool:
        """Whether the job was run again and every case passed or was skipped."""
        return self.claimed and bool(self.cases) and all(case.outcome in ("passed", "skipped") for case in self.cases)


class Verification(NamedTuple):
    """The results of verifying a branch against the contract of its base branch."""

    base: str
    commit: str
    """The commit of the base branch that the contract was taken from; empty if there is none."""
    project: tuple[VerificationCase, ...]
    jobs: tuple[JobCases, ...]
    notes: tuple[CaseReason, ...] = ()
    """Information that does not count against the branch."""
    inside: str = ""
    """The project's folder in the repository, with a trailing slash; locations are relative to the project."""
    project_file: str = "jobs/plan.md"
    """The project's plan file: the location of reasons without another one."""
    head: str = ""
    """The commit that was judged; empty if there is none."""

    @classmethod
    def of_error(cls, base: str, code: str, message: str, where: str, next_step: str | None) -> Verification:
        """A verification that could not run at all: it is reported, and does not pass."""
        case = VerificationCase("verify", "project", "error", (CaseReason(code, message, where, next_step),))
        return cls(base, "", (case,), ())

    @property
    def cases(self) -> tuple[VerificationCase, ...]:
        return (*self.project, *(case for job in self.jobs for case in job.cases))

    @property
    def broken(self) -> bool:
        """Whether a check could not run at all."""
        return any(case.outcome == "error" for case in self.cases)

    @property
    def passed(self) -> bool:
        """Whether something was verified and nothing failed. Zero jobs is never a pass."""
        return any(job.passed for job in self.jobs) and all(
            case.outcome in ("passed", "skipped") for case in self.cases
        )

    @property
    def reasons(self) -> tuple[CaseReason, ...]:
        return tuple(reason for case in self.cases for reason in case.reasons if case.outcome != "skipped")
