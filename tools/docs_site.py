"""Build the docs as a site, with search, and check its links.

python -m tools.docs_site PYTHON_WITH_ZENSICAL [FOLDER]

The pages in `docs` are written for readers of the repository. They are copied with the README as the first page, links
to files outside of `docs` lead to copies, and the navigation is that of `docs/index.md`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).parents[1]
_SPECIAL = {
    "README.md": "index.md",
    "docs/index.md": "all-pages.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
_LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()([^)\s]+)(\))", re.DOTALL)
_NAV_LINK = re.compile(r"(?:\[|- \[)([^\]]+)\]\(([^)#\s]+\.md)\)")
_CONFIG = """\
[project]
site_name = "donewhen"
site_description = "Completion control for AI agents"
docs_dir = "source"
site_dir = "site"
use_directory_urls = false
nav = {nav}

[project.theme]
language = "en"
font = false
features = ["content.code.copy", "navigation.footer", "navigation.top", "navigation.sections", "search.highlight"]

[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
toggle.icon = "lucide/sun"
toggle.name = "Dark"

[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
toggle.icon = "lucide/moon"
toggle.name = "Light"

[project.markdown_extensions]
attr_list = {{}}
tables = {{}}
toc.permalink = true
toc.slugify = {{ object = "pymdownx.slugs.slugify", kwds = {{ case = "lower" }} }}
pymdownx.highlight = {{}}
pymdownx.superfences = {{}}
"""


def staged_name(path: str) -> str:
    """Where a file of the repository stands in the site's source."""
    if path in _SPECIAL:
        return _SPECIAL[path]
    # A site leaves out files whose names begin with a dot.
    return path.removeprefix("docs/") if path.startswith("docs/") else f"files/{path.lstrip('.')}"


def rewritten(page: str, text: str) -> tuple[str, set[str]]:
    """A page with its links as they are in the site, and the files outside of `docs` that it links to."""
    others: set[str] = set()

    def link(match: re.Match[str]) -> str:
        target, _, fragment = match[2].partition("#")
        if not target or re.match(r"[a-z]+:", target):
            return match[0]
        path = os.path.normpath(os.path.join(os.path.dirname(page), target))  # noqa: PTH118, PTH120 - a name, not a file
        if (ROOT / path).is_dir():
            return match[1] + os.path.relpath("all-pages.md", os.path.dirname(staged_name(page)) or ".") + match[3]  # noqa: PTH120
        if not path.startswith("docs/") and path not in _SPECIAL:
            others.add(path)
        here = os.path.dirname(staged_name(page)) or "."  # noqa: PTH120
        return f"{match[1]}{os.path.relpath(staged_name(path), here)}{'#' + fragment if fragment else ''}{match[3]}"

    # What blocks are marked with for the tests: the name of a file becomes their title.
    text = re.sub(r"^(```\w+) file=(\S+).*$", r'\1 title="\2"', text, flags=re.MULTILINE)
    text = re.sub(r"^(```\w+) [a-z-]+=[^\s\"]+$", r"\1", text, flags=re.MULTILINE)
    return _outside_code(text, link), others


def _outside_code(text: str, link: Callable[[re.Match[str]], str]) -> str:
    """Rewrite links, but not in blocks of code."""
    parts = re.split(r"(^```.*?^```[^\S\n]*$|(?<!\[)`[^`\n]+`(?!\]))", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if index % 2 else _LINK.sub(link, part) for index, part in enumerate(parts))


def stage(source: Path) -> list[str]:
    """Write the site's source; return the names of its pages."""
    pages = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"]
    pages += sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*") if path.is_file()} - {*pages}
    for page in pages:
        text, others = rewritten(page, (ROOT / page).read_text(encoding="utf-8"))
        files |= others
        _write(source / staged_name(page), text.encode())
    for name in files:
        _write(source / staged_name(name), (ROOT / name).read_bytes())
    return [staged_name(page) for page in pages]


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def navigation(pages: list[str]) -> list[dict[str, object]]:
    """The sections of the index with their pages; what no section names comes last."""
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    entries: list[dict[str, object]] = [{"donewhen": "index.md"}]
    named = {"index.md", "all-pages.md"}
    for part in re.split(r"^\*\*", text, flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("**")
        listed: list[dict[str, str]] = []
        for name, target in _NAV_LINK.findall(body):
            page = staged_name(os.path.normpath(f"docs/{target}"))
            if page in pages and page not in named:
                named.add(page)
                label = re.sub(r"[`*]|\s+", " ", name).strip()
                listed.append({label[:1].upper() + label[1:]: page})
        if listed:
            entries.append({title.removeprefix("How to: ").capitalize(): listed})
    rest: list[dict[str, str]] = [{Path(page).stem.replace("-", " "): page} for page in pages if page not in named]
    if rest:
        entries.append({"More": rest})
    return [*entries, {"All pages": "all-pages.md"}]


def _toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(key)} = {_toml(item)}' for key, item in value.items())} }}"
    return json.dumps(value)


class _Page(HTMLParser):
    """What a page links to, and which places it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.places.add(value)
            elif value and (name == "src" or (name == "href" and tag == "link")):
                self.loads.append(value)
            elif value and name == "href" and tag == "a":
                self.links.append(value)


def broken_links(site: Path) -> Iterator[str]:
    """Links that lead nowhere, and anything that a page would load from elsewhere."""
    pages = {path: _Page(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        if path.name == "404.html":
            continue
        yield from (
            f"{path.relative_to(site)}: loads {link}" for link in page.loads if re.match(r"(?:https?:)?//", link)
        )
        for link in (*page.links, *page.loads):
            target, _, fragment = link.partition("#")
            if re.match(r"[a-z]+:|//", target):
                continue
            leads_to = Path(os.path.normpath(path.parent / unquote(target))) if target else path
            if leads_to.is_dir():
                leads_to /= "index.html"
            if not leads_to.is_file():
                yield f"{path.relative_to(site)}: {link}"
            elif fragment and leads_to in pages and unquote(fragment) not in pages[leads_to].places:
                yield f"{path.relative_to(site)}: {link} (no such heading)"


def main() -> int:
    python = Path(sys.argv[1]).absolute()
    folder = Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "build" / "docs-site").resolve()
    shutil.rmtree(folder, ignore_errors=True)
    pages = stage(folder / "source")
    (folder / "zensical.toml").write_text(_CONFIG.format(nav=_toml(navigation(pages))), encoding="utf-8")
    done = subprocess.run([python, "-m", "zensical", "build", "--clean"], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        return done.returncode
    broken = sorted(set(broken_links(folder / "site")))
    for line in broken:
        sys.stderr.write(f"{line}\n")
    count = len([*(folder / "site").rglob("*.html")])
    print(f"{count} pages in {folder / 'site'}, {len(broken)} broken link(s)")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
