"""Types that hold all that others held, and those that do not."""

from __future__ import annotations

import pytest

from downriver.impact.simulate.column_types import compare_types


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
def test_a_change_of_type_is_told_apart(old: str, new: str, found: str) -> None:
    assert compare_types(old, new) == found
