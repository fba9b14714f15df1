"""Hooks in real runs of Prefect and Dagster, as PyPI has them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow

SOURCES = Path(__file__).parents[2] / "src"
NEEDED = ("msgspec==0.22.0", "zstandard==0.25.0")
# Newer releases of FastAPI break this Prefect.
PREFECT = ("prefect==3.8.0", "fastapi==0.139.0", "starlette==1.0.1", *NEEDED)
DAGSTER = ("dagster==1.13.28", *NEEDED)

FLOW = """
from prefect import flow, task
from prefect.assets import materialize
from downriver.sdk.orchestrators.prefect import lineage_hook

hook = lineage_hook()

@materialize("s3://lake/clean", asset_deps=["s3://lake/raw"], on_completion=[hook])
def clean():
    return 1

report_hook = lineage_hook(inputs="s3://lake/clean", outputs="postgres://dw/shop/report")

@task(on_completion=[report_hook], on_failure=[report_hook])
def report(fails):
    if fails:
        raise ValueError("no rows")

@flow(on_completion=[hook], on_failure=[hook])
def daily(fails=False):
    clean()
    report(fails)

daily()
try:
    daily(fails=True)
except ValueError:
    pass
"""
ASSETS = """
import dagster as dg
from downriver.sdk.orchestrators.dagster import LINEAGE_HOOKS

@dg.asset(key=["shop", "raw"])
def raw():
    return 1

@dg.asset(key=["shop", "clean"], ins={"raw": dg.AssetIn(key=["shop", "raw"])})
def clean(raw):
    return dg.MaterializeResult(
        value=2,
        metadata={
            "dagster/uri": "s3://lake/clean",
            "dagster/column_schema": dg.TableSchema([dg.TableColumn("total", "int")]),
            "dagster/column_lineage": dg.TableColumnLineage(
                {"total": [dg.TableColumnDep(dg.AssetKey(["shop", "raw"]), "amount")]}
            ),
        },
    )

@dg.op
def broken():
    raise ValueError("no rows")

@dg.job(hooks=set(LINEAGE_HOOKS))
def failing():
    broken()

daily = dg.define_asset_job("daily", hooks=set(LINEAGE_HOOKS))
defs = dg.Definitions(assets=[raw, clean], jobs=[daily, failing])
assert defs.resolve_job_def("daily").execute_in_process().success
assert not failing.execute_in_process(raise_on_error=False).success
"""


def run(python: Path, script: str, home: Path, **env: str) -> Path:
    (home / "script.py").write_text(script)
    done = subprocess.run(
        [python, "script.py"],
        cwd=home,
        env={
            "DOWNRIVER_STORE": str(home / "store"),
            "HOME": str(home),
            "PATH": os.defpath,
            "PYTHONPATH": str(SOURCES),
            **env,
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "Downriver failed" not in done.stderr, done.stderr[-3000:]
    return home / "store"


@pytest.fixture(scope="module")
def prefect_store(client_python: Callable[..., Path], tmp_path_factory) -> Path:
    home = tmp_path_factory.mktemp("prefect")
    quiet = {
        "DO_NOT_TRACK": "1",
        "PREFECT_LOGGING_LEVEL": "ERROR",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "200",
    }
    return run(client_python(*PREFECT), FLOW, home, **quiet)


@pytest.fixture(scope="module")
def dagster_store(client_python: Callable[..., Path], tmp_path_factory) -> Path:
    home = tmp_path_factory.mktemp("dagster")
    return run(client_python(*DAGSTER), ASSETS, home, DAGSTER_DISABLE_TELEMETRY="1")


def test_assets_of_a_prefect_flow_are_connected(prefect_store: Path) -> None:
    with Lineage.open(str(prefect_store)) as lineage:
        names = {node.name for node in lineage.trace("shop.report", "upstream").nodes}
    assert {"raw", "daily.clean", "clean", "daily.report", "shop.report"} <= names


def test_runs_of_prefect_have_states_and_the_error(prefect_store: Path) -> None:
    with Lineage.open(str(prefect_store)) as lineage:
        runs = lineage.runs("job:prefect:daily.report").runs
        flows = lineage.runs("job:prefect:daily").runs
    assert sorted(run.state for run in runs) == ["COMPLETE", "FAIL"]
    assert sorted(run.state for run in flows) == ["COMPLETE", "FAIL"]
    assert any("no rows" in (run.error or "") for run in runs)


def test_assets_of_dagster_are_connected_also_by_column(dagster_store: Path) -> None:
    with Lineage.open(str(dagster_store)) as lineage:
        found = lineage.trace("shop.clean", "upstream")
        columns = lineage.trace("shop.clean.total", "upstream").edges
    assert {"shop.raw", "daily.shop__clean"} <= {node.name for node in found.nodes}
    assert [edge.source.rpartition(":")[2] for edge in columns if edge.subtype] == ["amount"]


def test_the_location_of_a_dagster_asset_is_the_same_dataset(dagster_store: Path) -> None:
    with Lineage.open(str(dagster_store)) as lineage:
        assert lineage.trace("s3://lake/clean").root.id == lineage.trace("shop.clean").root.id


def test_a_step_of_dagster_that_fails_is_a_failed_run(dagster_store: Path) -> None:
    with Lineage.open(str(dagster_store)) as lineage:
        (run,) = lineage.runs("job:dagster:failing.broken").runs
    assert run.state == "FAIL"
    assert "no rows" in (run.error or "")
