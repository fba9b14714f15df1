"""The routes that the web UI draws the graph from."""

from __future__ import annotations

import pytest
from tests.unit.http.test_app import TestClient, run_event

from downriver.http import build_app
from downriver.service import Lineage


@pytest.fixture
def lineage(tmp_path):
    with Lineage.open(str(tmp_path)) as opened:
        yield opened


@pytest.fixture
def client(lineage):
    with TestClient(build_app(lineage)) as opened:
        opened.post("/api/v1/lineage", json=run_event("clean", ["raw"], ["orders"]))
        opened.post("/api/v1/lineage", json=run_event("report", ["orders"], ["daily"]))
        yield opened


def test_the_graph_is_returned_with_what_was_asked_for(client):
    found = client.get("/v1/graph", params={"entity": "orders", "include": "columns,runs"}).json()
    assert found["root"] == "dataset:db:orders"
    assert (found["shown"], found["total"]) == (5, 5)
    assert {node["kind"] for node in found["nodes"]} == {"dataset", "job"}
    assert all("columns" in node for node in found["nodes"])
    upstream = client.get("/v1/graph", params={"entity": "orders", "direction": "upstream"}).json()
    assert upstream["total"] == 3


def test_what_the_limits_hide_is_counted_and_is_no_blind_spot_of_a_node(client):
    client.post("/api/v1/lineage", json=run_event("publish", ["daily"], ["page"]))
    found = client.get("/v1/graph", params={"entity": "orders", "depth": "1"}).json()
    assert (found["shown"], found["total"]) == (5, 7)
    assert not found["complete"]
    assert found["blind_spots"] == []
    assert {node["blind_spot_count"] for node in found["nodes"]} == {0}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"entity": "orders", "include": "owners"}, "include"),
        ({"entity": "orders", "direction": "up"}, "direction"),
        ({"entity": "orders", "as_of": "yesterday"}, "as_of"),
        ({"entity": "orders", "diff": "yesterday"}, "as_of"),
        ({"entity": "orders", "limit": "0"}, "limit"),
        ({}, "entity"),
    ],
)
def test_a_wrong_parameter_is_named(client, query, field):
    answer = client.get("/v1/graph", params=query)
    assert (answer.status_code, answer.json()["field"]) == (400, field)


def test_an_unknown_dataset_is_not_found(client):
    assert client.get("/v1/graph", params={"entity": "ordres"}).status_code == 404
    body = {"datasets": ["ordres"]}
    assert client.post("/v1/column-edges", json=body).status_code == 404


def test_runs_and_events_are_linked(client):
    (listed,) = client.get("/v1/runs", params={"entity": "daily"}).json()["runs"]
    details = client.get(f"/v1/runs/{listed['id']}").json()
    digest = details["events"][0]
    event = client.get(f"/v1/events/{digest}").json()
    assert event["event"]["run"]["runId"] == listed["id"]
    assert len(client.get("/v1/runs").json()["runs"]) == 2


def test_the_role_of_a_key_is_returned(lineage, client):
    assert client.get("/v1/me").json()["role"] == "admin"
    assert client.get("/v1/me").json()["keys_required"] is False
    key = lineage.admin.create_key("dashboard", "reader")
    with TestClient(build_app(lineage)) as keyed:
        assert keyed.get("/v1/me").status_code == 401
        me = keyed.get("/v1/me", headers={"Authorization": f"Bearer {key}"}).json()
    assert (me["role"], me["key_id"], me["keys_required"]) == ("reader", "dashboard", True)


def test_a_search_as_of_a_moment_finds_what_was_known_by_then(client):
    later = {
        **run_event("publish", ["daily"], ["orders_page"]),
        "eventTime": "2030-01-01T00:00:00Z",
    }
    client.post("/api/v1/lineage", json=later)

    def found(**asked):
        return [hit["name"] for hit in client.get("/v1/search", params=asked).json()["hits"]]

    assert found(text="orders") == ["orders", "orders_page"]
    assert found(text="orders", as_of="2029-01-01T00:00:00Z") == ["orders"]
    assert found(text="orders", as_of="2001-01-01T00:00:00Z") == []
    assert client.get("/v1/search", params={"as_of": "soon"}).status_code == 400


def test_an_entity_shows_the_tags_of_its_columns(client):
    schema = {"schema": {"fields": [{"name": "email", "type": "text"}]}}
    stated = {"namespace": "db", "name": "orders", "facets": schema}
    event = {"eventTime": "2026-01-01T00:00:00Z", "dataset": stated}
    client.post("/api/v1/lineage", json=event)
    client.post("/v1/tags", json={"entity": "column:db:orders:email", "tags": ["pii"]})
    columns = client.get("/v1/entity", params={"entity": "orders"}).json()["columns"]
    assert [(column["name"], column["tags"]) for column in columns] == [("email", ["pii"])]


@pytest.mark.parametrize("before", ["9" * 5_000 + "-1", "9" * 20 + "-" + "9" * 20, "٣٣٣٣٣٣-٣"])
def test_a_cursor_of_runs_that_no_answer_has_is_refused(client, before):
    answer = client.get("/v1/runs", params={"entity": "orders", "before": before})
    assert (answer.status_code, answer.json()["field"]) == (400, "before")
