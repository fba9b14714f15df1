"""Migrations of several dialects, read as changes."""

from __future__ import annotations

import pytest

from downriver.errors import InvalidRequestError
from downriver.impact import parse_ddl


@pytest.mark.parametrize(
    ("dialect", "sql", "changes"),
    [
        ("postgres", "ALTER TABLE raw.orders RENAME COLUMN a TO b", ["rename raw.orders.a to b"]),
        ("postgres", "alter table raw.orders rename a to b", ["rename raw.orders.a to b"]),
        (
            "postgres",
            "alter table t drop column if exists a, add column b int not null,"
            " alter column c type bigint using c::bigint, alter column d set not null,"
            " alter column e drop not null",
            [
                "drop t.a",
                "add required t.b",
                "change the type of t.c to bigint",
                "make t.d NOT NULL",
                "make t.e nullable",
            ],
        ),
        ("postgres", "alter table t add column b int not null default 3", ["add t.b"]),
        (
            "mysql",
            "alter table t change a b int",
            ["rename t.a to b", "change the type of t.a to int"],
        ),
        ("mysql", "alter table t drop a", ["drop t.a"]),
        (
            "snowflake",
            "alter table db.s.t alter column a set data type varchar(20)",
            ["change the type of db.s.t.a to varchar(20)"],
        ),
        ("snowflake", "alter table t drop column a, b", ["drop t.a", "drop t.b"]),
        ("bigquery", "alter table `p.d.t` rename column a to b", ["rename p.d.t.a to b"]),
        ("tsql", "exec sp_rename 'dbo.t.a', 'b', 'COLUMN'", ["rename dbo.t.a to b"]),
        ("tsql", "exec sp_rename 'dbo.t', 'u'", ["rename dbo.t to u"]),
        (
            "oracle",
            "alter table t modify (a number(10,2) not null)",
            ["change the type of t.a to number(10,2)", "make t.a NOT NULL"],
        ),
        ("databricks", "alter table t add columns (x int, y string)", ["add t.x", "add t.y"]),
        ("duckdb", "alter table t rename to u; drop view v", ["rename t to u", "drop v"]),
        ("", "create index i on t (a); drop table if exists a.b", ["drop a.b"]),
    ],
)
def test_a_migration_is_read_as_changes(dialect: str, sql: str, changes: list[str]) -> None:
    assert [str(change) for change in parse_ddl(sql, dialect)] == changes


@pytest.mark.parametrize("sql", ["alter table t frobnicate x", "drop table t; alter table t zap y"])
def test_a_migration_that_cannot_be_read_is_an_error(sql: str) -> None:
    with pytest.raises(InvalidRequestError, match="line 1: cannot read"):
        parse_ddl(sql)


def test_a_migration_without_changes_is_an_error() -> None:
    with pytest.raises(InvalidRequestError, match="no statement that changes a table"):
        parse_ddl("select 1")
