"""What a command of a verification brings into reach: by its own words, and by the files of the base that it runs."""

from __future__ import annotations

import os
from collections.abc import Sequence

from donewhen.foundation.git_objects import LINK
from donewhen.jobs.evidence.started_programs import Checks, reach_of_checks
from donewhen.jobs.room.judging_names import named_files
from donewhen.jobs.room.nested_commands import run_in_turn
from donewhen.jobs.room.reach import Reach
from donewhen.jobs.room.surroundings import Surroundings
from donewhen.jobs.verifying.base_branch import Base


def reach_in_base(base: Base, argv: Sequence[str], environments: Sequence[str], surroundings: Surroundings) -> Reach:
    """What a command brings into reach. What the branch says does not count."""
    if not surroundings.private:
        return Reach()
    named = run_in_turn([tuple(named_files(argv))], base.inside, base.files, base.content)
    names = {os.path.normpath(f"{base.inside}{file.name}") for files in named for file in files}
    agreed = [base.files[name] for name in sorted(names & base.files.keys()) if base.files[name].mode != LINK]
    files = [*zip((file.name for file in agreed), base.contents(agreed), strict=True)]
    checks = Checks([tuple(argv)], files, base.top / base.inside, base.top, environments)
    return reach_of_checks(checks, surroundings)


def is_installed(base: Base, argv: Sequence[str], environments: Sequence[str]) -> bool:
    """Whether the first word of a command is the path of a program in an environment of the checkout."""
    name = os.path.normpath(f"{base.inside}{argv[0]}")
    return "/" in argv[0] and any(name.startswith(f"{environment}/") for environment in environments)
