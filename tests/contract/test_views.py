"""What screens show is the same on every store: graph, column edges, runs, events."""

from __future__ import annotations

import hashlib
import json

import msgspec
import pytest
from tests.unit.graph import events as e

from downriver.errors import EntityNotFoundError, InvalidRequestError
from downriver.service import Lineage
from downriver.service.views.graph_view import GraphParts


@pytest.fixture(params=["sqlite", "postgres"])
def lineage(request, tmp_path):
    location = (
        str(tmp_path / "store")
        if request.param == "sqlite"
        else request.getfixturevalue("postgres_database")
    )
    with Lineage.open(location) as opened:
        yield opened


def run(job, state, day, run_id, *, inputs=(), outputs=(), **facets):
    event = json.loads(e.run_event(job, inputs, outputs, day=day, run=run_id))
    event |= {"eventType": state}
    event["run"]["facets"] = facets
    return event


def stored(lineage, *events):
    lineage.ingest([json.dumps(event).encode() for event in events])


def test_the_graph_of_a_moment_has_the_facets_and_runs_of_that_moment(lineage):
    def orders(*columns):
        return e.dataset("orders", schema=e.schema(*columns))

    lineage.ingest(
        [
            e.run_event("load", ["raw"], [orders("a")], day=1),
            e.run_event("load", ["raw"], [orders("a", "b")], day=10, run="run-2"),
            e.run_event("load", ["raw"], [orders("a", "b")], day=18, run="run-3"),
            e.run_event("load", ["raw"], [orders("a")], day=20, run="run-4"),
        ]
    )
    include = GraphParts(columns=True, runs=True)
    for day, columns, last in (
        (5, ["a"], "run-1"),
        (15, ["a", "b"], "run-2"),
        (25, ["a"], "run-4"),
    ):
        found = lineage.graph("orders", as_of=e.moment(day), include=include)
        (shown,) = [node for node in found.nodes if node.name == "orders"]
        assert [column.name for column in shown.columns] == columns
        assert shown.last_run.id == last


def test_runs_are_listed_latest_first_in_pages(lineage):
    stored(lineage, *(run("load", "COMPLETE", day, f"run-{day}") for day in range(1, 8)))
    first = lineage.runs("load", limit=3)
    assert [r.id for r in first.runs] == ["run-7", "run-6", "run-5"]
    second = lineage.runs("load", limit=3, before=first.next_before)
    last = lineage.runs("load", limit=3, before=second.next_before)
    assert [r.id for r in (*second.runs, *last.runs)] == ["run-4", "run-3", "run-2", "run-1"]
    assert last.next_before is None
    assert [r.id for r in lineage.runs("load", before=e.moment(3)).runs] == ["run-2", "run-1"]


def test_runs_of_the_same_moment_are_not_lost_between_pages(lineage):
    stored(lineage, *(run("load", "COMPLETE", 1, f"run-{i}") for i in range(5)))
    seen, before = [], None
    while True:
        page = lineage.runs("load", limit=2, before=before)
        seen += [r.id for r in page.runs]
        before = page.next_before
        if before is None:
            break
    assert sorted(seen) == [f"run-{i}" for i in range(5)]


def test_a_run_has_counts_an_error_checks_and_its_parent(lineage):
    output = e.dataset("orders") | {
        "outputFacets": {"outputStatistics": {"rowCount": 10, "size": 2048}},
    }
    source = e.dataset("raw") | {
        "inputFacets": {
            "inputStatistics": {"rowCount": 12},
            "dataQualityAssertions": {
                "assertions": [
                    {"assertion": "not_null", "success": True},
                    {"assertion": "unique", "success": False},
                ]
            },
        },
    }
    parent = {"run": {"runId": "dag-1"}, "job": {"namespace": "etl", "name": "dag"}}
    stored(
        lineage,
        run("load", "START", 1, "run-1"),
        run(
            "load",
            "FAIL",
            2,
            "run-1",
            inputs=[source],
            outputs=[output],
            errorMessage={"message": "disk full", "programmingLanguage": "python"},
            parent=parent,
        ),
    )
    (found,) = lineage.runs("load").runs
    assert (found.state, found.error, found.parent) == ("FAIL", "disk full", "job:etl:dag")
    assert (found.rows_read, found.rows_written, found.bytes_written) == (12, 10, 2048)
    assert (found.quality.passed, found.quality.failed) == (1, 1)
    assert found.duration_seconds == 86_400
    assert (found.inputs, found.outputs) == (["dataset:db:raw"], ["dataset:db:orders"])
    details = lineage.runs.details("run-1")
    assert details.run == found
    assert {(f.entity, f.role) for f in details.facets} == {
        ("job:etl:load", "run"),
        ("dataset:db:raw", "input"),
        ("dataset:db:orders", "output"),
    }
    assert len(details.events) == 2
    events = [lineage.trace.stored_event(digest) for digest in details.events]
    assert [event.event["eventType"] for event in events] == ["START", "FAIL"]


def test_runs_of_a_dataset_are_those_of_its_writers_and_of_nothing_all(lineage):
    stored(
        lineage,
        run("load", "COMPLETE", 1, "run-1", outputs=[e.dataset("orders")]),
        run("fix", "FAIL", 2, "run-2", outputs=[e.dataset("orders")]),
        run("report", "COMPLETE", 3, "run-3", inputs=[e.dataset("orders")]),
    )
    assert [r.id for r in lineage.runs("orders").runs] == ["run-2", "run-1"]
    assert [r.id for r in lineage.runs().runs] == ["run-3", "run-2", "run-1"]
    assert [r.id for r in lineage.runs(state="FAIL").runs] == ["run-2"]
    with pytest.raises(InvalidRequestError):
        lineage.runs(state="BROKEN")
    with pytest.raises(EntityNotFoundError):
        lineage.runs.details("run-9")


def test_an_event_is_returned_as_it_was_sent(lineage):
    event = e.run_event("load", ["raw"], ["orders"])
    lineage.ingest([event])
    digest = hashlib.sha256(event).hexdigest()
    found = lineage.trace.stored_event(digest)
    assert found.event == msgspec.json.decode(event)
    assert found.digest == digest
    with pytest.raises(EntityNotFoundError):
        lineage.trace.stored_event("00" * 32)
    with pytest.raises(InvalidRequestError):
        lineage.trace.stored_event("no digest")
