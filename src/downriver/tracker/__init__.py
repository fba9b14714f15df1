"""`lineage()`: Downriver from Python code that moves data, and from code that asks about it."""

from downriver.tracker.awaited import Tracker
from downriver.tracker.flows import SqlFlows
from downriver.tracker.opening import lineage, lineage_sync
from downriver.tracker.sync import SyncTracker

__all__ = ["SqlFlows", "SyncTracker", "Tracker", "lineage", "lineage_sync"]
