"""File checks with an agreed schema: what is checked is the work, what it is compared with comes from the agreement."""

from __future__ import annotations

from donewhen.jobs.evidence.file_checks import FileCheckResult, run_file_check
from donewhen.jobs.plan.criteria import Check
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.room.agreed_tree import agreed_files
from donewhen.jobs.room.basis import basis_of
from donewhen.jobs.room.disk_tree import read_file
from donewhen.jobs.room.work_area import in_repository


def check_file(workspace: Workspace, job: Job, check: Check) -> FileCheckResult:
    """Run a file check. A schema that has changed since it was agreed must be fitted both as agreed and as it is."""
    result = run_file_check(workspace, job, check)
    basis = basis_of(workspace, job) if check.schema is not None and result.passed else None
    if basis is None or check.schema is None:
        return result
    with agreed_files(workspace, basis.tree, job) as agreed:
        name = in_repository(agreed.place.inside, basis.job_folder, check.schema)
        file = agreed.files.get(name)
        if file is None:
            return result
        now = read_file(str(agreed.place.top), name, agreed.like)
        if now is not None and now.blob in (file.blob, basis.accepted.get(name)):
            return result
        content = next(iter([*agreed.blobs.contents([(name, file.blob)])]))
    return run_file_check(workspace, job, check, schema=content)
