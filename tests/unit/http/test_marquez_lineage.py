"""`GET /api/v1/lineage` as the clients and the UI of Marquez use it, on both stores."""

from __future__ import annotations

import json
import random

import pytest
from starlette.testclient import TestClient
from tests.openlineage import (
    DATABASE,
    JOBS,
    column_lineage,
    dataset,
    dataset_event,
    run_event,
    schema,
    source,
)

from downriver.graph.index.rendered_nodes import RenderedNode, RenderedNodes
from downriver.http import build_app
from downriver.http.marquez.lineage import render_lineage
from downriver.service import Lineage
from downriver.store.port import StoreState

EARLIER, LATER = "2026-01-01T10:00:00Z", "2026-01-01T14:00:00Z"


@pytest.fixture(params=["sqlite", "postgres"])
def lineage(request, tmp_path):
    if request.param == "sqlite":
        location = str(tmp_path)
    else:
        location = request.getfixturevalue("postgres_database")
    with Lineage.open(location) as opened:
        yield opened


@pytest.fixture
def client(lineage):
    here = {"base_url": "http://localhost", "client": ("127.0.0.1", 50000)}
    with TestClient(build_app(lineage), **here) as opened:
        yield opened


def ingest(lineage: Lineage, *events) -> None:
    lineage.session.ingest([json.dumps(event).encode() for event in events])


def flow(job: str, inputs: list[str], outputs: list[str], **more):
    return run_event(
        job,
        f"run-of-{job}",
        inputs=[*map(dataset, inputs)],
        outputs=[*map(dataset, outputs)],
        **more,
    )


def graph(client, node: str, **query):
    answer = client.get("/api/v1/lineage", params={"nodeId": node, **query})
    assert answer.status_code == 200, answer.text
    return {node["id"]: node for node in answer.json()["graph"]}


def table(name: str) -> str:
    return f"dataset:{DATABASE}:{name}"


def job(name: str) -> str:
    return f"job:{JOBS}:{name}"


def edge(origin: str, destination: str):
    return {"origin": origin, "destination": destination}


