"""The graph in a real Neo4j answers common questions in Cypher."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.neo4j_server import running_neo4j

from downriver import Lineage
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.events import dataset, job_event
from downriver.openlineage.facets.dataset import render_dataset_type

pytestmark = pytest.mark.slow

RAW, FEATURES = DatasetId("s3://lake", "raw/orders"), DatasetId("s3://lake", "features")
CHURN = DatasetId("mlflow://models", "churn")


def step(name, at, source, target, **facets):
    given = [dataset(source)] if source else []
    return job_event(JobId("etl", name), at, inputs=given, outputs=[dataset(target, facets)])


@pytest.fixture(scope="module")
def neo4j_uri(tmp_path_factory):
    with running_neo4j(tmp_path_factory.mktemp("neo4j")) as uri:
        yield uri


@pytest.fixture
def ask(neo4j_uri):
    from neo4j import GraphDatabase

    with GraphDatabase.driver(neo4j_uri) as driver:
        driver.execute_query("MATCH (n) DETACH DELETE n")
        yield lambda query: [tuple(r.values()) for r in driver.execute_query(query).records]


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "lineage.db"
    with Lineage.open(str(path)) as lineage:
        lineage.ingest(
            [
                step("clean", 1_000_000, RAW, FEATURES),
                step("train", 2_000_000, FEATURES, CHURN, datasetType=render_dataset_type("MODEL")),
            ]
        )
    return path


def export(uri, store, *options):
    command = [sys.executable, "-m", "downriver", "export", "neo4j", uri, "--store", str(store)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "integrations" / "neo4j.md"
DERIVED = "MATCH (n:Dataset)-[:DERIVED_FROM]->(m:Dataset) RETURN n.name, m.name ORDER BY n.name"


def test_the_questions_of_the_guide_have_answers(neo4j_uri, ask, store):
    assert "wrote 5 nodes and 4 edges" in export(neo4j_uri, store)
    models, derived = re.findall(r"```cypher\n(.*?)\n```", GUIDE.read_text(), re.DOTALL)
    assert ask(models) == [("features", "churn")]
    assert sorted(ask(derived)) == [("churn", "features"), ("features", "raw/orders")]
    assert ask("MATCH (n:File) RETURN count(*)") == [(2,)]
    assert ask("MATCH (d:Dataset)-[:READS]->(j:Job)-[:WRITES]->(:Model) RETURN j.name") == [
        ("train",)
    ]


def test_a_second_run_writes_only_what_changed(neo4j_uri, ask, store):
    export(neo4j_uri, store, "--restart")
    assert "wrote 0 nodes" in export(neo4j_uri, store)
    with Lineage.open(str(store)) as lineage:
        # The inputs of `report` arrive in one event, and its output in a later one.
        lineage.ingest([job_event(JobId("etl", "report"), 3_000_000, inputs=[dataset(FEATURES)])])
    export(neo4j_uri, store)
    with Lineage.open(str(store)) as lineage:
        lineage.ingest([step("report", 4_000_000, None, DatasetId("s3://lake", "report"))])
    export(neo4j_uri, store)
    assert ("report", "features") in ask(DERIVED)


def test_a_forgotten_dataset_is_deleted(neo4j_uri, ask, store):
    export(neo4j_uri, store, "--restart")
    with Lineage.open(str(store)) as lineage:
        lineage.retention.forget("raw/orders", reason="closed")
    assert "deleted 1" in export(neo4j_uri, store)
    assert ask(DERIVED) == [("churn", "features")]


def test_follow_writes_events_as_they_arrive(neo4j_uri, ask, store):
    command = [sys.executable, "-m", "downriver", "export", "neo4j", neo4j_uri, "--follow"]
    process = subprocess.Popen(
        [*command, "--interval", "0.1", "--store", str(store)], env=dict(os.environ)
    )
    try:
        with Lineage.open(str(store)) as lineage:
            lineage.ingest([step("copy", 5_000_000, CHURN, DatasetId("s3://lake", "scores"))])
        for _ in range(300):
            if ("scores", "churn") in ask(DERIVED):
                break
            time.sleep(0.1)
        assert ("scores", "churn") in ask(DERIVED)
        assert process.poll() is None
    finally:
        process.terminate()
        process.wait(30)
