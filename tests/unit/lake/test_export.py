"""Exports contain the data of the lake, and other tools can read them."""

from __future__ import annotations

import csv
import gzip
import itertools
import json
import re

import duckdb
import pytest
import sqlglot
from tests.openlineage import encode
from tests.unit.cli.command import downriver
from tests.unit.lake.orders import FIRST, SECOND

from downriver.errors import InvalidRequestError, LakeError
from downriver.lake.duckdb_views import MODEL_SOURCES, PANELS, render_dashboard, render_views
from downriver.lake.exports import export_neo4j, export_openlineage, export_parquet
from downriver.lake.storage.files import Folder
from downriver.lake.storage.tables import LakeVersion, commit_version
from downriver.lake.trino_views import render_trino

FOUR_KPIS = (
    "Lineage coverage",
    "Unknown downstreams",
    "Certified-path integrity",
    "Median blast radius",
)
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]


def table(path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_neo4j_files_contain_all_nodes_and_both_ends_of_every_edge(built, tmp_path):
    written = export_neo4j(built.folder, str(tmp_path / "neo"))
    files = {file.path: table(tmp_path / "neo" / file.path) for file in written}
    assert {name: len(found) for name, found in files.items()} == {
        "datasets.csv": 2,
        "jobs.csv": 2,
        "columns.csv": 4,
        "has_column.csv": 4,
        "edges.csv": 3,
        "feeds.csv": 1,
    }
    assert [file.rows for file in written] == [len(found) for found in files.values()]
    nodes = {
        row["id:ID"] for name in ("datasets", "jobs", "columns") for row in files[f"{name}.csv"]
    }
    edges = [row for name in ("has_column", "edges", "feeds") for row in files[f"{name}.csv"]]
    assert {row[end] for row in edges for end in (":START_ID", ":END_ID")} <= nodes
    assert {row[":TYPE"] for row in edges} == {"HAS_COLUMN", "READS", "WRITES", "FEEDS"}
    assert files["feeds.csv"][0]["kinds:string[]"] == "AGGREGATION"
    script = (tmp_path / "neo" / "import.sh").read_text("utf-8")
    assert all(f"={name}" in script for name in files), "the script imports every file"


def test_parquet_export_has_all_silver_and_gold_tables(built, tmp_path):
    written = export_parquet(built.folder, str(tmp_path / "out"))
    for file in written:
        [(rows,)] = duckdb.sql(
            f"SELECT count(*) FROM '{tmp_path}/out/{file.path}/*.parquet'"
        ).fetchall()
        assert rows == file.rows
    assert {"gold/edges", "silver/runs", "gold/daily_kpis"} <= {file.path for file in written}
    with pytest.raises(InvalidRequestError, match="not empty"):
        export_parquet(built.folder, str(tmp_path / "out"))


@pytest.mark.parametrize("name", ["events.jsonl", "events.jsonl.gz"])
def test_openlineage_export_has_the_events_as_sent(built, tmp_path, name):
    [file] = export_openlineage(built.folder, str(tmp_path / name))
    body = (tmp_path / name).read_bytes()
    lines = (gzip.decompress(body) if name.endswith(".gz") else body).splitlines()
    assert sorted(lines) == sorted(encode(event) for event in [*FIRST, *SECOND])
    assert file.rows == len(lines)


def filtered(sql: str, dataset: str = "%", model: str = "%", start: str = "2000-01-01") -> str:
    """Return a query with the variables of the dashboard, as Grafana fills them in."""
    values = {
        "${dataset:sqlstring}": f"'{dataset}'",
        "${model:sqlstring}": f"'{model}'",
        "${__from:date:iso}": f"{start}T00:00:00.000Z",
        "${__to:date:iso}": "2100-01-01T00:00:00.000Z",
    }
    for variable, value in values.items():
        sql = sql.replace(variable, value)
    assert "${" not in sql
    return sql


def test_the_kpis_of_the_dashboard_are_filtered(built):
    base = duckdb.connect()
    base.execute(render_views(built.folder))
    kpis = {panel.title: panel.sql for panel in PANELS}
    figures = [
        [base.execute(filtered(kpis[title], **filters)).fetchall()[0][0] for title in FOUR_KPIS]
        for filters in ({}, {"dataset": "orders"}, {"model": "none"}, {"start": "2090-01-01"})
    ]
    assert figures == [
        [100.0, 1, 0.0, 2.0],
        [100.0, 0, None, 3.0],
        [None, 0, None, None],
        [None, 0, None, None],
    ]


def test_the_data_of_a_model_is_all_that_is_upstream_of_it():
    base = duckdb.connect()
    base.execute("CREATE TABLE gold_nodes (kind TEXT, namespace TEXT, name TEXT)")
    base.execute(
        "CREATE TABLE gold_edges (source_kind TEXT, source_namespace TEXT, source_name TEXT, "
        "target_kind TEXT, target_namespace TEXT, target_name TEXT)"
    )
    base.execute(
        "INSERT INTO gold_nodes VALUES ('dataset', 'model', 'churn'), ('dataset', 'a', 'raw')"
    )
    chain = ["a.raw", "etl.clean", "a.orders", "ml.train", "model.churn", "ml.score", "a.scores"]
    ends = [(("dataset", "job")[at % 2], *name.split(".")) for at, name in enumerate(chain)]
    loop = (ends[2], ends[1])  # clean also reads what it writes
    for source, target in [*itertools.pairwise(ends), loop]:
        base.execute("INSERT INTO gold_edges VALUES (?, ?, ?, ?, ?, ?)", [*source, *target])
    base.execute(MODEL_SOURCES)
    rows = base.execute("SELECT model, name FROM lineage_model_sources ORDER BY ALL").fetchall()
    assert rows == [("churn", "churn"), ("churn", "orders"), ("churn", "raw")]


def test_views_for_trino_answer_as_those_for_duckdb(built, tmp_path):
    """The statements run in DuckDB, which knows no external tables."""
    export_parquet(built.folder, str(tmp_path / "out"))
    ours, trino = duckdb.connect(), duckdb.connect()
    ours.execute(render_views(built.folder))
    statements = render_trino(f"{tmp_path}/out", "hive.lineage").split(";\n")
    for statement in filter(None, statements):
        if statement.startswith("CREATE TABLE"):
            name = statement.split('"')[1]
            folder = re.search("external_location = '([^']+)'", statement).group(1)
            trino.execute(f"CREATE VIEW {name} AS SELECT * FROM '{folder}/*.parquet'")
        elif "VIEW" in statement:
            trino.execute(sqlglot.transpile(statement, read="trino", write="duckdb")[0])
    for view in ("datasets", "hotspots", "late", "coverage"):
        query = f"SELECT * FROM lineage_{view} ORDER BY ALL"
        assert trino.execute(query).fetchall() == ours.execute(query).fetchall()


def test_all_views_and_dashboard_queries_run(built):
    base = duckdb.connect()
    base.execute(render_views(built.folder))
    dashboard = json.loads(render_dashboard())
    asked = [target["rawSql"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert asked == [panel.sql for panel in PANELS]
    answers = {panel.title: base.execute(filtered(panel.sql)).fetchall() for panel in PANELS}
    assert answers["Datasets"] == [(2,)]
    assert answers["Largest blast radius"][0] == ("orders", 1, 2, 1, False)
    assert answers["Failing jobs"] == [("sum", 3, 1, 1 / 3, "disk full")]
    assert answers["Certified datasets with uncertified inputs"] == [("totals", 1, 0, ["orders"])]
    assert len(answers["Growth"]) == 3
    assert all(0 <= p["gridPos"]["x"] + p["gridPos"]["w"] <= 24 for p in dashboard["panels"])


def test_export_needs_a_build(tmp_path):
    folder = Folder(str(tmp_path))
    commit_version(folder, LakeVersion(), LakeVersion())
    with pytest.raises(LakeError, match="has not been built"):
        render_views(folder)
    with pytest.raises(LakeError, match="has not been built"):
        export_neo4j(folder, str(tmp_path / "neo"))


def test_on_the_command_line(built, tmp_path):
    lake = ("--lake", built.folder.location)
    written = downriver("lake", "export", "--openlineage", "e.jsonl", "--json", *lake, cwd=tmp_path)
    assert json.loads(written.stdout) == [{"path": "e.jsonl", "rows": 5}]
    shown = downriver("lake", "export", "--neo4j", "neo", *lake, cwd=tmp_path)
    assert "edges.csv  3\n" in shown.stdout
    nothing = downriver("lake", "export", *lake, cwd=tmp_path)
    assert nothing.returncode == 2
    assert "--neo4j, --parquet, --openlineage" in nothing.stderr
    assert downriver("lake", "views", *lake, cwd=tmp_path).stdout == render_views(built.folder)
    dashboard = downriver("lake", "views", "--dashboard", cwd=tmp_path)
    assert dashboard.stdout == render_dashboard()
