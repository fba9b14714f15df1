"""`lineage()`: Downriver from Python code that moves data."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.service import Lineage

if TYPE_CHECKING:
    from downriver.capture.sql import ColumnEdge
    from downriver.service import SqlCapture


class SqlFlows(msgspec.Struct, kw_only=True):
    """What capturing a statement registered; also readable as a dictionary."""

    source_tables: list[str]
    target_tables: list[str]
    flows_registered: list[dict[str, str]]
    flow_count: int
    columns: list[ColumnEdge]
    complete: bool
    blind_spots: list[str]

    def __getitem__(self, name: str) -> Any:
        try:
            return getattr(self, name)
        except AttributeError as exc:
            raise KeyError(name) from exc


class Tracker:
    """Registers lineage in a store and asks it questions."""

    def __init__(self, service: Lineage) -> None:
        self._service = service

    async def capture_sql_lineage(
        self, sql: str, transformation: str = "", *, dialect: str | None = None
    ) -> SqlFlows:
        """Register the flows of a statement that was run, from its text."""
        capture = await asyncio.to_thread(
            self._service.capture_sql, sql, dialect=dialect, description=transformation, ran=True
        )
        return _flows(capture, transformation)

    async def close(self) -> None:
        """Release the store."""
        await asyncio.to_thread(self._service.close)


def lineage(location: str | None = None) -> Tracker:
    """Open the store at `location`, else DOWNRIVER_STORE, else the nearest `.downriver/`."""
    return Tracker(Lineage.open(location))


def _flows(capture: SqlCapture, transformation: str) -> SqlFlows:
    found = capture.lineage
    pairs = {
        (source, target)
        for statement in found.statements
        for source in statement.inputs
        for target in statement.outputs
    }
    flows = [
        {"source": source, "target": target, "transformation": transformation}
        for source, target in sorted(pairs)
    ]
    return SqlFlows(
        source_tables=found.inputs,
        target_tables=found.outputs,
        flows_registered=flows,
        flow_count=len(flows),
        columns=[*found.column_edges, *found.dataset_edges],
        complete=found.complete,
        blind_spots=[spot.message for spot in found.blind_spots],
    )
