"""`Lake`: ingest, build, query and compare the tables of one lake.

A stage writes its tables into new folders. The last step commits a version that refers to them.
Until then, readers see the previous version.
"""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import msgspec

from downriver import __version__, settings
from downriver.errors import LakeBusyError, LakeError, LakeTableNotFoundError
from downriver.lake import schemas
from downriver.lake.bronze.batches import bronze_locations
from downriver.lake.bronze.ingest import BronzeIngest
from downriver.lake.build import LakeBuild, read_tables
from downriver.lake.gold.graph import diff_column_edges, diff_edges
from downriver.lake.incremental import IncrementalBuild, can_increment, merge_runs
from downriver.lake.stages import StageReport, Stages
from downriver.lake.storage.files import Folder
from downriver.lake.storage.tables import (
    PARQUET,
    LakeVersion,
    StoredTable,
    TableStorage,
    check_format,
    commit_version,
    find_as_of,
    parse_version_or_time,
    read_current_version,
    read_version,
    record_as_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.errors import AnalysisException
    from pyspark.sql import DataFrame, SparkSession

    from downriver.lake.bronze.event_files import FileState
    from downriver.lake.storage.tables import BronzeBatch
    from downriver.store import Store


class Lake:
    """A lake in a folder, and the Spark session that works on it."""

    def __init__(
        self,
        location: str,
        spark: SparkSession,
        *,
        begin: Callable[[str], None] = lambda stage: None,
        report: Callable[[StageReport], None] = lambda stage: None,
        table_format: str = PARQUET,
    ) -> None:
        if table_format != PARQUET:
            check_format(spark, table_format)
        self.folder = Folder(location)
        self.spark = spark
        self._storage = TableStorage(self.folder, spark, table_format)
        self._stages = Stages(begin, report)
        self._bronze_ingest = BronzeIngest(self._storage)

    # Ingest

    def ingest(self, sources: Sequence[str]) -> StageReport:
        """Ingest the new events of files and directories."""
        with self._stages.running("bronze") as stage:
            self._bronze_ingest.ingest_files(sources, stage)
        return stage

    def ingest_log(self, store: Store) -> StageReport:
        """Ingest the new events of the log of a store."""
        with self._stages.running("bronze") as stage:
            self._bronze_ingest.ingest_log(store, stage)
        return stage

    def ingest_stream(
        self, records: DataFrame, stream: str, number: int, files: Sequence[FileState]
    ) -> StageReport:
        """Ingest a micro-batch of a stream, unless it was committed before.

        `files` are the states of the files that it was read from.
        """
        with self._stages.running("bronze") as stage:
            self._bronze_ingest.ingest_stream(records, stream, number, files, stage)
        return stage

    def compact(self) -> StageReport:
        """Merge the folded batches into one, and the runs of each table into one."""
        with self._stages.running("compact") as stage:
            self._bronze_ingest.compact(stage)
        self._merge_tables()
        return stage

    def _merge_tables(self) -> None:
        base = read_current_version(self.folder)
        counts = {
            name: len(stored.runs)
            for name, stored in base.tables.items()
            if stored.newer and name in schemas.BY_NAME
        }
        if counts:
            with self._stages.running("tables") as stage:
                path = _build_path(f"{base.version + 1:06d}")
                merged = merge_runs(self._storage, path, base.tables, counts)
                stage.rows_in = sum(run.rows for name in counts for run in base.tables[name].runs)
                stage.rows_out = sum(table.rows for table in merged.values())
                tables = {**base.tables, **merged}
                commit_version(self.folder, base, msgspec.structs.replace(base, tables=tables))

    def expire(self, before: int) -> StageReport:
        """Remove folded events before a time from bronze; the facts derived from them remain."""
        with self._stages.running("expire") as stage:
            self._bronze_ingest.expire(before, stage)
        return stage

    # Build

    def build(self, *, full: bool = False) -> list[StageReport]:
        """Fold new batches into the facts, and write silver and gold from them.

        `full` folds all of bronze again; the resulting tables are identical.
        """
        base = read_current_version(self.folder)
        if full:
            _check_complete(base)
        batches = base.batches if full else base.unfolded
        if not batches:
            return []
        stale_days = settings.read_number(settings.STALE_DAYS)
        name = f"{base.version + 1:06d}"
        build: LakeBuild | IncrementalBuild
        if full or not can_increment(base, stale_days):
            build = self._new_build(name)
            build.run(batches, {} if full else base.tables)
        else:
            build = IncrementalBuild(self._storage, _build_path(name), self._stages, base.tables)
            if any(batch.events for batch in batches):  # else only duplicates arrived
                build.run(batches)
        built = msgspec.structs.replace(
            base,
            folded=base.batches[-1].number,
            tables=build.tables,
            release=__version__,
            stale_days=stale_days,
        )
        commit_tables(self.folder, base, built)
        return build.reports

    def build_as_of(self, until: int) -> list[StageReport]:
        """Build tables from the events up to a time, beside the current tables.

        An earlier build of the same events is reused.
        """
        base = read_current_version(self.folder)
        if not base.batches or find_as_of(self.folder, until, base) is not None:
            return []
        _check_complete(base)
        build = self._new_build(f"asof-{until}")
        build.run(base.batches, {}, until)
        record_as_of(self.folder, until, msgspec.structs.replace(base, tables=build.tables))
        return build.reports

    def _new_build(self, name: str) -> LakeBuild:
        return LakeBuild(self._storage, _build_path(name), self._stages)

    # Query

    def tables(self, snapshot: LakeVersion | None = None) -> dict[str, DataFrame]:
        """Return the tables of a version (default: the last one) as `layer.name`."""
        snapshot = snapshot or read_current_version(self.folder)
        return {**self._bronze(snapshot.batches), **self._stored(snapshot.tables)}

    def at(self, point: str) -> LakeVersion:
        """Return a version by its number, or the build as of a time; build it if needed."""
        wanted = parse_version_or_time(point)
        if wanted.version is not None:
            version = read_version(self.folder, wanted.version)
            if not version.tables:
                raise LakeError(f"version {wanted.version} was committed before the first build")
            return version
        self.build_as_of(wanted.until)
        build = find_as_of(self.folder, wanted.until, read_current_version(self.folder))
        if build is None:
            raise LakeError(f"{self.folder.location} has no events")
        return build

    def diff(self, before: str, after: str) -> dict[str, DataFrame]:
        """Return the edges and column edges that differ between two versions or times."""
        old, new = (self._stored(self.at(point).tables) for point in (before, after))
        return {
            "edges": diff_edges(old["gold.edges"], new["gold.edges"]),
            "column_edges": diff_column_edges(old["gold.column_edges"], new["gold.column_edges"]),
        }

    def query(self, sql: str, point: str | None = None) -> DataFrame:
        """Return the result of a query. Tables are named by layer and name, as `gold_edges`."""
        from pyspark.errors import AnalysisException

        frames = self.tables(None if point is None else self.at(point))
        views = {name.replace(".", "_"): frame for name, frame in frames.items()}
        for name, frame in views.items():
            frame.createOrReplaceTempView(name)
        try:
            result = self.spark.sql(sql)
            _ = result.schema  # with Spark Connect, names are only resolved here
        except AnalysisException as exc:
            if (missing := _missing_table(exc)) is None:
                raise
            near = get_close_matches(missing, views, n=3)
            raise LakeTableNotFoundError(missing, sorted(views), near) from exc
        return result

    def _bronze(self, batches: Sequence[BronzeBatch]) -> dict[str, DataFrame]:
        if not batches:
            return {}
        return {
            f"bronze.{table.name}": self._storage.read(table, bronze_locations(table, batches))
            for table in schemas.LAYERS["bronze"]
        }

    def _stored(self, stored: dict[str, StoredTable]) -> dict[str, DataFrame]:
        return read_tables(self._storage, stored)


def commit_tables(folder: Folder, base: LakeVersion, built: LakeVersion) -> LakeVersion:
    """Commit the tables that a build of `base` wrote, with batches that were added since then.

    Raises LakeBusyError if another process changed the tables.
    """
    current = read_current_version(folder)
    if (current.tables, current.folded) != (base.tables, base.folded):
        raise LakeBusyError(folder.location)
    changed = msgspec.structs.replace(
        current,
        folded=built.folded,
        tables=built.tables,
        release=built.release,
        stale_days=built.stale_days,
    )
    return commit_version(folder, current, changed)


def _build_path(name: str) -> str:
    return f"builds/{name}-{uuid.uuid4().hex[:8]}"


def _missing_table(exc: AnalysisException) -> str | None:
    """Return the name of the table that Spark did not find, if that is the error."""
    if exc.getCondition() != "TABLE_OR_VIEW_NOT_FOUND":
        return None
    name = (exc.getMessageParameters() or {}).get("relationName", "")
    return name.replace("`", "") or None


def _check_complete(base: LakeVersion) -> None:
    """Raise an error if events were removed from bronze."""
    if base.expired_before is not None:
        raise LakeError(
            "events were expired from this lake, so only new events can be folded; "
            "--full and --as-of need all events"
        )


class QueryAnswer(msgspec.Struct):
    """The first rows of a query. `more` is true when there are further rows."""

    columns: list[str]
    rows: list[list[Any]]
    more: bool


def answer_query(frame: DataFrame, limit: int) -> QueryAnswer:
    """Return up to `limit` rows."""
    collected = frame.limit(limit + 1).collect()
    rows = [[_plain(value) for value in row] for row in collected[:limit]]
    return QueryAnswer(frame.columns, rows, len(collected) > limit)


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
