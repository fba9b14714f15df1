"""Statements of Spark SQL: what they write, and the query of their rows."""

from __future__ import annotations

import pytest

from downriver.capture.spark.connect.statements import StatementWrite, may_write, read_statement


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "INSERT INTO t SELECT a FROM s",
            StatementWrite("t", "", "SELECT a FROM s", reads=("s",)),
        ),
        (
            "INSERT INTO t (x, y) VALUES (1, 2);",
            StatementWrite("t", "", "VALUES (1, 2)", columns=("x", "y")),
        ),
        (
            "INSERT OVERWRITE TABLE t PARTITION (p = 'a', q) (SELECT b, c FROM s)",
            StatementWrite("t", "OVERWRITE", "(SELECT b, c FROM s)", fixed=("p",), reads=("s",)),
        ),
        (
            "INSERT INTO t BY NAME SELECT a FROM s",
            StatementWrite("t", "", "SELECT a FROM s", by_name=True, reads=("s",)),
        ),
        (
            "WITH c AS (SELECT a FROM s) INSERT INTO t SELECT a FROM c",
            StatementWrite("t", "", "WITH c AS (SELECT a FROM s) SELECT a FROM c", reads=("s",)),
        ),
        (
            "create table t using parquet tblproperties ('a' = 'b') as select a from s",
            StatementWrite("t", "CREATE", "select a from s", reads=("s",)),
        ),
        (
            "CREATE OR REPLACE TABLE t AS SELECT a FROM s",
            StatementWrite("t", "OVERWRITE", "SELECT a FROM s", reads=("s",)),
        ),
        (
            "REPLACE TABLE t AS SELECT a FROM s",
            StatementWrite("t", "OVERWRITE", "SELECT a FROM s", reads=("s",)),
        ),
        (
            "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE",
            StatementWrite("t", reads=("s",)),
        ),
        ("DROP TABLE t", StatementWrite("t", "DROP")),
        ("ALTER TABLE t RENAME TO u", StatementWrite("u", "RENAME", previous="t")),
    ],
)
def test_what_a_statement_writes(query: str, expected: StatementWrite) -> None:
    (found,) = read_statement(query)
    assert found == expected


@pytest.mark.parametrize(
    "query",
    ["CREATE OR REPLACE TEMPORARY VIEW v AS SELECT a FROM t", "CREATE FUNCTION f AS 'a.B'"],
)
def test_temporary_views_and_functions_write_nothing(query: str) -> None:
    assert not list(read_statement(query))


def test_each_target_of_a_multi_insert_is_written() -> None:
    found = list(read_statement("FROM s INSERT INTO a SELECT x INSERT INTO b SELECT y"))
    assert [(each.target, each.rows) for each in found] == [("a", ""), ("b", "")]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT 1", False),
        ("-- a comment\n/* another */ select * from t", False),
        ("(SELECT 1)", False),
        ("FROM s |> WHERE a > 1 |> SET b = 2", False),
        ("WITH c AS (SELECT 1) SELECT * FROM c", False),
        ("SHOW TABLES", False),
        ("CREATE TABLE t AS SELECT 1", True),
        ("WITH c AS (SELECT 1) INSERT INTO t SELECT * FROM c", True),
        ("INSERT INTO t VALUES ('unfinished", True),
    ],
)
def test_statements_that_may_write(query: str, *, expected: bool) -> None:
    assert may_write(query) is expected


def test_a_statement_that_cannot_be_read_is_an_unknown_write() -> None:
    (found,) = read_statement("INSERT INTO t VALUES ('unfinished")
    assert found.unknown
