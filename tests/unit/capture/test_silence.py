"""`python -m bench.silence` reports the names that a scan loses, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from bench.crude.accounts import Captured
from bench.crude.python_calls import find_call_names, find_notebook_names
from bench.crude.sql import find_sql_names
from bench.crude.yaml_names import find_yaml_names
from bench.silence import FolderResult, measure, render_json, render_tables

FILES = {
    "load.sql": (
        "INSERT INTO mart.orders\n"
        "SELECT o.id, c.name\n"
        "FROM raw.orders AS o\n"
        "JOIN raw.customers AS c ON c.id = o.customer_id;\n"
        "\n"
        "CREATE VIEW mart.recent AS\n"
        "SELECT * FROM mart.orders WHERE EXTRACT(YEAR FROM placed_at) = 2026;\n"
    ),
    "job.py": (
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        'events = spark.read.parquet("s3://lake/events")\n'
        'events.write.saveAsTable("mart.events")\n'
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    root.mkdir()
    for name, text in FILES.items():
        (root / name).write_text(text)
    return root


def silent(result: FolderResult) -> list[tuple[str, int, str]]:
    return [(reference.path, reference.line, reference.name) for reference in result.silent]


def test_a_repository_that_is_read_completely_has_no_silent_name(folder: Path) -> None:
    result = measure(folder)
    assert silent(result) == []
    assert {outcome.reference.name for outcome in result.outcomes} == {
        "mart.orders", "raw.orders", "raw.customers", "mart.recent",
        "s3://lake/events", "mart.events",
    }  # fmt: skip


def test_a_lost_input_output_and_file_are_found_at_their_lines(
    folder: Path, tmp_path: Path
) -> None:
    scans = tmp_path / "scans"
    measure(folder, scans=scans)
    (kept,) = scans.iterdir()
    scan: dict[str, Any] = msgspec.json.decode(kept.read_bytes())
    scan["jobs"] = [job for job in scan["jobs"] if job["path"] != "job.py"]
    for job in scan["jobs"]:
        for lost in ("raw.customers", "mart.recent"):
            job["inputs"] = [data for data in job["inputs"] if data["name"] != lost]
            job["outputs"] = [data for data in job["outputs"] if data["name"] != lost]
            job["edges"] = [
                edge
                for edge in job["edges"]
                if lost not in (edge["source"]["name"], edge["target"]["name"])
            ]
    kept.write_bytes(msgspec.json.encode(scan))
    result = measure(folder, scans=scans)
    assert silent(result) == [
        ("job.py", 3, "s3://lake/events"),
        ("job.py", 4, "mart.events"),
        ("load.sql", 4, "raw.customers"),
        ("load.sql", 6, "mart.recent"),
    ]
    (figures,) = msgspec.json.decode(render_json([result]))
    assert (figures["references"], figures["silent"]) == (7, 4)
    assert [table.title for table in render_tables([result])] == [
        "By folder", "By kind of repository", "By position",
    ]  # fmt: skip


def account(
    path: str,
    text: str,
    *,
    spots: list[tuple[str, int, str]],
    problems: tuple[dict[str, Any], ...] = (),
) -> dict[str, str]:
    """Return what accounts for each name of a file whose only job has these blind spots."""
    job = {
        "id": {"namespace": "n", "name": "j"},
        "path": path,
        "spots": [{"kind": kind, "line": line, "message": words} for kind, line, words in spots],
    }
    captured = Captured({"jobs": [job], "notes": [], "problems": problems}, {path: text})
    names = find_sql_names(path, text) if path.endswith(".sql") else find_call_names(path, text)
    return {outcome.reference.name: outcome.account for outcome in captured.account(names)}


def test_one_computed_ref_in_two_places_is_one_table() -> None:
    text = "SELECT * FROM {{ ref(var('a')) }}\nUNION SELECT * FROM {{ ref(var('a')) }}\n"
    names = find_sql_names("x.sql", text + "UNION SELECT * FROM {{ ref(var('b')) }}\n")
    job: dict[str, Any] = {"id": {"namespace": "n", "name": "j"}, "path": "x.sql"}
    job["inputs"] = [{"namespace": "n", "name": "seed"}]
    captured = Captured({"jobs": [job], "notes": [], "problems": []}, {"x.sql": text})
    accounts = [outcome.account for outcome in captured.account(names)]
    assert sorted(accounts) == ["lineage", "lineage", "silent"]


def test_a_path_with_partitions_is_in_lineage() -> None:
    text = 's3 = boto3.client("s3")\ns3.put_object(Bucket="b", Key="a/day=1/part-0.parquet")\n'
    job: dict[str, Any] = {"id": {"namespace": "n", "name": "j"}, "path": "x.py"}
    job["outputs"] = [{"namespace": "s3://b", "name": "a/day=1/part-0.parquet"}]
    captured = Captured({"jobs": [job], "notes": [], "problems": []}, {"x.py": text})
    outcomes = list(captured.account(find_call_names("x.py", text)))
    assert [outcome.account for outcome in outcomes] == ["lineage"]


TWO_STATEMENTS = "INSERT INTO a\nSELECT *\nFROM b;\nINSERT INTO c\nSELECT *\nFROM d;\n"


def test_an_unparsed_statement_excuses_only_its_own_names() -> None:
    found = account("x.sql", TWO_STATEMENTS, spots=[("unparsed", 4, "syntax error")])
    assert found == {"a": "silent", "b": "silent", "c": "blind_spot", "d": "blind_spot"}


def test_a_dynamic_name_at_the_top_excuses_nothing_below() -> None:
    found = account("x.sql", TWO_STATEMENTS, spots=[("dynamic_sql", 1, "known at run time")])
    assert found == {"a": "blind_spot", "b": "silent", "c": "silent", "d": "silent"}


def test_a_message_excuses_the_name_that_it_quotes() -> None:
    found = account("x.sql", TWO_STATEMENTS, spots=[("table", 0, "the table ddd")])
    assert set(found.values()) == {"silent"}
    longer = TWO_STATEMENTS.replace("FROM d", "FROM raw.ddd")
    found = account("x.sql", longer, spots=[("table", 0, "the table ddd is unknown")])
    assert found["raw.ddd"] == "blind_spot"


def test_a_file_that_is_reported_as_unread_is_excused_as_a_whole() -> None:
    unread = {"path": "x.sql", "line": 0, "reason": "too_large"}
    found = account("x.sql", TWO_STATEMENTS, spots=[], problems=(unread,))
    assert set(found.values()) == {"blind_spot"}
    one_byte = {"path": "x.sql", "line": 1, "reason": "encoding"}
    found = account("x.sql", TWO_STATEMENTS, spots=[], problems=(one_byte,))
    assert found["d"] == "silent"


def test_a_computed_path_in_a_function_is_excused_where_the_function_is_called() -> None:
    text = "def load(path):\n    return pd.read_csv(path)\n\nload(sys.argv[1])\n"
    assert account("x.py", text, spots=[]) == {"": "silent"}
    assert account("x.py", text, spots=[("dynamic_path", 4, "")]) == {"": "blind_spot"}
    assert account("x.py", text, spots=[("dynamic_path", 1, "")]) == {"": "silent"}


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("WITH c AS (SELECT * FROM a) INSERT INTO b SELECT * FROM c", {"a", "b"}),
        ("SELECT * FROM a, s.b x, UNNEST(x.items) i", {"a", "s.b"}),
        ("UPDATE x SET n = 1 FROM [dbo].[t] AS x JOIN u ON u.id = x.id", {"dbo.t", "u"}),
        ("MERGE INTO t USING s ON t.i = s.i WHEN MATCHED THEN UPDATE SET n = 1", {"t", "s"}),
        ("SELECT TRIM(BOTH ' ' FROM n) FROM a WHERE x IS DISTINCT FROM y", {"a"}),
        ("-- FROM a\nSELECT 'FROM b' /* JOIN c */ FROM d", {"d"}),
        ("CREATE TEMP TABLE t AS SELECT * FROM a; SELECT * FROM t JOIN b ON 1 = 1", {"a", "b"}),
        ("CREATE TABLE t AS SELECT 1; INSERT INTO b SELECT * FROM t; DROP TABLE t", {"b"}),
        (
            "WITH a AS (SELECT 1 FROM t WHERE x LIKE '% --y%'), b AS (SELECT 1) SELECT * FROM b",
            {"t"},
        ),
        ("COPY INTO db.t FROM @stage", {"db.t"}),
        ("SELECT * FROM {{ ref('m') }} JOIN {{ source('s', 't') }} ON 1 = 1", {"m", "s.t"}),
        ("SELECT * FROM {{ var('schema') }}.orders JOIN {{ table }} ON 1 = 1", {"orders", ""}),
        ("SELECT * FROM `p-1.ds.events_*`", {"p-1.ds.events_*"}),
    ],
)
def test_names_in_sql(sql: str, names: set[str]) -> None:
    assert {reference.name for reference in find_sql_names("x.sql", sql)} == names


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ('IN = "a.csv"\npd.read_csv(IN)\n# pd.read_csv("b.csv")', {"a.csv"}),
        ('df = (spark.read\n  .option("x", 1)\n  .csv("a"))', {"a"}),
        ('cursor.execute("""INSERT INTO t\nSELECT * FROM s""")', {"t", "s"}),
        ('spark.sql(f"SELECT * FROM {db}.orders")', {"orders"}),
        ('PostgresOperator(task_id="x", sql="DELETE FROM t")', {"t"}),
        ('glue.create_dynamic_frame.from_catalog(database="d", table_name="t")', {"t"}),
        ('s3.put_object(Bucket="b", Key="k", Body=x)', {"k"}),
        ('p | beam.io.ReadFromText("gs://b/x*")', {"gs://b/x*"}),
        ("df.to_parquet(path)", {""}),
        ('X = """\na\n"""\npd.read_csv("a.csv")\nY = """\nb\n"""', {"a.csv"}),
        ('"""\npd.read_csv("a.csv")\n"""\npd.read_csv("b.csv")', {"b.csv"}),
        ('script = """\npd.read_csv("a.csv")\n"""', set()),
        ("def read_csv(path):\n    handle.read()\n", set()),
    ],
)
def test_names_in_python(code: str, names: set[str]) -> None:
    assert {reference.name for reference in find_call_names("x.py", code)} == names


def test_lines_of_a_notebook_are_those_of_its_file() -> None:
    notebook = """{
 "cells": [
  {
   "cell_type": "code",
   "source": [
    "x = 1\\n",
    "pd.read_csv(\\"a.csv\\")"
   ]
  }
 ]
}
"""
    (reference,) = find_notebook_names("x.ipynb", notebook)
    assert (reference.line, reference.name) == (7, "a.csv")


def test_names_in_yaml() -> None:
    text = (
        "sources:\n  - name: raw\n    tables:\n      - name: orders\n        columns:\n"
        "          - name: id\n      - name: customers\n"
        "exposures:\n  - name: dashboard\n    depends_on:\n      - ref('mart')\n"
    )
    found = {(reference.line, reference.name) for reference in find_yaml_names("x.yml", text)}
    assert found == {(4, "raw.orders"), (7, "raw.customers"), (9, "dashboard"), (11, "mart")}
