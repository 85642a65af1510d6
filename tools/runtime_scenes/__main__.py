"""Play all scenes with all clients that are installed, and write the table of the documentation."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from tools.runtime_scenes.cell import Cell
from tools.runtime_scenes.client import ClientMissingError, client_program, client_version
from tools.runtime_scenes.page import write_page
from tools.runtime_scenes.scenes import RUNTIMES, SCENES, play_scene


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runtime", action="append", choices=list(RUNTIMES), help="default: all")
    parser.add_argument("--scene", action="append", choices=list(SCENES), help="default: all")
    parser.add_argument("--no-page", action="store_true", help="print the results, and leave the page as it is")
    options = parser.parse_args()
    cells: dict[tuple[str, str], Cell] = {}
    versions: dict[str, str] = {}
    for name in options.runtime or RUNTIMES:
        try:
            client_program(name)
        except ClientMissingError as error:
            print(f"LOUD: {error}: its column can NOT be written")
            continue
        versions[name] = client_version(name)
        for scene in options.scene or SCENES:
            cells[name, scene] = played(name, scene)
    if not options.no_page:
        write_page(cells, versions)
    return 0


def played(name: str, scene: str) -> Cell:
    """One cell, from a real run."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="donewhen-scene-", ignore_cleanup_errors=True) as folder:
        try:
            cell = play_scene(name, scene, Path(folder).resolve() / "stage")
        except Exception as error:  # noqa: BLE001 - one broken cell must not lose the others
            cell = Cell("can't", f"not played: {type(error).__name__}: {error}")
    print(f"{name:8} {scene:20} {cell.result:15} {time.monotonic() - began:5.1f} s  {cell.note}", flush=True)
    return cell


if __name__ == "__main__":
    raise SystemExit(main())
