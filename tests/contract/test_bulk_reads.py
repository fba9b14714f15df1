"""Reading many entities at once: one query, the same answer as one by one, on every store."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from tests.openlineage import (
    DATABASE,
    JOBS,
    dataset,
    dataset_event,
    job_event,
    parsed,
    run_event,
    schema,
)

from downriver.graph import GraphIndex
from downriver.model.facts import EdgeKind
from downriver.model.ids import DatasetId, JobId
from downriver.store import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from downriver.store import CatalogReader, Store


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    url = str(tmp_path)
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_database")
    with closing(open_store(url)) as opened:
        yield opened


def day(number: int) -> str:
    return f"2026-01-{number:02d}T00:00:00Z"


def number(reader: CatalogReader, name: str) -> int:
    return reader.nodes.get(DatasetId(DATABASE, name))


def test_facets_of_many_nodes_equal_those_of_each(store):
    store.append(
        [
            parsed(dataset_event("a", {"tags": {"n": 1}, "schema": schema("x")}, at=day(1))),
            parsed(dataset_event("a", {"tags": {"n": 2}}, at=day(2))),
            parsed(dataset_event("b", {"tags": {"n": 3}}, at=day(1))),
            parsed(dataset_event("b", {"tags": {"_deleted": True}}, at=day(2))),
            parsed(job_event("j", facets={"tags": {"n": 4}, "tagsAndMore": {}})),
        ]
    )
    with store.reader() as reader:
        a, b = number(reader, "a"), number(reader, "b")
        j = reader.nodes.get(JobId(JOBS, "j"))
        assert reader.facets.of_each([a, b, j]) == {n: reader.facets.of(n) for n in (a, j)}
        assert reader.facets.of(b) == {}
        assert reader.facets.of_each([j, a], ("tags",)) == {
            a: {"tags": b'{"n": 2}'},
            j: {"tags": b'{"n": 4}'},
        }
        assert set(reader.facets.starting_with([j], "tags")[j]) == {"tags", "tagsAndMore"}


def test_names_of_facets_cannot_change_the_query(store):
    with store.reader() as reader, pytest.raises(ValueError, match="DROP"):
        reader.facets.of_each([1], ("x'); DROP TABLE log; --",))


def test_ids_and_times_of_many_nodes_come_in_one_query_each(store):
    store.append(
        [
            parsed(dataset_event("a", at=day(1))),
            parsed(dataset_event("a", at=day(3))),
            parsed(dataset_event("b", at=day(2))),
        ]
    )
    wanted = [DatasetId(DATABASE, "a"), DatasetId(DATABASE, "b"), JobId(JOBS, "a")]
    with store.reader() as reader:
        found = reader.nodes.find_each(wanted)
        assert found == {wanted[0]: number(reader, "a"), wanted[1]: number(reader, "b")}
        assert reader.nodes.spans(found.values()) == {
            n: reader.nodes.span(n) for n in found.values()
        }
        assert reader.nodes.find_each([]) == {}


def test_the_latest_runs_of_many_jobs_are_ordered_by_time_then_id(store):
    store.append(
        [
            parsed(run_event(job, run, at=day(when)))
            for job, run, when in (
                ("one", "c", 1),
                ("one", "b", 2),
                ("one", "a", 2),
                ("one", "d", 3),
                ("two", "x", 1),
            )
        ]
        + [parsed(job_event("idle"))]
    )
    with store.reader() as reader:
        jobs = {name: reader.nodes.get(JobId(JOBS, name)) for name in ("one", "two", "idle")}
        found = reader.runs.latest_of_each(jobs.values(), 2)
        assert {job: [run.run for run in runs] for job, runs in found.items()} == {
            jobs["one"]: ["d", "a"],
            jobs["two"]: ["x"],
        }
        assert [run.run for run in reader.runs.latest(jobs["one"], 9)] == ["d", "a", "b", "c"]


def test_columns_of_many_datasets_are_sorted(store):
    store.append(
        [
            parsed(dataset_event("a", {"schema": schema("y", "x")})),
            parsed(dataset_event("b", {"schema": schema("z")})),
            parsed(dataset_event("c")),
        ]
    )
    with store.reader() as reader:
        a, b, c = (number(reader, name) for name in "abc")
        assert reader.columns.names_of_each([a, b, c]) == {a: ["x", "y"], b: ["z"]}
        assert reader.columns.list_names(c) == []


def test_the_graph_returns_the_neighbours_of_nodes(store):
    store.append(
        [
            parsed(
                run_event("load", inputs=[dataset("a"), dataset("b")], outputs=[dataset("c")]),
            ),
            parsed(run_event("merge", run="2", inputs=[dataset("a")], outputs=[dataset("c")])),
        ]
    )
    with GraphIndex(store).reading() as (graph, reader):
        a, b, c = (number(reader, name) for name in "abc")
        load, merge = (reader.nodes.get(JobId(JOBS, name)) for name in ("load", "merge"))
        writers = graph.nodes.neighbours([a, c], EdgeKind.WRITES, downstream=False)
        inputs = graph.nodes.neighbours([load, merge], EdgeKind.READS, downstream=False)
        readers = graph.nodes.neighbours([a, b, c], EdgeKind.READS, downstream=True)
    assert writers == {c: sorted([load, merge])}
    assert inputs == {load: sorted([a, b]), merge: [a]}
    assert readers == {a: sorted([load, merge]), b: [load]}
