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


@pytest.mark.parametrize(
    ("path", "body", "unknown"),
    [
        ("/v1/gate", {"ddl": "alter table raw_orders add column x int"}, "dialct"),
        ("/v1/preview", {"ddl": "alter table raw_orders add column x int"}, "polcy"),
        ("/v1/lineage/impact", {"asset_id": "raw_orders", "proposed_changes": CHANGES}, "asof"),
        ("/v1/impact", {"entity_id": "raw_orders.x", "change_type": "column_add"}, "requird"),
        ("/v1/fix", {"entity_id": "raw_orders", "files": {}}, "ddl"),
    ],
)
def test_an_unknown_field_of_a_change_is_400_with_its_name(
    client: TestClient, path: str, body: dict[str, object], unknown: str
) -> None:
    answer = client.post(path, json={**body, unknown: "x"})
    assert answer.status_code == 400
    assert unknown in answer.json()["detail"]


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


DROP_LEGACY = {"type": "column_drop", "dataset": "raw_orders", "column": "legacy"}


def test_a_preview_decides_as_the_gate_does_and_lists_the_changes(client: TestClient) -> None:
    preview = client.post("/v1/preview", json={"changes": [DROP_LEGACY]}).json()
    assert preview["verdict"] == client.post("/v1/gate", json={"changes": [DROP_LEGACY]}).json()
    assert preview["verdict"]["decision"] == "BLOCKED"
    assert "BLOCKED" in preview["comment"]
    ddl = {"ddl": "alter table raw_orders drop column legacy"}
    assert client.post("/v1/preview", json=ddl).json()["changes"] == [DROP_LEGACY]


def test_a_preview_records_no_waiver(client: TestClient) -> None:
    waiver = {"rule": "*", "reason": "agreed", "author": "ana", "expires": "2999-01-01"}
    before = client.get("/v1/status").json()["head"]
    body = {"changes": [DROP_LEGACY], "policy": {"waivers": [waiver]}}
    preview = client.post("/v1/preview", json=body).json()
    assert any(finding["waived"] for finding in preview["verdict"]["findings"])
    assert client.get("/v1/status").json()["head"] == before


@pytest.mark.parametrize("body", [{}, {"ddl": "select 1"}, {"diff": "x"}, {"ddl": "", "diff": ""}])
def test_a_preview_without_a_proposal_is_400(client: TestClient, body: object) -> None:
    assert client.post("/v1/preview", json=body).status_code == 400


def test_a_diff_of_the_repository_is_previewed(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    (repo / "models").mkdir(parents=True)
    model = repo / "models" / "stg.sql"
    model.write_text("create table stg as\nselect id, total\nfrom raw\n")
    (repo / "models" / "fct.sql").write_text("create table fct as select total from stg\n")
    diff = (
        "--- a/models/stg.sql\n+++ b/models/stg.sql\n@@ -1,3 +1,3 @@\n"
        " create table stg as\n-select id, total\n+select id, total as amount\n from raw\n"
    )
    with Lineage.open(str(tmp_path / "store"), repository=repo) as lineage:
        lineage.capture.scan(repo)
        with TestClient(build_app(lineage)) as client:
            preview = client.post("/v1/preview", json={"diff": diff}).json()
            assert preview["verdict"]["decision"] == "BLOCKED"
            names = [effect["name"] for effect in preview["verdict"]["impact"]["effects"]]
            assert names == ["fct"]
            model.write_text("create table stg as select 1 as one\n")
            refused = client.post("/v1/preview", json={"diff": diff})
            assert refused.status_code == 400
            assert "models/stg.sql:1" in refused.json()["detail"]


@pytest.fixture
def changed(tmp_path: Path) -> Iterator[TestClient]:
    """A server where `report` reads `total` since March, and read `legacy` before."""
    with Lineage.open(str(tmp_path)) as lineage:
        estate = Estate(lineage)
        estate.table("orders", {"total": "int", "legacy": "int"})
        for month, column in (("01", "legacy"), ("03", "total")):
            at = f"2026-{month}-01T00:00:00Z"
            estate.job("report", ["orders"], ["daily"], columns={"x": [f"orders.{column}"]}, at=at)
        estate.job("export", ["daily"], ["page"], at="2026-04-01T00:00:00Z")
        with TestClient(build_app(lineage)) as client:
            yield client


@pytest.mark.parametrize(
    ("as_of", "column", "affected"),
    [
        (None, "total", ["daily", "page"]),
        (None, "legacy", []),
        ("2026-02-01T00:00:00Z", "legacy", ["daily"]),
        ("2026-02-01T00:00:00Z", "total", []),
        ("2026-03-15T00:00:00Z", "total", ["daily"]),
    ],
)
def test_the_impact_of_a_change_as_of_a_moment(
    changed: TestClient, as_of: str | None, column: str, affected: list[str]
) -> None:
    change = {"type": "column_drop", "dataset": "orders", "column": column}
    body = {"changes": [change], "as_of": as_of}
    preview = changed.post("/v1/preview", json=body).json()
    effects = preview["verdict"]["impact"]["effects"]
    assert [name.rpartition(":")[2] for e in effects for name in e["writes"]] == affected
    asked = {"entity_id": "orders", "change_type": "column_drop", "column": column, "as_of": as_of}
    assert len(changed.post("/v1/impact", json=asked).json()["affected_entities"]) == len(affected)
    report = {"asset_id": "orders", "proposed_changes": [change], "as_of": as_of}
    answer = changed.post("/v1/lineage/impact", json=report).json()
    assert answer["affected_count"] == len(affected)


@pytest.mark.parametrize("as_of", ["2025-12-01T00:00:00Z", "soon"])
def test_a_moment_without_the_dataset_is_refused(changed: TestClient, as_of: str) -> None:
    change = {"type": "column_drop", "dataset": "orders", "column": "total"}
    answer = changed.post("/v1/preview", json={"changes": [change], "as_of": as_of})
    assert (answer.status_code, answer.json()["field"]) == (400, "as_of")


def test_only_changes_are_judged_as_of_a_moment(changed: TestClient) -> None:
    body = {"ddl": "drop table orders", "as_of": "2026-02-01T00:00:00Z"}
    answer = changed.post("/v1/preview", json=body)
    assert (answer.status_code, answer.json()["field"]) == (400, "as_of")
