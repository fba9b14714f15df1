"""Inputs and outputs from the SQL of events that name no datasets."""

from __future__ import annotations

import json

import pytest
from starlette.testclient import TestClient
from tests.openlineage import JOBS, dataset, encode, job_event, run_event

from downriver.http import build_app
from downriver.service import Lineage

INSERT = "INSERT INTO totals (day, amount) SELECT day, sum(amount) FROM orders GROUP BY day"


@pytest.fixture
def lineage(tmp_path):
    with Lineage.open(str(tmp_path)) as opened:
        yield opened


@pytest.fixture
def client(lineage):
    here = {"base_url": "http://localhost", "client": ("127.0.0.1", 50000)}
    with TestClient(build_app(lineage), **here) as opened:
        yield opened


def task(query: str = INSERT, state: str = "COMPLETE", **more):
    facets = {"sql": {"query": query}, "jobType": {"integration": "AIRFLOW", "jobType": "TASK"}}
    return run_event("dag.task", "run-1", state, job_facets=facets, **more)


def edges(lineage: Lineage, entity: str = "orders"):
    return {(edge.source, edge.target) for edge in lineage.trace(entity).edges}


def test_the_tables_of_the_query_become_edges_of_the_job(client, lineage):
    assert client.post("/api/v1/lineage", json=task()).status_code == 201
    job = f"job:{JOBS}:dag.task"
    read, write = f"dataset:{JOBS}:orders", f"dataset:{JOBS}:totals"
    assert edges(lineage) == {(read, job), (job, write)}


def test_column_edges_are_inferred_and_name_the_event_as_evidence(client, lineage):
    client.post("/api/v1/lineage", json=task())
    found = lineage.trace(f"column:{JOBS}:totals:amount", "upstream").edges
    sums = [edge for edge in found if edge.subtype == "AGGREGATION"]
    assert [(edge.source, edge.confidence) for edge in sums] == [
        (f"column:{JOBS}:orders:amount", "inferred")
    ]
    event = json.loads(lineage.trace.find_event(sums[0].last_event))
    assert event["job"]["name"] == "dag.task"


def confidences(lineage: Lineage):
    return {edge.confidence for edge in lineage.trace(f"job:{JOBS}:dag.task").edges}


def test_table_edges_are_inferred_until_an_event_states_them(client, lineage):
    client.post("/api/v1/lineage", json=task())
    (edge,) = lineage.trace(f"job:{JOBS}:dag.task").edges
    assert edge.confidence == "inferred"
    event = json.loads(lineage.trace.find_event(edge.last_event))
    assert event["job"]["facets"]["downriver_inferred"]["facet"] == "sql"
    stated = {"namespace": JOBS, "name": "totals"}
    lineage.session.ingest([encode(job_event("dag.task", outputs=[stated]))])
    assert confidences(lineage) == {"declared"}
    client.post("/api/v1/lineage", json=run_event("dag.task", "run-2", outputs=[stated]))
    assert confidences(lineage) == {"exact"}


def test_the_job_keeps_the_facets_of_its_producer(client, lineage):
    client.post("/api/v1/lineage", json=task())
    answer = client.get("/api/v1/lineage", params={"nodeId": f"job:{JOBS}:dag.task"}).json()
    (job,) = [node for node in answer["graph"] if node["type"] == "JOB"]
    assert job["data"]["facets"]["jobType"] == {"integration": "AIRFLOW", "jobType": "TASK"}
    assert job["data"]["facets"]["sql"] == {"query": INSERT}


def test_the_namespace_is_that_of_the_connection(client, lineage):
    facets = {"externalQuery": {"externalQueryId": "1", "source": "sqlite:///shop.db"}}
    client.post("/api/v1/lineage", json=task(run_facets=facets))
    assert {source for source, _ in edges(lineage)} >= {"dataset:sqlite:///shop.db:orders"}


def test_a_table_in_the_catalog_resolves_to_that_table(client, lineage):
    known = run_event("fill", outputs=[dataset("orders")])
    client.post("/api/v1/lineage", json=known)
    client.post("/api/v1/lineage", json=task())
    assert edges(lineage, "job:etl:fill") >= {
        ("job:etl:fill", "dataset:postgres://db:5432:orders"),
        ("dataset:postgres://db:5432:orders", "job:etl:dag.task"),
    }


@pytest.mark.parametrize(
    "event",
    [
        task(inputs=[dataset("a")]),
        task(outputs=[dataset("b")]),
        task(state="START"),
        task(state="FAIL"),
        task(query=""),
    ],
)
def test_other_events_stay_as_they_are(client, lineage, event):
    client.post("/api/v1/lineage", json=event)
    assert lineage.admin.status().counts.events == 1


def test_an_event_that_is_sent_twice_is_read_once(client, lineage):
    for _ in range(2):
        client.post("/api/v1/lineage", json=task())
    assert lineage.admin.status().counts.events == 2  # the event, and the lineage of its SQL


def test_sql_that_cannot_be_read_is_a_blind_spot_of_the_job(client, lineage):
    client.post("/api/v1/lineage", json=task("MERGE INTO !! WHAT"))
    found = lineage.trace(f"job:{JOBS}:dag.task")
    assert not found.complete
    assert any("dag.task" in spot.entity for spot in found.blind_spots)


def test_events_of_a_batch_are_read_too(client, lineage):
    assert client.post("/api/v1/lineage/batch", json=[task()]).status_code == 204
    assert edges(lineage)


def test_an_option_turns_it_off(client, lineage, monkeypatch):
    monkeypatch.setenv("DOWNRIVER_SQL_FACETS", "off")
    client.post("/api/v1/lineage", json=task())
    assert lineage.admin.status().counts.events == 1
