"""`downriver capture sql` on the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.unit.cli.command import downriver

if TYPE_CHECKING:
    from pathlib import Path

REVENUE = (
    "CREATE TABLE mart.revenue AS SELECT day, SUM(amount) AS total FROM shop.orders GROUP BY day"
)
STARRED = "CREATE TABLE copy AS SELECT * FROM orders"


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "revenue.sql").write_text(REVENUE)
    (folder / "deep" / "er" / "revenue.sql").write_text(
        "INSERT INTO report SELECT total FROM mart.revenue"
    )
    (folder / "notes.txt").write_text("INSERT INTO no SELECT 1 FROM nothing")
    (folder / "folder.sql").mkdir()
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "x.sql").write_text("INSERT INTO no SELECT 1 FROM nothing")
    return folder


def edges(done: str) -> list[str]:
    (found,) = json.loads(done)
    return [
        f"{e['source']['column']} -> {e['target']['column']}"
        for s in found["lineage"]["statements"]
        for e in s["column_edges"]
    ]


def test_a_file_is_shown_as_a_table_and_registered_under_its_name(tmp_path: Path) -> None:
    (tmp_path / "revenue.sql").write_text(REVENUE)
    done = downriver("capture", "sql", "revenue.sql", "--dialect", "postgres", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "revenue.sql 1 statement · postgres\n"
        "  mart.revenue.*     ← shop.orders.day    GROUP_BY inferred\n"
        "  mart.revenue.day   ← shop.orders.day    IDENTITY inferred\n"
        "  mart.revenue.total ← shop.orders.amount AGGREGATION inferred\n"
        "  writes mart.revenue · registered as job:default:revenue\n"
    )
    assert "revenue.total" in downriver("trace", "shop.orders.amount", cwd=tmp_path).stdout


def test_a_guessed_dialect_is_shown_as_guessed(tmp_path: Path) -> None:
    sql = "SELECT TOP 5 [id] INTO #t FROM dbo.orders WITH (NOLOCK)"
    shown = downriver("capture", "sql", "-", "--dry-run", cwd=tmp_path, stdin=sql)
    assert "tsql (guessed)" in shown.stdout


def test_stdin_can_be_read_together_with_files(tmp_path: Path) -> None:
    (tmp_path / "b.sql").write_text("INSERT INTO y SELECT x FROM mid")
    done = downriver(
        "capture",
        "sql",
        "-",
        "b.sql",
        "--json",
        cwd=tmp_path,
        stdin="INSERT INTO mid SELECT x FROM s",
    )
    first, second = json.loads(done.stdout)
    assert (first["file"], second["file"]) == ("-", "b.sql")
    assert "y.x" in downriver("trace", "s.x", cwd=tmp_path).stdout


def test_each_file_of_a_directory_is_a_job(scripts: Path) -> None:
    done = downriver("capture", "sql", "models", "--json", cwd=scripts.parent)
    found = {c["job"]: c["lineage"]["statements"][0]["outputs"] for c in json.loads(done.stdout)}
    assert found == {
        "job:default:revenue": ["mart.revenue"],
        "job:default:deep/er/revenue": ["report"],
    }
    assert "report.total" in downriver("trace", "shop.orders.amount", cwd=scripts.parent).stdout


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
def test_progress_is_shown_on_a_terminal_only(scripts: Path) -> None:
    assert downriver("capture", "sql", "models", cwd=scripts.parent).stderr == ""
    person, terminal = os.openpty()
    command = [sys.executable, "-m", "downriver", "capture", "sql", "models"]
    env = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    subprocess.run(
        command, cwd=scripts.parent, env=env, stdout=subprocess.DEVNULL, stderr=terminal, check=True
    )
    os.close(terminal)
    with os.fdopen(person, "rb", closefd=True) as shown:
        assert b"2/2" in shown.read1()


def test_a_schema_expands_stars_into_columns(tmp_path: Path) -> None:
    (tmp_path / "copy.sql").write_text(STARRED)
    (tmp_path / "schema.json").write_text('{"orders": ["id", "total"]}')
    (tmp_path / "typed.json").write_text('{"orders": {"id": "int", "total": "decimal"}}')
    ask = ("capture", "sql", "copy.sql", "--dry-run", "--json")
    assert edges(downriver(*ask, cwd=tmp_path).stdout) == ["* -> *"]
    for schema in ("schema.json", "typed.json"):
        known = downriver(*ask, "--schema", schema, cwd=tmp_path)
        assert edges(known.stdout) == ["id -> id", "total -> total"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        ("{", "truncated"),
        ('["orders"]', "Expected `object`"),
        ('{"t": 3}', "$[...]"),
    ],
)
def test_an_invalid_schema_file_is_an_error(tmp_path: Path, content: str | None, said: str) -> None:
    (tmp_path / "copy.sql").write_text(STARRED)
    if content is not None:
        (tmp_path / "schema.json").write_text(content)
    done = downriver("capture", "sql", "copy.sql", "--schema", "schema.json", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: --schema: schema.json: ")
    assert said in done.stderr
    assert not (tmp_path / ".downriver").exists()


def test_a_dry_run_shows_the_same_and_registers_nothing(tmp_path: Path) -> None:
    (tmp_path / "revenue.sql").write_text(REVENUE)
    shown = downriver("capture", "sql", "revenue.sql", "--dry-run", cwd=tmp_path).stdout
    assert "not registered: job:default:revenue" in shown
    done = downriver("capture", "sql", "revenue.sql", cwd=tmp_path).stdout
    assert shown.splitlines()[:-1] == done.splitlines()[:-1]


def test_the_job_of_a_single_file_can_be_named(scripts: Path) -> None:
    done = downriver("capture", "sql", "models/revenue.sql", "--job", "nightly", cwd=scripts.parent)
    assert "registered as job:default:nightly" in done.stdout
    assert "nightly" in downriver("trace", "shop.orders", cwd=scripts.parent).stdout
    both = downriver("capture", "sql", "models", "--job", "nightly", cwd=scripts.parent)
    assert (both.returncode, both.stderr) == (
        2,
        "error: --job: names one job, but there are 2 files\n",
    )


def test_new_tables_get_the_given_namespace(tmp_path: Path) -> None:
    (tmp_path / "revenue.sql").write_text(REVENUE)
    downriver("capture", "sql", "revenue.sql", "--namespace", "warehouse", cwd=tmp_path)
    root = json.loads(downriver("trace", "shop.orders", "--json", cwd=tmp_path).stdout)["root"]
    assert root["id"] == "dataset:warehouse:shop.orders"


def test_unreadable_sql_is_reported_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "odd.sql").write_text("INSERT INTO t\nSELECT a FROM s WHERE ((;\n")
    done = downriver("capture", "sql", "odd.sql", "--dialect", "postgres", cwd=tmp_path)
    assert done.returncode == 0
    assert "? line 2, column " in done.stderr
    assert "unparsed" in done.stderr
    assert "writes t" in done.stdout
    assert "line 2: Required keyword: 'this' missing for Paren" in (
        downriver("trace", "s", cwd=tmp_path).stdout
    )


def test_an_unknown_dialect_is_an_error_that_lists_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "revenue.sql").write_text(REVENUE)
    done = downriver("capture", "sql", "revenue.sql", "--dialect", "snowflak", cwd=tmp_path)
    assert done.returncode == 2
    assert "snowflake" in done.stderr


def test_a_missing_file_stores_nothing_of_the_others(scripts: Path) -> None:
    done = downriver("capture", "sql", "models", "nope.sql", cwd=scripts.parent)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: FILE: nope.sql: no such file or directory\n"
    assert downriver("status", cwd=scripts.parent).returncode == 2  # there is no store


def test_a_directory_without_sql_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = downriver("capture", "sql", "empty", cwd=tmp_path)
    assert done.returncode == 2
    assert "empty: no .sql files in this directory" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="Windows opens no socket as a file")
def test_a_file_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    loop = tmp_path / "loop.sql"
    loop.symlink_to(loop)
    done = downriver("capture", "sql", "loop.sql", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: FILE: loop.sql: ")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
def test_files_in_any_unicode_encoding_are_read(tmp_path: Path, encoding: str) -> None:
    text = REVENUE.replace("total", "größe")
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    (tmp_path / "revenue.sql").write_bytes((mark + text).encode(encoding))
    done = downriver("capture", "sql", "revenue.sql", "--dry-run", cwd=tmp_path)
    assert "mart.revenue.größe ← shop.orders.amount" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    "content", [b"", b"\x00\xff\xfe" * 50, b"-- nothing\n", b"\x89PNG\r\n\x1a\n\x00"]
)
def test_a_file_without_sql_does_not_crash(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.sql").write_bytes(content)
    done = downriver("capture", "sql", "bad.sql", cwd=tmp_path)
    assert done.returncode == 0
    assert "writes nothing · not registered" in done.stdout
    assert "Traceback" not in done.stderr
