"""A dbt project that was read twice, by its manifest and by its files, is still one project."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from downriver.model.changes import ColumnRename
from downriver.service import Lineage

if TYPE_CHECKING:
    from tests.unit.impact.estate import Estate

ORDERS = Path(__file__).parents[3] / "examples" / "orders"
EXPOSURE = """exposures:
  - name: revenue
    type: dashboard
    depends_on: [ref('fct_orders')]
"""
CONSUMERS = [
    "dataset:postgres://orders:warehouse.analytics.fct_orders",
    "dataset:postgres://orders:warehouse.analytics.stg_orders",
    "job:dbt:exposure.orders.revenue",
    "job:dbt:warehouse.analytics.orders.fct_orders.test",
    "job:default:daily_revenue_report.read_revenue",
    "job:default:jobs/customer_ltv",
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "orders"
    shutil.copytree(ORDERS, folder)
    (folder / "models" / "exposures.yml").write_text(EXPOSURE)
    manifest = json.loads((folder / "target" / "manifest.json").read_text())
    manifest["exposures"] = {
        "exposure.orders.revenue": {
            "name": "revenue",
            "resource_type": "exposure",
            "unique_id": "exposure.orders.revenue",
            "original_file_path": "models/exposures.yml",
            "depends_on": {"nodes": ["model.orders.fct_orders"]},
        }
    }
    (folder / "target" / "manifest.json").write_text(json.dumps(manifest))
    return folder


def consumers(lineage: Lineage) -> list[str]:
    change = ColumnRename(dataset="raw.orders", column="order_total", to="total")
    return sorted(effect.consumer for effect in lineage.impact([change]).effects)


def capture_dbt(lineage: Lineage, project: Path) -> None:
    lineage.capture.dbt(project / "target", project_dir=project)


def test_each_consumer_is_counted_once_in_either_order(
    estate: Estate, project: Path, tmp_path: Path
) -> None:
    capture_dbt(estate.lineage, project)
    estate.lineage.capture.scan(project)
    with Lineage.open(str(tmp_path / "other")) as other:
        other.capture.scan(project)
        capture_dbt(other, project)
        assert consumers(other) == consumers(estate.lineage)
    assert consumers(estate.lineage) == CONSUMERS


def test_names_from_an_earlier_dbt_capture_are_used_without_the_manifest(
    estate: Estate, project: Path
) -> None:
    capture_dbt(estate.lineage, project)
    shutil.rmtree(project / "target")
    estate.lineage.capture.scan(project)
    assert consumers(estate.lineage) == CONSUMERS


def test_a_broken_manifest_leaves_the_files_readable(estate: Estate, project: Path) -> None:
    (project / "target" / "manifest.json").write_text("{")
    assert estate.lineage.capture.scan(project).jobs
