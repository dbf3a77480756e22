"""`install`, `uninstall`, `doctor`, `demo` and `serve`: the way to the rooms that do them."""

from __future__ import annotations

import argparse
import os


def setup(options: argparse.Namespace) -> int:
    """Run a command of the installer's room, which prints its own result; returns its exit code."""
    from context_anchor.install import cli_entry

    options.json = getattr(options, "json", False)
    return int(cli_entry.run(options.setup, options))


def serve(options: argparse.Namespace) -> int:
    """Run the MCP server on the standard streams until the host closes them."""
    # The process that started this one is the host; behind a launcher it could not be told.
    os.environ.setdefault("CONTEXT_ANCHOR_HOST_PID", str(os.getppid()))
    from context_anchor.server.app import main

    return main()