class TestGraph:
    def test_nodes_are_sorted_by_id_and_have_the_edges_on_both_sides(self, client, lineage):
        ingest(lineage, flow("clean", ["raw"], ["orders"]))
        nodes = graph(client, table("orders"))
        assert list(nodes) == sorted(nodes) == [table("orders"), table("raw"), job("clean")]
        read, write = edge(table("raw"), job("clean")), edge(job("clean"), table("orders"))
        assert nodes[job("clean")]["inEdges"] == nodes[table("raw")]["outEdges"] == [read]
        assert nodes[job("clean")]["outEdges"] == nodes[table("orders")]["inEdges"] == [write]
        assert nodes[table("raw")]["type"] == "DATASET"
        assert nodes[job("clean")]["type"] == "JOB"

    def test_siblings_are_part_of_the_graph_whatever_the_direction(self, client, lineage):
        ingest(
            lineage,
            flow("clean", ["raw"], ["orders"]),
            flow("copy", ["raw"], ["backup"]),
            flow("fill", ["files"], ["raw"]),
        )
        nodes = graph(client, table("orders"))
        assert {job("copy"), table("backup"), table("files")} <= set(nodes)

    def test_every_edge_between_two_nodes_of_the_graph_is_shown(self, client, lineage):
        ingest(
            lineage,
            flow("clean", ["raw"], ["orders"]),
            flow("sum", ["orders", "rates"], ["revenue"]),
            flow("rate", ["raw"], ["rates"]),
        )
        nodes = graph(client, table("orders"), depth=1)
        assert edge(table("raw"), job("rate")) in nodes[job("rate")]["inEdges"]
        assert edge(job("rate"), table("rates")) in nodes[table("rates")]["inEdges"]

    @pytest.mark.parametrize(
        ("root", "depth", "jobs"),
        [
            (table("t1"), 0, {"j0", "j1"}),
            (table("t1"), 1, {"j0", "j1", "j2"}),
            (job("j0"), 0, {"j0"}),
            (job("j0"), 1, {"j0", "j1"}),
            (job("j0"), 20, {"j0", "j1", "j2", "j3"}),
        ],
    )
    def test_depth_counts_the_steps_from_job_to_job(self, client, lineage, root, depth, jobs):
        ingest(lineage, *(flow(f"j{n}", [f"t{n}"], [f"t{n + 1}"]) for n in range(4)))
        nodes = graph(client, root, depth=depth)
        assert {name.removeprefix(job("")) for name in nodes if name.startswith("job:")} == jobs
        for name in jobs:  # a job comes with all its datasets
            assert {table(f"t{int(name[1]) + k}") for k in (0, 1)} <= set(nodes)

    def test_a_header_and_two_keys_count_the_nodes_that_are_omitted(self, client, lineage):
        ingest(lineage, flow("clean", ["raw"], ["orders"]), flow("sum", ["orders"], ["revenue"]))
        whole = client.get("/api/v1/lineage", params={"nodeId": table("raw")})
        assert set(whole.json()) == {"graph"}
        assert whole.headers["Downriver-Omitted"] == "0"
        near = client.get("/api/v1/lineage", params={"nodeId": table("raw"), "depth": 0})
        assert (near.json()["truncated"], near.json()["omittedCount"]) == (True, 2)
        assert near.headers["Downriver-Omitted"] == "2"

    def test_a_graph_of_more_than_10000_nodes_shows_the_nearest(self, client, lineage):
        ingest(lineage, flow("split", ["raw"], [f"o{n}" for n in range(10_005)]))
        answer = client.get("/api/v1/lineage", params={"nodeId": table("raw")}).json()
        assert len(answer["graph"]) == 10_000
        assert (answer["truncated"], answer["omittedCount"]) == (True, 7)

    def test_a_dataset_without_jobs_is_a_graph_of_its_own(self, client, lineage):
        ingest(lineage, dataset_event("alone", {"schema": schema("a")}))
        assert list(graph(client, table("alone"))) == [table("alone")]

    def test_datasets_that_derive_without_a_job_are_connected(self, client, lineage):
        stated = column_lineage({"x": [source("a", "p")]})
        ingest(lineage, dataset_event("b", {"columnLineage": stated}))
        nodes = graph(client, table("b"))
        assert nodes[table("b")]["inEdges"] == [edge(table("a"), table("b"))]

    def test_an_unknown_node_is_not_found(self, client, lineage):
        answer = client.get("/api/v1/lineage", params={"nodeId": table("nowhere")})
        assert answer.status_code == 404

    def test_an_answer_that_the_client_has_is_not_sent_again(self, client, lineage):
        ingest(lineage, flow("clean", ["raw"], ["orders"]))
        asked = {"url": "/api/v1/lineage", "params": {"nodeId": table("raw")}}
        known = {"If-None-Match": client.get(**asked).headers["etag"]}
        assert client.get(**asked, headers=known).status_code == 304
        ingest(lineage, flow("report", ["orders"], ["mart"]))
        assert client.get(**asked, headers=known).status_code == 200


