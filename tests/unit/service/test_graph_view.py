"""The graph as a screen shows it, compared with a reference that counts one by one."""

from __future__ import annotations

import datetime as dt
import itertools
from contextlib import closing

import pytest
from hypothesis import given, settings
from tests.unit.graph import events as e
from tests.unit.graph.random_events import MOMENTS, event_lists
from tests.unit.graph.reference import Reference

from downriver.errors import EntityNotFoundError
from downriver.service import Lineage
from downriver.service.views.graph_view import GraphParts
from downriver.store.sqlite import SqliteStore

EVERYTHING = GraphParts(columns=True, runs=True)


@pytest.fixture
def lineage(tmp_path):
    with Lineage(SqliteStore(tmp_path / "lineage.db")) as lineage:
        yield lineage


def node(graph, name):
    (found,) = [node for node in graph.nodes if node.id.endswith(f":{name}")]
    return found


def _iso(moment: int) -> str | None:
    if moment > 10**16:
        return None
    return (dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=moment)).isoformat() + "Z"


@settings(max_examples=30, deadline=None)
@given(event_lists)
def test_counts_equal_a_walk_over_all_events(tmp_path_factory, story):
    events = [event for batch in story for event in batch]
    reference = Reference(events)
    store = SqliteStore(tmp_path_factory.mktemp("story") / "lineage.db")
    with closing(Lineage(store)) as lineage:
        lineage.ingest(events)
        for name in sorted(reference.facts.nodes):
            for as_of in filter(reference.has_present_names, MOMENTS[:2]):
                found = lineage.graph(str(name), as_of=_iso(as_of))
                _assert_counts(found, reference, name, as_of)


def _assert_counts(found, reference, name, as_of):
    sides = [
        reference.trace(name, downstream=down, depth=None, as_of=as_of) for down in (True, False)
    ]
    near = [reference.trace(name, downstream=down, depth=1, as_of=as_of) for down in (True, False)]
    assert found.total == len({node for side in sides for node in side.depths})
    assert {n.id for n in found.nodes} == {node for side in near for node in side.depths}
    assert found.shown == len(found.nodes)
    reads, writes, derives, _ = reference._flow(as_of)
    steps = {*reads, *writes, *((s, t) for s, t, _ in derives)}
    for shown in found.nodes:
        upstream = {s for s, t in steps if str(t) == shown.id and s != t}
        downstream = {t for s, t in steps if str(s) == shown.id and s != t}
        assert (shown.upstream_total, shown.downstream_total) == (len(upstream), len(downstream))


@settings(max_examples=30, deadline=None)
@given(event_lists)
def test_column_edges_between_all_datasets_are_those_of_all_events(tmp_path_factory, story):
    events = [event for batch in story for event in batch]
    reference = Reference(events)
    store = SqliteStore(tmp_path_factory.mktemp("story") / "lineage.db")
    with closing(Lineage(store)) as lineage:
        lineage.ingest(events)
        datasets = [str(n) for n in sorted(reference.facts.nodes) if n.kind == "dataset"]
        for as_of in filter(reference.has_present_names, MOMENTS[:2]):
            found = lineage.column_edges.among(datasets, as_of=_iso(as_of))
            assert {_column_edge(edge) for edge in found.edges} == {
                (
                    (str(edge.source[0]), edge.source[1]),
                    (str(edge.target[0]), edge.target[1]),
                    "INDIRECT" if edge.rank == 3 else "DIRECT",
                    edge.subtype or "TRANSFORMATION",
                    None if edge.job is None else str(edge.job),
                )
                for edge in reference._column_edges(as_of)
            }


def _column_edge(edge):
    ends = [(place.dataset, place.column) for place in (edge.source, edge.target)]
    return (*ends, edge.type, edge.subtype, edge.job)


def test_a_node_has_labels_columns_and_its_last_run(lineage):
    facets = {
        "documentation": {"description": "All orders."},
        "ownership": {"owners": [{"name": "team:sales"}]},
        "tags": {"tags": [{"key": "certified"}, {"key": "pii", "field": "email"}]},
        "schema": {"fields": [{"name": "id", "type": "int"}, {"name": "email"}]},
    }
    lineage.ingest(
        [
            e.run_event("load", ["raw"], [e.dataset("orders", **facets)], day=1),
            e.run_event("report", ["orders"], ["daily"], day=2),
        ]
    )
    orders = node(lineage.graph("orders", include=EVERYTHING), "orders")
    assert (orders.description, orders.owners, orders.tags) == (
        "All orders.",
        ["team:sales"],
        ["certified"],
    )
    assert orders.marks == ["certified", "pii"]
    assert [(c.name, c.type, c.tags) for c in orders.columns] == [
        ("id", "int", []),
        ("email", None, ["pii"]),
    ]
    assert (orders.last_run.job, orders.last_run.state) == ("job:etl:load", "COMPLETE")
    plain = node(lineage.graph("orders"), "orders")
    assert (plain.columns, plain.last_run, plain.column_total) == (None, None, 2)


