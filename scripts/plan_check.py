"""`donewhen plan-check`, for those who call it by path."""

import sys

from donewhen.cli import main

sys.argv.insert(1, "plan-check")
sys.exit(main())
