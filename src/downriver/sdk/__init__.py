"""The Python SDK: `lineage()`, trackers and decorators."""

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

# A tracked function needs neither the store nor the graph, so neither is imported for it.
__getattr__ = lazy_getattr(__name__, _HOMES)
