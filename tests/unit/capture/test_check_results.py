"""Results of Soda and Deequ are checks of the datasets that they validated."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.openlineage import dataset_event
from tests.unit.cli.command import downriver
from tests.unit.govern.scenario import schema, told

from downriver.errors import InvalidRequestError

if TYPE_CHECKING:
    from pathlib import Path

SODA = {
    "scanStartTimestamp": "2026-01-05T02:00:00",
    "checks": [
        {"name": "row_count > 0", "table": "orders", "outcome": "pass"},
        {"name": "missing_count(id) = 0", "table": "orders", "column": "id", "outcome": "fail",
         "diagnostics": {"value": 3}},
        {"name": "freshness(at) < 1d", "table": "users", "outcome": "warn"},
        {"name": "schema", "table": "users", "outcome": None},
    ],
}  # fmt: skip
DEEQU = [
    {"check": "c", "check_level": "Error", "constraint": "SizeConstraint(Size(None))",
     "constraint_status": "Success", "constraint_message": ""},
    {"check": "c", "check_level": "Warning",
     "constraint": "UniquenessConstraint(Uniqueness(List(id),None))",
     "constraint_status": "Failure", "constraint_message": "Value: 0.5"},
]  # fmt: skip


def write(folder: Path, content: Any) -> Path:
    path = folder / "results.json"
    path.write_text(json.dumps(content))
    return path


def tables() -> list[dict]:
    return [dataset_event(name, schema(id="int")) for name in ("orders", "users")]


def test_a_soda_scan_is_read_by_table(tmp_path: Path) -> None:
    with told(tmp_path, tables()) as lineage:
        found = lineage.systems.soda(write(tmp_path, SODA))
        assert (len(found.datasets), found.unread) == (2, ["schema: was not evaluated"])
        (failure,) = lineage.govern.incident_report("orders").violations
        assert "missing_count(id) = 0 on id" in failure.message
        assert failure.first_seen == "2026-01-05T02:00:00Z"
        (warning,) = lineage.govern.incident_report("users").violations
        assert warning.severity.value == "info"


def test_deequ_needs_the_dataset(tmp_path: Path) -> None:
    path = write(tmp_path, DEEQU)
    with told(tmp_path, tables()) as lineage:
        with pytest.raises(InvalidRequestError):
            lineage.systems.deequ(path)
        lineage.systems.deequ(path, dataset="orders")
        (failure,) = lineage.govern.incident_report("orders").violations
        assert failure.subject.startswith("id Uniqueness")
        assert lineage.quality("orders").parts[0].detail == "1 of 2 checks passed"


@pytest.mark.parametrize("content", [{}, [], [1], {"checks": 1}])
def test_another_file_is_refused(tmp_path: Path, content: Any) -> None:
    path = write(tmp_path, content)
    with told(tmp_path, tables()) as lineage:
        for read in (lineage.systems.soda, lineage.systems.deequ):
            with pytest.raises(InvalidRequestError):
                read(path, dataset="orders")


def test_the_commands(tmp_path: Path) -> None:
    with told(tmp_path / ".downriver", tables()):
        pass
    write(tmp_path, SODA)
    done = downriver("capture", "soda", "results.json", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["system"] == "soda", done.stderr
    write(tmp_path, DEEQU)
    assert downriver("capture", "deequ", "results.json", cwd=tmp_path).returncode == 2
    done = downriver("capture", "deequ", "results.json", "--dataset", "users", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
