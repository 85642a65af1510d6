"""What it costs to list the packages that checks could load."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

from donewhen.environments.inventory import Wanted, list_environment

FILES, ROUNDS = 10_000, 5
_A_DISTRIBUTION = 100
_BYTES = 10_000
LIMIT = 2.0
"""Seconds that it may take."""


def environments_benchmark() -> None:
    """Print the line; raise AssertionError if it takes too long."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(os.path.realpath(folder))
        environment = _environment(root / ".venv")
        wanted = Wanted(root=root, home=root / "home", environments=(environment,))
        times, files = [], 0
        for _ in range(ROUNDS):
            started = time.process_time()
            files = list_environment(wanted).files
            times.append(time.process_time() - started)
    seconds = statistics.median(times)
    print(f"Listing an environment of {files:,} files by content: {seconds:.2f} s of CPU (at most {LIMIT:.0f})\n")
    assert seconds <= LIMIT, "it takes too long"


def _environment(folder: Path) -> Path:
    """An environment with as many files as many projects have, of usual size."""
    site = folder / "lib" / "python3.11" / "site-packages"
    for number in range(FILES // _A_DISTRIBUTION):
        package, info = site / f"package{number}", site / f"package{number}-1.0.dist-info"
        package.mkdir(parents=True)
        info.mkdir()
        names = [f"module{inner}.py" for inner in range(_A_DISTRIBUTION - 2)]
        for name in names:
            (package / name).write_text(f"VALUE = {number}\n".ljust(_BYTES, "#"))
        (info / "METADATA").write_text(f"Name: package{number}\nVersion: 1.0\n")
        (info / "RECORD").write_text("".join(f"{package.name}/{name},,\n" for name in names))
    (folder / "bin").mkdir()
    (folder / "pyvenv.cfg").write_text("include-system-site-packages = false\n")
    return folder
