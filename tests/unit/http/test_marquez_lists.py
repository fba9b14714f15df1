"""Every list and write of Marquez's API: keys, statuses, pages, errors, and the log behind it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
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
from tests.unit.http.test_app import TestClient

from downriver.http import build_app
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from httpx import Response

API = "/api/v1"
IN_DATABASE = f"{API}/namespaces/{quote(DATABASE, safe='')}"
OF_JOBS = f"{API}/namespaces/{JOBS}"
RUN = "3f5e83fa-3480-44ff-99c5-ff943904e5e8"


@pytest.fixture(params=["sqlite", "postgres"])
def lineage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lineage]:
    url = str(tmp_path)
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_database")
    with Lineage.open(url) as opened:
        yield opened


@pytest.fixture
def client(lineage: Lineage) -> Iterator[TestClient]:
    with TestClient(build_app(lineage)) as opened:
        yield opened


def day(number: int, hour: int = 0) -> str:
    return f"2026-01-{number:02d}T{hour:02d}:00:00Z"


def post(client: TestClient, *events: dict[str, Any]) -> None:
    for event in events:
        assert client.post(f"{API}/lineage", json=event).status_code == 201


def ok(response: Response, status: int = 200) -> Any:
    assert response.status_code == status, response.text
    return response.json()


def refused(response: Response, status: int) -> None:
    assert response.status_code == status, response.text
    body = response.json()
    assert body["code"] == status
    assert isinstance(body["message"], str)
    assert body["message"]
    assert "details" in body


def load_orders(client: TestClient) -> None:
    """One job reads raw orders, whose name has slashes and colons, and writes orders."""
    lineage = column_lineage({"total": [source("raw/a:b", "amount")]})
    facets = {"schema": schema("id", "total"), "columnLineage": lineage}
    common: dict[str, Any] = {
        "inputs": [dataset("raw/a:b", {"schema": schema("amount")})],
        "outputs": [dataset("orders", facets)],
        "run_facets": {"nominalTime": {"nominalStartTime": day(1)}},
        "job_facets": {"documentation": {"description": "loads orders"}},
    }
    post(
        client,
        run_event("load", RUN, "START", day(1, 1), **common),
        run_event("load", RUN, "COMPLETE", day(1, 3), **common),
    )


class TestNamespaces:
    def test_a_namespace_is_registered_listed_hidden_and_returns(self, client: TestClient) -> None:
        path = f"{API}/namespaces/team%2Fa"
        made = ok(client.put(path, json={"ownerName": "ana", "description": "ours"}))
        assert made.keys() == {
            *("name", "createdAt", "updatedAt", "ownerName", "description", "isHidden")
        }
        assert (made["name"], made["ownerName"], made["isHidden"]) == ("team/a", "ana", False)
        assert ok(client.get(path)) == made
        event = {"eventTime": day(1), "job": {"namespace": "team/a", "name": "load"}}
        post(client, event)
        assert ok(client.get(f"{path}/jobs"))["totalCount"] == 1
        assert ok(client.delete(path))["name"] == "team/a"
        assert ok(client.get(path))["isHidden"] is True
        assert ok(client.get(f"{path}/jobs")) == {"jobs": [], "totalCount": 0}
        post(client, event | {"eventTime": "2099-01-01T00:00:00Z"})
        assert ok(client.get(path))["isHidden"] is False
        assert ok(client.get(f"{path}/jobs"))["totalCount"] == 1

    def test_pages(self, client: TestClient) -> None:
        for name in "cab":
            ok(client.put(f"{API}/namespaces/{name}", json={"ownerName": "ana"}))

        def names(query: str) -> list[str]:
            listed = ok(client.get(f"{API}/namespaces{query}"))["namespaces"]
            return [namespace["name"] for namespace in listed]

        assert names("") == ["a", "b", "c"]
        assert names("?limit=1&offset=1") == ["b"]
        assert names("?limit=0") == []
        refused(client.get(f"{API}/namespaces?limit=-1"), 400)

    def test_unknown_and_invalid_namespaces_are_errors(self, client: TestClient) -> None:
        refused(client.get(f"{API}/namespaces/none"), 404)
        refused(client.delete(f"{API}/namespaces/none"), 404)
        refused(client.put(f"{API}/namespaces/a", json={"description": "no owner"}), 400)
        refused(client.get(f"{API}/namespaces/none/datasets"), 404)
        refused(client.get(f"{API}/namespaces/none/jobs"), 404)
        refused(client.get(f"{API}/nowhere"), 404)


class TestSourcesAndTags:
    def test_a_source_is_registered_or_named_by_events(self, client: TestClient) -> None:
        made = ok(
            client.put(
                f"{API}/sources/wh", json={"type": "REDSHIFT", "connectionUrl": "jdbc:redshift://x"}
            )
        )
        assert made.keys() == {
            *("type", "name", "createdAt", "updatedAt", "connectionUrl", "description")
        }
        named = {"dataSource": {"name": "lake", "uri": "s3://lake"}}
        post(client, dataset_event("orders", named))
        listed = ok(client.get(f"{API}/sources"))["sources"]
        assert [found["name"] for found in listed] == ["lake", DATABASE, "wh"]
        assert [found["type"] for found in listed] == ["S3", "POSTGRESQL", "REDSHIFT"]
        assert ok(client.get(f"{API}/sources/lake"))["connectionUrl"] == "s3://lake"
        assert ok(client.get(f"{API}/sources?limit=1&offset=2"))["sources"][0] == made
        refused(client.get(f"{API}/sources/none"), 404)

    def test_tags_are_registered_or_in_use(self, client: TestClient) -> None:
        made = ok(client.put(f"{API}/tags/PII", json={"description": "personal"}))
        assert made == {"name": "pii", "description": "personal"}
        post(
            client, dataset_event("orders", {"tags": {"tags": [{"key": "gold", "value": "true"}]}})
        )
        assert ok(client.get(f"{API}/tags"))["tags"] == [
            {"name": "gold", "description": None},
            made,
        ]
        assert ok(client.get(f"{API}/tags?limit=1&offset=1"))["tags"] == [made]


class TestDatasets:
    def test_keys_and_pages(self, client: TestClient) -> None:
        load_orders(client)
        page = ok(client.get(f"{IN_DATABASE}/datasets?limit=1&offset=1"))
        assert page["totalCount"] == 2
        (raw,) = page["datasets"]
        assert raw.keys() == {
            *("id", "type", "name", "physicalName", "createdAt", "updatedAt", "namespace"),
            *("sourceName", "fields", "tags", "lastModifiedAt", "description"),
            *("lastLifecycleState", "currentVersion", "columnLineage", "facets", "deleted"),
        }
        assert raw["id"] == {"namespace": DATABASE, "name": "raw/a:b"}
        assert ok(client.get(f"{IN_DATABASE}/datasets/raw%2Fa%3Ab")) == raw
        orders = ok(client.get(f"{IN_DATABASE}/datasets/orders"))
        assert [field["name"] for field in orders["fields"]] == ["id", "total"]
        (derived,) = orders["columnLineage"]
        assert derived["name"] == "total"
        assert derived["inputFields"][0]["dataset"] == "raw/a:b"
        refused(client.get(f"{IN_DATABASE}/datasets/none"), 404)

    def test_a_dataset_with_two_names_is_listed_once_and_found_by_both(
        self, client: TestClient
    ) -> None:
        other = {"namespace": "s3://lake", "name": "orders"}
        symlinks = {"symlinks": {"identifiers": [{**other, "type": "LOCATION"}]}}
        written = dataset("orders", {**symlinks, "schema": schema("id")})
        post(client, run_event(outputs=[written]))
        found = ok(client.get(f"{API}/namespaces/s3%3A%2F%2Flake/datasets/orders"))
        assert found["id"] == other
        assert found["physicalName"] == "orders"
        assert [field["name"] for field in found["fields"]] == ["id"]
        for period in ("DAY", "WEEK&timezone=UTC"):
            counted = ok(client.get(f"{API}/stats/datasets?period={period}"))
            assert {entry["count"] for entry in counted} == {1}
        counts = [
            ok(client.get(f"{API}/namespaces/{quote(namespace, safe='')}/datasets"))["totalCount"]
            for namespace in (DATABASE, "s3://lake")
        ]
        assert sorted(counts) == [0, 1]

    def test_registered_by_hand(self, client: TestClient, lineage: Lineage) -> None:
        body = {
            "type": "STREAM",
            "physicalName": "public.orders",
            "sourceName": "wh",
            "fields": [{"name": "id", "type": "INT", "tags": ["key"], "description": "the id"}],
            "tags": ["gold"],
            "description": "all orders",
            "schemaLocation": "https://example.com/orders.avsc",
        }
        path = f"{API}/namespaces/mine/datasets/orders"
        refused(client.put(path, json=body), 404)
        ok(client.put(f"{API}/namespaces/mine", json={"ownerName": "ana"}))
        refused(client.put(path, json=body), 404)
        ok(client.put(f"{API}/sources/wh", json={"type": "X", "connectionUrl": "x://y"}))
        made = ok(client.put(path, json=body))
        assert {key: made[key] for key in body} == body
        refused(client.put(path, json=body | {"runId": RUN}), 404)
        refused(client.put(path, json={"type": "TABLE"}), 400)
        lineage.store.rebuild(lambda done, total: None)
        assert ok(client.get(path)) == made

    def test_deleted_and_back_with_the_next_event(self, client: TestClient) -> None:
        load_orders(client)
        path = f"{IN_DATABASE}/datasets/orders"
        assert ok(client.delete(path))["deleted"] is True
        refused(client.get(path), 404)
        refused(client.delete(path), 404)
        refused(client.post(f"{path}/tags/gold"), 404)
        assert ok(client.get(f"{IN_DATABASE}/datasets"))["totalCount"] == 1
        assert ok(client.get(f"{API}/search?q=orders"))["totalCount"] == 0
        post(client, run_event("later", at="2099-01-01T00:00:00Z", inputs=[dataset("orders")]))
        assert ok(client.get(path))["name"] == "orders"

    def test_tags_of_a_dataset_and_its_columns(self, client: TestClient, lineage: Lineage) -> None:
        load_orders(client)
        path = f"{IN_DATABASE}/datasets/orders"
        assert ok(client.post(f"{path}/tags/Gold"))["tags"] == ["gold"]
        tagged = ok(client.post(f"{path}/fields/total/tags/PII"))
        assert [field["tags"] for field in tagged["fields"]] == [[], ["pii"]]
        refused(client.post(f"{path}/fields/none/tags/PII"), 404)
        lineage.store.rebuild(lambda done, total: None)
        assert ok(client.get(path)) == tagged
        assert client.get("/v1/tags?tag=gold").json()["datasets"], "tags reach the rest"
        assert ok(client.delete(f"{path}/tags/gold"))["tags"] == []
        bare = ok(client.delete(f"{path}/fields/total/tags/pii"))
        assert [field["tags"] for field in bare["fields"]] == [[], []]

    def test_a_version_begins_with_a_change_of_columns(self, client: TestClient) -> None:
        load_orders(client)
        other = run_event(
            "load", str(uuid.uuid4()), "COMPLETE", day(2), outputs=[dataset("orders")]
        )
        wider = dataset("orders", {"schema": schema("id", "total", "tax")})
        post(client, other, run_event("load", "run-3", "COMPLETE", day(3), outputs=[wider]))
        path = f"{IN_DATABASE}/datasets/orders/versions"
        listed = ok(client.get(path))
        newest, oldest = listed["versions"]
        assert listed["totalCount"] == 2
        assert newest.keys() == {
            *("id", "type", "name", "physicalName", "createdAt", "version", "namespace"),
            *("sourceName", "fields", "tags", "lifecycleState", "description", "facets"),
            *("currentSchemaVersion", "createdByRun"),
        }
        assert [len(version["fields"]) for version in (newest, oldest)] == [3, 2]
        assert [v["createdByRun"]["id"] for v in (newest, oldest)] == ["run-3", RUN]
        current = ok(client.get(f"{IN_DATABASE}/datasets/orders"))["currentVersion"]
        assert newest["version"] == current
        assert ok(client.get(f"{path}/{oldest['version']}")) == oldest
        assert ok(client.get(f"{path}?limit=1&offset=1"))["versions"] == [oldest]
        refused(client.get(f"{path}/{uuid.uuid4()}"), 404)

    def test_a_dataset_without_columns_has_one_version(self, client: TestClient) -> None:
        post(client, run_event(inputs=[dataset("plain")]))
        listed = ok(client.get(f"{IN_DATABASE}/datasets/plain/versions"))
        assert listed["totalCount"] == 1
        assert listed["versions"][0]["fields"] == []

    def test_what_a_dataset_does_not_have(self, client: TestClient) -> None:
        post(client, run_event(inputs=[dataset("plain")]))
        path = f"{IN_DATABASE}/datasets/plain"
        found = ok(client.get(path))
        (version,) = ok(client.get(f"{path}/versions"))["versions"]
        # The web UI of Marquez hides an empty column lineage only if it is null.
        assert found["columnLineage"] is None
        assert (found["lastLifecycleState"], version["lifecycleState"]) == ("", "")

    def test_a_column_states_the_transformation_of_its_first_input(
        self, client: TestClient
    ) -> None:
        how = {"type": "DIRECT", "subtype": "AGGREGATION", "description": "sum(amount)"}
        where = {"type": "INDIRECT", "subtype": "FILTER"}
        inputs = [source("raw", "amount", how, where), source("raw", "fee")]
        lineage = column_lineage({"total": inputs})
        written = dataset("orders", {"columnLineage": lineage})
        post(client, run_event(inputs=[dataset("raw")], outputs=[written]))
        (derived,) = ok(client.get(f"{IN_DATABASE}/datasets/orders"))["columnLineage"]
        assert derived["transformationType"] == "AGGREGATION"
        assert derived["transformationDescription"] == "sum(amount)"
        assert [column["field"] for column in derived["inputFields"]] == ["amount", "fee"]


class TestJobs:
    def test_keys(self, client: TestClient) -> None:
        load_orders(client)
        job = ok(client.get(f"{OF_JOBS}/jobs/load"))
        assert job.keys() == {
            *("id", "type", "name", "simpleName", "parentJobName", "parentJobUuid", "createdAt"),
            *("updatedAt", "namespace", "inputs", "outputs", "location", "description"),
            *("latestRun", "latestRuns", "facets", "currentVersion", "labels", "tags"),
            "currentRunUuid",
        }
        assert job["inputs"] == [{"namespace": DATABASE, "name": "raw/a:b"}]
        assert (job["latestRun"]["state"], job["latestRuns"][0]["id"]) == ("COMPLETED", RUN)
        assert job["description"] == "loads orders"
        assert job["latestRun"]["jobVersion"]["version"] == job["currentVersion"]
        refused(client.get(f"{OF_JOBS}/jobs/none"), 404)

    def test_a_job_without_runs_has_none_in_place_of_a_list(self, client: TestClient) -> None:
        ok(client.put(f"{API}/namespaces/{JOBS}", json={"ownerName": "ana"}))
        body = {"type": "BATCH", "inputs": [], "outputs": []}
        made = ok(client.put(f"{OF_JOBS}/jobs/idle", json=body))
        # The dashboard of Marquez's web UI fails with an empty list.
        assert (made["latestRuns"], made["latestRun"]) == (None, None)
        assert ok(client.get(f"{API}/jobs"))["jobs"][0]["latestRuns"] is None

    def test_labels_are_the_type_of_a_job_and_what_runs_it(self, client: TestClient) -> None:
        facets = {"jobType": {"jobType": "DAG", "integration": "AIRFLOW"}}
        post(client, run_event("daily", job_facets=facets))
        assert ok(client.get(f"{OF_JOBS}/jobs/daily"))["labels"] == ["DAG", "AIRFLOW"]

    def test_earlier_runs_have_their_state_and_arguments_in_lists(self, client: TestClient) -> None:
        load_orders(client)
        runs = f"{OF_JOBS}/jobs/load/runs"
        for mode in ("full", "partial"):
            ok(client.post(runs, json={"args": {"mode": mode}, "nominalEndTime": day(2)}), 201)
        for listed in (
            ok(client.get(f"{OF_JOBS}/jobs"))["jobs"][0],
            ok(client.get(f"{OF_JOBS}/jobs/load")),
        ):
            described = [
                (run["state"], run["args"].get("mode"), run["nominalEndTime"])
                for run in listed["latestRuns"]
            ]
            assert described == [
                ("NEW", "partial", day(2)),
                ("NEW", "full", day(2)),
                ("COMPLETED", None, None),
            ]

    def test_all_runs_of_one_job_have_their_facets(self, client: TestClient) -> None:
        for run in ("r1", "r2"):
            post(client, run_event("load", run, run_facets={"acme_cost": {"cents": run}}))
        job = ok(client.get(f"{OF_JOBS}/jobs/load"))
        assert {run["facets"]["acme_cost"]["cents"] for run in job["latestRuns"]} == {"r1", "r2"}

    def test_pages_by_the_state_of_the_last_run(self, client: TestClient) -> None:
        for number, state in enumerate(("COMPLETE", "FAIL", "START", "FAIL"), 1):
            post(client, run_event(f"job{number}", f"r{number}", state, day(number)))
        post(client, run_event("job2", "r2", "START", day(1)))  # late: it stays failed

        def names(query: str, where: str = API) -> tuple[list[str], int]:
            found = ok(client.get(f"{where}/jobs{query}"))
            return [job["name"] for job in found["jobs"]], found["totalCount"]

        assert names("") == (["job4", "job3", "job2", "job1"], 4)
        assert names("?lastRunStates=FAILED") == (["job4", "job2"], 2)
        assert names("?lastRunStates=FAILED&limit=1&offset=1") == (["job2"], 2)
        both = "?lastRunStates=RUNNING&lastRunStates=COMPLETED"
        assert names(both, OF_JOBS) == (["job3", "job1"], 2)
        refused(client.get(f"{API}/jobs?lastRunStates=SAD"), 400)

    def test_registered_by_hand(self, client: TestClient, lineage: Lineage) -> None:
        load_orders(client)
        path = f"{OF_JOBS}/jobs/by-hand"
        body = {
            "type": "SERVICE",
            "inputs": [{"namespace": DATABASE, "name": "orders"}],
            "outputs": [],
            "location": "https://example.com/code",
            "description": "a service",
            "tags": ["gold"],
        }
        made = ok(client.put(path, json=body))
        assert {key: made[key] for key in body} == body
        lineage.store.rebuild(lambda done, total: None)
        assert ok(client.get(path)) == made
        missing = body | {"inputs": [{"namespace": DATABASE, "name": "none"}]}
        refused(client.put(path, json=missing), 404)
        refused(client.put(path, json=body | {"type": "ODD"}), 400)

    def test_deleted_and_back_with_the_next_run(self, client: TestClient) -> None:
        load_orders(client)
        path = f"{OF_JOBS}/jobs/load"
        assert ok(client.delete(path))["name"] == "load"
        refused(client.get(path), 404)
        refused(client.post(f"{path}/runs", json={}), 404)
        post(client, run_event("load", "again", at="2099-01-01T00:00:00Z"))
        assert ok(client.get(path))["latestRun"]["id"] == "again"

    def test_tags(self, client: TestClient) -> None:
        load_orders(client)
        path = f"{OF_JOBS}/jobs/load/tags/Nightly"
        assert ok(client.post(path))["tags"] == ["nightly"]
        assert ok(client.delete(path))["tags"] == []

    def test_a_version_begins_with_a_new_input_or_output(self, client: TestClient) -> None:
        load_orders(client)
        later = run_event("load", "run-2", "COMPLETE", day(5), inputs=[dataset("rates")])
        empty = run_event("load", "run-3", "COMPLETE", day(6))  # removes no edge
        post(client, later, empty)
        path = f"{OF_JOBS}/jobs/load/versions"
        listed = ok(client.get(path))
        assert [len(version["inputs"]) for version in listed["versions"]] == [2, 1]
        newest, oldest = listed["versions"]
        assert newest["version"] == ok(client.get(f"{OF_JOBS}/jobs/load"))["currentVersion"]
        assert ok(client.get(f"{path}/{oldest['version']}")) == oldest
        refused(client.get(f"{path}/{uuid.uuid4()}"), 404)


class TestRuns:
    def test_created_started_and_ended(self, client: TestClient, lineage: Lineage) -> None:
        load_orders(client)
        runs = f"{OF_JOBS}/jobs/load/runs"
        created = client.post(runs, json={"nominalStartTime": day(1), "args": {"a": "1"}})
        run = ok(created, 201)
        assert created.headers["location"] == f"{API}/jobs/runs/{run['id']}"
        assert run.keys() == {
            *("id", "createdAt", "updatedAt", "nominalStartTime", "nominalEndTime", "state"),
            *("startedAt", "endedAt", "durationMs", "args", "jobVersion", "facets"),
            *("inputDatasetVersions", "outputDatasetVersions"),
        }
        assert (run["state"], run["args"]["a"]) == ("NEW", "1")
        path = f"{API}/jobs/runs/{run['id']}"
        started = ok(client.post(f"{path}/start?at={day(9, 1)}"))
        assert (started["state"], started["startedAt"]) == ("RUNNING", day(9, 1))
        ended = ok(client.post(f"{path}/complete?at={day(9, 2)}"))
        assert (ended["state"], ended["durationMs"]) == ("COMPLETED", 3_600_000)
        assert ok(client.post(f"{path}/start?at={day(9, 1)}"))["state"] == "COMPLETED"
        lineage.store.rebuild(lambda done, total: None)
        assert ok(client.get(path)) == ended

    def test_a_duration_is_the_difference_of_whole_milliseconds(self, client: TestClient) -> None:
        for event, second in (("START", "10.459839"), ("COMPLETE", "11.020001")):
            post(client, run_event("load", RUN, event, f"2026-01-01T00:00:{second}Z"))
        assert ok(client.get(f"{API}/jobs/runs/{RUN}"))["durationMs"] == 561

    @pytest.mark.parametrize(("action", "state"), [("fail", "FAILED"), ("abort", "ABORTED")])
    def test_ended_without_success(self, client: TestClient, action: str, state: str) -> None:
        load_orders(client)
        made = ok(client.post(f"{OF_JOBS}/jobs/load/runs", json={"id": "mine"}), 201)
        assert made["id"] == "mine"
        assert ok(client.post(f"{API}/jobs/runs/mine/{action}"))["state"] == state

    def test_wrong(self, client: TestClient) -> None:
        load_orders(client)
        runs = f"{OF_JOBS}/jobs/load/runs"
        refused(client.post(runs, json={"id": RUN}), 400)
        refused(client.post(runs, json={"nominalStartTime": "soon"}), 400)
        refused(client.post(f"{OF_JOBS}/jobs/none/runs", json={}), 404)
        refused(client.get(f"{API}/jobs/runs/none"), 404)
        refused(client.post(f"{API}/jobs/runs/none/start"), 404)
        refused(client.post(f"{API}/jobs/runs/{RUN}/start?at=soon"), 400)
        refused(client.get(f"{API}/jobs/runs/{RUN}/facets"), 400)
        refused(client.get(f"{API}/jobs/runs/{RUN}/facets?type=odd"), 400)

    def test_pages_and_facets(self, client: TestClient) -> None:
        load_orders(client)
        post(client, run_event("load", "second", "FAIL", day(2)))
        listed = ok(client.get(f"{OF_JOBS}/jobs/load/runs?limit=1"))
        assert ([run["id"] for run in listed["runs"]], listed["totalCount"]) == (["second"], 2)
        of_run = ok(client.get(f"{API}/jobs/runs/{RUN}/facets?type=run"))
        assert of_run == {
            "runId": RUN,
            "facets": {"nominalTime": {"nominalStartTime": day(1)}},
        }
        of_job = ok(client.get(f"{API}/jobs/runs/{RUN}/facets?type=job"))
        assert of_job["facets"]["documentation"] == {"description": "loads orders"}


class TestSearch:
    def test_filters_and_order(self, client: TestClient) -> None:
        load_orders(client)
        post(client, run_event("orders_job", "r2", at=day(9)))

        def found(query: str) -> list[str]:
            answer = ok(client.get(f"{API}/search?{query}"))
            assert answer["totalCount"] == len(answer["results"])
            return [result["nodeId"] for result in answer["results"]]

        orders, job = f"dataset:{DATABASE}:orders", f"job:{JOBS}:orders_job"
        assert found("q=ORDERS") == [orders, job]
        assert found("q=orders&sort=UPDATE_AT") == [job, orders]
        assert found("q=orders&filter=JOB") == [job]
        assert found(f"q=orders&namespace={quote(DATABASE, safe='')}") == [orders]
        assert found("q=orders&after=2026-01-05") == [job]
        assert found("q=orders&before=2026-01-05&limit=5") == [orders]
        assert found("q=orders&limit=1") == [orders]
        for query in ("", "q=a&filter=X", "q=a&sort=X", "q=a&before=now"):
            refused(client.get(f"{API}/search?{query}"), 400)

    def test_hits_have_facets_and_highlights(self, client: TestClient) -> None:
        load_orders(client)
        found = ok(client.get("/api/v2beta/search/datasets?q=ORD"))
        assert found["hits"][0]["name"] == "orders"
        assert "schema" in found["hits"][0]["facets"]
        assert found["highlights"] == [{"name": ["<em>ord</em>ers"]}]
        (job,) = ok(client.get("/api/v2beta/search/jobs?q=load"))["hits"]
        assert (job["run_id"], job["eventType"]) == (RUN, "COMPLETE")
        refused(client.get("/api/v2beta/search/jobs"), 400)


class TestActivity:
    def test_events_by_time(self, client: TestClient) -> None:
        load_orders(client)
        post(client, dataset_event("orders", {}, day(4)), run_event("late", "r2", "FAIL", day(3)))

        def found(query: str) -> tuple[list[str], int]:
            answer = ok(client.get(f"{API}/events/lineage?{query}"))
            return [event["eventType"] for event in answer["events"]], answer["totalCount"]

        assert found("") == (["FAIL", "COMPLETE", "START"], 3)
        assert found("sortDirection=asc") == (["START", "COMPLETE", "FAIL"], 3)
        assert found("limit=1&offset=1") == (["COMPLETE"], 3)
        assert found(f"after={day(1, 3)}&before={day(3)}") == (["COMPLETE"], 1)
        assert found(f"before={quote('2026-01-01T02:00:00+00:00')}") == (["START"], 1)
        assert found("before=2026-01-01T02:00:00+00:00&after=") == (["START"], 1)
        event = ok(client.get(f"{API}/events/lineage?limit=1"))["events"][0]
        assert event == run_event("late", "r2", "FAIL", day(3)), "as it was sent"
        refused(client.get(f"{API}/events/lineage?sortDirection=up"), 400)
        refused(client.get(f"{API}/events/lineage?before=soon"), 400)

    def test_counts_of_a_day_and_a_week(self, client: TestClient) -> None:
        load_orders(client)
        made = ok(client.post(f"{OF_JOBS}/jobs/load/runs", json={}), 201)
        ok(client.post(f"{API}/jobs/runs/{made['id']}/fail"))
        hours = ok(client.get(f"{API}/stats/lineage-events?period=DAY"))
        days = ok(client.get(f"{API}/stats/lineage-events?period=WEEK&timezone=Asia/Kathmandu"))
        assert (len(hours), len(days)) == (24, 7)
        assert hours[0].keys() == {
            *("startInterval", "endInterval", "fail", "start", "complete", "abort")
        }
        assert sum(hour["fail"] for hour in hours) == sum(day["fail"] for day in days) == 1
        assert days[0]["startInterval"].endswith("18:15:00Z"), "midnight in Kathmandu"
        for asset, count in (("jobs", 1), ("datasets", 2), ("sources", 1)):
            counted = ok(client.get(f"{API}/stats/{asset}?period=WEEK&timezone=UTC"))
            assert [entry["count"] for entry in counted] == [count] * 7
            assert len(ok(client.get(f"{API}/stats/{asset}?period=DAY"))) == 24
        for query in ("", "period=YEAR", "period=WEEK", "period=WEEK&timezone=Nowhere/Land"):
            refused(client.get(f"{API}/stats/lineage-events?{query}"), 400)


@pytest.mark.parametrize("lineage", ["sqlite"], indirect=True)
def test_records_are_no_datasets_of_the_graph(client: TestClient) -> None:
    ok(client.put(f"{API}/namespaces/empty", json={"ownerName": "ana"}))
    ok(client.put(f"{API}/tags/pii", json={"description": "personal"}))
    assert client.get("/v1/search?text=empty").json()["total"] == 0
    assert client.get("/v1/status").json()["counts"]["datasets"] == 0


@pytest.mark.parametrize("lineage", ["sqlite"], indirect=True)
def test_a_reader_may_list_and_not_write(client: TestClient, lineage: Lineage) -> None:
    load_orders(client)
    reader = {"authorization": f"Bearer {lineage.admin.create_key('r', 'reader')}"}
    with TestClient(build_app(lineage)) as keyed:
        assert keyed.get(f"{OF_JOBS}/jobs", headers=reader).status_code == 200
        refused(keyed.get(f"{OF_JOBS}/jobs"), 401)
        refused(keyed.delete(f"{OF_JOBS}/jobs/load", headers=reader), 403)
        refused(keyed.post(f"{OF_JOBS}/jobs/load/tags/a", headers=reader), 403)
