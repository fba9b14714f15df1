"""The command line: `app.py` lists the commands; each is a function of its subject's module."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line. A command that reads code runs in a child process."""
    from downriver.bootstrap import supervision

    if set(sys.argv[1:2]) & supervision.COMMANDS:
        supervision.continue_in_child()
    run_here()


def run_here() -> None:
    """Run the command line in this process."""
    if sys.argv[1:] == ["--version"]:
        from downriver import __version__  # before Typer is loaded: scripts often run `--version`

        sys.stdout.write(f"downriver {__version__}\n")
        return
    from downriver.cli.app import run

    run()
