"""Downriver: change a table, see what breaks downriver, before you ship."""

__version__ = "0.1.0"
