"""Jobs that only read are counted in a trace, listed on request, and stay consumers."""

from __future__ import annotations

import pytest
from tests.unit.graph.events import run_event

from downriver.model.changes import TableDrop

READ = {"jobType": {"processingType": "BATCH", "integration": "SPARK", "jobType": "READ"}}


def names(answer) -> set[str]:
    return {node.name for node in answer.nodes}


def pipeline() -> list[bytes]:
    return [
        run_event("clean", ["raw"], ["mart"]),
        run_event("app.collectToPython", ["mart"], **READ),
        run_event("app.count", ["raw"], **READ),
        run_event("dashboard", ["mart"]),
    ]


def test_a_trace_counts_readers_instead_of_listing_them(lineage):
    lineage.ingest(pipeline())
    answer = lineage.trace("raw")
    assert names(answer) == {"raw", "clean", "mart", "dashboard"}
    assert (answer.reader_count, answer.omitted_count, answer.complete) == (2, 0, True)
    shown = {node.id for node in answer.nodes}
    assert all(edge.source in shown and edge.target in shown for edge in answer.edges)


def test_readers_are_listed_on_request(lineage):
    lineage.ingest(pipeline())
    answer = lineage.trace("raw", readers=True)
    assert names(answer) >= {"app.collectToPython", "app.count"}
    assert answer.reader_count == 0


def test_a_reader_is_shown_when_the_question_is_about_it(lineage):
    lineage.ingest(pipeline())
    assert names(lineage.trace("job:app.count", "upstream")) == {"app.count", "raw"}


def test_a_job_that_writes_is_no_reader_whatever_its_type(lineage):
    lineage.ingest([*pipeline(), run_event("app.count", ["raw"], ["count"], run="run-2", **READ)])
    answer = lineage.trace("raw")
    assert {"app.count", "count"} <= names(answer)
    assert answer.reader_count == 1


def test_an_export_leaves_readers_out_unless_asked(lineage):
    lineage.ingest(pipeline())
    assert "collectToPython" not in lineage.export("raw").diagram
    assert "collectToPython" in lineage.export("raw", readers=True).diagram


def test_readers_are_no_unknown_downstreams(lineage):
    lineage.ingest(pipeline())
    found = lineage.govern.kpis().unknown_downstreams
    assert [example.rpartition(":")[2] for example in found.examples] == ["mart"]  # the dashboard
    lineage.ingest([run_event("dashboard", ["mart"], ["board"], run="run-2")])
    assert lineage.govern.kpis().unknown_downstreams.count == 0


def test_readers_are_consumers_that_a_change_affects(lineage):
    lineage.ingest(pipeline())
    answer = lineage.impact([TableDrop(dataset="mart")])
    assert "job:etl:app.collectToPython" in {effect.consumer for effect in answer.effects}


def spark(kind: str) -> dict:
    return {"jobType": {"processingType": "BATCH", "integration": "SPARK", "jobType": kind}}


@pytest.mark.parametrize(
    ("name", "facets"),
    [
        ("app.collectToPython", spark("JOB")),
        ("app.count", spark("JOB")),
        ("app.adaptive_spark_plan", spark("SQL_JOB")),
        ("app.collect_limit", spark("SQL_JOB")),
        ("my.app.hash_aggregate", {}),
        ("app.wholestagecodegen_1", spark("SQL_JOB")),
    ],
)
def test_readers_without_the_job_type_are_known_by_name(lineage, name, facets):
    lineage.ingest([run_event("clean", ["raw"], ["mart"]), run_event(name, ["mart"], **facets)])
    answer = lineage.trace("raw")
    assert name not in names(answer)
    assert answer.reader_count == 1
    assert lineage.govern.kpis().unknown_downstreams.count == 0


@pytest.mark.parametrize(
    ("name", "facets"),
    [
        ("dag.count", {}),  # not known to be a Spark job
        ("nightly_count", spark("JOB")),
        ("app.save_into_data_source_command", spark("SQL_JOB")),
        ("app.deserialize_to_object", spark("SQL_JOB")),  # foreachPartition may write
        ("app.foreachPartition", spark("JOB")),
    ],
)
def test_a_job_whose_output_may_be_unknown_is_no_reader(lineage, name, facets):
    lineage.ingest([run_event("clean", ["raw"], ["mart"]), run_event(name, ["mart"], **facets)])
    assert name in names(lineage.trace("raw"))
    assert lineage.govern.kpis().unknown_downstreams.count == 1
