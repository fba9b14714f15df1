"""A part of the graph in the formats of other tools has the same nodes and edges."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

from downriver import Lineage, lineage_sync
from downriver.errors import EntityNotFoundError, InvalidRequestError
from downriver.export import FORMATS, push_cypher
from downriver.export.cypher import literal
from downriver.export.datahub import dataset_urn


def event(job, at, inputs=(), outputs=(), state="COMPLETE"):
    return json.dumps(
        {
            "eventType": state,
            "eventTime": at,
            "run": {"runId": f"{job}-{at}"},
            "job": {"namespace": "etl", "name": job},
            "inputs": [{"namespace": "s3://lake", "name": name} for name in inputs],
            "outputs": list(outputs),
        }
    ).encode()


def table(name, **facets):
    return {"namespace": "s3://lake", "name": name, "facets": facets}


TAGS = {"tags": {"tags": [{"key": "certified", "value": "true"}, {"key": "pii", "value": "true"}]}}
COLUMNS = {
    "columnLineage": {
        "fields": {
            "total": {
                "inputFields": [
                    {
                        "namespace": "s3://lake",
                        "name": "silver/orders",
                        "field": "amount",
                        "transformations": [
                            {"type": "DIRECT", "subtype": "AGGREGATION", "description": "SUM"}
                        ],
                    },
                    {
                        "namespace": "s3://lake",
                        "name": "silver/orders",
                        "field": "day",
                        "transformations": [{"type": "INDIRECT", "subtype": "GROUP_BY"}],
                    },
                ]
            }
        }
    }
}


@pytest.fixture
def store():
    with Lineage.open(":memory:") as found:
        found.ingest(
            [
                event("clean", "2026-01-01T00:00:00Z", ["raw/orders"], [table("silver/orders")]),
                event(
                    "build",
                    "2026-02-01T00:00:00Z",
                    ["silver/orders"],
                    [table("gold/revenue", **TAGS, **COLUMNS)],
                ),
                event("clean", "2026-02-02T00:00:00Z", state="FAIL"),
            ]
        )
        yield found


def test_the_formats_are_those_of_the_command():
    from downriver.cli.graph import GraphFormat

    assert [form.value for form in GraphFormat] == list(FORMATS)


def test_csv_has_a_row_for_each_edge(store):
    text = store.export("silver/orders", "csv").diagram
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {(row["source"], row["target"], row["kind"]) for row in rows} == {
        ("dataset:s3://lake:raw/orders", "job:etl:clean", "reads"),
        ("job:etl:clean", "dataset:s3://lake:silver/orders", "writes"),
        ("dataset:s3://lake:silver/orders", "job:etl:build", "reads"),
        ("job:etl:build", "dataset:s3://lake:gold/revenue", "writes"),
    }


def test_no_cell_is_taken_for_a_formula():
    tracker = lineage_sync(":memory:")
    tracker.capture_sql_lineage("CREATE TABLE t AS SELECT -a AS b FROM s")
    rows = csv.reader(io.StringIO(tracker.export_lineage("t", "csv", focus="b")["diagram"]))
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@"))]


def test_events_make_the_same_graph_elsewhere(store):
    text = store.export("silver/orders", "openlineage").diagram
    with Lineage.open(":memory:") as other:
        other.ingest([line.encode() for line in text.splitlines()])
        there = other.trace("silver/orders", "both")
    here = store.trace("silver/orders", "both")
    assert {(e.source, e.target) for e in there.edges} == {(e.source, e.target) for e in here.edges}


def test_datahub_reads_upstreams_and_columns(store):
    found = json.loads(store.export("gold/revenue", "datahub").diagram)
    by_urn = {proposal["entityUrn"]: proposal for proposal in found}
    gold = by_urn["urn:li:dataset:(urn:li:dataPlatform:s3,lake/gold/revenue,PROD)"]
    assert (gold["aspectName"], gold["changeType"]) == ("upstreamLineage", "UPSERT")
    aspect = gold["aspect"]["json"]
    silver = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/silver/orders,PROD)"
    assert [upstream["dataset"] for upstream in aspect["upstreams"]] == [silver]
    (column,) = aspect["fineGrainedLineages"]
    assert column["upstreams"] == [f"urn:li:schemaField:({silver},amount)"]
    assert column["transformOperation"] == "SUM"
    assert len(found) == 2


@pytest.mark.parametrize(
    ("namespace", "name", "urn"),
    [
        ("snowflake://acme", "a.b", "urn:li:dataset:(urn:li:dataPlatform:snowflake,a.b,PROD)"),
        ("default", "orders", "urn:li:dataset:(urn:li:dataPlatform:downriver,orders,PROD)"),
        ("gs://bucket", "/x/y", "urn:li:dataset:(urn:li:dataPlatform:gcs,bucket/x/y,PROD)"),
        ("api", "a,(b)", "urn:li:dataset:(urn:li:dataPlatform:api,a%2C%28b%29,PROD)"),
    ],
)
def test_datasets_have_the_names_datahub_gives_them(namespace, name, urn):
    assert dataset_urn(namespace, name) == urn


def test_cypher_makes_nodes_and_relationships(store):
    text = store.export("silver/orders", "cypher").diagram
    statements = text.strip().split(";\n")
    assert sum("MERGE (n:Dataset" in statement for statement in statements) == 3
    assert sum("-[r:READS" in statement for statement in statements) == 2
    assert sum("-[r:WRITES" in statement for statement in statements) == 2
    assert text.count("CREATE CONSTRAINT") == 3


@pytest.mark.parametrize("text", ['"', "\\", "a\\", "'; MATCH (n) DETACH DELETE n;//", "\n", "é"])
def test_text_stays_inside_its_quotes_in_cypher(text):
    written = literal(text)
    assert re.fullmatch(r'"(?:[^"\\\n]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"', written)
    assert json.loads(written) == text


class Recorded:
    """Records the statements that a driver would run."""

    def __init__(self):
        self.ran = []

    def execute_query(self, query_, /, **parameters):
        self.ran.append((query_, parameters))


def test_a_push_writes_every_node_and_edge_once(store):
    driver = Recorded()
    found = store.export.subgraph("gold/revenue", focus="total")
    piece = store.export.piece(found)
    assert push_cypher(piece, driver, "neo4j") == (len(found.nodes), len(found.edges))
    rows = [row for query, given in driver.ran for row in given.get("rows", ())]
    assert {row["id"] for row in rows if "id" in row} == {node.id for node in found.nodes}
    edges = [row for row in rows if "source" in row]
    assert {(row["source"], row["target"]) for row in edges} == {
        (edge.source, edge.target) for edge in found.edges
    }
    assert all(given["database_"] == "neo4j" for _, given in driver.ran)
    assert any("HAS_COLUMN" in query for query, _ in driver.ran)


def test_focus_follows_one_column(store):
    found = store.export.subgraph("gold/revenue", focus="total")
    assert {node.kind for node in found.nodes} == {"column"}
    with pytest.raises(EntityNotFoundError):
        store.export.subgraph("gold/revenue", focus="totl")


def test_what_is_certified_personal_or_broken_is_marked(store):
    found = {node.id: node.marks for node in store.export.subgraph("silver/orders").nodes}
    assert found["dataset:s3://lake:gold/revenue"] == ["certified", "pii"]
    assert found["dataset:s3://lake:silver/orders"] == ["broken"]
    assert found["job:etl:clean"] == ["broken"]
    assert found["job:etl:build"] == []
    drawing = store.export("silver/orders", "mermaid").diagram
    assert "classDef certified" in drawing
    assert "classDef broken" in drawing


def test_a_diff_marks_additions(store):
    found = store.export.subgraph("silver/orders", diff="2026-01-15T00:00:00Z")
    marks = {node.name: node.marks for node in found.nodes}
    assert "added" in marks["gold/revenue"]
    assert "added" not in marks["raw/orders"]
    changes = {(edge.source, edge.target): edge.change for edge in found.edges}
    assert changes["dataset:s3://lake:silver/orders", "job:etl:build"] == "added"
    assert changes["dataset:s3://lake:raw/orders", "job:etl:clean"] is None


def test_a_diff_marks_removals(store):
    later = event("clean", "2026-06-01T00:00:00Z", ["raw/orders_v2"], [table("silver/orders")])
    store.ingest([later])
    found = store.export.subgraph("silver/orders", "upstream", diff="2026-01-15T00:00:00Z")
    changes = {edge.source: edge.change for edge in found.edges}
    assert changes["dataset:s3://lake:raw/orders"] == "removed"
    assert changes["dataset:s3://lake:raw/orders_v2"] == "added"
    marks = {node.name: node.marks for node in found.nodes}
    assert "removed" in marks["raw/orders"]


def test_an_unknown_format_lists_them(store):
    with pytest.raises(InvalidRequestError, match="mermaid, dot, svg, json, csv, openlineage"):
        store.export("silver/orders", "crayon")
