"""`donewhen job-complete`, for those who call it by path."""

import sys

from donewhen.cli import main

sys.argv.insert(1, "job-complete")
sys.exit(main())
