"""Rows of the catalog made into values; what every part of the reader uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from downriver.model.facts import EventRef, Span
from downriver.model.ids import DatasetId, JobId, NodeId
from downriver.store.catalog.encoding import decompress

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from downriver.store.port import Row, SqlQueries

SPAN = "first_at, first_event, last_at, last_event, observed"


def rows_by_id(queries: SqlQueries, sql: str, ids: Iterable[int]) -> list[Row]:
    """Return the rows of a query that ends in `IN`, for these ids."""
    return queries.rows_in(sql, [int(i) for i in ids])  # drivers do not accept numpy integers


def read_node(kind: int, namespace: str, name: str) -> NodeId:
    """Return the id in a row of `nodes`."""
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
    """Return the JSON of a facet as it was sent."""
    return decompress(bytes(stored)) or b"{}"
