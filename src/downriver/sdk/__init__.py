"""The Python SDK: `lineage()`, trackers and decorators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.lazy_imports import lazy_getattr

__all__ = ["SqlFlows", "SyncTracker", "Tracker", "lineage", "lineage_sync"]

if TYPE_CHECKING:
    from downriver.sdk.tracker import SqlFlows, SyncTracker, Tracker, lineage, lineage_sync

_HOMES = {
    "SqlFlows": "downriver.sdk.tracker",
    "SyncTracker": "downriver.sdk.tracker",
    "Tracker": "downriver.sdk.tracker",
    "lineage": "downriver.sdk.tracker",
    "lineage_sync": "downriver.sdk.tracker",
}

# A tracked function needs neither the store nor the graph, so neither is imported for it.
__getattr__ = lazy_getattr(__name__, _HOMES)
