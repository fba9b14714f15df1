"""Running the pipeline: the only place that reads and writes tables.

A stage writes its tables into folders that nothing names yet; the last step makes a version that
names them. Until then the lake is what it was.
"""

from __future__ import annotations

import time
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
from pyspark import StorageLevel

from downriver import settings
from downriver.errors import LakeError
from downriver.lake import tables
from downriver.lake.bronze import bronze_events, bronze_quarantine
from downriver.lake.diff import diff_column_edges, diff_edges
from downriver.lake.facts import FOLDED, fold_events, merge_facts
from downriver.lake.gold import graph_recipes
from downriver.lake.health import COVERAGE_RECIPES, health_recipes
from downriver.lake.log import export_log
from downriver.lake.parquet import Parquet
from downriver.lake.places import Folder
from downriver.lake.reach import Reach, counting_on
from downriver.lake.reading import SPLIT_DDL, Split, read_splits
from downriver.lake.silver import SILVER
from downriver.lake.snapshots import Batch, Snapshot, Stored, commit, read_current, read_version
from downriver.lake.sources import Known, plan_reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from downriver.lake.recipes import Recipe
    from downriver.store import Store

_READ_BYTES = 32 * 2**20
_SOURCES = "sources.jsonl"


class StageReport(msgspec.Struct):
    """What a stage did. In bronze a row in is out, a duplicate, or rejected."""

    stage: str
    rows_in: int = 0
    rows_out: int = 0
    rejected: int = 0
    duplicates: int = 0
    seconds: float = 0.0


