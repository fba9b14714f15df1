"""The paths of data from one entity to another."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from tests.unit.graph.events import (
    column_lineage,
    copied,
    copy_of,
    dataset,
    dataset_event,
    feeds,
    filtered_by,
    lineage_of,
    run_event,
    schema,
    source,
    symlinks,
)

pytestmark = pytest.mark.usefixtures("walks")


def routes(found):
    return [[node.rpartition(":")[2] for node in path] for path in found.paths]


def columns(found):
    return [[".".join(node.rsplit(":", 2)[1:]) for node in path] for path in found.paths]


def test_the_shortest_route_comes_first(lineage):
    lineage.ingest(
        [
            run_event("a_longer", ["a"], ["m"]),
            run_event("b_longer", ["m"], ["b"]),
            run_event("z_shorter", ["a"], ["b"]),
        ]
    )
    found = lineage.trace.paths("a", "b")
    assert routes(found) == [["a", "z_shorter", "b"], ["a", "a_longer", "m", "b_longer", "b"]]
    assert found.complete


def test_a_dataset_that_feeds_itself_has_a_route_to_itself(lineage):
    lineage.ingest([run_event("j", ["a"], ["b"]), run_event("k", ["b"], ["a"])])
    assert routes(lineage.trace.paths("a", "a")) == [["a", "j", "b", "k", "a"]]
    lineage.ingest([run_event("other", ["x"], ["y"])])
    assert routes(lineage.trace.paths("x", "x")) == []


def test_routes_go_around_a_cycle_once_at_most(lineage):
    lineage.ingest([run_event("j", ["a"], ["b"]), run_event("k", ["b"], ["a", "c"])])
    assert routes(lineage.trace.paths("a", "c")) == [["a", "j", "b", "k", "c"]]


def test_routes_lead_from_and_to_jobs_too(lineage):
    lineage.ingest([run_event("j", ["a"], ["b"]), run_event("k", ["b"], ["c"])])
    assert routes(lineage.trace.paths("job:j", "job:k")) == [["j", "b", "k"]]


def test_routes_do_not_pass_through_a_job_that_spells_out_otherwise(lineage):
    spelled_out = lineage_of(feeds("x", "a"))
    lineage.ingest([run_event("j", ["a", "b"], ["x"], lineage=spelled_out)])
    assert routes(lineage.trace.paths("b", "x")) == []
    assert routes(lineage.trace.paths("a", "x")) == [["a", "x"]]


def test_the_shortest_routes_through_very_many_are_found_at_once(lineage):
    layers = [[f"l{layer}_{number}" for number in range(8)] for layer in range(9)]
    lineage.ingest([run_event("start", ["a"], layers[0]), run_event("end", layers[-1], ["z"])])
    for layer, (one, other) in enumerate(pairwise(layers)):
        lineage.ingest([run_event(f"j{layer}_{n}", one, [name]) for n, name in enumerate(other)])
    started = time.perf_counter()
    found = lineage.trace.paths("a", "z", limit=5)
    assert time.perf_counter() - started < 2
    assert [len(path) for path in found.paths] == [21] * 5
    assert not found.complete


def test_a_route_through_a_filter_ends_at_the_column_asked_for(lineage):
    facet = column_lineage(filtered_by("a.country"), total=[copied("a.amount")])
    lineage.ingest([run_event("j", [], [dataset("b", columnLineage=facet)])])
    found = lineage.trace.paths("a.country", "b.total")
    assert columns(found) == [["a.country", "b.*", "b.total"]]
    assert found.complete


def test_a_route_into_a_count_of_rows_starts_at_any_column(lineage):
    facet = column_lineage(n=[source("a.*", "DIRECT", "AGGREGATION")])
    lineage.ingest([dataset_event("a", schema=schema("x"))])
    lineage.ingest([run_event("j", [], [dataset("b", columnLineage=facet)])])
    assert columns(lineage.trace.paths("a.x", "b.n")) == [["a.x", "b.n"]]


def test_a_route_goes_by_name_through_select_star(lineage):
    lineage.ingest(
        [
            dataset_event("a", schema=schema("x", "y")),
            run_event("j", [], [dataset("b", columnLineage=copy_of("a"))]),
            run_event("k", [], [dataset("c", columnLineage=column_lineage(z=[copied("b.x")]))]),
        ]
    )
    assert columns(lineage.trace.paths("a.x", "c.z")) == [["a.x", "b.x", "c.z"]]
    assert columns(lineage.trace.paths("a.y", "c.z")) == []


def test_routes_between_columns_report_jobs_without_column_lineage(lineage):
    told = dataset("b", columnLineage=column_lineage(x=[copied("a.x")]))
    lineage.ingest([run_event("j", ["a"], [told, dataset("c", schema=schema("x"))])])
    found = lineage.trace.paths("a.x", "c.x")
    assert (found.paths, found.complete) == ([], False)
    assert [spot.kind for spot in found.blind_spots] == ["no_column_lineage"]


def test_a_route_shows_a_table_under_its_canonical_name(lineage):
    lineage.ingest([run_event("w", ["a"], [dataset("path", symlinks=symlinks("table"))])])
    lineage.ingest([run_event("r", ["table"], ["b"])])
    assert routes(lineage.trace.paths("a", "b")) == [["a", "w", "table", "r", "b"]]
    assert routes(lineage.trace.paths("path", "b")) == [["table", "r", "b"]]
