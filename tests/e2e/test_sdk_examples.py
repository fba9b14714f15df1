"""The scripts of `examples/sdk`, each run in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.server import running_server

SCRIPTS = Path(__file__).parents[2] / "examples" / "sdk"
EXPECTED = {
    "capture_sql.py": [
        "raw_orders -> orders_clean",
        "orders_clean, customers -> customer_order_summary",
        "1 orders_clean.amount_usd amount_cents / 100.0",
        "2 customer_order_summary.lifetime_value SUM(o.amount_usd)",
    ],
    "track_function.py": [
        "failed: no sessions to convert",
        "1 table:session_metrics Leave bots out, measure how long sessions last",
        "2 table:conversion_se ",
        "['FAIL', 'COMPLETE']",
    ],
    "track_files.py": [
        "1 silver/orders.parquet ['job:production:build_revenue']",
        "2 raw/orders.csv ['job:production:clean_orders']",
        "['order_id Int64', 'date String', 'amount Int64']",
    ],
    "emit_events.py": ["['dataset:s3://lake:gold/daily_revenue']", "FAIL out of memory"],
    "document_columns.py": [
        "tables: ['silver.orders'] -> ['gold.region_revenue']",
        "gold.region_revenue.revenue <- silver.orders.amount (AGGREGATION)",
        "gold.daily_revenue.avg_order_value <- ['silver.orders.amount', 'silver.orders.order_id']"
        " SUM(amount) / COUNT(DISTINCT order_id)",
    ],
    "ask_the_graph.py": [
        "path: api:crm -> table:raw_customers -> table:customers_clean -> table:customer_360"
        " -> model:churn_v3",
        "flowchart LR",
    ],
    "diagnose_metric.py": [
        "metric: gold.daily_revenue.total",
        "derives from: ['silver.payments.amount'] ['SUM(amount)']",
        "fresh: True",
        "failed_run: job:default:load_payments",
    ],
    "export_to_datahub.py": [
        "urn:li:dataset:(urn:li:dataPlatform:s3,lake/silver/orders,PROD) <-"
        " urn:li:dataset:(urn:li:dataPlatform:s3,lake/raw/orders,PROD)",
    ],
}


def run(script, folder, **settings):
    """Run an example and return the lines it printed."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DOWNRIVER_")}
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / script)],
        cwd=folder,
        env={**environment, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_every_script_is_documented_and_tested():
    scripts = {path.name for path in SCRIPTS.glob("*.py")}
    assert scripts == EXPECTED.keys()
    listed = (SCRIPTS / "README.md").read_text("utf-8")
    assert all(f"`{name}`" in listed for name in scripts)


@pytest.mark.parametrize("script", EXPECTED)
def test_an_example_prints_what_is_expected(script, tmp_path):
    said = run(script, tmp_path)
    assert [line for line in EXPECTED[script] if line not in said] == []


@pytest.mark.parametrize("script", ["ask_the_graph.py", "track_function.py", "diagnose_metric.py"])
def test_an_example_prints_the_same_with_a_server(script, tmp_path):
    with running_server(tmp_path / "server") as url:
        said = run(script, tmp_path, DOWNRIVER_URL=url)
    assert [line for line in EXPECTED[script] if line not in said] == []
    assert not (tmp_path / ".downriver" / "lineage.db").exists()
