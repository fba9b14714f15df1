"""The tutorial's first two steps, against a real server that was given `examples/orders`."""

from __future__ import annotations

import json
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


@pytest.mark.slow
def test_the_pipeline_is_registered_and_its_tree_is_the_expected_one(url: str) -> None:
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
