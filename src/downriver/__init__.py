"""Downriver: change a table, see what breaks downriver, before you ship."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "Lineage",
    "Tracker",
    "__version__",
    "lineage",
    "lineage_sync",
    "parse_sql_lineage",
]

if TYPE_CHECKING:
    from downriver.agent import Agent
    from downriver.capture.sql import parse_sql_lineage
    from downriver.service import Lineage
    from downriver.tracker import Tracker, lineage, lineage_sync

_HOMES = {
    "Agent": "downriver.agent",
    "Lineage": "downriver.service",
    "Tracker": "downriver.tracker",
    "lineage": "downriver.tracker",
    "lineage_sync": "downriver.tracker",
    "parse_sql_lineage": "downriver.capture.sql",
}


def __getattr__(name: str) -> Any:
    # Loaded when first used: importing downriver must not slow a job that only might need it.
    if name not in _HOMES:
        raise AttributeError(f"module 'downriver' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
