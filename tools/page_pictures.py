"""Draw the pictures of the page for the docs: python -m tools.page_pictures

It creates a small project with real commands and opens the page in a real browser. It needs Chromium and Playwright,
so tools.write_docs does not update these pictures.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from donewhen.config.agent_runtimes import AGENT_VARIABLES
from donewhen.demo.example_mission import make_mission

IMAGES = Path(__file__).parents[1] / "docs" / "images"
LARGEST = 250_000
_LOGIN = """\
def allowed(password, stored):
    return bool(stored) and password == stored
"""
_TEST_LOGIN = """\
import unittest

from login import allowed


class LoginTest(unittest.TestCase):
    def test_right_password(self):
        self.assertTrue(allowed("amber", "amber"))

    def test_no_password_stored(self):
        self.assertFalse(allowed("", ""))
"""
_TEST_LOCK = """\
import unittest

from lock import Account


class LockTest(unittest.TestCase):
    def test_five_failures_lock_the_account(self):
        account = Account()
        for _ in range(5):
            account.fail()
        self.assertTrue(account.locked)
"""
_LOCK = """\
class Account:
    def __init__(self):
        self.failures = 0

    def fail(self):
        self.failures += 1

    @property
    def locked(self):
        return self.failures > 5
"""
_REPORT = """\
# Retries for the payment client

- read the module and its callers
- wrote a failing test first
- changed the client: three tries, then an error that says so

## Evidence

python -m unittest: 41 tests, all passed
"""
# Plays a person: a detached process with its own terminal, because donewhen treats descendants of an agent's program as
# agents. It passes on the output of the terminal, and types the words that are asked for.
_PERSON = r"""
import json, os, pty, re, sys
if os.fork():
    os._exit(0)
argv = json.loads(sys.argv[1])
process, terminal = pty.fork()
if process == 0:
    os.execv(argv[0], argv)
sys.stdout.write(f"pid {process}\n")
screen, answered = b"", 0
try:
    while chunk := os.read(terminal, 4096):
        screen += chunk
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
        word = re.search(rb"type ([a-z]+-[a-z]+) and press", screen[answered:])
        if word and screen.rstrip().endswith(b"word:"):
            answered = len(screen)
            os.write(terminal, word[1] + b"\n")
except OSError:
    pass
