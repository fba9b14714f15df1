"""Downriver: change a table, see what breaks downriver, before you ship."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.lazy_imports import lazy_getattr

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
    from downriver.sdk import Tracker, lineage, lineage_sync
    from downriver.sdk.decorators import LineageEmitter, document_column_lineage, track_lineage
    from downriver.service import Lineage

_HOMES = {
    "Agent": "downriver.agent",
    "ColumnLineage": "downriver.capture.functions",
    "Dataset": "downriver.capture.functions",
    "Lineage": "downriver.service",
    "LineageEmitter": "downriver.sdk.decorators",
    "Tracker": "downriver.sdk",
    "create_lineage_event": "downriver.capture.functions",
    "document_column_lineage": "downriver.sdk.decorators",
    "lineage": "downriver.sdk",
    "lineage_sync": "downriver.sdk",
    "parse_sql_lineage": "downriver.capture.sql",
    "track_lineage": "downriver.sdk.decorators",
}

# Importing downriver must stay fast for a job that may not use it.
__getattr__ = lazy_getattr(__name__, _HOMES)
