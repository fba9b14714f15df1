"""The tutorial, against a real server that was given `examples/orders`."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.server import running_server

from downriver.http.app import ENDPOINTS

if TYPE_CHECKING:
    from collections.abc import Iterator

ORDERS = Path(__file__).parents[2] / "examples" / "orders"


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with running_server(tmp_path, repo=ORDERS) as running:
        yield f"{running}/v1"


def register_asset(
    url: str, asset_type: str, name: str, source_ref: str, upstream: list[str] | None = None
) -> dict[str, Any]:
    payload = {
        "asset_type": asset_type,
        "name": name,
        "source_ref": source_ref,
        "upstream_assets": upstream or [],
    }
    return post(f"{url}/lineage/trace", payload, 201)


def post(url: str, payload: dict[str, Any], status: int) -> dict[str, Any]:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(payload).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == status
        return json.load(answer)


def tree_lines(node: dict[str, Any], indent: int = 0) -> Iterator[str]:
    prefix = " " * indent + ("└── " if indent > 0 else "")
    yield f"{prefix}[{node.get('asset_type', 'unknown').upper()}] {node['name']}"
    for child in node.get("downstream", []):
        yield from tree_lines(child, indent + 1)


def register_pipeline(url: str) -> dict[str, Any]:
    """Register the tutorial's assets and return its source table."""
    raw_orders = register_asset(url, "table", "raw_orders", "postgres://warehouse/raw/orders")
    register_asset(url, "dbt_model", "stg_orders", "models/staging/stg_orders.sql", ["raw_orders"])
    register_asset(url, "dbt_model", "fct_orders", "models/marts/fct_orders.sql", ["stg_orders"])
    for kind, name, path in (
        ("dag", "daily_revenue_report", "dags/daily_revenue_report.py"),
        ("spark_job", "customer_ltv_model", "jobs/customer_ltv.py"),
    ):
        assert register_asset(url, kind, name, path, ["fct_orders"])["read"]
    return raw_orders


@pytest.mark.slow
def test_the_pipeline_is_registered_and_its_tree_is_the_expected_one(url: str) -> None:
    raw_orders = register_pipeline(url)
    address = f"{url}/lineage/{raw_orders['id']}?direction=downstream&depth=10"
    with urllib.request.urlopen(address, timeout=30) as answer:
        lineage = json.load(answer)
    assert list(tree_lines(lineage["graph"])) == [
        "[TABLE] raw_orders",
        " └── [DBT_MODEL] stg_orders",
        "  └── [DBT_MODEL] fct_orders",
        "   └── [DAG] daily_revenue_report",
        "   └── [SPARK_JOB] customer_ltv_model",
    ]


@pytest.mark.slow
@pytest.mark.skipif(
    not any(endpoint.path == "/v1/lineage/impact" for endpoint in ENDPOINTS),
    reason="this server has no /v1/lineage/impact yet",
)
def test_the_impact_report_is_the_expected_one(url: str) -> None:
    changes = [
        {"type": "column_rename", "from": "order_total", "to": "total_amount"},
        {"type": "column_drop", "column": "legacy_discount_code"},
    ]
    raw_orders = register_pipeline(url)
    payload = {"asset_id": raw_orders["id"], "proposed_changes": changes}
    report = post(f"{url}/lineage/impact", payload, 200)
    assert (report["risk_level"].upper(), report["affected_count"]) == ("HIGH", 4)
    assert [
        (a["name"], a["asset_type"], ", ".join(a["affected_references"]), a["severity"])
        for a in report["affected_assets"]
    ] == [
        ("stg_orders", "dbt_model", "order_total, legacy_discount_code", "breaking"),
        ("fct_orders", "dbt_model", "order_total", "breaking"),
        ("daily_revenue_report", "dag", "order_total", "breaking"),
        ("customer_ltv_model", "spark_job", "order_total", "warning"),
    ]
