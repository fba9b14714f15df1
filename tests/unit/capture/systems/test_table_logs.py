"""Delta Lake and Iceberg tables, written by their own libraries."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.unit.cli.command import downriver

from downriver.errors import InvalidRequestError
from downriver.openlineage.wire import parse_time, render_time
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Lineage]:
    with Lineage.open(str(tmp_path / "store")) as lineage:
        yield lineage


@pytest.fixture
def orders(tmp_path: Path) -> str:
    """A table of two versions: the second adds a column."""
    from deltalake import CommitProperties, write_deltalake

    place = str(tmp_path / "lake" / "orders")
    write_deltalake(place, pa.table({"id": [1, 2]}))
    write_deltalake(
        place,
        pa.table({"id": [3], "amount": [1.5]}),
        mode="append",
        schema_mode="merge",
        commit_properties=CommitProperties(custom_metadata={"job": "load_orders"}),
    )
    return place


def test_commits_are_runs_with_versions_schemas_and_rows(opened: Lineage, orders: str) -> None:
    assert opened.systems.delta(orders).runs == 2
    new, old = opened.versions("orders").versions
    assert (old.version, old.operation, old.rows) == ("0", "WRITE", 2)
    assert (new.version, new.rows, new.columns_added) == ("1", 1, ["amount"])
    assert new.written_by == "job:delta:load_orders"
    assert not opened.trace("orders", "upstream").complete  # the log does not name the sources


def test_a_second_capture_reads_only_new_versions(opened: Lineage, orders: str) -> None:
    from deltalake import DeltaTable

    opened.systems.delta(orders)
    DeltaTable(orders).delete("id = 1")
    again = opened.systems.delta(orders + "/")
    assert again.runs == 1
    assert opened.systems.delta(orders).runs == 0


def test_a_rollback_candidate_is_before_the_incident_and_has_no_failed_check(
    opened: Lineage, orders: str
) -> None:
    from deltalake import DeltaTable

    opened.systems.delta(orders)
    versions = opened.versions("orders").versions
    # A check of the second version failed.
    checked_at = parse_time(versions[0].at, "at") + 1
    opened.ingest([check_event(orders, render_time(checked_at))])
    found = opened.versions("orders")
    assert found.versions[0].suspect == ["check not_null failed"]
    assert found.rollback_to == "0"
    DeltaTable(orders).restore(0)
    opened.systems.delta(orders)
    found = opened.versions("orders")
    assert found.rollback_to == "2"
    assert "version 2 rolled it back to 0" in found.versions[1].suspect
    assert opened.versions("orders", before=versions[1].at).rollback_to is None
    assert opened.versions("orders", before=found.versions[0].at).rollback_to == "0"


def check_event(table: str, at: str) -> bytes:
    facet = {"assertions": [{"assertion": "not_null", "success": False, "column": "id"}]}
    return json.dumps(
        {
            "eventType": "COMPLETE",
            "eventTime": at,
            "run": {"runId": "check-1"},
            "job": {"namespace": "quality", "name": "checks"},
            "inputs": [
                {
                    "namespace": "file",
                    "name": table,
                    "inputFacets": {"dataQualityAssertions": facet},
                }
            ],
        }
    ).encode()


def spark_run(table: str, state: str, at: str, **facets: Any) -> bytes:
    return json.dumps(
        {
            "eventType": state,
            "eventTime": at,
            "run": {"runId": "spark-1"},
            "job": {"namespace": "spark", "name": "nightly"},
            "inputs": [{"namespace": "db", "name": "raw.sales"}],
            "outputs": [{"namespace": "file", "name": table, "facets": facets}],
        }
    ).encode()


def test_a_commit_belongs_to_the_known_run_that_was_under_way(opened: Lineage, orders: str) -> None:
    from deltalake import DeltaTable

    times = [entry["timestamp"] * 1000 for entry in DeltaTable(orders).history()]
    start, end = render_time(min(times) - 60_000_000), render_time(max(times) + 60_000_000)
    opened.ingest([spark_run(orders, "START", start), spark_run(orders, "COMPLETE", end)])
    opened.systems.delta(orders)
    found = opened.versions("orders").versions
    assert {(v.written_by, v.run, v.state) for v in found} == {
        ("job:spark:nightly", "spark-1", "COMPLETE")
    }
    assert [v.version for v in found] == ["1", "0"]


def test_the_version_facet_of_any_client_gives_the_version_that_a_run_read(opened: Lineage) -> None:
    for run, version in (("r1", "7"), ("r2", "8")):
        event = {
            "eventType": "COMPLETE",
            "eventTime": "2026-01-01T00:00:00Z",
            "run": {"runId": run},
            "job": {"namespace": "spark", "name": "train"},
            "inputs": [
                {
                    "namespace": "db",
                    "name": "sales",
                    "facets": {"version": {"datasetVersion": version}},
                }
            ],
            "outputs": [{"namespace": "db", "name": "features"}],
        }
        opened.ingest([json.dumps(event).encode()])
    (found,) = opened.versions("sales", version="7").versions
    assert [(reader.run, reader.outputs[0].dataset) for reader in found.read_by] == [
        ("r1", "dataset:db:features")
    ]
    assert found.written_by is None
    assert opened.versions("sales").rollback_to is None
    with pytest.raises(InvalidRequestError, match="known versions are: "):
        opened.versions("sales", version="9")


def test_a_folder_without_a_log_is_an_error(tmp_path: Path) -> None:
    done = downriver("capture", "delta", str(tmp_path), cwd=tmp_path)
    assert done.returncode == 2
    assert "not a readable Delta table" in done.stderr


@pytest.fixture
def catalog(tmp_path: Path) -> dict[str, str]:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.types import DoubleType

    place = tmp_path / "warehouse"
    place.mkdir()
    properties = {
        "type": "sql",
        "uri": f"sqlite:///{place}/catalog.db",
        "warehouse": f"file://{place}",
    }
    loaded = load_catalog("lake", **properties)
    loaded.create_namespace("gold")
    table = loaded.create_table("gold.orders", schema=pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1, 2]}))
    with table.update_schema() as update:
        update.add_column("amount", DoubleType())
    table.append(pa.table({"id": [3], "amount": [1.0]}))
    return properties


def test_snapshots_are_versions_with_their_schema(opened: Lineage, catalog: dict[str, str]) -> None:
    found = opened.systems.iceberg("gold.orders", catalog="lake", properties=catalog)
    assert found.runs == 2
    new, old = opened.versions("gold.orders").versions
    assert (old.operation, old.rows, new.rows, new.columns_added) == ("APPEND", 2, 1, ["amount"])
    again = opened.systems.iceberg("gold.orders", catalog="lake", properties=catalog)
    assert again.runs == 0
    assert opened.versions("dataset:iceberg://lake:gold.orders").versions[0].version == new.version


def test_an_unknown_iceberg_table_and_a_bad_property_are_errors(
    tmp_path: Path, catalog: dict[str, str]
) -> None:
    given = [part for key, value in catalog.items() for part in ("--property", f"{key}={value}")]
    done = downriver("capture", "iceberg", "gold.none", "--catalog", "lake", *given, cwd=tmp_path)
    assert done.returncode == 2
    assert "has no table gold.none" in done.stderr
    done = downriver("capture", "iceberg", "gold.none", "--property", "uri", cwd=tmp_path)
    assert done.returncode == 2
    assert "is not KEY=VALUE" in done.stderr
