"""Scanning reads no file outside of the repository, runs no code, and reports unread files."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from downriver.capture.scan import Repository, ScanCatalog, scan_repository, scan_text
from downriver.capture.scan.python import PythonFiles
from downriver.errors import InvalidRequestError
from downriver.model.unread import UnreadReason
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator

ORDERS = Path(__file__).parents[4] / "examples" / "orders"


@pytest.fixture
def lineage(tmp_path: Path) -> Iterator[Lineage]:
    with Lineage.open(str(tmp_path / "store")) as opened:
        yield opened


def test_a_repository_becomes_one_graph(lineage: Lineage) -> None:
    found = lineage.capture.scan(ORDERS)
    assert not found.unread
    reached = {node.name for node in lineage.trace("fct_orders").nodes}
    assert reached >= {"daily_revenue_report.read_revenue", "jobs/customer_ltv"}
    columns = {(n.name, n.field) for n in lineage.trace("raw.orders.order_total").nodes}
    assert ("customer_ltv/features", "spend") in columns


def test_scanned_models_have_the_names_of_capture_dbt(lineage: Lineage) -> None:
    lineage.capture.dbt(ORDERS / "target")
    lineage.capture.scan(ORDERS)
    answer = lineage.trace("warehouse.raw.orders.order_total")
    assert {node.namespace for node in answer.nodes} == {"postgres://orders", "s3://shop-models"}
    assert [node.name for node in answer.nodes if node.field == "spend"]


def test_code_is_never_executed(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    code = f"open({str(mark)!r}, 'w').write('x')\nimport os\nos.remove('{mark}')\n"
    (tmp_path / "job.py").write_text(code)
    scan_repository(Repository(tmp_path), ScanCatalog(namespace="n"))
    assert not mark.exists()


@pytest.mark.parametrize(
    "path", ["../outside.sql", "/etc/passwd", "link.sql", "folder/../../x.sql"]
)
def test_files_outside_of_the_repository_are_never_read(tmp_path: Path, path: str) -> None:
    (tmp_path / "outside.sql").write_text("select secret from t")
    root = tmp_path / "repo"
    root.mkdir()
    (root / "link.sql").symlink_to(tmp_path / "outside.sql")
    repository = Repository(root)
    assert repository.find(path) is None
    assert repository.read(path) is None


def test_a_file_that_is_too_large_is_reported_and_the_others_are_read(tmp_path: Path) -> None:
    (tmp_path / "huge.sql").write_text("-- x\n" * 1_000_000)
    (tmp_path / "small.sql").write_text("insert into a select x from b")
    found = scan_repository(Repository(tmp_path), ScanCatalog(namespace="n"))
    assert [unread.path for unread in found.unread] == ["huge.sql"]
    assert [job.path for job in found.jobs] == ["small.sql"]


def test_a_folder_with_a_path_that_is_too_long_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("create table t as select id from s")
    parent = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):  # no call takes the whole path
        os.mkdir("d" * 250, dir_fd=parent)
        folder = os.open("d" * 250, os.O_RDONLY, dir_fd=parent)
        os.close(parent)
        parent = folder
    os.close(parent)
    found = scan_repository(Repository(tmp_path), ScanCatalog(namespace="n"))
    assert [job.path for job in found.jobs] == ["a.sql"]
    (unread,) = found.unread
    assert "cannot be listed" in unread.detail


def test_an_error_in_the_reader_concerns_one_file_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.py").write_text("import pandas")
    (tmp_path / "b.sql").write_text("create table t as select x from s")

    def fail(*arguments: object) -> None:
        raise ValueError("too many values to unpack")

    monkeypatch.setattr("downriver.capture.scan.scanner.read_module", fail)
    found = scan_repository(Repository(tmp_path), ScanCatalog(namespace="n"))
    assert [job.path for job in found.jobs] == ["b.sql"]
    assert [(file.path, file.reason) for file in found.unread] == [
        ("a.py", UnreadReason.READER_FAULT)
    ]
    assert "too many values" in found.unread[0].detail


@pytest.mark.parametrize("folder", ["downloads", "build", "dist", "env"])
def test_a_file_that_git_tracks_is_read_although_its_folder_is_ignored(
    tmp_path: Path, folder: str
) -> None:
    (tmp_path / ".gitignore").write_text(f"{folder}/\nscratch.sql\n")
    (tmp_path / folder / "inner").mkdir(parents=True)
    tracked, untracked = tmp_path / folder / "inner" / "a.sql", tmp_path / folder / "b.sql"
    for file in (tracked, untracked, tmp_path / "scratch.sql"):
        file.write_text("insert into a select x from b")
    for command in (["init", "-q"], ["add", "-f", str(tracked)]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    found = scan_repository(Repository(tmp_path), ScanCatalog(namespace="n"))
    assert [job.path for job in found.jobs] == [f"{folder}/inner/a.sql"]


@pytest.mark.parametrize("name", ["load.hql", "schema.DDL", "body.pkb", "proc.prc", "job.bteq"])
def test_sql_is_read_from_files_with_other_suffixes(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("insert into a select x from b")
    found = scan_repository(Repository(tmp_path), ScanCatalog(namespace="n"))
    assert [[data.name for data in job.inputs] for job in found.jobs] == [["b"]]


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("m.js", '// a model\npublish("m", {type: "table"}).query(ctx => "select 1")', 2),
        ("Job.scala", 'object Job {\n  spark.table("b").write.saveAsTable("a")\n}', 2),
        ("Dao.java", "class Dao {}\n//\nstatement.executeQuery(sql);", 3),
        ("load.R", 'dbGetQuery(con, "select * from b")', 1),
        ("orders.view.lkml", "view: orders {\n  sql_table_name: b ;;\n}", 2),
    ],
)
def test_code_in_a_language_that_is_not_read_is_reported(
    tmp_path: Path, name: str, text: str, line: int
) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "Plain.java").write_text("class Plain { int x; }")
    found = scan_repository(Repository(tmp_path), ScanCatalog(namespace="n"))
    assert [(u.path, u.line, u.reason) for u in found.unread] == [
        (name, line, UnreadReason.FILE_TYPE)
    ]


def test_a_missing_path_is_an_error(lineage: Lineage, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="no such file"):
        lineage.capture.scan(tmp_path / "nope")


@pytest.mark.parametrize(
    "code",
    [
        "",
        "x = " + "(" * 90 + ")" * 90,
        "while True:\n    spark.table('t')\n",
        "def f(*a, **k): return f(*a, **k)\nf()\n",
        "a, *b = 1, 2, 3\n(c := a)\n",
        "spark.table()\nspark.read.load()\ndf.select(*x)\nspark.sql()\n",
        "import pandas as pd\npd.read_sql()\npd.read_csv()[0]\npd.concat([])\npd.merge()\n",
        "from airflow import DAG\nDAG()\nwith DAG('a') as d:\n    x >> y >> [1, 2]\n",
        "from feast import *\nimport feast\nfeast.FeatureView()\nfeast.FeatureService(name='x')\n",
        "match x:\n    case [1, *rest]: spark.table('a')\n    case {'k': v}: pass\n",
        "class A(A): pass\nA().b.c()\n",
        "from pyspark.sql import functions as F\n"
        "spark.table('t').agg(F.sum()).groupBy().pivot().count()\n",
        "spark.table('t')[None][1:2]['a']['b'] = 3\n",
        "'%s %(a)s' % x\n'{} {0} {a}'.format()\nf'{x!r:>{y}}'\n",
    ],
)
def test_odd_code_raises_no_error(code: str) -> None:
    assert scan_text("job.py", code, ScanCatalog(namespace="n")).unread == []


def test_events_of_a_scan_are_well_formed(lineage: Lineage) -> None:
    found = lineage.capture.scan(ORDERS, dry_run=True)
    for captured in found.events(0):
        event = json.loads(captured.raw)
        if "job" in event:
            facets = event["job"]["facets"]
            assert facets["sourceCodeLocation"]["path"] == facets["downriver_code"]["path"]
            assert facets["downriver_code"]["line"] >= 1
    assert lineage.admin.status().counts.events == 0


def test_a_file_is_found_by_the_end_of_its_path_if_only_one_matches(tmp_path: Path) -> None:
    for folder in ("a/models", "b/models"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "a" / "models" / "x.sql").touch()
    for folder in ("a", "b"):
        (tmp_path / folder / "models" / "y.sql").touch()
    repository = Repository(tmp_path)
    assert repository.find_ending("models/x.sql") == "a/models/x.sql"
    assert repository.find_ending("models/y.sql") is None
    assert repository.find_ending("../a/models/x.sql") is None


def test_a_result_is_cached_until_one_of_its_files_changes(tmp_path: Path) -> None:
    file = tmp_path / "x.sql"
    file.write_text("one")
    repository = Repository(tmp_path)
    made = [repository.once("k", ["x.sql"], lambda: object()) for _ in range(2)]
    assert made[0] is made[1]
    file.write_text("three")
    assert repository.once("k", ["x.sql"], lambda: object()) is not made[0]


def test_a_job_that_only_runs_a_query_has_its_sql() -> None:
    def sql(code: str) -> str:
        (job,) = scan_text("job.py", code, ScanCatalog(namespace="n")).jobs
        return job.sql

    assert sql('cur.execute("insert into a select x from b")') == "insert into a select x from b"
    assert sql('spark.sql("select x from b").write.saveAsTable("a")') == ""
    assert sql('spark.sql("select x from b"); spark.table("c")') == ""


def test_a_job_that_only_runs_a_query_has_the_line_of_the_query() -> None:
    code = 'X = 1\n\nQUERY = """\ninsert into a\nselect x from b"""\ncur.execute(QUERY)\n'
    (job,) = scan_text("job.py", code, ScanCatalog(namespace="n")).jobs
    (reference, *_) = [r for r in job.references if r.field == "x" and r.clause == "select"]
    assert (job.line, reference.line) == (3, 5)
    assert "select x" in job.sql.splitlines()[reference.line - job.line]


UNREAD = {
    "broken.py": ("def f(:", UnreadReason.PYTHON_SYNTAX, 1),
    "null.py": ("import pandas\nx = '\x00'", UnreadReason.PYTHON_SYNTAX, None),
    "broken.ipynb": ("{", UnreadReason.NOTEBOOK_SYNTAX, 0),
    "empty.ipynb": ("{}", UnreadReason.NOTEBOOK_SYNTAX, 0),
    "cell.ipynb": (
        '{"cells": [\n{"cell_type": "code",\n"source": ["x = 1\\n",\n"y = ("]}]}',
        UnreadReason.PYTHON_SYNTAX,
        4,
    ),
    "dbt_project.yml": ("name: shop\n  vars: 1", UnreadReason.YAML_SYNTAX, 2),
}


@pytest.mark.parametrize("path", UNREAD)
def test_a_file_that_does_not_parse_is_reported_with_reason_and_line(path: str) -> None:
    text, reason, line = UNREAD[path]
    found = scan_text(path, text, ScanCatalog(namespace="n"))
    assert found.jobs == []
    (unread,) = found.unread
    assert (unread.path, unread.reason) == (path, reason)
    assert line is None or unread.line == line


def test_a_file_that_is_not_text_is_reported_and_its_readable_part_is_read(tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_bytes(b"select a from t\n-- caf\xe9\n")
    (tmp_path / "job.py").write_bytes(b"# coding: latin-1\nspark.table('caf\xe9')\n")
    (tmp_path / "utf16.sql").write_bytes("select b from u".encode("utf-16"))
    found = scan_repository(Repository(tmp_path), ScanCatalog(namespace="n"))
    assert [(u.location, u.reason) for u in found.unread] == [("q.sql:2", UnreadReason.ENCODING)]
    assert sorted(job.inputs[0].name for job in found.jobs) == ["café", "t", "u"]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("cursor.execute(query)", "dynamic_sql"),
        ("cursor.execute(f'drop table {name}')", "dynamic_sql"),
        ("conn.execute(build())", "dynamic_sql"),
        ("from alembic import op\nop.execute(open(p).read())", "dynamic_sql"),
        (
            "from psycopg import sql\ncur.execute(sql.SQL('drop table {}').format(x))",
            "dynamic_sql",
        ),
        ("cursor.execute('call drop_old_columns()')", "procedure_call"),
        ("cursor.execute('alter table t dorp column c')", "unparsed"),
        ("spark.sql(query)", "dynamic_sql"),
        ("from airflow.operators import Op\nOp(task_id='t', sql=query)", "dynamic_sql"),
        ("def run(sql):\n    connection.execute(sql)", "dynamic_sql"),
    ],
)
def test_a_query_that_cannot_be_read_is_a_blind_spot(code: str, kind: str) -> None:
    found = scan_text("job.py", code, ScanCatalog(namespace="n"))
    assert {spot.kind for job in found.jobs for spot in job.spots} == {kind}


@pytest.mark.parametrize(
    "code",
    ["# sql\ncommand.execute(context)", "# sql\npool.execute(task)", "cursor.execute('commit')"],
)
def test_a_call_of_execute_without_a_query_is_no_blind_spot(code: str) -> None:
    assert scan_text("job.py", code, ScanCatalog(namespace="n")).jobs == []


def test_tasks_after_a_dag_and_its_group_belong_to_neither() -> None:
    code = """\
