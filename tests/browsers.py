"""The browser in which tests look at pages: Chromium, as Debian packages it."""

from __future__ import annotations

import shutil

# The shell is the same browser without windows, and takes a third of the time.
CHROMIUM = next(
    filter(
        None,
        map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")),
    ),
    None,
)
