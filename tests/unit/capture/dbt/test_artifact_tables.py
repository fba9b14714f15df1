"""Tables of the package dbt_artifacts, with the columns that version 2 of it creates."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import duckdb
import pytest
from tests.unit.cli.command import downriver

from downriver.errors import InvalidRequestError
from downriver.service import Lineage

if TYPE_CHECKING:
    from pathlib import Path

TABLES = """
CREATE SCHEMA dbt_artifacts;
CREATE TABLE dbt_artifacts.models (
  command_invocation_id TEXT, node_id TEXT, run_started_at TIMESTAMP, "database" TEXT,
  "schema" TEXT, name TEXT, depends_on_nodes TEXT, package_name TEXT, path TEXT, checksum TEXT,
  materialization TEXT, tags TEXT, meta TEXT, alias TEXT, all_results TEXT);
CREATE TABLE dbt_artifacts.sources (
  command_invocation_id TEXT, node_id TEXT, run_started_at TIMESTAMP, "database" TEXT,
  "schema" TEXT, source_name TEXT, loader TEXT, name TEXT, identifier TEXT, loaded_at_field TEXT,
  freshness TEXT, all_results TEXT);
CREATE TABLE dbt_artifacts.exposures (
  command_invocation_id TEXT, node_id TEXT, run_started_at TIMESTAMP, name TEXT, "type" TEXT,
  owner TEXT, maturity TEXT, path TEXT, description TEXT, url TEXT, package_name TEXT,
  depends_on_nodes TEXT, tags TEXT, all_results TEXT);
CREATE TABLE dbt_artifacts.model_executions (
  command_invocation_id TEXT, node_id TEXT, run_started_at TIMESTAMP, was_full_refresh BOOLEAN,
  thread_id TEXT, status TEXT, compile_started_at TIMESTAMP, query_completed_at TIMESTAMP,
  total_node_runtime DOUBLE, rows_affected INT, materialization TEXT, "schema" TEXT, name TEXT,
  alias TEXT, message TEXT, adapter_response TEXT);
"""
ORDERS, REVENUE = "model.shop.orders", "model.shop.revenue"
REVENUE_SQL = "select sum(amount) as total from {{ ref('orders') }}"


def model(node: str, parents: list[str], whole: dict | None = None) -> tuple[object, ...]:
    name = node.rpartition(".")[2]
    return ("i2", node, "2026-01-02 00:00:00", "dw", "marts", name, json.dumps(parents), "shop",
            f"models/{name}.sql", "", "table", '["daily"]', "{}", name,
            json.dumps(whole) if whole else None)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    whole = {"raw_code": REVENUE_SQL, "compiled_code": "select sum(amount) as total "
             "from dw.marts.orders", "language": "sql", "checksum": {}}  # fmt: skip
    models = [
        model(ORDERS, ["source.shop.raw.orders"]),
        model(REVENUE, [ORDERS], whole),
        ("i1", "model.shop.gone", "2026-01-01 00:00:00", *model(ORDERS, [])[3:]),
    ]
    source = ("i2", "source.shop.raw.orders", "2026-01-02 00:00:00", "dw", "raw", "raw", "",
              "orders", "orders", "", "{}", None)  # fmt: skip
    exposure = ("i2", "exposure.shop.sales", "2026-01-02 00:00:00", "sales", "dashboard",
                '{"name": "Ana", "email": "ana@example.com"}', "high", "models/x.yml", "", "",
                "shop", json.dumps([REVENUE]), "[]", None)  # fmt: skip
    executions = [
        ("i2", node, "2026-01-02 00:00:00", False, "1", status, "2026-01-02 00:00:01",
         "2026-01-02 00:00:05", 4.0, rows, "table", "marts", "", "", message, "{}")
        for node, status, rows, message in (
            (ORDERS, "success", 7, "ok"), (REVENUE, "error", None, "no column amount"))
    ]  # fmt: skip
    with duckdb.connect(str(tmp_path / "dw.duckdb")) as base:
        base.execute(TABLES)
        tables = {
            "models": models, "sources": [source], "exposures": [exposure],
            "model_executions": executions,
        }  # fmt: skip
        for table, rows in tables.items():
            marks = ", ".join("?" * len(rows[0]))
            base.executemany(f"INSERT INTO dbt_artifacts.{table} VALUES ({marks})", rows)
    return tmp_path


def test_the_newest_run_is_imported_with_its_graph(folder: Path) -> None:
    options = ("--schema", "dbt_artifacts", "--namespace", "duckdb://dw.duckdb")
    done = downriver("import", "dbt-artifacts", "duckdb:///dw.duckdb", *options, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    with Lineage.open(str(folder / ".downriver")) as lineage:
        found = {node.name for node in lineage.trace("sales", "upstream").nodes}
        sums = [e for e in lineage.trace("revenue.total", "upstream").edges if e.subtype]
        runs = {
            name: [run.state for run in lineage.runs(f"shop.{name}").runs]
            for name in ("orders", "revenue")
        }
    assert {"dw.raw.orders", "dw.marts.orders", "dw.marts.revenue"} <= found
    assert not any("gone" in name for name in found)  # only in an older invocation
    assert "AGGREGATION" in {edge.subtype for edge in sums}  # from the stored code
    assert runs == {"orders": ["COMPLETE"], "revenue": ["FAIL"]}


@pytest.mark.parametrize("schema", ["main", "x; DROP TABLE models", ""])
def test_a_schema_without_the_tables_is_an_error(folder: Path, schema: str) -> None:
    url = f"duckdb:///{folder}/dw.duckdb"
    with (
        Lineage.open(str(folder / "store")) as lineage,
        pytest.raises(InvalidRequestError, match="schema"),
    ):
        lineage.capture.dbt_artifacts(url, schema)
