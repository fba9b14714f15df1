"""The steps of the tutorial against a server with the repository `examples/orders`."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.server import running_server

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
    request = urllib.request.Request(
        f"{url}/lineage/trace",
        json.dumps(payload).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 201
        return json.load(answer)


def tree_lines(node: dict[str, Any], indent: int = 0) -> Iterator[str]:
    prefix = " " * indent + ("└── " if indent > 0 else "")
    yield f"{prefix}[{node.get('asset_type', 'unknown').upper()}] {node['name']}"
    for child in node.get("downstream", []):
        yield from tree_lines(child, indent + 1)


def register_pipeline(url: str) -> str:
    """Register the five assets and return the id of the first."""
    raw_orders = register_asset(url, "table", "raw_orders", "postgres://warehouse/raw/orders")
    register_asset(url, "dbt_model", "stg_orders", "models/staging/stg_orders.sql", ["raw_orders"])
    register_asset(url, "dbt_model", "fct_orders", "models/marts/fct_orders.sql", ["stg_orders"])
    dag = register_asset(
        url, "dag", "daily_revenue_report", "dags/daily_revenue_report.py", ["fct_orders"]
    )
    job = register_asset(
        url, "spark_job", "customer_ltv_model", "jobs/customer_ltv.py", ["fct_orders"]
    )
    assert dag["read"]
    assert job["read"]
    return raw_orders["id"]


@pytest.mark.slow
def test_the_pipeline_is_registered_and_its_tree_is_the_expected_one(url: str) -> None:
    asset = register_pipeline(url)
    address = f"{url}/lineage/{asset}?direction=downstream&depth=10"
    with urllib.request.urlopen(address, timeout=30) as answer:
        lineage = json.load(answer)
    assert list(tree_lines(lineage["graph"])) == [
        "[TABLE] raw_orders",
        " └── [DBT_MODEL] stg_orders",
        "  └── [DBT_MODEL] fct_orders",
        "   └── [DAG] daily_revenue_report",
        "   └── [SPARK_JOB] customer_ltv_model",
    ]


def analyze_impact(url: str, asset_id: str, changes: list[dict[str, str]]) -> dict[str, Any]:
    request = urllib.request.Request(
        f"{url}/lineage/impact",
        json.dumps({"asset_id": asset_id, "proposed_changes": changes}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


@pytest.mark.slow
def test_the_report_of_a_rename_and_a_drop_is_the_expected_one(url: str) -> None:
    report = analyze_impact(
        url,
        register_pipeline(url),
        [
            {"type": "column_rename", "from": "order_total", "to": "total_amount"},
            {"type": "column_drop", "column": "legacy_discount_code"},
        ],
    )
    assert report["risk_level"].upper() == "HIGH"
    assert report["affected_count"] == 4
    assert [
        (each["name"], each["asset_type"], each["affected_references"], each["severity"])
        for each in report["affected_assets"]
    ] == [
        ("stg_orders", "dbt_model", ["order_total", "legacy_discount_code"], "breaking"),
        ("fct_orders", "dbt_model", ["order_total"], "breaking"),
        ("daily_revenue_report", "dag", ["order_total"], "breaking"),
        ("customer_ltv_model", "spark_job", ["order_total"], "warning"),
    ]


@pytest.mark.slow
def test_a_malformed_change_is_a_400_with_a_detail(url: str) -> None:
    asset = register_pipeline(url)
    with pytest.raises(urllib.error.HTTPError) as refused:
        analyze_impact(url, asset, [{"type": "column_rename", "from": "order_total"}])
    assert refused.value.code == 400
    assert json.load(refused.value)["detail"]
