"""What is taken from the JVM when a query ends: plain data, so that the rest can happen later."""

from __future__ import annotations

import msgspec

from downriver.capture.spark.io.paths import JdbcName
from downriver.model.ids import DatasetId


class DatasetLocation(msgspec.Struct, frozen=True):
    """A dataset as Spark knows it: where it is and, if it is a table, what it is called."""

    dataset: DatasetId
    table: DatasetId | None = None
    format: str = ""
    catalog: str = ""


class PlanLeaf(msgspec.Struct):
    """Where the rows of a leaf come from. `first_id` is the id of its first column in the plan.

    A leaf that reads by a query has its text, and the database it is sent to. An RDD has a number,
    and the columns that were read on the way to it.
    """

    first_id: int
    places: list[DatasetLocation]
    query: str = ""
    database: JdbcName | None = None
    unknown: str = ""
    columns: list[int] = []
    rdd: int | None = None
    scanned: dict[DatasetLocation, list[str]] = {}
    rewriting: bool = False  # files that a command has picked to write them anew


class Sink(msgspec.Struct):
    """Where a command writes, under which column names, and what that does to the dataset.

    A command that `wraps` has the rows written by another one, which Spark reports before it.
    """

    place: DatasetLocation
    columns: list[str] | None = None
    lifecycle: str = ""
    previous: DatasetId | None = None
    wraps: bool = False


class IoStatistics(msgspec.Struct, frozen=True):
    """What the executed plan counted; None is not known."""

    rows: int | None = None
    size: int | None = None
    files: int | None = None


class PlanDetails(msgspec.Struct, frozen=True):
    """What the JSON of a plan leaves out.

    The rows that an Expand makes, as expressions in JSON, by the id of its first column; and the
    ids of columns that Spark casts on its own account.
    """

    expanded: dict[int, list[list[str]]] = {}
    own_casts: frozenset[int] = frozenset()


class SparkAction(msgspec.Struct):
    """One action of a Spark job."""

    action: str
    ended_at: int
    duration_ns: int
    columns: list[int]  # the ids of what comes out
    plan: str = ""
    asides: PlanDetails = PlanDetails()
    schema: str = ""
    leaves: list[PlanLeaf] = []
    sink: Sink | None = None
    written: IoStatistics = IoStatistics()
    read: dict[int, IoStatistics] = {}  # by the id of a leaf's first column
    error: str = ""
    stack: str = ""
    too_large: str = ""

    def wraps(self, before: SparkAction) -> bool:
        """Tell whether this is the outer part of the write that was reported before it."""
        return (
            self.sink is not None
            and before.sink is not None
            and self.sink.wraps
            and self.sink.place.dataset == before.sink.place.dataset
            and len(self.columns) == len(before.columns)
        )
