"""``python -m donewhen``."""

import sys

from donewhen.cli import main

sys.exit(main())
