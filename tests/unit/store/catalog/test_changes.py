"""New rows of the catalog are found by number, without reading all rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.graph.events import dataset, run_event

from downriver.openlineage.wire import parse_event
from downriver.store.catalog.reader import ChangeFeed
from downriver.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path


class PlannedQueries:
    """Returns the plan of SQLite in place of the rows of a query."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    def scan(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[object, ...]]:
        with self._store.reader() as reader:
            return reader.log._queries.rows(f"EXPLAIN QUERY PLAN {sql}", parameters)


@pytest.mark.parametrize(
    "read",
    [
        lambda changes: changes.datasets(1),
        lambda changes: changes.nodes(1),
    ],
    ids=["datasets", "nodes"],
)
def test_new_rows_are_read_by_number(
    tmp_path: Path, read: Callable[[ChangeFeed], Iterable[tuple[object, ...]]]
) -> None:
    store = SqliteStore(tmp_path / "lineage.db")
    store.append([parse_event(run_event("etl", [dataset("orders")], [dataset("revenue")]))])
    plan = [str(row[-1]) for row in read(ChangeFeed(PlannedQueries(store)))]
    assert plan == ["SEARCH nodes USING INTEGER PRIMARY KEY (rowid>?)"]
