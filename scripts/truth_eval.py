"""`donewhen truth-eval`, for those who call it by path."""

import sys

from donewhen.cli import main

sys.exit(main(["truth-eval", *sys.argv[1:]]))
