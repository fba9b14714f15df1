"""`dbt-ol run` of OpenLineage's dbt integration, on a project of its own in DuckDB."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.server import running_server

from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow

FILES = {
    "dbt_project.yml": (
        "name: shop\nversion: '1.0'\nprofile: shop\nmodels: {shop: {+materialized: table}}\n"
    ),
    "profiles.yml": (
        "shop: {target: dev, outputs: {dev: {type: duckdb, path: shop.duckdb, threads: 1}}}\n"
    ),
    "seeds/raw_orders.csv": "id,customer,amount_cents\n1,ada,100\n",
    "models/orders.sql": (
        "select id, customer, amount_cents / 100.0 as amount from {{ ref('raw_orders') }}\n"
    ),
    "models/revenue.sql": (
        "select customer, sum(amount) as revenue from {{ ref('orders') }} group by customer\n"
    ),
}
DATABASE = "duckdb://shop.duckdb"


@pytest.fixture(scope="module")
def store(client_python: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the events of one `dbt-ol run`."""
    # From 1.12 on, dbt-core needs a file that is not on PyPI.
    python = client_python("openlineage-dbt==1.54.0", "dbt-core==1.11.16", "dbt-duckdb==1.11.1")
    project = tmp_path_factory.mktemp("shop")
    for name, text in FILES.items():
        path = project / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    with running_server(project / "store") as url:
        for command in (["dbt", "seed"], ["dbt-ol", "run"]):
            done = subprocess.run(
                [python.parent / command[0], *command[1:]],
                cwd=project,
                env={
                    "DBT_PROFILES_DIR": str(project),
                    "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
                    "HOME": str(project),
                    "OPENLINEAGE_URL": url,
                    "PATH": f"{python.parent}{os.pathsep}{os.defpath}",
                },
                capture_output=True,
                text=True,
                timeout=600,
                check=False,
            )
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return project / "store"


def test_models_are_joined_to_what_they_read_and_write(store: Path) -> None:
    tables = {name: f"dataset:{DATABASE}:shop.main.{name}" for name in ("raw_orders", "orders")}
    revenue = f"dataset:{DATABASE}:shop.main.revenue"
    jobs = {name: f"job:dbt:shop.main.shop.{name}" for name in ("orders", "revenue")}
    with Lineage.open(str(store)) as lineage:
        found = lineage.trace(revenue, "upstream")
    assert {(edge.source, edge.target) for edge in found.edges} == {
        (tables["raw_orders"], jobs["orders"]),
        (jobs["orders"], tables["orders"]),
        (tables["orders"], jobs["revenue"]),
        (jobs["revenue"], revenue),
    }


def test_columns_are_followed_to_the_seed(store: Path) -> None:
    column = f"column:{DATABASE}:shop.main"
    with Lineage.open(str(store)) as lineage:
        found = lineage.trace(f"{column}.revenue:revenue", "upstream")
    assert {(edge.source, edge.target) for edge in found.edges} >= {
        (f"{column}.raw_orders:amount_cents", f"{column}.orders:amount"),
        (f"{column}.orders:amount", f"{column}.revenue:revenue"),
    }


def test_runs_of_models_are_complete_and_have_the_command_as_parent(store: Path) -> None:
    with Lineage.open(str(store)) as lineage:
        (run,) = lineage.runs("job:dbt:shop.main.shop.orders").runs
        parent = lineage.trace("job:dbt:dbt-run-shop")
    assert run.state == "COMPLETE"
    assert any("starts 2 jobs" in spot.message for spot in parent.blind_spots)
