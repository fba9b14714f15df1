"""Downriver: change a table, see what breaks downriver, before you ship."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
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


def __getattr__(name: str) -> Any:
    # Loaded when first used: importing downriver must not slow a job that only might need it.
    if name not in _HOMES:
        raise AttributeError(f"module 'downriver' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
