"""Enable a project's mirror in its plan."""

from __future__ import annotations

import os
from collections.abc import Mapping

from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.writing import writing
from donewhen.mirror.http.address import VARIABLE, check_address, check_repository_name, repository_of


def enable_mirror(workspace: Workspace, repo: str | None, environ: Mapping[str, str] = os.environ) -> str:
    """Write to the plan that jobs are mirrored to ``repo`` (default: plan, then git remote); return its name."""
    path = workspace.project_file
    from_environment = environ.get(VARIABLE, "").strip()
    api = check_address(
        from_environment or workspace.settings().github.api_url, VARIABLE if from_environment else "github.api_url"
    )
    with writing(workspace, path) as plan:
        project = plan.snapshot.project()
        name = check_repository_name(repo or project.github_repo or repository_of(workspace.root, api))
        plan.write_fields({"github_enabled": True, "github_repo": name})
    return name
