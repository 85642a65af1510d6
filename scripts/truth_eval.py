"""`donewhen truth-eval`, for those who call it by path."""

import sys

from donewhen.cli import main

sys.argv.insert(1, "truth-eval")
sys.exit(main())
