"""`GET /api/v1/column-lineage` and `/api/v1/runlineage/upstream`."""

from __future__ import annotations

import json

import pytest
from starlette.testclient import TestClient
from tests.openlineage import DATABASE, JOBS, column_lineage, dataset, run_event, schema, source

from downriver.http import build_app
from downriver.service import Lineage

SUM = {"type": "DIRECT", "subtype": "AGGREGATION", "description": "sum(p)", "masking": True}


@pytest.fixture
def lineage(tmp_path):
    with Lineage.open(str(tmp_path)) as opened:
        yield opened


@pytest.fixture
def client(lineage):
    here = {"base_url": "http://localhost", "client": ("127.0.0.1", 50000)}
    with TestClient(build_app(lineage), **here) as opened:
        yield opened


def ingest(lineage: Lineage, *events) -> None:
    lineage.session.ingest([json.dumps(event).encode() for event in events])


def field(table: str, name: str) -> str:
    return f"datasetField:{DATABASE}:{table}:{name}"


@pytest.fixture
def chain(lineage):
    """Write a.p -> b.x -> c.y, and a.q -> b.z."""
    first = column_lineage({"x": [source("a", "p", SUM)], "z": [source("a", "q")]})
    second = column_lineage({"y": [source("b", "x")]})
    ingest(
        lineage,
        run_event(
            "one",
            inputs=[dataset("a", {"schema": schema(p="int", q="text")})],
            outputs=[dataset("b", {"schema": schema(x="bigint"), "columnLineage": first})],
        ),
        run_event("two", inputs=[dataset("b")], outputs=[dataset("c", {"columnLineage": second})]),
    )


def graph(client, node: str, **query):
    answer = client.get("/api/v1/column-lineage", params={"nodeId": node, **query})
    assert answer.status_code == 200, answer.text
    return {node["id"]: node for node in answer.json()["graph"]}


