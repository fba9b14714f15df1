"""References to columns in a SQL text have the right line, clause and table."""

from __future__ import annotations

import pytest

from downriver.capture.code import TableNames, find_references
from downriver.capture.sql import parse_sql_lineage
from downriver.model.ids import DatasetId

NAMES = TableNames(
    lambda table: DatasetId("db", table), {"stg": "s.stg", "raw.t": "lake.t"}, "s.me"
)


def found(sql: str) -> list[tuple[str, str, int, str]]:
    lineage = parse_sql_lineage(sql, dialect="postgres")
    return [
        (r.dataset.name, r.field, r.line, r.clause) for r in find_references(sql, lineage, NAMES)
    ]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select a\nfrom t\nwhere b > 1", [("t", "a", 1, "select"), ("t", "b", 3, "filter")]),
        # Not in comments, strings, aliases or the names of functions.
        ("select a as b -- a\nfrom t /* a */ where 'a' = c", [
            ("t", "a", 1, "select"), ("t", "c", 2, "filter"),
        ]),
        ("select max(max) as max from t", [("t", "max", 1, "select")]),
        # The alias determines the table.
        ("select x.id, y.id\nfrom a x\njoin b as y on x.id = y.id", [
            ("a", "id", 1, "select"), ("b", "id", 1, "select"),
            ("a", "id", 3, "join"), ("b", "id", 3, "join"),
        ]),
        # A CTE hides the table of the same name, but not within itself.
        ("with t as (\n  select a from t\n)\nselect a from t", [
            ("t", "a", 2, "select"), ("t", "a", 4, "select"),
        ]),
        ("with c as (select * from t)\nselect * from c", [("t", "*", 1, "select")]),
        ("select a from t\nunion all\nselect b from u", [
            ("t", "a", 1, "select"), ("u", "b", 3, "select"),
        ]),
        ("select a, sum(b) from t group by a\norder by a", [
            ("t", "a", 1, "select"), ("t", "b", 1, "select"), ("t", "a", 1, "group"),
            ("t", "a", 2, "order"),
        ]),
        # Columns that a statement writes are references too.
        ("insert into u (x)\nselect a from t", [("u", "x", 1, "write"), ("t", "a", 2, "select")]),
        ("merge into u using s on u.id = s.id\nwhen not matched then insert (x) values (s.a)", [
            ("u", "id", 1, "join"), ("s", "id", 1, "join"),
            ("u", "x", 2, "write"), ("s", "a", 2, "select"),
        ]),
        ("update u set x = s.a\nfrom s where u.id = s.id", [
            ("u", "x", 1, "write"), ("s", "a", 1, "select"),
            ("u", "id", 2, "filter"), ("s", "id", 2, "filter"),
        ]),
    ],
)  # fmt: skip
def test_every_reference_is_found(sql: str, expected: list[tuple[str, str, int, str]]) -> None:
    assert found(sql) == expected


def test_lines_of_a_template_are_those_of_its_file() -> None:
    sql = """{{ config(unique_key='id') }}
select id, {{ cents('amount') }} as amount
from {{ source('raw', 't') }}
where {# amount #} day > (select max(day) from {{ this }})"""
    lineage = parse_sql_lineage(
        "select id, amount / 100 as amount from lake.t where day > (select max(day) from s.me)",
        dialect="postgres",
    )
    places = {(r.dataset.name, r.field, r.line) for r in find_references(sql, lineage, NAMES)}
    assert places == {
        ("lake.t", "id", 2), ("lake.t", "amount", 2), ("lake.t", "day", 4), ("s.me", "day", 4),
    }  # fmt: skip
