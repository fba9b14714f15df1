"""Expressions of real plans are rendered as SQL."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from downriver.capture.spark.plan.expressions import render_expression
from downriver.capture.spark.plan.tree import parse_tree


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("balance * 2.5D + id", "((balance * 2.5) + cast(id as double))"),
        ("upper(name)", "upper(name)"),
        (
            "CASE WHEN id > 1 THEN name ELSE 'x' END",
            "case when (id > 1) then name else 'x' end",
        ),
        ("name IS NOT NULL", "(name is not null)"),
        ("NOT (name IS NULL)", "(not (name is null))"),
        ("cast(id AS string)", "cast(id as string)"),
        ("sha2(email, 256)", "sha2(cast(email as binary), 256)"),
        ("(SELECT 1)", "(subquery)"),
        ("null", "null"),
    ],
)
def test_an_expression_reads_as_it_was_written(spark: Any, sql: str, text: str) -> None:
    schema = "id int, name string, email string, balance double"
    plan = spark.createDataFrame([], schema).selectExpr(f"{sql} AS x")
    assert render_expression(_first_item(plan)) == text


def test_windows_and_aggregates(spark: Any) -> None:
    frame = spark.range(1).selectExpr("sum(id) OVER (PARTITION BY id ORDER BY id DESC) AS x")
    texts = [
        render_expression(item)
        for node in _nodes(frame)
        for item in node.trees("windowExpressions")
    ]
    assert texts == ["sum(id) over (id, id desc)"]


def test_a_long_expression_is_truncated(spark: Any) -> None:
    frame = spark.range(1).selectExpr(" + ".join(["id"] * 200) + " AS x")
    text = render_expression(_first_item(frame))
    assert len(text) == 500
    assert text.endswith("…")


def _nodes(frame: Any) -> list[Any]:
    root = parse_tree(msgspec.json.decode(str(frame._jdf.queryExecution().analyzed().toJSON())))
    found, waiting = [], [root]
    while waiting:
        node = waiting.pop()
        found.append(node)
        waiting += node.children
    return found


def _first_item(frame: Any) -> Any:
    return _nodes(frame)[0].trees("projectList")[0]
