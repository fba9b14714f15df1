"""The command line: one file a command."""

from downriver.cli.app import main

__all__ = ["main"]