from airflow import DAG
from airflow.operators.python import PythonOperator
from airflow.utils.task_group import TaskGroup

with DAG("daily"), TaskGroup("load"):
    PythonOperator(task_id="a", python_callable=print)
with DAG("weekly"):
    PythonOperator(task_id="b", python_callable=print)
"""
    found = scan_text("dags/jobs.py", code, ScanCatalog(namespace="n"))
    tasks = [job.id.name for job in found.jobs if job.kind == "TASK"]
    assert tasks == ["daily.load.a", "weekly.b"]


def test_unit_tests_are_accounted_for_when_the_setting_asks_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = "import boto3\nboto3.client('dynamodb').put_item(TableName='t', Item={})\n"
    assert scan_text("tests/test_job.py", code, ScanCatalog(namespace="n")).jobs == []
    monkeypatch.setenv("DOWNRIVER_SCAN_TESTS", "1")
    found = scan_text("tests/test_job.py", code, ScanCatalog(namespace="n"))
    assert [(s.kind, s.line) for job in found.jobs for s in job.spots] == [("unread_call", 2)]


def test_a_module_that_several_files_import_is_parsed_once() -> None:
    files = PythonFiles()
    first = files.get("paths.py", lambda: "RAW = 's3://lake/raw'\n")
    again = files.get("paths.py", lambda: pytest.fail("read twice"))
    assert first is not None
    assert again is first
    assert files.find("paths.py", first.source) is first
    assert files.find("paths.py", "RAW = 'changed'\n") is not first


def test_files_that_import_one_module_do_not_share_what_they_change(tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text(
        "TABLES = {'target': 'raw.a'}\n\ndef target():\n    return TABLES['target']\n"
    )
    write = "spark.table('raw.x').write.saveAsTable(settings.target())\n"
    (tmp_path / "a_job.py").write_text(
        f"import settings\nsettings.TABLES['target'] = 'raw.changed'\n{write}"
    )
    (tmp_path / "b_job.py").write_text(f"import settings\n{write}")
    found = scan_repository(Repository(tmp_path), ScanCatalog(namespace="n"))
    outputs = {job.id.name: [d.name for d in job.outputs] for job in found.jobs}
    assert outputs["b_job"] == ["raw.a"]


def test_operators_without_data_and_messages_are_no_blind_spots() -> None:
    code = (
        "import logging\nimport pandas as pd\n"
        "from airflow.operators.empty import EmptyOperator\n"
        "from airflow.sensors.external_task import ExternalTaskMarker\n\n"
        "def make(name):\n"
        "    EmptyOperator(task_id=name)\n    ExternalTaskMarker(task_id='m')\n"
        "    CustomOperator(task_id='c')\n\n"
        "def load():\n"
        "    orders = pd.read_csv('orders.csv')\n    logging.info('%s', orders)\n"
        "    orders.to_csv('out.csv')\n\nload()\n"
    )
    found = scan_text("dags/daily.py", code, ScanCatalog(namespace="n"))
    spots = [(spot.kind, spot.line) for job in found.jobs for spot in job.spots]
    assert spots == [("unread_call", 9)]


def test_a_project_file_that_is_a_named_pipe_does_not_block_the_scan(tmp_path):
    os.mkfifo(tmp_path / "dbt_project.yml")
    (tmp_path / "load.sql").write_text("insert into a select * from b")
    assert "load.sql" in Repository(tmp_path).files()
