"""`donewhen reward-eval`, for those who call it by path."""

import sys

from donewhen.cli import main

sys.argv.insert(1, "reward-eval")
sys.exit(main())