class TestDataset:
    def test_fields_times_and_facets(self, client, lineage):
        facets = {
            "schema": {"fields": [{"name": "amount", "type": "int", "description": "In cents"}]},
            "dataSource": {"name": "warehouse", "uri": DATABASE},
            "documentation": {"description": "All orders"},
            "lifecycleStateChange": {"lifecycleStateChange": "OVERWRITE"},
            "acme_quality": {"score": 7, "_producer": "p"},
        }
        ingest(
            lineage,
            run_event("clean", at=EARLIER, outputs=[dataset("orders", facets)]),
            run_event("read", at=LATER, inputs=[dataset("orders")]),
        )
        node = graph(client, table("orders"))[table("orders")]
        shown = {key: node["data"][key] for key in node["data"] if key != "facets"}
        assert shown == {
            "entity": "dataset",
            "id": {"namespace": DATABASE, "name": "orders"},
            "type": "DB_TABLE",
            "name": "orders",
            "physicalName": "orders",
            "namespace": DATABASE,
            "sourceName": "warehouse",
            "createdAt": EARLIER,
            "updatedAt": LATER,
            "lastModifiedAt": EARLIER,
            "fields": [{"name": "amount", "type": "int", "tags": [], "description": "In cents"}],
            "tags": [],
            "description": "All orders",
            "lastLifecycleState": "OVERWRITE",
        }
        assert node["data"]["facets"] == facets

    def test_a_dataset_that_no_job_writes_was_never_modified(self, client, lineage):
        ingest(lineage, flow("clean", ["raw"], ["orders"]))
        assert graph(client, table("raw"))[table("raw")]["data"]["lastModifiedAt"] is None

    def test_tags_of_a_dataset_and_its_columns(self, client, lineage):
        tags = {
            "tags": [
                {"key": "gold", "value": "true"},
                {"key": "pii", "value": "true", "field": "mail"},
            ]
        }
        ingest(lineage, dataset_event("users", {"schema": schema("mail", "id"), "tags": tags}))
        data = graph(client, table("users"))[table("users")]["data"]
        assert data["tags"] == ["gold"]
        assert {f["name"]: f["tags"] for f in data["fields"]} == {"mail": ["pii"], "id": []}

    @pytest.fixture
    def linked(self, lineage):
        """Write a path with a symlink to a table, and read it by the path."""
        links = {
            "identifiers": [
                {"namespace": "hive://metastore", "name": "sales.orders", "type": "TABLE"}
            ]
        }
        facets = {"symlinks": links, "schema": schema("amount")}
        ingest(
            lineage,
            run_event("write", inputs=[dataset("raw")], outputs=[dataset("/lake/orders", facets)]),
            run_event("read", inputs=[dataset("/lake/orders")], outputs=[dataset("report")]),
        )

    @pytest.mark.parametrize(
        "asked", [table("/lake/orders"), "dataset:hive://metastore:sales.orders"]
    )
    def test_a_table_with_a_symlink_has_the_id_that_was_asked_for(self, client, linked, asked):
        nodes = graph(client, asked)
        node = nodes[asked]
        assert len([name for name in nodes if "orders" in name]) == 1
        assert [field["name"] for field in node["data"]["fields"]] == ["amount"]
        assert set(node["data"]["facets"]) == {"schema", "symlinks"}
        assert node["inEdges"] == [edge(job("write"), asked)]
        assert node["outEdges"] == [edge(asked, job("read"))]
        namespace, name = node["data"]["namespace"], node["data"]["name"]
        assert f"dataset:{namespace}:{name}" == asked
        assert nodes[job("read")]["data"]["inputs"] == [{"namespace": namespace, "name": name}]

    def test_other_tables_with_a_symlink_have_the_name_in_events(self, client, linked):
        nodes = graph(client, table("report"))
        assert table("/lake/orders") in nodes
        assert "dataset:hive://metastore:sales.orders" not in nodes

    def test_search_lists_a_table_with_a_symlink_once(self, client, linked):
        answer = client.get("/v1/search", params={"text": "orders"}).json()
        assert (len(answer["entities"]), answer["total"]) == (1, 1)


class TestJob:
    def test_a_source_of_columns_is_not_an_input(self, client, lineage):
        stated = column_lineage({"x": [source("raw", "p"), source("other", "q")]})
        ingest(
            lineage,
            run_event(
                "load",
                inputs=[dataset("raw")],
                outputs=[dataset("out", {"columnLineage": stated})],
            ),
        )
        node = graph(client, table("out"))[job("load")]
        assert node["data"]["inputs"] == [{"namespace": DATABASE, "name": "raw"}]
        assert node["inEdges"] == [edge(table("raw"), job("load"))]
        upstream = client.get("/v1/trace", params={"entity": table("out"), "direction": "upstream"})
        assert table("other") in {node["id"] for node in upstream.json()["nodes"]}

    @pytest.mark.parametrize(
        ("processing", "expected"), [("BATCH", "BATCH"), ("STREAMING", "STREAM"), ("", "BATCH")]
    )
    def test_type(self, client, lineage, processing, expected):
        facets = {"jobType": {"processingType": processing, "integration": "FLINK"}}
        ingest(lineage, flow("load", ["a"], ["b"], job_facets=facets))
        assert graph(client, job("load"))[job("load")]["data"]["type"] == expected

    def test_a_job_of_a_parent_has_a_simple_name(self, client, lineage):
        def itself(name):
            return {"run": {"runId": "r0"}, "job": {"namespace": JOBS, "name": name}}

        parent = itself("daily")
        ingest(
            lineage,
            flow("daily.load", ["a"], ["b"], run_facets={"parent": parent}),
            flow("other.send", ["b"], ["c"], run_facets={"parent": parent}),
            flow("own.name", ["c"], ["d"]),
            # Old versions of Airflow's integration name the task itself as its parent.
            flow("dag.task", ["d"], ["e"], run_facets={"parent": itself("dag.task")}),
            flow("alone", ["e"], ["f"], run_facets={"parent": itself("alone")}),
        )
        nodes = graph(client, table("a"))
        names = {
            name: (node["data"]["simpleName"], node["data"]["parentJobName"])
            for name, node in nodes.items()
            if name.startswith("job:")
        }
        assert names == {
            job("daily.load"): ("load", "daily"),
            job("other.send"): ("other.send", "daily"),
            job("own.name"): ("own.name", None),
            job("dag.task"): ("task", "dag"),
            job("alone"): ("alone", None),
        }

    def test_location_and_description(self, client, lineage):
        facets = {
            "sourceCodeLocation": {"type": "git", "url": "https://git.example/load.py"},
            "documentation": {"description": "Loads"},
        }
        ingest(lineage, flow("load", ["a"], ["b"], job_facets=facets))
        data = graph(client, job("load"))[job("load")]["data"]
        assert (data["location"], data["description"]) == ("https://git.example/load.py", "Loads")