class TestColumnLineage:
    def test_a_field_with_what_is_upstream_of_it(self, client, chain):
        nodes = graph(client, field("c", "y"))
        assert list(nodes) == [field("a", "p"), field("b", "x"), field("c", "y")]
        middle = nodes[field("b", "x")]
        assert middle["type"] == "DATASET_FIELD"
        # As in Marquez, the field itself is the origin of every edge.
        assert middle["inEdges"] == [{"origin": field("b", "x"), "destination": field("a", "p")}]
        assert middle["outEdges"] == [{"origin": field("b", "x"), "destination": field("c", "y")}]
        data = middle["data"]
        assert (data["namespace"], data["dataset"], data["field"]) == (DATABASE, "b", "x")
        assert data["fieldType"] == "bigint"
        (read,) = data["inputFields"]
        assert (read["dataset"], read["field"]) == ("a", "p")
        assert (read["transformationType"], read["transformationDescription"]) == (
            "AGGREGATION",
            "sum(p)",
        )
        assert read["transformations"] == [SUM]

    @pytest.mark.parametrize(
        ("depth", "found"),
        [(1, {field("c", "y"), field("b", "x")}), (2, {field(*f) for f in ("cy", "bx", "ap")})],
    )
    def test_depth_counts_the_edges(self, client, chain, depth, found):
        assert set(graph(client, field("c", "y"), depth=depth)) == found

    def test_downstream_is_added_on_request(self, client, chain):
        assert field("c", "y") not in graph(client, field("b", "x"))
        assert field("c", "y") in graph(client, field("b", "x"), withDownstream="true")

    def test_a_dataset_means_all_its_fields(self, client, chain):
        nodes = graph(client, f"dataset:{DATABASE}:b")
        assert set(nodes) == {field(*f) for f in ("ap", "aq", "bx", "bz")}

    def test_a_job_means_the_fields_that_it_writes(self, client, chain):
        nodes = graph(client, f"job:{JOBS}:two")
        assert set(nodes) == {field(*f) for f in ("ap", "bx", "cy")}

    def test_a_version_in_the_id_is_accepted_upstream_only(self, client, chain):
        versioned = f"{field('c', 'y')}#3f7a4d0e-0a51-4b30-8a2e-3f2f0f4f9a11"
        assert field("b", "x") in graph(client, versioned)
        answer = client.get(
            "/api/v1/column-lineage", params={"nodeId": versioned, "withDownstream": "true"}
        )
        assert answer.status_code == 400

    @pytest.mark.parametrize("asked", ["/lake/orders", "sales.orders"])
    def test_a_dataset_has_the_name_in_events_or_the_one_that_was_asked_for(
        self, client, lineage, asked
    ):
        logical = {"namespace": DATABASE, "name": "sales.orders", "type": "TABLE"}
        facets = {"symlinks": {"identifiers": [logical]}, "schema": schema(total="int")}
        report = column_lineage({"total": [source("/lake/orders", "total")]})
        orders = column_lineage({"total": [source("raw", "amount")]})
        ingest(
            lineage,
            run_event(
                "write", outputs=[dataset("/lake/orders", {**facets, "columnLineage": orders})]
            ),
            run_event(
                "read",
                inputs=[dataset("/lake/orders", facets)],
                outputs=[dataset("report", {"columnLineage": report})],
            ),
        )
        nodes = graph(client, field("report", "total"))
        assert nodes[field("/lake/orders", "total")]["data"]["fieldType"] == "int"
        assert field("sales.orders", "total") not in nodes
        named = graph(client, f"dataset:{DATABASE}:{asked}", withDownstream="true")
        assert named[field(asked, "total")]["data"]["fieldType"] == "int"
        assert set(named) == {
            field(*f) for f in (("raw", "amount"), (asked, "total"), ("report", "total"))
        }

    @pytest.mark.parametrize("node", [field("c", "nope"), f"dataset:{DATABASE}:nope"])
    def test_an_unknown_node_is_not_found(self, client, chain, node):
        answer = client.get("/api/v1/column-lineage", params={"nodeId": node})
        assert answer.status_code == 404

    @pytest.mark.parametrize("node", [f"dataset:{DATABASE}:bare", f"job:{JOBS}:plain"])
    def test_a_node_without_columns_is_not_called_unknown(self, client, lineage, node):
        ingest(lineage, run_event("plain", outputs=[dataset("bare")]))
        answer = client.get("/api/v1/column-lineage", params={"nodeId": node})
        assert answer.status_code == 404
        assert answer.json()["error"] == "ColumnsNotFound"
        assert "no event contained a schema" in answer.json()["message"]


class TestUpstreamRuns:
    @pytest.fixture
    def runs(self, lineage):
        """Write b twice from a, then c from b between the two and after them."""

        def one(run: str, hour: int):
            at = f"2026-01-01T{hour:02d}:00:00Z"
            return run_event("one", run, at=at, inputs=[dataset("a")], outputs=[dataset("b")])

        def two(run: str, hour: int):
            at = f"2026-01-01T{hour:02d}:00:00Z"
            return run_event("two", run, at=at, inputs=[dataset("b")], outputs=[dataset("c")])

        ingest(lineage, one("w1", 1), two("r1", 2), one("w2", 3), two("r2", 4))

    def upstream(self, client, run: str, **query):
        answer = client.get("/api/v1/runlineage/upstream", params={"runId": run, **query})
        assert answer.status_code == 200, answer.text
        return answer.json()["runs"]

    @pytest.mark.parametrize(("reader", "writer"), [("r1", "w1"), ("r2", "w2")])
    def test_an_input_names_the_run_that_wrote_it_last_before(self, client, runs, reader, writer):
        first, second = self.upstream(client, reader)
        assert first["run"]["id"] == reader
        assert first["run"]["status"] == "COMPLETED"
        assert first["job"]["name"] == "two"
        assert [(i["name"], i["producedByRunId"]) for i in first["inputs"]] == [("b", writer)]
        assert second["run"]["id"] == writer
        assert [(i["name"], i["producedByRunId"]) for i in second["inputs"]] == [("a", None)]

    def test_depth_zero_is_the_run_itself(self, client, runs):
        assert [run["run"]["id"] for run in self.upstream(client, "r2", depth=0)] == ["r2"]

    def test_an_unknown_run_is_not_found(self, client, runs):
        answer = client.get("/api/v1/runlineage/upstream", params={"runId": "nope"})
        assert answer.status_code == 404
