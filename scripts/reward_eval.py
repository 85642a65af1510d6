"""`donewhen reward-eval`, for those who call it by path."""

import sys

from donewhen.cli import main

sys.exit(main(["reward-eval", *sys.argv[1:]]))
