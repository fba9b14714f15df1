"""`lineage()`: Downriver from Python code that moves data, and from code that asks about it."""

from downriver.tracker.awaited import Tracker, lineage
from downriver.tracker.sync import SqlFlows, SyncTracker, lineage_sync

__all__ = ["SqlFlows", "SyncTracker", "Tracker", "lineage", "lineage_sync"]
