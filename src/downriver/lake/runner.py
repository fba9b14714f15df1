"""`Lake`: ingest, build, query and compare the tables of one lake.

A stage writes its tables into new folders. The last step commits a version that refers to them.
Until then, readers see the previous version.
"""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.errors import LakeError
from downriver.lake import schemas
from downriver.lake.bronze.ingest import BronzeIngest, bronze_locations
from downriver.lake.build import LakeBuild, read_tables
from downriver.lake.gold.graph import diff_column_edges, diff_edges
from downriver.lake.pipeline import StageReport, Stages
from downriver.lake.storage.files import Folder
from downriver.lake.storage.tables import TableStorage, check_format
from downriver.lake.storage.versions import (
    PARQUET,
    LakeVersion,
    StoredTable,
    commit_version,
    find_as_of,
    parse_version_or_time,
    read_current_version,
    read_version,
    record_as_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from downriver.lake.storage.versions import BronzeBatch
    from downriver.store import Store


class Lake:
    """A lake in a folder, worked on by a Spark session."""

    def __init__(
        self,
        place: str,
        spark: SparkSession,
        *,
        begin: Callable[[str], None] = lambda stage: None,
        report: Callable[[StageReport], None] = lambda stage: None,
        table_format: str = PARQUET,
    ) -> None:
        if table_format != PARQUET:
            check_format(spark, table_format)
        self.folder = Folder(place)
        self.spark = spark
        self._tables = TableStorage(self.folder, spark, table_format)
        self._stages = Stages(begin, report)
        self._intake = BronzeIngest(self._tables)

    # Taking in

    def ingest(self, sources: Sequence[str]) -> StageReport:
        """Take in what is new in files and directories of events."""
        with self._stages.running("bronze") as stage:
            self._intake.take_files(sources, stage)
        return stage

    def ingest_log(self, store: Store) -> StageReport:
        """Take in what is new in the log of a store."""
        with self._stages.running("bronze") as stage:
            self._intake.take_log(store, stage)
        return stage

    def ingest_stream(self, found: DataFrame, stream: str, number: int) -> StageReport:
        """Take in a batch of a stream, once."""
        with self._stages.running("bronze") as stage:
            self._intake.take_stream(found, stream, number, stage)
        return stage

    def compact(self) -> StageReport:
        """Make one batch of all that have been folded: many small files become a few large."""
        with self._stages.running("compact") as stage:
            self._intake.compact(stage)
        return stage

    def expire(self, before: int) -> StageReport:
        """Remove from bronze the folded events from before a time; what they told stays."""
        with self._stages.running("expire") as stage:
            self._intake.expire(before, stage)
        return stage

    # Building

    def build(self, *, full: bool = False) -> list[StageReport]:
        """Fold what is new into the facts, and make silver and gold from them.

        `full` folds all of bronze anew, to the identical tables.
        """
        base = read_current_version(self.folder)
        if full:
            _check_complete(base)
        batches = base.batches if full else base.unfolded
        if not batches:
            return []
        build = self._new_build(f"{base.version + 1:06d}")
        build.make_all(batches, {} if full else base.tables)
        folded = base.batches[-1].number
        commit_version(
            self.folder, base, msgspec.structs.replace(base, folded=folded, tables=build.made)
        )
        return build.reports

    def build_as_of(self, until: int) -> list[StageReport]:
        """Build the tables that the events up to a time make, beside the current ones.

        Made before of the same events, they are there already.
        """
        base = read_current_version(self.folder)
        if not base.batches or find_as_of(self.folder, until, base) is not None:
            return []
        _check_complete(base)
        build = self._new_build(f"asof-{until}")
        build.make_all(base.batches, {}, until)
        record_as_of(self.folder, until, msgspec.structs.replace(base, tables=build.made))
        return build.reports

    def _new_build(self, name: str) -> LakeBuild:
        return LakeBuild(self._tables, f"builds/{name}-{uuid.uuid4().hex[:8]}", self._stages)

    # Reading

    def tables(self, snapshot: LakeVersion | None = None) -> dict[str, DataFrame]:
        """Return the tables of a version, of the last one by default, as `layer.name`."""
        snapshot = snapshot or read_current_version(self.folder)
        return {**self._bronze(snapshot.batches), **self._stored(snapshot.tables)}

    def at(self, point: str) -> LakeVersion:
        """Return a version by its number, or what is built as of a time, building it if need be."""
        where = parse_version_or_time(point)
        if where.version is not None:
            found = read_version(self.folder, where.version)
            if not found.tables:
                raise LakeError(f"version {where.version} was made before the first build")
            return found
        self.build_as_of(where.until)
        made = find_as_of(self.folder, where.until, read_current_version(self.folder))
        if made is None:
            raise LakeError(f"{self.folder.place} holds no events")
        return made

    def diff(self, before: str, after: str) -> dict[str, DataFrame]:
        """Return the edges and column edges that came and went between two versions or times."""
        old, new = (self._stored(self.at(point).tables) for point in (before, after))
        return {
            "edges": diff_edges(old["gold.edges"], new["gold.edges"]),
            "column_edges": diff_column_edges(old["gold.column_edges"], new["gold.column_edges"]),
        }

    def query(self, sql: str, point: str | None = None) -> DataFrame:
        """Return what a query answers. Tables go by layer and name, as `gold_edges`."""
        for name, frame in self.tables(None if point is None else self.at(point)).items():
            frame.createOrReplaceTempView(name.replace(".", "_"))
        return self.spark.sql(sql)

    def _bronze(self, batches: Sequence[BronzeBatch]) -> dict[str, DataFrame]:
        if not batches:
            return {}
        return {
            f"bronze.{table.name}": self._tables.read(table, bronze_locations(table, batches))
            for table in schemas.LAYERS["bronze"]
        }

    def _stored(self, stored: dict[str, StoredTable]) -> dict[str, DataFrame]:
        return read_tables(self._tables, stored)


def _check_complete(base: LakeVersion) -> None:
    """Refuse to fold anew what is no longer all there."""
    if base.expired_before is not None:
        raise LakeError(
            "events have been expired from this lake, so it can only be built from what is new; "
            "--full and --as-of need them all"
        )


class QueryAnswer(msgspec.Struct):
    """The first rows of a query; `more` when there are others."""

    columns: list[str]
    rows: list[list[Any]]
    more: bool


def answer_query(frame: DataFrame, limit: int) -> QueryAnswer:
    """Return up to `limit` rows."""
    found = frame.limit(limit + 1).collect()
    rows = [[_plain(value) for value in row] for row in found[:limit]]
    return QueryAnswer(frame.columns, rows, len(found) > limit)


def _plain(value: Any) -> Any:
    match value:
        case bytes() | bytearray():
            return bytes(value).hex()
        case dt.datetime():
            return value.replace(tzinfo=dt.timezone.utc).isoformat().replace("+00:00", "Z")
        case dt.date():
            return value.isoformat()
        case Decimal():
            return float(value)
        case list():
            return [_plain(item) for item in value]
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case tuple():
            return _plain(value.asDict()) if hasattr(value, "asDict") else list(map(_plain, value))
        case _:
            return value
