"""`donewhen job-complete`, for those who call it by path."""

import sys

from donewhen.cli import main

sys.exit(main(["job-complete", *sys.argv[1:]]))
