"""The work of capture is linear in the size of a plan, and limited for very large plans."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.capture.spark.action_reader import ActionReader
from downriver.capture.spark.actions import DatasetLocation, PlanLeaf, SparkAction
from downriver.capture.spark.plan.lineage import read_lineage
from downriver.columns.dependencies import DependencyKind
from downriver.model.ids import DatasetId

if TYPE_CHECKING:
    from tests.spark_golden import GoldenSession

SOURCE = DatasetId("file", "/wide")


def attribute(number: int) -> dict[str, Any]:
    kind = "org.apache.spark.sql.catalyst.expressions.AttributeReference"
    return {"class": kind, "num-children": 0, "name": f"c{number}", "exprId": {"id": number}}


def step(width: int, changed: int) -> dict[str, Any]:
    """A Project that changes one column and passes the others on."""
    catalyst = "org.apache.spark.sql.catalyst"
    items: list[list[dict[str, Any]]] = [[attribute(number)] for number in range(width)]
    alias = {**attribute(changed), "class": f"{catalyst}.expressions.Alias", "num-children": 1}
    upper = {"class": f"{catalyst}.expressions.Upper", "num-children": 1, "child": 0}
    items[changed] = [alias, upper, attribute(changed)]
    return {
        "class": f"{catalyst}.plans.logical.Project",
        "num-children": 1,
        "projectList": items,
        "child": 0,
    }


def plan_of(width: int, steps: int) -> SparkAction:
    relation = {
        "class": "org.apache.spark.sql.execution.datasources.LogicalRelation",
        "num-children": 0,
        "output": [[attribute(number)] for number in range(width)],
    }
    flat = [*(step(width, number % width) for number in range(steps)), relation]
    return SparkAction(
        name="collect",
        ended_at=0,
        duration_ns=0,
        columns=list(range(width)),
        plan=msgspec.json.encode(flat).decode(),
        leaves=[PlanLeaf(0, [DatasetLocation(SOURCE)])],
    )


def calls_to_read(action: SparkAction) -> int:
    """Count the calls for reading a plan, a measure that does not depend on the machine."""
    count = 0

    def counting(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(counting)
    try:
        read_lineage(action)
    finally:
        sys.setprofile(None)
    return count


def test_twice_the_columns_or_twice_the_steps_are_twice_the_work() -> None:
    work = calls_to_read(plan_of(100, 20))
    assert calls_to_read(plan_of(200, 20)) < 2.1 * work
    assert calls_to_read(plan_of(100, 40)) < 2.1 * work
    assert calls_to_read(plan_of(400, 80)) < 16.8 * work


def test_a_thousand_columns_through_a_hundred_steps() -> None:
    lineage = read_lineage(plan_of(1000, 100))
    kinds = [[DependencyKind(key[2]) for key in column.deps] for column in lineage.columns]
    assert kinds == [[DependencyKind.TRANSFORMATION]] * 100 + [[DependencyKind.IDENTITY]] * 900
    assert [key[1] for column in lineage.columns for key in column.deps] == [
        f"c{number}" for number in range(1000)
    ]


def test_a_wider_and_longer_plan_takes_no_more_round_trips(golden: GoldenSession) -> None:
    session = golden.spark._jsparkSession
    reader = ActionReader(session, golden.spark.sparkContext._gateway, largest_plan=200_000)
    small, large = chain(golden, 40, 3), chain(golden, 400, 30)
    first = round_trips(golden, lambda: reader.read_plan(small))
    again = round_trips(golden, lambda: reader.read_plan(small))
    assert 0 < again < first  # a relation is looked up once
    assert round_trips(golden, lambda: reader.read_plan(large)) == again


def test_beyond_the_limit_there_is_dataset_lineage_and_a_blind_spot(golden: GoldenSession) -> None:
    session = golden.spark._jsparkSession
    reader = ActionReader(session, golden.spark.sparkContext._gateway, largest_plan=10)
    action = reader.read_plan(chain(golden, 20, 3))
    lineage = read_lineage(action)
    assert action.plan == ""
    assert [place.dataset.name.rpartition("/")[2] for place in lineage.inputs] == ["customers"]
    assert (lineage.columns, lineage.rows) == ([], {})
    assert [spot.kind for spot in lineage.spots] == ["large_plan"]


def chain(golden: GoldenSession, width: int, steps: int) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    frame = golden.spark.table("customers")
    frame = frame.select("id", *(F.col("id").alias(f"c{number}") for number in range(width)))
    for number in range(steps):
        frame = frame.withColumn(f"c{number % width}", F.col(f"c{number % width}") + 1)
    return frame._jdf.queryExecution().analyzed()


def round_trips(golden: GoldenSession, work: Any) -> int:
    """Count the calls into the JVM."""
    client = golden.spark.sparkContext._gateway._gateway_client
    count, send = 0, client.send_command

    def counting(command: str, *args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += not command.startswith("m\n")  # releasing an object does not count
        return send(command, *args, **kwargs)

    client.send_command = counting
    try:
        work()
    finally:
        client.send_command = send
    return count