os.waitpid(process, 0)
"""


def main() -> int:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("Chromium was not found; it is needed to draw the pictures.", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="donewhen-page-") as name:
        folder = Path(name) / "webshop"
        folder.mkdir()
        jobs = build(folder)
        with served(folder) as (url, link):
            draw(browser, url, link, jobs)
    sizes = {path.name: path.stat().st_size for path in sorted(IMAGES.glob("page-*.png"))}
    for picture, size in sizes.items():
        print(f"{picture}: {size // 1000} kB{'' if size <= LARGEST else ', which is too large'}")
    return int(any(size > LARGEST for size in sizes.values()))


def build(folder: Path) -> list[str]:
    """Create a project with work in progress, and return the ids of its jobs."""
    for file, text in {
        "login.py": _LOGIN.replace("bool(stored) and ", ""),
        "test_login.py": _TEST_LOGIN,
        "test_lock.py": _TEST_LOCK,
    }.items():
        (folder / file).write_text(text, encoding="utf-8")
    make_mission(folder / "missions" / "reports", 300)
    run(folder, "init", "--title", "Webshop")
    test = "The tests pass :: run python3 -m unittest -q"
    add(folder, "Log in with a password", f"{test} test_login", "/login.py", "--stakes", "high", *inputs("login"))
    add(folder, "Lock an account after five failures", f"{test} test_lock", "/lock.py", *needs("001"), *inputs("lock"))
    add(folder, "Report on the payment client", "A reviewer would accept the report :: judge:reports", "/report.md")
    add(folder, "Orders as CSV", "A spreadsheet opens it", "/orders.csv")
    add(folder, "Search that forgives typos", "Ten typos are found", "/search.py")
    add(folder, "Send the receipt by mail", "It arrives", "/mail.py", *needs("004"))
    jobs = sorted(path.name[:15] for path in (folder / "jobs").iterdir() if path.is_dir())
    as_person(folder, "agree")
    add(folder, "Keep the audit trail for seven years", "It is there", "/audit.py", "--stakes", "critical")
    run(folder, "learn", "missions/reports", "--quiet")
    run(folder, "start", jobs[0])
    (folder / "login.py").write_text(_LOGIN, encoding="utf-8")
    run(folder, "complete", jobs[0])
    run(folder, "start", jobs[1])
    (folder / "lock.py").write_text(_LOCK, encoding="utf-8")
    run(folder, "complete", jobs[1], fails=True)
    run(folder, "start", jobs[2])
    (folder / "report.md").write_text(_REPORT, encoding="utf-8")
    run(folder, "complete", jobs[2], fails=True)
    run(folder, "start", jobs[3])
    run(folder, "ask", jobs[3], "--question", "Comma or semicolon between the columns?")
    return jobs


def add(folder: Path, title: str, criterion: str, output: str, *more: str) -> None:
    run(folder, "add", title, "--criterion", criterion, "--output", output, *more)


def inputs(name: str) -> tuple[str, ...]:
    return "--input", f"/{name}.py", "--input", f"/test_{name}.py"


def needs(job: str) -> tuple[str, ...]:
    return "--depends-on", job


def draw(browser: str, url: str, link: str, jobs: Sequence[str]) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        size: Any = {"width": 1180, "height": 780}
        page = chromium.new_context(viewport=size, color_scheme="light").new_page()
        take(page, f"{url}/", "page-board")
        take(page, f"{url}/jobs/{jobs[1]}", "page-job")
        page.goto(link)
        page.get_by_role("button", name="Continue as").click()
        page.wait_for_url(re.compile("/review"))
        take(page, page.url, "page-review")
        dark = chromium.new_context(viewport=size, color_scheme="dark").new_page()
        take(dark, f"{url}/missions/reports", "page-mission")
        chromium.close()


def take(page: Any, url: str, name: str) -> None:
    page.goto(url)
    page.wait_for_selector("[data-live]:not([hidden])")
    page.screenshot(path=IMAGES / f"{name}.png")


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, str]]:
    """Start the page as a person; yield its address and the sign-in link."""
    process = person(folder, "serve", "--port", "0", "--reviewer", "ada")
    assert process.stdout is not None
    screen = _read_until(process.stdout, "Ctrl-C ends it.")
    matches = {name: re.search(pattern, screen) for name, pattern in _SHOWN.items()}
    pid, url, link = (str(matches[name][1]) for name in ("pid", "url", "link"))  # type: ignore[index]
    try:
        yield url, link
    finally:
        os.kill(int(pid), signal.SIGTERM)
        process.stdout.read()
        process.stdout.close()
        process.wait()


_SHOWN = {"pid": r"pid (\d+)", "url": r"The page is at (\S+?)/\s", "link": r"(http\S+/sign-in\S+)"}


def _read_until(screen: IO[bytes], text: str) -> str:
    seen = ""
    while text not in seen:
        line = screen.readline()
        if not line:
            raise RuntimeError(f"The process ended before it printed {text!r}:\n{seen}")
        seen += line.decode()
    return seen


def run(folder: Path, *arguments: str, fails: bool = False) -> None:
    """Run a command without a terminal, as agents do."""
    argv = [sys.executable, "-m", "donewhen", *arguments]
    done = subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=_quiet())
    if (done.returncode != 0) is not fails:
        raise RuntimeError(f"donewhen {' '.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}")


def as_person(folder: Path, *arguments: str) -> None:
    """Run a command at a terminal."""
    process = person(folder, *arguments)
    process.communicate()


def person(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-m", "donewhen", *arguments]
    player = [sys.executable, "-c", _PERSON, json.dumps(argv)]
    return subprocess.Popen(player, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=_quiet())


def _quiet() -> dict[str, str]:
    hidden = {*AGENT_VARIABLES, "CI", "GITHUB_ACTIONS"}
    return {name: value for name, value in os.environ.items() if name not in hidden} | {"NO_COLOR": "1"}


if __name__ == "__main__":
    sys.exit(main())
