"""The last measurements of a dataset are found without reading all of them."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from tests.openlineage import DATABASE, dataset, parsed, run_event

from downriver.model.ids import DatasetId
from downriver.store import open_store
from downriver.store.catalog.history import HistoryQueries

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from downriver.store import Store
    from downriver.store.catalog.history import DatasetMeasure
    from downriver.store.port import Row, SqlQueries

FOREVER = 2**62


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(str(tmp_path / "lineage.db"))) as store:
        yield store


def rows_written(hour: int, rows: int, run: str) -> dict:
    output = dataset("orders") | {"outputFacets": {"outputStatistics": {"rowCount": rows}}}
    return run_event(run=run, at=f"2026-01-01T{hour:02}:00:00Z", outputs=[output])


def profiled(hour: int, rows: int) -> dict:
    facets = {"dataQualityMetrics": {"rowCount": rows, "columnMetrics": {}}}
    profile = dataset("orders") | {"facets": facets}
    return run_event(run=f"profile {hour}", at=f"2026-01-01T{hour:02}:00:00Z", inputs=[profile])


def last_measures(store: Store, limit: int, until: int = FOREVER) -> list[DatasetMeasure]:
    with store.reader() as reader:
        number = reader.nodes.get(DatasetId(DATABASE, "orders"))
        return reader.history.measures(number, limit, until)


def test_they_are_the_last_ones_in_order_of_time(store: Store) -> None:
    events = [rows_written(hour, 100 + hour, f"run {hour}") for hour in range(1, 7)]
    store.append([parsed(event) for event in reversed(events)])
    assert [m.run for m in last_measures(store, 3)] == ["run 4", "run 5", "run 6"]
    until = last_measures(store, 3)[0].at.at
    assert [m.run for m in last_measures(store, 2, until)] == ["run 3", "run 4"]


def test_a_repeated_measurement_counts_at_its_last_time(store: Store) -> None:
    told = [profiled(1, 100), profiled(2, 200), profiled(3, 100), rows_written(4, 7, "run 4")]
    store.append([parsed(event) for event in told])
    counts = [json.loads(measure.body)["rowCount"] for measure in last_measures(store, 2)]
    assert counts == [100, 7]


def test_those_of_runs_are_found_by_their_index(store: Store) -> None:
    plans: list[str] = []

    class Explaining:
        def __init__(self, queries: SqlQueries) -> None:
            self.rows_in, self.scan = queries.rows_in, queries.scan
            self._rows = queries.rows

        def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
            plans.extend(row[-1] for row in self._rows(f"EXPLAIN QUERY PLAN {sql}", parameters))
            return self._rows(sql, parameters)

    with store._snapshot() as queries:
        HistoryQueries(Explaining(queries)).measures(1, 10, FOREVER)
    assert any("facets_measured (node=? AND first_at<?)" in plan for plan in plans)
