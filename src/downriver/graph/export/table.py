"""The edges of a trace as comma-separated values, for spreadsheets and loaders."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from downriver.graph.export.piece import Piece

COLUMNS = (
    "source", "target", "kind", "type", "subtype", "job", "status", "change", "confidence",
    "masking", "description", "first_seen", "last_seen", "first_event", "last_event",
)  # fmt: skip


def render_csv(piece: Piece) -> str:
    """Return a row for each edge; RFC 4180, with a heading."""
    text = io.StringIO(newline="")
    rows = csv.writer(text, lineterminator="\r\n")
    rows.writerow(COLUMNS)
    for edge in piece.trace.edges:
        rows.writerow([_cell(getattr(edge, name)) for name in COLUMNS])
    return text.getvalue()


_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def _cell(value: object) -> str:
    """Return a value as text that no spreadsheet takes for a formula."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(_FORMULAS) else text
