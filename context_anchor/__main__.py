"""The command line, as `python -m context_anchor`."""

from __future__ import annotations

import sys

from context_anchor.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
