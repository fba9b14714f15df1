"""A finished Spark action as plain data, so that it is processed later without the JVM."""

from __future__ import annotations

import msgspec

from downriver.capture.spark.io.paths import JdbcName
from downriver.model.ids import DatasetId


class DatasetLocation(msgspec.Struct, frozen=True):
    """A dataset in Spark: its location and, for a table, its name in the catalog."""

    dataset: DatasetId
    table: DatasetId | None = None
    format: str = ""
    catalog: str = ""


class PlanLeaf(msgspec.Struct):
    """The datasets that a leaf of a plan reads. `first_id` is the id of its first column.

    A JDBC leaf that reads by a query has the query's text and its database. An RDD leaf has the
    RDD's number and the columns that the RDDs before it scanned.
    """

    first_id: int
    locations: list[DatasetLocation]
    query: str = ""
    database: JdbcName | None = None
    unknown: str = ""
    columns: list[int] = []
    rdd: int | None = None
    scanned: dict[DatasetLocation, list[str]] = {}
    rewriting: bool = False  # read by Spark or Delta internally, not by the user's query


class Sink(msgspec.Struct):
    """The target of a command, its column names, and how the command changes the dataset.

    `wraps`: another command writes the rows, and Spark reports that one first.
    """

    location: DatasetLocation
    columns: list[str] | None = None
    lifecycle: str = ""
    previous: DatasetId | None = None
    wraps: bool = False


class IoStatistics(msgspec.Struct, frozen=True):
    """Counts of the executed plan; None when unknown."""

    rows: int | None = None
    size: int | None = None
    files: int | None = None


class PlanDetails(msgspec.Struct, frozen=True):
    """Details that the JSON of a plan leaves out.

    `expanded`: the rows of each Expand, as expressions in JSON, by the id of its first column.
    `own_casts`: the ids of columns that Spark casts although the query has no cast.
    """

    expanded: dict[int, list[list[str]]] = {}
    own_casts: frozenset[int] = frozenset()


class SparkAction(msgspec.Struct):
    """One action of a Spark job."""

    name: str
    ended_at: int
    duration_ns: int
    columns: list[int]  # ids of the output columns
    plan: str = ""
    details: PlanDetails = PlanDetails()
    schema: str = ""
    leaves: list[PlanLeaf] = []
    sink: Sink | None = None
    written: IoStatistics = IoStatistics()
    read: dict[int, IoStatistics] = {}  # by the id of a leaf's first column
    error: str = ""
    stack: str = ""
    too_large: str = ""
    unread: str = ""  # why the plan could not be read
    without_columns: bool = False  # rows are copied without a plan, so no columns are known
    tables: str = ""  # the namespace of the names of tables and views
    unknown_write: str = ""  # name of the writer, if its target is not known

    @property
    def writes(self) -> bool:
        """Whether the action writes, even if it is not known where."""
        return self.sink is not None or bool(self.unknown_write)

    def wraps(self, before: SparkAction) -> bool:
        """Return whether this is the outer command of the write that was reported before it."""
        return (
            self.sink is not None
            and before.sink is not None
            and self.sink.wraps
            and self.sink.location.dataset == before.sink.location.dataset
            and len(self.columns) == len(before.columns)
        )
