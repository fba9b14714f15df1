"""`lineage()`: Downriver from Python code that moves data, and from code that asks about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.lazy_imports import lazy_getattr

__all__ = ["SqlFlows", "SyncTracker", "Tracker", "lineage", "lineage_sync"]

if TYPE_CHECKING:
    from downriver.sdk.flows import SqlFlows
    from downriver.sdk.sync_tracker import SyncTracker
    from downriver.sdk.tracker import Tracker, lineage, lineage_sync

_HOMES = {
    "SqlFlows": "downriver.sdk.flows",
    "SyncTracker": "downriver.sdk.sync_tracker",
    "Tracker": "downriver.sdk.tracker",
    "lineage": "downriver.sdk.tracker",
    "lineage_sync": "downriver.sdk.tracker",
}

# A function that only records its runs needs no store and no graph.
__getattr__ = lazy_getattr(__name__, _HOMES)
