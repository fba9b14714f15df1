"""Exports of other catalogs: datasets, columns, tags and lineage as the catalog has them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from downriver import Lineage
from downriver.capture.catalogs import parse_glue, parse_unity
from downriver.capture.entries import render_export
from downriver.errors import InvalidRequestError
from downriver.model.ids import DatasetId, JobId

EXAMPLES = Path(__file__).parents[3] / "examples" / "catalogs"
GLUE = (EXAMPLES / "glue_tables.json").read_text()
UNITY = (EXAMPLES / "unity_column_lineage.csv").read_text()
RAW, GOLD = (DatasetId("unitycatalog", f"main.{n}") for n in ("raw.orders", "gold.revenue"))


def test_glue_has_columns_partitions_owners_and_tags():
    (table,) = parse_glue(GLUE, "tables.json", "eu-west-1").tables
    assert table.id == DatasetId("arn:aws:glue:eu-west-1:123456789012", "table/sales/orders")
    assert [column.name for column in table.columns] == ["id", "email", "day"]
    assert table.owners == ["ana"]
    assert table.tags == ["classification:parquet", "updated_by_crawler:nightly"]
    assert table.column_tags == {"email": ["pii"]}


def test_the_location_of_a_glue_table_joins_the_job_that_writes_it():
    written = {
        "eventType": "COMPLETE",
        "eventTime": "2026-01-01T00:00:00Z",
        "run": {"runId": "r"},
        "job": {"namespace": "etl", "name": "load"},
        "outputs": [{"namespace": "s3://lake", "name": "orders"}],
    }
    with Lineage.open(":memory:") as lineage:
        lineage.ingest([json.dumps(written).encode()])
        lineage.ingest(list(render_export(parse_glue(GLUE, "tables.json"), 1)))
        found = lineage.trace("sales/orders", "upstream")
    assert "job:etl:load" in {node.id for node in found.nodes}


def test_a_malformed_glue_table_is_reported_and_the_others_are_kept():
    answer = json.loads(GLUE)
    answer["TableList"].append({"Name": 1})
    export = parse_glue(json.dumps(answer), "tables.json")
    assert len(export.tables) == 1
    assert export.unread[0].where == "tables.json: TableList[1]"


@pytest.mark.parametrize("text", ["", "[]", "{}", "TableList"])
def test_what_is_no_answer_of_glue_is_refused(text):
    with pytest.raises(InvalidRequestError, match="get-tables"):
        parse_glue(text, "tables.json")


def run_cli(*arguments):
    command = [sys.executable, "-m", "downriver", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def as_json(text):
    header, *rows = (line.split(",") for line in text.splitlines())
    return [dict(zip(header, row, strict=True)) for row in rows]


@pytest.mark.parametrize(
    "text",
    [UNITY, json.dumps(as_json(UNITY)), "\n".join(json.dumps(row) for row in as_json(UNITY))],
    ids=["csv", "array", "lines"],
)
def test_unity_rows_become_a_job_with_columns(text):
    (job,) = parse_unity(text, "rows").jobs
    assert job.id == JobId("unitycatalog", "job/77")
    assert job.inputs == [RAW]
    assert job.outputs == {GOLD: {"total": [(RAW, "amount")], "day": [(RAW, "day")]}}


def test_unity_paths_and_rows_without_a_job():
    rows = [{"source_path": "s3://lake/raw", "target_table_full_name": "a.b.c"}]
    (job,) = parse_unity(json.dumps(rows), "rows").jobs
    assert job.inputs == [DatasetId("s3://lake", "raw")]
    assert job.id.name == "lineage of a.b.c"


def test_a_unity_row_without_tables_is_reported():
    export = parse_unity(json.dumps([{"target_table_full_name": None}, 1]), "rows")
    assert [record.where for record in export.unread] == ["rows: row 1", "rows: row 2"]


@pytest.mark.parametrize("text", ['[{"a": 1}]', "a,b\n1,2\n", "[1]"])
def test_rows_that_are_not_of_unity_are_refused(text):
    with pytest.raises(InvalidRequestError, match="target_table_full_name"):
        parse_unity(text, "rows")


def test_an_import_is_stored_once_and_its_columns_are_traced(tmp_path):
    file, store = tmp_path / "rows.csv", str(tmp_path / "lineage.db")
    file.write_text(UNITY)
    command = ["import", "unity", str(file), "--store", store, "--json"]
    first, second = (json.loads(run_cli(*command).stdout) for _ in range(2))
    assert (first["stored"], first["duplicates"], first["jobs"]) == (1, 0, 1)
    assert (second["stored"], second["duplicates"]) == (0, 1)
    with Lineage.open(store) as lineage:
        found = lineage.trace("main.gold.revenue.total", "upstream")
    assert {(n.name, n.field) for n in found.nodes} == {(GOLD.name, "total"), (RAW.name, "amount")}


def test_a_missing_file_is_an_error(tmp_path):
    done = run_cli("import", "glue", str(tmp_path / "none.json"))
    assert done.returncode != 0
    assert "none.json: No such file or directory" in done.stderr
    assert "Traceback" not in done.stderr
