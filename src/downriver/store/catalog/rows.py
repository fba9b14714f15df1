"""What every part of the read side is made of: queries, and rows made into values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from downriver.model.facts import EventRef, Span
from downriver.model.ids import DatasetId, JobId, NodeId
from downriver.store.catalog.encoding import decompress

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from downriver.store.port import Row, SqlQueries

SPAN = "first_at, first_event, last_at, last_event, observed"


class CatalogQueries:
    """Asks within one consistent view of a store."""

    def __init__(self, queries: SqlQueries) -> None:
        self._query = queries.rows
        self._rows_in = queries.rows_in
        self._scan = queries.scan

    def _one(self, sql: str, parameters: Sequence[Any] = ()) -> Row:
        return self._query(sql, parameters)[0]

    def _by_ids(self, sql: str, ids: Iterable[int]) -> list[Row]:
        return self._rows_in(sql, [int(i) for i in ids])  # drivers know no numpy integers


def read_node(kind: int, namespace: str, name: str) -> NodeId:
    """Return the identity in a row of `nodes`."""
    return JobId(namespace, name) if kind else DatasetId(namespace, name)


def read_span(row: Sequence[Any]) -> Span:
    """Return the span in the columns of `SPAN`."""
    first_at, first_event, last_at, last_event, observed = row
    return Span(
        EventRef(first_at, bytes(first_event)),
        EventRef(last_at, bytes(last_event)),
        bool(observed),
    )


def read_body(stored: bytes) -> bytes:
    """Return a facet as sent."""
    return decompress(bytes(stored)) or b"{}"
