"""`lineage()`: Downriver from Python code that moves data, and from code that asks about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.loading import load_from

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

# A function that only records its runs needs no store and no graph.
__getattr__ = load_from(__name__, _HOMES)
