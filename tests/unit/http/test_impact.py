"""`/v1/lineage/impact` and `/v1/gate`, as clients use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.http.test_app import TestClient
from tests.unit.impact.estate import Estate

from downriver.http import build_app
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with Lineage.open(str(tmp_path)) as lineage:
        estate = Estate(lineage)
        estate.table("raw_orders", {"id": "int", "order_total": "int", "legacy": "varchar"})
        estate.sql("stg", "create table stg_orders as select order_total, legacy from raw_orders")
        estate.sql("fct", "create table fct_orders as select order_total from stg_orders")
        with TestClient(build_app(lineage)) as client:
            yield client


CHANGES = [
    {"type": "column_rename", "from": "order_total", "to": "total_amount"},
    {"type": "column_drop", "column": "legacy"},
]


def test_the_report_has_the_fields_that_scripts_read(client: TestClient) -> None:
    answer = client.post(
        "/v1/lineage/impact", json={"asset_id": "raw_orders", "proposed_changes": CHANGES}
    )
    assert answer.status_code == 200
    report = answer.json()
    assert (report["risk_level"], report["affected_count"]) == ("high", 2)
    told = [
        (asset["name"], asset["asset_type"], asset["affected_references"], asset["severity"])
        for asset in report["affected_assets"]
    ]
    assert told == [
        ("stg_orders", "sql", ["order_total", "legacy"], "breaking"),
        ("fct_orders", "sql", ["order_total"], "breaking"),
    ]


@pytest.mark.parametrize(
    "ddl",
    [
        "alter table raw_orders dorp column legacy",
        "alter table raw_orders add column x int; call drop_old_columns()",
        "{% if prod %} alter table raw_orders drop column legacy {% endif %}",
    ],
)
def test_a_migration_that_cannot_be_read_is_blocked(client: TestClient, ddl: str) -> None:
    verdict = client.post("/v1/gate", json={"ddl": ddl}).json()
    assert verdict["decision"] == "BLOCKED"
    assert verdict["impact"]["complete"] is False
    assert verdict["impact"]["unread"][0]["line"] == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"asset_id": "raw_orders"},
        {"asset_id": "raw_orders", "proposed_changes": []},
        {"asset_id": "raw_orders", "proposed_changes": [{"type": "column_rename"}]},
        {"asset_id": "raw_orders", "proposed_changes": [{"type": "nonsense"}]},
        {"asset_id": 3, "proposed_changes": CHANGES},
        [],
        "text",
    ],
)
def test_a_malformed_change_is_400_with_the_reason(client: TestClient, body: object) -> None:
    answer = client.post("/v1/lineage/impact", json=body)
    assert answer.status_code == 400
    assert answer.json()["detail"]


def test_a_body_that_is_not_json_is_400(client: TestClient) -> None:
    assert client.post("/v1/lineage/impact", content=b"{").status_code == 400
    assert client.post("/v1/gate", content=b"\xff").status_code == 400


def test_an_unknown_asset_is_404_and_not_low_risk(client: TestClient) -> None:
    body = {"asset_id": "raw_ordres", "proposed_changes": CHANGES}
    answer = client.post("/v1/lineage/impact", json=body)
    assert answer.status_code == 404
    assert answer.json()["near"]


def test_the_gate_decides_about_changes_and_migrations(client: TestClient) -> None:
    change = {"type": "column_drop", "dataset": "raw_orders", "column": "legacy"}
    assert client.post("/v1/gate", json={"changes": [change]}).json()["decision"] == "BLOCKED"
    ddl = {"ddl": "alter table raw_orders add column x int", "dialect": "postgres"}
    assert client.post("/v1/gate", json=ddl).json()["decision"] == "APPROVED"
    softer = {"changes": [change], "policy": {"breaking": "CAUTION"}}
    assert client.post("/v1/gate", json=softer).json()["decision"] == "CAUTION"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"changes": [], "ddl": ""},
        {"ddl": 3},
        {"ddl": "select 1"},
        {"changes": [{"type": "table_drop"}]},
        {"changes": [{"type": "table_drop", "dataset": "raw_orders"}], "policy": {"x": 1}},
    ],
)
def test_a_gate_request_without_changes_is_400(client: TestClient, body: object) -> None:
    assert client.post("/v1/gate", json=body).status_code == 400