class TestLatestRun:
    def test_times_arguments_versions_and_facets_as_sent(self, client, lineage):
        run_facets = {
            "nominalTime": {
                "nominalStartTime": "2026-01-01T00:00:00Z",
                "nominalEndTime": "2026-01-02T00:00:00Z",
            },
            "parent": {"run": {"runId": "p1"}, "job": {"namespace": JOBS, "name": "daily"}},
            "acme_cost": {"cents": 12},
        }
        statistics = {"outputStatistics": {"rowCount": 10}}
        checks = {"dataQualityMetrics": {"rowCount": 3, "columnMetrics": {}}}
        ingest(
            lineage,
            run_event("load", "r1", "START", EARLIER, run_facets=run_facets),
            run_event(
                "load",
                "r1",
                "COMPLETE",
                LATER,
                inputs=[dataset("a", inputFacets=checks)],
                outputs=[dataset("b", {"schema": schema("x")}, outputFacets=statistics)],
            ),
        )
        data = graph(client, job("load"))[job("load")]["data"]
        run = data["latestRun"]
        versions = {
            side: [
                (v["datasetVersionId"]["name"], v["facets"])
                for v in run.pop(f"{side}DatasetVersions")
            ]
            for side in ("input", "output")
        }
        assert versions == {"input": [("a", checks)], "output": [("b", statistics)]}
        version = run.pop("jobVersion")
        assert (version["namespace"], version["name"]) == (JOBS, "load")
        assert run == {
            "id": "r1",
            "createdAt": EARLIER,
            "updatedAt": LATER,
            "nominalStartTime": "2026-01-01T00:00:00Z",
            "nominalEndTime": "2026-01-02T00:00:00Z",
            "state": "COMPLETED",
            "startedAt": EARLIER,
            "endedAt": LATER,
            "durationMs": 4 * 3600 * 1000,
            "args": {
                "nominal_start_time": "2026-01-01T00:00:00Z",
                "nominal_end_time": "2026-01-02T00:00:00Z",
                "run_id": "p1",
                "name": "daily",
                "namespace": JOBS,
            },
            "facets": run_facets,
        }
        assert data["currentRunUuid"] == "r1"

    def test_the_version_of_a_dataset_changes_with_its_schema(self, client, lineage):
        def version() -> str:
            run = graph(client, job("load"))[job("load")]["data"]["latestRun"]
            return run["outputDatasetVersions"][0]["datasetVersionId"]["version"]

        def load(run: str, at: str, *columns: str) -> str:
            outputs = [dataset("b", {"schema": schema(*columns)})]
            ingest(lineage, run_event("load", run, at=at, outputs=outputs))
            return version()

        first = load("r1", EARLIER, "x")
        assert load("r2", "2026-01-01T11:00:00Z", "x") == first
        assert load("r3", LATER, "x", "y") != first

    def test_of_many_runs_only_the_latest_counts(self, client, lineage):
        ingest(
            lineage,
            run_event("load", "r1", at=EARLIER, inputs=[dataset("old")], outputs=[dataset("b")]),
            run_event("load", "r2", "FAIL", LATER, inputs=[dataset("a")], outputs=[dataset("b")]),
        )
        run = graph(client, job("load"))[job("load")]["data"]["latestRun"]
        assert (run["id"], run["state"]) == ("r2", "FAILED")
        inputs = [v["datasetVersionId"]["name"] for v in run["inputDatasetVersions"]]
        assert inputs == ["a"]