def test_a_failed_run_marks_the_job_and_what_it_writes(lineage):
    failed = e.run_event("load", ["raw"], ["orders"], day=1).replace(b"COMPLETE", b"FAIL")
    lineage.ingest([failed])
    found = lineage.graph("orders")
    assert node(found, "load").marks == ["failed"]
    assert node(found, "orders").marks == ["broken"]
    assert node(found, "raw").marks == []
    lineage.ingest([e.run_event("load", ["raw"], ["orders"], day=2, run="run-2")])
    assert node(lineage.graph("orders"), "orders").marks == []
    before = lineage.graph("orders", as_of=e.moment(1))
    assert node(before, "orders").marks == ["broken"]


def test_a_dropped_dataset_and_one_without_new_data_are_marked(lineage):
    dropped = e.dataset("old", lifecycleStateChange={"lifecycleStateChange": "DROP"})
    lineage.ingest(
        [
            e.run_event("load", ["raw"], ["orders", dropped], day=1),
            e.run_event("load", ["raw"], ["other"], day=80, run="run-2"),
            e.run_event(
                "report", ["old"], [], day=1
            ),  # a dropped table that nothing reads is left out
        ]
    )
    found = lineage.graph("load")
    assert node(found, "old").marks == ["dropped"]
    assert node(found, "orders").marks == ["stale"]
    assert node(found, "raw").marks == []


def test_a_diff_marks_nodes_edges_and_columns(lineage):
    columns = ({"name": "id", "type": "int"}, {"name": "total", "type": "int"})
    before = e.dataset("orders", schema={"fields": list(columns)})
    after = e.dataset(
        "orders", schema={"fields": [{"name": "id", "type": "text"}, {"name": "tax"}]}
    )
    lineage.ingest(
        [
            e.run_event("load", ["raw"], [before], day=1),
            e.run_event("load", ["raw"], [after], day=10, run="run-2"),
            e.run_event("report", ["orders"], ["daily"], day=10),
        ]
    )
    found = lineage.graph("orders", diff=e.moment(5), include=EVERYTHING)
    assert {n.name: n.change for n in found.nodes} == {
        "raw": None,
        "load": None,
        "orders": "changed",
        "report": "added",
        "daily": "added",
    }
    assert {(c.name, c.change) for c in node(found, "orders").columns} == {
        ("id", "changed"),
        ("tax", "added"),
        ("total", "removed"),
    }
    changes = {(edge.source.split(":")[-1], edge.change) for edge in found.edges}
    assert changes == {("raw", None), ("load", None), ("orders", "added"), ("report", "added")}
    new = lineage.graph("daily", diff=e.moment(5))
    assert node(new, "daily").change == "added"


def test_the_limit_is_stated(lineage):
    lineage.ingest(
        [e.run_event("fan", ["hub"], [f"leaf_{i}" for i in range(50)], day=1)],
    )
    found = lineage.graph("hub", limit=10)
    assert (found.shown, found.total) == (10, 52)
    assert not found.complete
    assert node(found, "fan").downstream_total == 50


def test_a_column_opens_the_graph_of_its_dataset(lineage):
    lineage.ingest([e.run_event("load", ["raw"], [e.dataset("orders", schema=e.schema("id"))])])
    assert lineage.graph("orders.id").root == "dataset:db:orders"


def test_an_unknown_name_is_an_error(lineage):
    with pytest.raises(EntityNotFoundError):
        lineage.graph("nothing")


def test_column_edges_state_the_line_of_code_and_what_is_unknown(lineage):
    code = {
        "path": "models/orders.sql",
        "line": 1,
        "references": [{"namespace": "db", "name": "raw", "field": "amount", "line": 7}],
    }
    facet = e.column_lineage(total=[e.copied("raw.amount")])
    lineage.ingest(
        [
            e.run_event(
                "load", ["raw"], [e.dataset("orders", columnLineage=facet)], downriver_code=code
            ),
            e.run_event("opaque", ["orders"], ["daily"]),
        ]
    )
    found = lineage.column_edges.among(["raw", "orders", "daily"])
    (edge,) = found.edges
    assert edge.location == "models/orders.sql:7"
    assert [spot.kind for spot in found.blind_spots] == ["no_column_lineage"]
    assert not found.complete
    alone = lineage.column_edges.among(["raw", "orders"])
    assert (alone.complete, len(alone.edges)) == (True, 1)


def test_the_path_of_a_column_reaches_datasets_that_are_not_shown(lineage):
    chain = ["a", "b", "c", "d"]
    for source, target in itertools.pairwise(chain):
        facet = e.column_lineage(x=[e.copied(f"{source}.x")])
        lineage.ingest(
            [e.run_event(f"to_{target}", [source], [e.dataset(target, columnLineage=facet)])]
        )
    found = lineage.column_edges.path("b", "x")
    assert found.datasets == [f"dataset:db:{name}" for name in chain]
    assert len(found.edges) == 3


def test_column_edges_of_two_moments_are_compared(lineage):
    old = e.dataset("orders", columnLineage=e.column_lineage(x=[e.copied("raw.a")]))
    new = e.dataset("orders", columnLineage=e.column_lineage(x=[e.copied("raw.b")]))
    lineage.ingest(
        [
            e.run_event("load", ["raw"], [old], day=1),
            e.run_event("load", ["raw"], [new], day=60, run="run-2"),
        ]
    )
    found = lineage.column_edges.among(["raw", "orders"], diff=e.moment(2))
    assert {(edge.source.column, edge.change) for edge in found.edges} == {
        ("a", "removed"),
        ("b", "added"),
    }