class Lake:
    """A lake in a folder, worked on by a Spark session."""

    def __init__(
        self,
        place: str,
        spark: SparkSession,
        *,
        begin: Callable[[str], None] = lambda stage: None,
        report: Callable[[StageReport], None] = lambda stage: None,
    ) -> None:
        self.folder = Folder(place)
        self._spark = spark
        self._parquet = Parquet(self.folder, spark)
        self._begin = begin
        self._report = report

    # Bronze

    def ingest(self, sources: Sequence[str]) -> StageReport:
        """Take in what is new in files and directories of events."""
        base = read_current(self.folder, create=True)
        with self._stage("bronze") as stage:
            plan = plan_reading(sources, self._known(base))
            if plan.known:
                self._add_batch(base, self._read(plan.splits), plan.known, stage)
        return stage

    def ingest_log(self, store: Store) -> StageReport:
        """Take in what is new in the log of a store."""
        base = read_current(self.folder, create=True)
        path = f"bronze/log-{uuid.uuid4().hex}"
        with self._stage("bronze") as stage:
            known = export_log(store, self._known(base), self.folder, path)
            if known is not None:
                self._add_batch(base, self._parquet.read(tables.FOUND, [path]), [known], stage)
                self.folder.remove(path)
        return stage

    def _known(self, base: Snapshot) -> dict[str, Known]:
        known: dict[str, Known] = {}
        for batch in base.batches:
            lines = self.folder.read(f"{batch.path}/{_SOURCES}").splitlines()
            files = (msgspec.json.decode(line, type=Known) for line in lines)
            known |= {file.path: file for file in files}
        return known

    def _add_batch(
        self, base: Snapshot, found: DataFrame, known: Sequence[Known], stage: StageReport
    ) -> None:
        """Write what was found as a batch, and commit it."""
        number = base.batches[-1].number + 1 if base.batches else 1
        path = f"bronze/{number:06d}-{uuid.uuid4().hex[:8]}"
        found.persist(StorageLevel.DISK_ONLY)
        try:
            self._write_bronze(base, found, path, stage)
        finally:
            found.unpersist()
        self.folder.write(f"{path}/{_SOURCES}", b"\n".join(map(msgspec.json.encode, known)))
        batch = Batch(number, path, stage.rows_out, stage.rejected, stage.duplicates)
        commit(self.folder, base, msgspec.structs.replace(base, batches=(*base.batches, batch)))

    def _write_bronze(
        self, base: Snapshot, found: DataFrame, path: str, stage: StageReport
    ) -> None:
        known = self._bronze(base.batches)
        made = {
            "events": bronze_events(found, known.get("bronze.events")),
            "quarantine": bronze_quarantine(found, known.get("bronze.quarantine")),
        }
        stage.rows_in = found.count()
        rows = {name: at.rows for name, at in self._parquet.write_all(made, path).items()}
        readable = stage.rows_in - found.where("reason IS NOT NULL").count()
        stage.rows_out, stage.rejected = rows["events"], rows["quarantine"]
        stage.duplicates = readable - stage.rows_out

    def _read(self, splits: Sequence[Split]) -> DataFrame:
        rows = self._spark.createDataFrame([tuple(split) for split in splits], SPLIT_DDL)
        size = sum(split.end - split.start for split in splits)
        tasks = max(self._spark.sparkContext.defaultParallelism, size // _READ_BYTES)
        spread = rows.repartition(min(max(len(splits), 1), tasks))
        return spread.mapInArrow(read_splits, tables.FOUND.ddl)

    # Facts, silver, gold

    def build(self, *, full: bool = False) -> list[StageReport]:
        """Fold what is new into the facts, and make silver and gold from them.

        `full` folds all of bronze anew, to the identical tables.
        """
        base = read_current(self.folder)
        batches = base.batches if full else base.unfolded
        if not batches:
            return []
        path = f"builds/{base.version + 1:06d}-{uuid.uuid4().hex[:8]}"
        made: dict[str, Stored] = {}
        reports = [self._build_facts(batches, {} if full else base.tables, path, made)]
        stale_days = settings.read_number(settings.STALE_DAYS)
        for stage, layer, recipes in (
            ("silver", "silver", SILVER),
            ("gold", "gold", (*graph_recipes(stale_days), *health_recipes(stale_days))),
            ("coverage", "gold", COVERAGE_RECIPES),
        ):
            reports.append(self._build_layer(stage, layer, recipes, path, made))
        reports.append(self._build_reach(path, made))
        folded = base.batches[-1].number
        commit(self.folder, base, msgspec.structs.replace(base, folded=folded, tables=made))
        return reports

    def _build_facts(
        self,
        batches: Sequence[Batch],
        before: dict[str, Stored],
        path: str,
        made: dict[str, Stored],
    ) -> StageReport:
        with self._stage("facts") as stage:
            stage.rows_in = sum(batch.events for batch in batches)
            # Written once and read by each table: folding is the costly part.
            events = self._bronze(batches)["bronze.events"]
            told = self._parquet.write(fold_events(events), f"{path}/told")
            known = {name.removeprefix("facts."): t for name, t in self._stored(before).items()}
            merged = merge_facts(self._parquet.read(FOLDED, [told.path]), known)
            stored = self._parquet.write_all(merged, f"{path}/facts")
            self.folder.remove(told.path)
            stage.rows_out = _add(made, "facts", stored)
        return stage

    def _build_layer(
        self,
        name: str,
        layer: str,
        recipes: Sequence[Recipe],
        path: str,
        made: dict[str, Stored],
    ) -> StageReport:
        with self._stage(name) as stage:
            inputs = self._stored(made)
            wanted = {name for recipe in recipes for name in recipe.inputs}
            stage.rows_in = sum(made[name].rows for name in wanted)
            frames = {
                recipe.table.name: recipe.make(*(inputs[name] for name in recipe.inputs))
                for recipe in recipes
            }
            stored = self._parquet.write_all(frames, f"{path}/{layer}")
            stage.rows_out = _add(made, layer, stored)
        return stage

    def _build_reach(self, path: str, made: dict[str, Stored]) -> StageReport:
        with self._stage("reach") as stage:
            facts = self._stored(made)
            count = counting_on(self._spark, self._parquet, f"{path}/reach")
            reach = Reach(self._parquet, f"{path}/reach", count)
            frames = reach.measure(
                facts["facts.nodes"],
                facts["facts.edges"],
                facts["facts.columns"],
                facts["facts.derivations"],
            )
            stage.rows_in = made["facts.edges"].rows + made["facts.derivations"].rows
            stored = self._parquet.write_all(frames, f"{path}/gold")
            self.folder.remove(f"{path}/reach")
            stage.rows_out = _add(made, "gold", stored)
        return stage

    # Reading

    def tables(self, snapshot: Snapshot | None = None) -> dict[str, DataFrame]:
        """Return the tables of a version, of the last one by default, as `layer.name`."""
        snapshot = snapshot or read_current(self.folder)
        return {**self._bronze(snapshot.batches), **self._stored(snapshot.tables)}

    def diff(self, before: int, after: int) -> dict[str, DataFrame]:
        """Return the edges and column edges that came and went between two versions."""
        old, new = (self._built(version) for version in (before, after))
        return {
            "edges": diff_edges(old["gold.edges"], new["gold.edges"]),
            "column_edges": diff_column_edges(old["gold.column_edges"], new["gold.column_edges"]),
        }

    def _built(self, version: int) -> dict[str, DataFrame]:
        snapshot = read_version(self.folder, version)
        if not snapshot.tables:
            raise LakeError(f"version {version} was made before the first build")
        return self._stored(snapshot.tables)

    def query(self, sql: str) -> DataFrame:
        """Return what a query answers. Tables go by layer and name, as `gold_edges`."""
        for name, frame in self.tables().items():
            frame.createOrReplaceTempView(name.replace(".", "_"))
        return self._spark.sql(sql)

    def _bronze(self, batches: Sequence[Batch]) -> dict[str, DataFrame]:
        if not batches:
            return {}
        return {
            f"bronze.{table.name}": self._parquet.read(
                table, [f"{batch.path}/{table.name}" for batch in batches]
            )
            for table in tables.LAYERS["bronze"]
        }

    def _stored(self, stored: dict[str, Stored]) -> dict[str, DataFrame]:
        """Return tables as a build wrote them, without those that only an older Downriver had."""
        return {
            name: self._parquet.read(tables.BY_NAME[name], [at.path])
            for name, at in stored.items()
            if name in tables.BY_NAME
        }

    @contextmanager
    def _stage(self, name: str) -> Iterator[StageReport]:
        stage = StageReport(name)
        self._begin(name)
        began = time.perf_counter()
        yield stage
        stage.seconds = round(time.perf_counter() - began, 3)
        self._report(stage)


def _add(made: dict[str, Stored], layer: str, stored: dict[str, Stored]) -> int:
    """Note the tables of a layer, and return how many rows they have."""
    made |= {f"{layer}.{name}": at for name, at in stored.items()}
    return sum(at.rows for at in stored.values())
