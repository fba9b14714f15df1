"""Types that hold all values of other types, and types that do not."""

from __future__ import annotations

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from downriver.impact.simulate.column_types import (
    UNKNOWN,
    ColumnType,
    check_call,
    compare_types,
    literal_type,
    parse_type,
)


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("int", "INTEGER", "same"),
        ("int", "bigint", "widening"),
        ("bigint", "int", "narrowing"),
        ("int", "decimal(38,0)", "widening"),
        ("int", "double precision", "widening"),
        ("double", "int", "narrowing"),
        ("decimal(10,2)", "decimal(12,2)", "widening"),
        ("decimal(10,2)", "decimal(12,0)", "narrowing"),
        ("decimal(10,2)", "decimal(10,4)", "narrowing"),
        ("varchar(10)", "varchar(20)", "widening"),
        ("varchar(10)", "text", "widening"),
        ("text", "varchar(10)", "narrowing"),
        ("character varying(10)", "varchar(10)", "same"),
        ("date", "timestamp", "widening"),
        ("timestamp with time zone", "date", "narrowing"),
        ("int", "varchar", "conversion"),
        ("varchar", "boolean", "conversion"),
        ("int[]", "int", "conversion"),
        ("struct<a int>", "struct<a int, b int>", "conversion"),
    ],
)
def test_a_change_of_type_is_reported_as_such(old: str, new: str, found: str) -> None:
    assert compare_types(old, new) == found


EXPRESSIONS = [
    "-x", "abs(x)", "x % 2", "x // 2", "x * 2", "sum(x)", "round(x, 1)", "sqrt(x)",
    "floor(x)", "sign(x)", "power(x, 2)", "exp(x)", "upper(x)", "x like 'a%'", "year(x)",
    "x > 3", "x between 1 and 2", "greatest(x, 1)", "x is null", "count(x)", "max(x)",
]  # fmt: skip
CONDITIONS = ["not x", "x and true", "x or false", "case when x then 1 end"]
VALUES = {
    "varchar": "'1'",
    "boolean": "true",
    "date": "date '2024-01-01'",
    "timestamp": "timestamp '2024-01-01'",
    "double": "1.5",
    "integer": "1",
}


@pytest.mark.parametrize("data_type", VALUES)
@pytest.mark.parametrize("expression", [*EXPRESSIONS, *CONDITIONS])
def test_what_duckdb_refuses_is_reported(expression: str, data_type: str) -> None:
    query = f"select {expression} from (select cast({VALUES[data_type]} as {data_type}) as x)"
    with duckdb.connect() as connection:
        try:
            connection.execute(query).fetchall()
            refused = False
        except duckdb.Error:
            refused = True
    types = {"x": parse_type(data_type)}

    def type_of(node: exp.Expression) -> ColumnType:
        if isinstance(node, exp.Column):
            return types[node.name]
        return literal_type(node) or UNKNOWN

    tree = sqlglot.parse_one(expression, dialect="duckdb")
    complaints = [check_call(node, type_of, "duckdb") for node in tree.walk()]
    assert any(complaints) is refused
