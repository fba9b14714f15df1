"""A type change is reported where it can be seen, and not behind a cast that hides it."""

from __future__ import annotations

import pytest
from tests.unit.impact.estate import Estate, hurt

from downriver.model.changes import ColumnDrop, ColumnRename, TypeChange

COLUMNS = {
    "id": "integer", "n": "integer", "d": "date", "at": "timestamp", "flag": "boolean",
    "s": "varchar",
}  # fmt: skip

HIDDEN = [
    ("n", "bigint", "select id, cast(n as varchar) as x from t"),
    ("n", "varchar", "select id, cast(n as varchar) as x from t"),
    ("n", "varchar", "select id, cast(n as double) as x from t"),
    ("n", "varchar", "select id, count(n) as x from t group by id"),
    ("n", "varchar", "select id, count(distinct n) as x from t group by id"),
    ("n", "double", "select id from t where n > 3"),
    ("n", "varchar", "select id from t where n = 3"),
    ("n", "varchar", "select id from t where n is not null"),
    ("n", "varchar", "select count(*) as x from t group by n"),
    ("n", "bigint", "select id, case when n > 5 then 'high' else 'low' end as x from t"),
    ("n", "varchar", "select id, n || '_x' as x from t"),
    ("n", "varchar", "with c as (select * from t) select id, cast(n as varchar) as x from c"),
    ("d", "timestamp", "select id, extract(year from d) as x from t"),
    ("d", "timestamp", "select id, cast(d as date) as x from t"),
    ("d", "timestamp", "select id from t where d > date '2024-03-01'"),
    ("at", "date", "select id, cast(at as date) as x from t"),
    ("at", "date", "select id, extract(month from at) as x from t"),
    ("n", "bigint", "select id from t where id in (select n from t where s = 'x')"),
    ("n", "varchar", "select id from t where exists (select 1 from t u where u.n is null)"),
    ("n", "varchar", "select id, max(n) is null as x from t group by id"),
    ("flag", "integer", "select id, case when flag then 1 else 0 end as x from t"),
]
VISIBLE = [
    ("n", "bigint", "select id, n as x from t"),
    ("n", "bigint", "select id, n + 1 as x from t"),
    ("n", "double", "select id, cast(n as varchar) as x from t"),
    ("n", "varchar", "select id, max(n) as x from t group by id"),
    ("n", "varchar", "select n, count(*) as x from t group by n"),
    ("d", "timestamp", "select id, cast(d as varchar) as x from t"),
    ("d", "timestamp", "select * from t"),
    ("at", "date", "select id, extract(hour from at) as x from t"),
    ("at", "date", "select count(*) as x from t group by at"),
    ("at", "date", "select distinct at from t"),
    ("flag", "varchar", "select id, flag as x from t"),
    (
        "n",
        "varchar",
        "select id, (select max(n) from t) is null as y, (select max(n) from t) as x from t",
    ),
    ("at", "date", "select id from t where at in (select at from t where id > 3)"),
    ("at", "date", "select id from t where exists (select 1 from t u where u.at > now())"),
    ("n", "varchar", "select id, try_cast(max(n) as date) is null as x from t group by id"),
    ("n", "varchar", "select id, nullif(n, 3) is null as x from t"),
]


def outcome(estate: Estate, column: str, to: str, query: str) -> dict[str, str]:
    estate.table("t", COLUMNS)
    estate.sql("job", f"create table o as {query}")
    return hurt(estate.lineage.impact([TypeChange(dataset="t", column=column, to=to)]))


@pytest.mark.parametrize(("column", "to", "query"), HIDDEN)
def test_a_type_change_without_visible_effect_is_not_reported(
    estate: Estate, column: str, to: str, query: str
) -> None:
    assert outcome(estate, column, to, query) == {}


@pytest.mark.parametrize(("column", "to", "query"), VISIBLE)
def test_a_type_change_that_shows_is_reported(
    estate: Estate, column: str, to: str, query: str
) -> None:
    assert outcome(estate, column, to, query) == {"o": "changes"}


@pytest.mark.parametrize(
    "query",
    [
        "with c as (select * from t) select id from c",
        "with c as (select * from t), e as (select * from c) select e.id from e where e.n > 1",
        "select x.id from (select * from t) x",
        "with c as (select * from t) select count(*) as x from c",
    ],
)
def test_a_column_that_only_passes_through_a_star_is_not_used(estate: Estate, query: str) -> None:
    estate.table("t", COLUMNS)
    estate.sql("job", f"create table o as {query}")
    for change in (
        ColumnDrop(dataset="t", column="s"),
        ColumnRename(dataset="t", column="s", to="text"),
        TypeChange(dataset="t", column="s", to="integer"),
    ):
        impact = estate.lineage.impact([change])
        assert (hurt(impact), impact.untouched) == ({}, 1)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select id from m where x is not null", {"m": "changes"}),
        ("select count(x) as n from m", {"m": "changes"}),
        ("select id from m where x > '3'", {"m": "changes", "o": "changes"}),
        ("select id, coalesce(x, '0') as x from m", {"m": "changes", "o": "changes"}),
    ],
)
def test_other_values_that_keep_their_nulls_do_not_change_what_tests_for_null(
    estate: Estate, query: str, expected: dict[str, str]
) -> None:
    estate.table("t", COLUMNS)
    estate.sql("build_m", "create table m as select id, max(n) as x from t group by id")
    estate.sql("job", f"create table o as {query}")
    impact = estate.lineage.impact([TypeChange(dataset="t", column="n", to="varchar")])
    assert hurt(impact) == expected


@pytest.mark.parametrize(
    ("column", "to", "expected"),
    [
        ("n", "bigint", {}),
        ("n", "varchar", {}),
        ("n", "double", {}),
        ("at", "varchar", {}),
        ("at", "date", {"history": "changes"}),
        ("s", "integer", {}),
    ],
)
def test_an_insert_converts_values_to_the_types_of_the_table(
    estate: Estate, column: str, to: str, expected: dict[str, str]
) -> None:
    estate.table("t", COLUMNS)
    estate.table("history", {"n": "integer", "at": "timestamp"})
    estate.sql("job", "insert into history select n, at from t")
    impact = estate.lineage.impact([TypeChange(dataset="t", column=column, to=to)])
    assert hurt(impact) == expected


def test_a_job_that_adds_rows_to_a_retyped_column_changes(estate: Estate) -> None:
    estate.table("t", COLUMNS)
    estate.table("history", {"n": "integer", "at": "timestamp"})
    estate.sql("job", "insert into history select n, at from t")
    estate.sql("other", "insert into history (at) select at from t")
    impact = estate.lineage.impact([TypeChange(dataset="history", column="n", to="bigint")])
    assert {effect.consumer.rpartition(":")[2] for effect in impact.effects} == {"job"}
    assert impact.effects[0].reason == "writes history.n, which has the type bigint now"
