"""Files that judge the work, and that a branch removes: a renamed test is honest, a lost one is not."""

from __future__ import annotations

from collections.abc import Sequence

from donewhen.jobs.evidence.two_runs import tests_of
from donewhen.jobs.ledger.gate_results import GateCode
from donewhen.jobs.room.judging_names import TEST_PATTERNS, is_test
from donewhen.jobs.verifying.agreed_jobs import AgreedJob
from donewhen.jobs.verifying.base_branch import Base
from donewhen.jobs.verifying.cases import CaseReason, VerificationCase, case_from_reasons
from donewhen.jobs.verifying.rerun import tests_in
from donewhen.jobs.verifying.run_trees import RunTrees

_NAMED_LIKE_TESTS = tuple(pattern for pattern in TEST_PATTERNS if not pattern.endswith("/"))


def removed_files_case(base: Base, trees: RunTrees | None, jobs: Sequence[AgreedJob]) -> VerificationCase:
    """Fail if the branch removes files that judge, unless that was looked at: the ids of the tests were compared."""
    removed = () if trees is None else trees.removed
    compared: set[str] = set()
    if removed and trees is not None and trees.is_planned:
        compared = {test for job in jobs for test in tests_in(trees.base.workspace, job.job)}
    reasons = [
        CaseReason(
            GateCode.REPORT_TESTS_LOST,
            f"{name} judges the work on {base.ref}, but the branch removes it.",
            name.removeprefix(base.inside),
            "Restore it, or let a person agree on the base branch that it is an output of the job.",
        )
        for name in removed
        if not _is_compared(name.removeprefix(base.inside), compared)
    ]
    return case_from_reasons("tests", "project", reasons)


def _is_compared(name: str, compared: set[str]) -> bool:
    """Whether the loss of a file's tests would have been noticed by their ids. What only lies beside tests is used by
    them: they have passed without it."""
    return bool(compared) and (bool(tests_of(compared, [name])) or not is_test(name, _NAMED_LIKE_TESTS))
