"""A job that touches no known dataset makes the answers about its project incomplete."""

from __future__ import annotations

import pytest
from tests.unit.graph.events import column_lineage, copied, dataset, moment, run_event

from downriver.model.answers import Direction
from downriver.model.changes import LogicChange
from downriver.model.verdicts import Decision

REPO, OTHER = "https://example.org/shop.git", "https://example.org/other.git"


def spots(*messages):
    return {"spots": [{"kind": "dynamic_name", "message": message} for message in messages]}


def unread(job, *, repository="", messages=("reads a table known at run time",), **options):
    facets = {"downriver_blindSpots": spots(*messages)}
    if repository:
        facets["sourceCodeLocation"] = {"type": "git", "repoUrl": repository, "url": repository}
    return run_event(job, **facets, **options)


def loads(repository="", **options):
    columns = column_lineage(id=[copied("raw.id")])
    facets = {}
    if repository:
        facets["sourceCodeLocation"] = {"type": "git", "repoUrl": repository, "url": repository}
    return run_event(
        "load", ["raw"], [dataset("orders", columnLineage=columns)], **facets, **options
    )


def found(answer):
    return [spot for spot in answer.blind_spots if spot.kind == "unread_jobs"]


@pytest.mark.parametrize("entity", ["orders", "raw", "orders.id"])
@pytest.mark.parametrize("direction", [Direction.UPSTREAM, Direction.DOWNSTREAM, Direction.BOTH])
def test_a_trace_reports_the_unread_jobs_of_the_project_once(lineage, entity, direction):
    lineage.ingest([loads(), unread("export"), unread("report")])
    answer = lineage.trace(entity, direction)
    (spot,) = found(answer)
    assert "2 jobs" in spot.message
    assert "export" in spot.message
    assert spot.entity == answer.root.id
    assert not answer.complete


def test_an_impact_and_a_path_are_incomplete_and_not_approved(lineage):
    lineage.ingest([loads(), unread("export")])
    impact = lineage.impact([LogicChange(dataset="orders")])
    assert "1 job" in found(impact)[0].message
    assert not impact.complete
    assert lineage.impact.gate(impact).decision is Decision.CAUTION
    assert found(lineage.trace.paths("raw", "orders"))


def test_a_job_that_is_read_later_is_no_longer_reported(lineage):
    lineage.ingest([loads(), unread("export")])
    assert found(lineage.trace("orders", Direction.DOWNSTREAM))
    lineage.ingest([unread("export", messages=(), day=2)])
    assert not found(lineage.trace("orders", Direction.DOWNSTREAM))


def test_the_blind_spots_of_a_job_with_a_dataset_stay_at_its_dataset(lineage):
    partly = run_event("partly", ["orders"], downriver_blindSpots=spots("writes somewhere"))
    lineage.ingest([loads(), partly, run_event("elsewhere", ["a"], ["b"])])
    assert not found(lineage.trace("orders", Direction.DOWNSTREAM))
    assert not found(lineage.trace("a", Direction.DOWNSTREAM))


@pytest.mark.parametrize(
    ("job", "isolated", "namespace", "is_reported"),
    [
        (REPO, REPO, "other namespace", True),
        (REPO, OTHER, None, False),
        ("", REPO, None, True),
        ("", "", "other namespace", False),
    ],
)
def test_a_project_is_a_repository_else_a_namespace(lineage, job, isolated, namespace, is_reported):
    elsewhere = {"namespace": namespace} if namespace else {}
    lineage.ingest([loads(job), unread("export", repository=isolated, **elsewhere)])
    assert bool(found(lineage.trace("orders", Direction.DOWNSTREAM))) is is_reported


def test_a_job_that_was_not_known_at_a_moment_is_not_reported_then(lineage):
    lineage.ingest([loads(day=1), unread("export", day=5)])
    assert not found(lineage.trace("orders", Direction.DOWNSTREAM, as_of=moment(3)))
    assert found(lineage.trace("orders", Direction.DOWNSTREAM, as_of=moment(6)))
