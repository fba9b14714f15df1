"""`lineage()`: Downriver from Python code that moves data, and from code that asks about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["SqlFlows", "SyncTracker", "Tracker", "lineage", "lineage_sync"]

if TYPE_CHECKING:
    from downriver.tracker.awaited import Tracker
    from downriver.tracker.flows import SqlFlows
    from downriver.tracker.opening import lineage, lineage_sync
    from downriver.tracker.sync import SyncTracker

_HOMES = {
    "SqlFlows": "downriver.tracker.flows",
    "SyncTracker": "downriver.tracker.sync",
    "Tracker": "downriver.tracker.awaited",
    "lineage": "downriver.tracker.opening",
    "lineage_sync": "downriver.tracker.opening",
}


def __getattr__(name: str) -> Any:
    # Loaded when first used: a function that only records its runs needs no store and no graph.
    if name not in _HOMES:
        raise AttributeError(f"module 'downriver.tracker' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
