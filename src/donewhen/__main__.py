"""``python -m donewhen``, and the file that runs when donewhen has started itself again."""

import sys

if not __package__:
    import os

    # Run by its path. Only this package is taken from the folder around it, and not what lies beside it.
    _around = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path.insert(0, _around)
    from donewhen.cli import main

    sys.path.remove(_around)
else:
    from donewhen.cli import main

sys.exit(main())
