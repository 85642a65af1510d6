"""An interpreter for the projects in tests: it has pytest, and none of the plugins that these tests need themselves.

A suite that a test starts takes half as long with it, and no plugin of ours can change how it ends.
"""

from __future__ import annotations

import functools
import shutil
import sys
import sysconfig
import tempfile
from importlib.metadata import distribution, version
from pathlib import Path

_DISTRIBUTIONS = ("pytest", "pluggy", "iniconfig", "packaging", "pygments")


@functools.cache
def lean_python() -> str:
    """The path of its program, which is the same in every process of this environment."""
    folder = Path(sys.prefix) / f"lean-python-{version('pytest')}"
    if not folder.exists():
        made = Path(tempfile.mkdtemp(prefix="lean-", dir=sys.prefix))
        _fill(made)
        try:
            made.rename(folder)
        except OSError:
            # Another process was faster.
            shutil.rmtree(made)
    return str(folder / "bin" / "python")


def _fill(folder: Path) -> None:
    shutil.copy(Path(sys.prefix) / "pyvenv.cfg", folder)
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(Path(sys.executable).resolve())
    installed = Path(sysconfig.get_path("purelib"))
    packages = folder / installed.relative_to(sys.prefix)
    packages.mkdir(parents=True)
    for name in _DISTRIBUTIONS:
        files = distribution(name).files or ()
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            source = installed / top
            # No links: what lies outside of the environment is out of reach for the checks of jobs.
            if source.is_dir():
                shutil.copytree(source, packages / top, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, packages / top)
