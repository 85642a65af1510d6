"""Draw docs/images/learning-report.png, the top of the report in the tutorial: python -m tools.report_picture

It needs Chromium, so tools.write_docs does not update this picture.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
PICTURE = DOCS / "images" / "learning-report.png"
_WIDTH, _HEIGHT = 1000, 870
_FILE = re.compile(r"^```\w+ file=(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def main() -> int:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("Chromium was not found; it is needed to draw the picture.", file=sys.stderr)
        return 1
    page = (DOCS / "tutorial-judge-learning.md").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="donewhen-picture-") as name:
        folder = Path(name)
        written = dict(_FILE.findall(page))
        (folder / "make_notes.py").write_text(written["make_notes.py"], encoding="utf-8")
        (folder / "notes.csv").write_bytes(_run(folder, "make_notes.py"))
        _run(folder, "-m donewhen mission init notes.csv")
        rules = "notes/initial_guidance.json"
        (folder / rules).write_text(written[rules], encoding="utf-8")
        _run(folder, "-m donewhen learn notes --quiet")
        (report,) = folder.glob("notes/runs/*/report.html")
        drawn = folder / "report.png"
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        size = f"--window-size={_WIDTH},{_HEIGHT}"
        command = [browser, *options, size, f"--screenshot={drawn}", report.as_uri()]
        subprocess.run(command, check=True, capture_output=True)
        PICTURE.write_bytes(drawn.read_bytes())
    print(f"{PICTURE.name}: {PICTURE.stat().st_size // 1024} kB")
    return 0


def _run(folder: Path, command: str) -> bytes:
    return subprocess.run([sys.executable, *command.split()], cwd=folder, check=True, capture_output=True).stdout


if __name__ == "__main__":
    sys.exit(main())