def symlinks(*names: str):
    return {"identifiers": [{"namespace": "s3://lake", "name": n, "type": "TABLE"} for n in names]}


_CHANGES = {
    "a schema in an event of the dataset": [dataset_event("b", {"schema": schema("z")}, LATER)],
    "a facet in a late event": [dataset_event("b", {"documentation": {"description": "B"}})],
    "another run": [run_event("load", "r2", "START", LATER)],
    "a facet of an old run": [run_event("load", "r1", at=EARLIER, run_facets={"more": {"x": 1}})],
    "another reader": [flow("report", ["b"], ["mart"], at=LATER)],
    "another name": [dataset_event("b", {"symlinks": symlinks("tables/b")}, LATER)],
    "something else": [flow("elsewhere", ["x"], ["y"])],
}


class TestKeptNodes:
    @pytest.mark.parametrize("change", _CHANGES)
    def test_an_answer_after_a_write_equals_that_of_a_new_process(self, lineage, change):
        ingest(lineage, run_event("load", "r1", inputs=[dataset("a")], outputs=[dataset("b")]))
        before = render_lineage(lineage, table("a"), 20)
        assert render_lineage(lineage, table("a"), 20) == before
        ingest(lineage, *_CHANGES[change])
        with Lineage.open(lineage.store.url) as opened:
            expected = render_lineage(opened, table("a"), 20)
        assert render_lineage(lineage, table("a"), 20) == expected
        assert (expected == before) == (change == "something else")

    def test_many_random_writes(self, tmp_path):
        chance = random.Random(18)
        names = [f"t{number}" for number in range(6)]
        with Lineage.open(str(tmp_path)) as lineage:
            for step in range(40):
                at = f"2026-01-{chance.randint(1, 28):02d}T10:00:00Z"
                facets = {"schema": schema(*chance.sample("abc", chance.randint(1, 3)))}
                if chance.random() < 0.1:
                    facets["symlinks"] = symlinks(chance.choice(names))
                event = run_event(
                    chance.choice("xyz"),
                    f"r{step}",
                    at=at,
                    inputs=[dataset(chance.choice(names))],
                    outputs=[dataset(chance.choice(names), facets)],
                )
                ingest(lineage, dataset_event("t0"), event)
                with Lineage.open(str(tmp_path)) as opened:
                    expected = render_lineage(opened, table("t0"), 20)
                assert render_lineage(lineage, table("t0"), 20) == expected

    def test_a_symlink_that_was_asked_for_does_not_stay_in_later_answers(self, client, lineage):
        linked = {"symlinks": symlinks("tables/b")}
        ingest(lineage, run_event("load", inputs=[dataset("a")], outputs=[dataset("b", linked)]))
        usual = graph(client, table("a"))
        assert "dataset:s3://lake:tables/b" in graph(client, "dataset:s3://lake:tables/b")
        assert graph(client, table("a")) == usual

    def test_nodes_of_another_state_are_neither_returned_nor_kept(self):
        first, second = StoreState(1, 1), StoreState(1, 2)
        kept, node = RenderedNodes(), RenderedNode("job:a:b", b'"job:a:b"', b"{")
        kept.refresh(first, None)
        kept.add({7: node, 8: node}, first)
        assert kept.find([7, 9], first) == {7: node}
        kept.refresh(second, [8])
        assert kept.find([7, 8], first) == {}
        assert kept.find([7, 8], second) == {7: node}
        kept.add({8: node}, first)
        assert kept.find([8], second) == {}

    def test_the_bytes_that_are_kept_are_limited(self):
        state, kept = StoreState(1, 1), RenderedNodes(most_bytes=100)
        kept.refresh(state, None)
        kept.add({1: RenderedNode("", b"", bytes(60))}, state)
        kept.add({2: RenderedNode("", b"", bytes(60))}, state)
        assert [*kept.find([1, 2], state)] == [2]
        kept.add({3: RenderedNode("", b"", bytes(101))}, state)
        assert [*kept.find([1, 2, 3], state)] == [2]
