"""Downriver: change a table, see what breaks downriver, before you ship."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.loading import load_from

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "ColumnLineage",
    "Dataset",
    "Lineage",
    "LineageEmitter",
    "Tracker",
    "__version__",
    "create_lineage_event",
    "document_column_lineage",
    "lineage",
    "lineage_sync",
    "parse_sql_lineage",
    "track_lineage",
]

if TYPE_CHECKING:
    from downriver.agent import Agent
    from downriver.capture.functions import ColumnLineage, Dataset, create_lineage_event
    from downriver.capture.sql import parse_sql_lineage
    from downriver.service import Lineage
    from downriver.tracker import Tracker, lineage, lineage_sync
    from downriver.tracker.functions import (
        LineageEmitter,
        document_column_lineage,
        track_lineage,
    )

_HOMES = {
    "Agent": "downriver.agent",
    "ColumnLineage": "downriver.capture.functions",
    "Dataset": "downriver.capture.functions",
    "Lineage": "downriver.service",
    "LineageEmitter": "downriver.tracker.functions",
    "Tracker": "downriver.tracker",
    "create_lineage_event": "downriver.capture.functions",
    "document_column_lineage": "downriver.tracker.functions",
    "lineage": "downriver.tracker",
    "lineage_sync": "downriver.tracker",
    "parse_sql_lineage": "downriver.capture.sql",
    "track_lineage": "downriver.tracker.functions",
}

# Importing downriver must not slow a job that only might need it.
__getattr__ = load_from(__name__, _HOMES)
