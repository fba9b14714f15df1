"""A wide plan is read in its optimized form, and the lineage of every column stays the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from downriver.capture.spark.action_reader import ActionReader
from downriver.capture.spark.executions import Execution
from downriver.capture.spark.plan.lineage import read_lineage

if TYPE_CHECKING:
    from tests.spark_golden import GoldenSession

WIDTH, STEPS = 120, 12
COLLECT = Execution(
    id=1,
    root=1,
    name="collect",
    duration_ns=0,
    ended_ms=0,
    session="of the tests",
    kind="QueryExecution",
    plan="Project",
    is_command=False,
)


def chain(spark: Any, start: Any) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    names = [f"c{number}" for number in range(WIDTH)]
    frame = start.select("id", *(F.col("id").alias(name) for name in names))
    for step in range(STEPS):
        frame = frame.select("id", *((F.col(name) + step).alias(name) for name in names))
    return frame


def selected(spark: Any) -> Any:
    return chain(spark, spark.table("customers"))


def filtered(spark: Any) -> Any:
    return selected(spark).where("c1 > 3 AND id < 100").sort("c2")


def joined(spark: Any) -> Any:
    orders = spark.table("orders").selectExpr("customer_id AS id", "amount")
    return selected(spark).join(orders, "id")


def local(spark: Any) -> Any:
    return chain(spark, spark.sql("SELECT * FROM VALUES (1), (2) AS t(id)"))


@pytest.mark.parametrize(
    ("made", "shorter"), [(selected, True), (filtered, True), (joined, False), (local, False)]
)
def test_the_optimized_plan_has_the_lineage_of_the_analysed_plan(
    golden: GoldenSession, made: Any, shorter: bool
) -> None:
    gateway = golden.spark.sparkContext._gateway
    reader = ActionReader(golden.spark._jsparkSession, gateway, largest_plan=1_000_000)
    execution = made(golden.spark)._jdf.queryExecution()
    [ran] = reader.read(COLLECT, execution)
    analysed = reader.read_plan(execution.analyzed())
    assert (len(ran.plan) < len(analysed.plan) / 3) == shorter
    found, expected = (read_lineage(action) for action in (ran, analysed))
    assert len(expected.columns) >= WIDTH
    assert [(c.name, c.deps) for c in found.columns] == [(c.name, c.deps) for c in expected.columns]
    assert (found.inputs, found.rows, found.spots) == (
        expected.inputs,
        expected.rows,
        expected.spots,
    )
