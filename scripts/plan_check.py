"""`donewhen plan-check`, for those who call it by path."""

import sys

from donewhen.cli import main

sys.exit(main(["plan-check", *sys.argv[1:]]))
