"""`POST /api/atlas/v2/entity/bulk` accepts what Atlas' hooks and clients send."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.unit.http.test_app import TestClient

from downriver.http import build_app
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLE = Path(__file__).parents[3] / "examples" / "catalogs" / "atlas_entities.json"
BULK = "/api/atlas/v2/entity/bulk"
Json = dict[str, Any]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with Lineage.open(str(tmp_path)) as lineage, TestClient(build_app(lineage)) as opened:
        yield opened


def entity(kind: str, name: str, guid: str = "", **attributes: Any) -> Json:
    about = {"qualifiedName": f"{name}@cl1", "name": name.rpartition(".")[2], **attributes}
    return {"typeName": kind, "attributes": about} | ({"guid": guid} if guid else {})


def test_entities_are_stored_with_columns_and_tags(client: TestClient) -> None:
    answer = client.post(BULK, content=EXAMPLE.read_bytes())
    assert answer.status_code == 200, answer.text
    traced = client.get("/v1/trace", params={"entity": "user_events.user_id"}).json()
    assert traced["edges"][0]["target"].endswith("default.daily_users:user_id")
    found = client.get("/v1/entity", params={"entity": "user_events"}).json()
    assert found["tags"] == ["bronze"]


def test_the_answer_has_a_guid_for_each_entity_and_marks_new_ones(client: TestClient) -> None:
    first = client.post(BULK, content=EXAMPLE.read_bytes()).json()
    again = client.post(BULK, content=EXAMPLE.read_bytes()).json()
    assert set(first["guidAssignments"]) == {"-1", "-2", "-3", "-4", "-5"}
    assert again["guidAssignments"] == first["guidAssignments"]
    assert list(first["mutatedEntities"]) == ["CREATE"]
    assert list(again["mutatedEntities"]) == ["UPDATE"]
    table = first["mutatedEntities"]["CREATE"][0]
    assert table == {
        "typeName": "hive_table",
        "guid": first["guidAssignments"]["-1"],
        "status": "ACTIVE",
        "displayText": "user_events",
        "attributes": {"qualifiedName": "default.user_events@cl1"},
    }


def test_columns_that_name_their_table_and_ends_that_are_relationships(client: TestClient) -> None:
    column = entity("hive_column", "shop.orders.id", type="int")
    column["relationshipAttributes"] = {"table": {"guid": "-1"}}
    process = entity("Process", "load") | {
        "relationshipAttributes": {
            "inputs": [{"guid": "-1"}],
            "outputs": [
                {
                    "typeName": "hive_table",
                    "uniqueAttributes": {"qualifiedName": "shop.daily@cl1"},
                }
            ],
        }
    }
    body = {"entities": [entity("hive_table", "shop.orders", "-1"), column, process]}
    assert client.post(BULK, json=body).status_code == 200
    found = client.get("/v1/entity", params={"entity": "shop.orders"}).json()
    assert [field["name"] for field in found["columns"]] == ["id"]
    traced = client.get("/v1/trace", params={"entity": "shop.orders"}).json()
    assert "dataset:hive://cl1:shop.daily" in {node["id"] for node in traced["nodes"]}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "not JSON"),
        (b"{}", "no entity with a typeName"),
        (
            json.dumps({"entities": [{"typeName": "hive_table", "attributes": {}}]}).encode(),
            "body: entity 0: hive_table: no qualifiedName",
        ),
        (
            json.dumps(
                {"entities": [entity("Process", "load", inputs=[{"guid": "far"}], outputs=[])]}
            ).encode(),
            "body: Process load@cl1: inputs: no entity with guid far and no qualifiedName",
        ),
    ],
)
def test_an_invalid_entity_refuses_all(client: TestClient, body: bytes, reason: str) -> None:
    answer = client.post(BULK, content=body)
    assert (answer.status_code, reason in answer.json()["detail"]) == (400, True), answer.text
    assert client.get("/v1/status").json()["counts"]["events"] == 0


def test_a_key_for_other_namespaces_is_refused(tmp_path: Path) -> None:
    with Lineage.open(str(tmp_path)) as lineage:
        key = lineage.admin.create_key("hook", "writer", namespaces=["shop"])
        with TestClient(build_app(lineage)) as client:
            headers = {"authorization": f"Bearer {key}"}
            answer = client.post(BULK, content=EXAMPLE.read_bytes(), headers=headers)
    assert answer.status_code == 403
