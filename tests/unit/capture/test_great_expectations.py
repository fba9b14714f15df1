"""Results of Great Expectations become checks of the dataset that was validated."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.openlineage import dataset_event
from tests.unit.cli.command import downriver
from tests.unit.govern.scenario import told

from downriver.capture.check_results.great_expectations import read_validations
from downriver.errors import InvalidRequestError
from downriver.openlineage.wire import render_time
from downriver.service import Lineage

if TYPE_CHECKING:
    from pathlib import Path

RAISED = {"raised_exception": True, "exception_message": "no such column"}
RESULTS = [
    {"success": True, "result": {"observed_value": 12},
     "expectation_config": {"expectation_type": "expect_table_row_count_to_be_between",
                            "kwargs": {"min_value": 1, "batch_id": "x"}}},
    {"success": False, "result": {"unexpected_count": 3},
     "expectation_config": {"type": "expect_column_values_to_not_be_null", "severity": "warning",
                            "kwargs": {"column": "email"}}},
    {"success": False, "exception_info": {"metric-id": RAISED},
     "expectation_config": {"type": "expect_column_to_exist", "kwargs": {"column": "x"}}},
]  # fmt: skip
VALIDATION = {
    "success": False,
    "results": RESULTS,
    "meta": {
        "validation_time": "20260329T050000.000000Z",
        "active_batch_definition": {"data_asset_name": "users"},
    },
}


def read(folder: Path, content: Any) -> list:
    (folder / "result.json").write_text(json.dumps(content))
    return read_validations(folder / "result.json")


def test_every_form_of_a_result_is_read(tmp_path: Path) -> None:
    (found,) = read(tmp_path, VALIDATION)
    assert (found.asset, render_time(found.at)) == ("users", "2026-03-29T05:00:00Z")
    assert [(a.assertion, a.success, a.column, a.expected, a.actual) for a in found.assertions] == [
        ("expect_table_row_count_to_be_between", True, None, '{"min_value":1}', "12"),
        ("expect_column_values_to_not_be_null", False, "email", None, "3 unexpected values"),
    ]
    assert found.assertions[1].severity == "warning"
    assert found.unread == ["expect_column_to_exist: raised an exception"]
    assert read(tmp_path, {"run_results": {"a": VALIDATION}}) == [found]
    assert read(tmp_path, {"run_results": {"a": {"validation_result": VALIDATION}}}) == [found]


@pytest.mark.parametrize("content", [{}, [], {"results": 1}, {"run_results": {"a": 1}}])
def test_a_file_without_results_is_an_error(tmp_path: Path, content: Any) -> None:
    with pytest.raises(InvalidRequestError):
        read(tmp_path, content)


def test_the_command_records_checks_of_the_dataset(tmp_path: Path) -> None:
    with told(tmp_path, [dataset_event("users"), dataset_event("people")]):
        pass
    (tmp_path / "r.json").write_text(json.dumps(VALIDATION))
    arguments = ("capture", "great-expectations", "r.json", "--store", str(tmp_path))
    assert downriver(*arguments, "--dry-run", cwd=tmp_path).returncode == 0
    done = downriver(*arguments, "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["unread"] == ["expect_column_to_exist: raised an exception"]
    with Lineage.open(str(tmp_path)) as lineage:
        (failure,) = lineage.govern.incident_report("users").failures
        checks = {part.part: part.value for part in lineage.quality("users").parts}["checks"]
        assert failure.subject == "email expect_column_values_to_not_be_null"
        assert checks == pytest.approx(1 / 1.5, abs=1e-4)
        assert lineage.govern.incident_report("people").failures == []
    assert downriver(*arguments, "--dataset", "people", cwd=tmp_path).returncode == 0
    assert downriver(*arguments, "--dataset", "nowhere", cwd=tmp_path).returncode == 2
