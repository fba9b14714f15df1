"""A build of new events only: adds runs to the tables, for the entities that the events mention.

Facts merge in any order, so new facts are a run of their own. Silver and gold rows are computed
for touched entities. Tables that no new event changes are carried over as they are.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import TYPE_CHECKING

import msgspec
from pyspark.sql import functions as f

from downriver import __version__, settings
from downriver.lake import schemas
from downriver.lake.bronze.batches import bronze_locations
from downriver.lake.build import read_tables, run_transforms, write_reach, write_tables
from downriver.lake.gold.governance import failing_datasets
from downriver.lake.gold.graph import COLUMN_EDGES_TRANSFORM, graph_transforms
from downriver.lake.gold.health import (
    COUNTED_TABLES,
    ENTITY_HEALTH_TRANSFORMS,
    figures_by_day,
    sum_counts,
    summary_transforms,
)
from downriver.lake.session import INTERPRETED, changed_settings
from downriver.lake.silver.facts import DATASET, FOLDED, count_folded, fold_events, read_facts
from downriver.lake.silver.touched_facts import JoinSelection, TouchedFacts
from downriver.lake.silver.touched_files import FileSelection
from downriver.lake.silver.transforms import DERIVE_ENDS_TRANSFORM, SILVER_TRANSFORMS
from downriver.lake.storage.runs import (
    ENTITY,
    add_run,
    count_runs_to_merge,
    entities_of,
    read_current,
    read_runs,
    replace_last_runs,
    select_current,
    with_entity,
)
from downriver.lake.storage.tables import PARQUET, StoredRun
from downriver.model.facts import EdgeKind, FacetRole
from downriver.openlineage.facets.description import TAGS
from downriver.openlineage.facets.label_statement import TAG_PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from downriver.lake.schemas import LakeTable, TableTransform
    from downriver.lake.silver.touched_facts import FactSelection
    from downriver.lake.stages import StageReport, Stages
    from downriver.lake.storage.tables import (
        BronzeBatch,
        LakeVersion,
        StoredTable,
        TableStorage,
    )

_MERGES_AT_ONCE = 4
_VERY_FEW_ROWS = 100_000
_FEW_ROWS = 1_000_000
_MANY_ROWS = 20_000_000
_ROWS_PER_TASK = 200_000
_IDENTITY = (EdgeKind.ALIAS, EdgeKind.RENAMED, EdgeKind.SAME, EdgeKind.DIFFERENT)
# Tables whose rows only grow: with more rows than before, the graph has changed.
_GRAPH = ("gold.nodes", "gold.edges", "silver.columns", "silver.derives")


def can_increment(base: LakeVersion, stale_days: int) -> bool:
    """True if the new events of a lake can be added to the tables of its last build.

    All rows must come from this release with the same setting. A build of all tables costs less if
    there are more new events than folded ones. The number of known runs is a lower bound of the
    folded events, because events may have been expired.
    """
    built_alike = (base.release, base.stale_days) == (__version__, stale_days)
    if not built_alike or any(name not in base.tables for name in schemas.BUILT):
        return False
    new = sum(batch.events for batch in base.unfolded)
    folded = sum(batch.events for batch in base.batches) - new
    return new <= max(folded, base.tables["silver.runs"].rows)


def spark_settings(new: int, stored: int) -> dict[str, str]:
    """Return settings of Spark for a number of new facts, in a lake of `stored` facts.

    For few rows, planning costs more than running: Spark should plan once and use few tasks. For
    very few, compiling also costs more. In a large lake a join may shuffle rows of a whole table,
    so Spark should choose the tasks.
    """
    if new > _FEW_ROWS or stored > _MANY_ROWS:
        return {}
    tasks = 1 + new // _ROWS_PER_TASK
    return {
        **(INTERPRETED if new <= _VERY_FEW_ROWS else {}),
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": str(tasks),
    }


class IncrementalBuild:
    """A build of new events, in a new folder. `tables` are all tables, with the new runs."""

    def __init__(
        self, storage: TableStorage, path: str, stages: Stages, before: Mapping[str, StoredTable]
    ) -> None:
        self._storage = storage
        self._path = path
        self._stages = stages
        self._before = before
        self.tables = {name: before[name] for name in schemas.BUILT}
        self.reports: list[StageReport] = []
        self._facets: set[str] = set()  # the names of the new facets
        self._has_identities = False  # new facts state which names are one dataset
        self._grown: set[str] = set()  # tables with more rows than before
        self._runs: dict[str, StoredRun] = {}  # the new runs of silver and gold tables
        self._in_files = False  # rows are found in this process, as in a lake that is not large

    def run(self, batches: Sequence[BronzeBatch]) -> None:
        """Fold batches, and update the tables."""
        stale_days = settings.read_number(settings.STALE_DAYS)
        written = self._add_facts(batches)
        stored = sum(self.tables[f"facts.{table.name}"].rows for table in schemas.FACTS)
        conf = spark_settings(self.reports[-1].rows_out, stored)
        with changed_settings(self._storage.spark, conf):
            self._in_files = bool(conf)
            touched = TouchedFacts(self._selection(written))
            try:
                facts = touched.frames()
                self._add_tables("silver", facts, self._affected(SILVER_TRANSFORMS))
                self._add_gold(facts, stale_days)
            finally:
                touched.release()
            self._write_summaries(stale_days)
        self._update_reach()
        self._merge_runs()

    def _selection(self, written: StoredTable) -> FactSelection:
        """Return what finds the facts of the entities in folded facts: in this process or Spark."""
        if not self._in_files:
            return JoinSelection(self._storage, self.tables, self._storage.read(FOLDED, [written]))
        run = StoredRun(written.path, written.rows, PARQUET, folded=True)
        return FileSelection(self._storage, self.tables, run, f"{self._path}/touched")

    def _affected(self, transforms: Sequence[TableTransform]) -> list[TableTransform]:
        """Return the transforms of tables that get new rows from the new facets."""
        return [
            transform
            for transform in transforms
            if not transform.facets or self._facets.intersection(transform.facets)
        ]

    def _add_facts(self, batches: Sequence[BronzeBatch]) -> StoredTable:
        with self._stages.running("facts") as stage:
            events = self._storage.read(schemas.EVENTS, bronze_locations(schemas.EVENTS, batches))
            stage.rows_in = sum(batch.events for batch in batches)
            written = self._storage.write(fold_events(events), f"{self._path}/folded", PARQUET)
            for table, rows in count_folded(self._storage.folder, written.path).items():
                if rows:
                    self._add_fact_run(f"facts.{table}", written.path, rows)
            stage.rows_out = written.rows
            folded = self._storage.read(FOLDED, [written])
            named = f.col("edge.kind").isin(*map(int, _IDENTITY))
            [seen] = folded.agg(f.collect_set("facet.facet"), f.max(named)).collect()
            self._facets, self._has_identities = set(seen[0]), bool(seen[1])
        self.reports.append(stage)
        return written

    def _add_fact_run(self, name: str, path: str, rows: int) -> None:
        before = self.tables[name]
        self.tables[name] = msgspec.structs.replace(
            before,
            rows=before.rows + rows,
            newer=(*before.newer, StoredRun(path, rows, PARQUET, folded=True)),
            stored=before.runs[0].rows,
        )

    def _add_tables(
        self, name: str, inputs: Mapping[str, DataFrame], transforms: Sequence[TableTransform]
    ) -> None:
        with self._stages.running(name) as stage:
            stage.rows_in = self.reports[-1].rows_out
            stage.rows_out = self._add(run_transforms(transforms, inputs))
        self.reports.append(stage)

    def _add_gold(self, facts: Mapping[str, DataFrame], stale_days: int) -> None:
        """Add the rows of nodes, edges and jobs, from touched facts and the new silver rows."""
        with self._stages.running("gold") as stage:
            written, runs_of_jobs = self._new_silver(), self._runs_of_touched_jobs()
            inputs = {**facts, **written, **runs_of_jobs}
            transforms = (
                *graph_transforms(stale_days),
                *(each for each in _ENTITY_GOLD if all(name in inputs for name in each.inputs)),
            )
            stage.rows_in = self.reports[-1].rows_out
            stage.rows_out = self._add(run_transforms(transforms, inputs))
            for frame in runs_of_jobs.values():
                frame.unpersist()
        self.reports.append(stage)

    def _new_silver(self) -> dict[str, DataFrame]:
        return {
            name: self._storage.read(schemas.BY_NAME[name], [self._runs[name]])
            for name in ("silver.derives", "silver.schema_versions")
            if name in self._runs
        }

    def _runs_of_touched_jobs(self) -> dict[str, DataFrame]:
        """Return all writes of the datasets that touched jobs write, and the runs of their jobs.

        Frames are kept in Spark: several transforms read them.
        """
        job, dataset = ["job_namespace", "job_name"], ["namespace", "name"]
        silver = read_tables(
            self._storage, {name: self.tables[name] for name in ("silver.writes", "silver.runs")}
        )
        new = [
            self._storage.read(schemas.BY_NAME[name], [self._runs[name]]).select(*job)
            for name in ("silver.writes", "silver.runs")
            if name in self._runs
        ]
        if not new:
            return {}
        jobs = reduce(lambda whole, part: whole.unionAll(part), new).distinct()
        touched = silver["silver.writes"].join(jobs, job, "left_semi").select(*dataset).distinct()
        writes = silver["silver.writes"].join(touched, dataset, "left_semi").persist()
        all_jobs = jobs.unionAll(writes.select(*job)).distinct()
        runs = silver["silver.runs"].join(all_jobs, job, "left_semi").persist()
        return {"silver.writes": writes, "silver.runs": runs}

    def _write_summaries(self, stale_days: int) -> None:
        """Write the tables that have one row for a dataset or day, as a whole."""
        with self._stages.running("kpis") as stage:
            stage.rows_out = self._replace({"state.daily_counts": self._daily_counts()})
            if self._in_files and self._runs.keys() & {*COUNTED_TABLES}:
                self._storage.folder.remove(f"{self._path}/replaced")
            for transforms in summary_transforms(stale_days):
                names = {name for transform in transforms for name in transform.inputs}
                inputs = read_tables(self._storage, {name: self.tables[name] for name in names})
                stage.rows_in += sum(self.tables[name].rows for name in names)
                stage.rows_out += self._replace(run_transforms(transforms, inputs))
        self.reports.append(stage)

    def _daily_counts(self) -> DataFrame:
        """Return the counts before, less the replaced rows, plus the new ones."""
        changed = {name: self._changed_rows(name) for name in COUNTED_TABLES if name in self._runs}
        before = self._storage.read(schemas.DAILY_COUNTS, [self._before["state.daily_counts"]])
        return sum_counts([before, *figures_by_day(changed)])

    def _changed_rows(self, name: str) -> DataFrame:
        """Return the new rows of a table with `n` = 1, and the replaced rows with `n` = -1."""
        new = self._new_rows(name)
        replaced = self._replaced_in_files(name) if self._in_files else self._replaced(name, new)
        return new.withColumn("n", f.lit(1)).unionByName(replaced.withColumn("n", f.lit(-1)))

    def _replaced(self, name: str, new: DataFrame) -> DataFrame:
        """Return the rows that a new run replaces, with a join in Spark."""
        old = read_runs(self._storage, schemas.BY_NAME[name], self._before[name].runs)
        return old.join(new.select(ENTITY).distinct(), ENTITY, "left_semi")

    def _replaced_in_files(self, name: str) -> DataFrame:
        """Return the rows that a new run replaces, selected in this process."""
        table, folder = schemas.BY_NAME[name], self._storage.folder
        entities = entities_of(folder, self._runs[name])
        rows = select_current(folder, table, self._before[name], entities)
        path = f"{self._path}/replaced/{name}"
        folder.write_batches(f"{path}/part-0.parquet", rows.schema, rows.to_batches())
        return self._storage.read_parquet(with_entity(table), path)

    def _new_rows(self, name: str) -> DataFrame:
        return self._storage.read(with_entity(schemas.BY_NAME[name]), [self._runs[name]])

    def _update_reach(self) -> None:
        with self._stages.running("reach") as stage:
            if self._needs_reach():
                written = write_reach(self._storage, self._path, self.tables)
                self.tables |= written
                stage.rows_in = sum(
                    self.tables[f"facts.{n}"].rows for n in ("edges", "derivations")
                )
                stage.rows_out = sum(table.rows for table in written.values())
        self.reports.append(stage)

    def _needs_reach(self) -> bool:
        """Return whether reach or governance may differ from the last build."""
        return (
            bool(self._grown.intersection(_GRAPH))
            or (self._has_identities and self._differs("facts.edges", _current_identities))
            or (
                any(map(_is_about_tags, self._facets))
                and self._differs("facts.facets", _current_tags)
            )
            or ("silver.quality" in self._runs and self._has_new_check_results())
        )

    def _differs(self, name: str, view: Callable[[DataFrame], DataFrame]) -> bool:
        """Return whether a view of a table differs from the last build."""
        table = schemas.BY_NAME[name]
        before, after = (
            view(read_facts(self._storage, table, tables[name].runs))
            for tables in (self._before, self.tables)
        )
        return _are_different(before, after)

    def _has_new_check_results(self) -> bool:
        """Return whether checks of touched datasets began or stopped failing."""
        name, dataset = "silver.quality", ["namespace", "name"]
        touched = self._new_rows(name).select(*dataset).distinct()
        before, after = (
            failing_datasets(rows.join(touched, dataset, "left_semi"))
            for rows in (
                read_current(self._storage, schemas.QUALITY, tables[name])
                for tables in (self._before, self.tables)
            )
        )
        return _are_different(before, after)

    def _add(self, frames: Mapping[str, DataFrame]) -> int:
        """Add runs to tables; return the number of their rows. An empty run is not added."""
        written = write_tables(self._storage, self._path, frames)
        for name, stored in written.items():
            if not stored.rows:
                continue
            run = StoredRun(stored.path, stored.rows, stored.format)
            table, replaced = add_run(self._storage.folder, self.tables[name], run)
            self.tables[name], self._runs[name] = table, run
            if run.rows > replaced:
                self._grown.add(name)
        return sum(stored.rows for stored in written.values())

    def _replace(self, frames: Mapping[str, DataFrame]) -> int:
        written = write_tables(self._storage, self._path, frames)
        self.tables |= written
        return sum(stored.rows for stored in written.values())

    def _merge_runs(self) -> None:
        """Merge the runs of tables that have too many for their size."""
        counts = {
            name: count_runs_to_merge([run.rows for run in stored.runs])
            for name, stored in self.tables.items()
        }
        self.tables |= merge_runs(self._storage, self._path, self.tables, counts)


_ENTITY_GOLD = (COLUMN_EDGES_TRANSFORM, DERIVE_ENDS_TRANSFORM, *ENTITY_HEALTH_TRANSFORMS)


def merge_runs(
    storage: TableStorage,
    path: str,
    tables: Mapping[str, StoredTable],
    counts: Mapping[str, int],
) -> dict[str, StoredTable]:
    """Merge the last runs of each table, and return the merged tables.

    `counts` has the number of runs.
    """
    wanted = {name: count for name, count in counts.items() if count}

    def merge(name: str) -> StoredTable:
        table, count = tables[name], wanted[name]
        merged = _merged_run(storage, name, table.runs[-count:])
        stored = storage.write(merged, f"{path}/merged/{name.replace('.', '/')}")
        run = StoredRun(stored.path, stored.rows, stored.format)
        changed = replace_last_runs(table, count, run)
        if not name.startswith("facts."):
            return changed
        return msgspec.structs.replace(changed, rows=sum(run.rows for run in changed.runs))

    with ThreadPoolExecutor(_MERGES_AT_ONCE) as pool:
        return dict(zip(wanted, pool.map(merge, wanted), strict=True))


def _merged_run(storage: TableStorage, name: str, runs: Sequence[StoredRun]) -> DataFrame:
    table: LakeTable = schemas.BY_NAME[name]
    if name.startswith("facts."):
        return read_facts(storage, table, runs)
    return read_runs(storage, table, runs)


def _are_different(one: DataFrame, other: DataFrame) -> bool:
    return not one.exceptAll(other).unionAll(other.exceptAll(one)).isEmpty()


def _current_tags(facets: DataFrame) -> DataFrame:
    """Return the digests of the current tags facet of each dataset, and of statements about it."""
    tags = facets.where(
        ((f.col("facet") == TAGS) | f.col("facet").startswith(TAG_PREFIX))
        & (f.col("kind") == DATASET)
        & (f.col("role") == int(FacetRole.NODE))
    )
    last = f.max_by("digest", f.struct("last_at", "last_event", "digest"))
    return tags.groupBy("namespace", "name", "facet").agg(last.alias("digest"))


def _is_about_tags(facet: str) -> bool:
    return facet == TAGS or facet.startswith(TAG_PREFIX)


def _current_identities(edges: DataFrame) -> DataFrame:
    """Return the statements in force that two names are one dataset."""
    kind: Column = f.col("kind")
    ends = ["source_namespace", "source_name", "target_namespace", "target_name"]
    relevant = edges.where(kind.isin(*map(int, _IDENTITY)))
    alias = relevant.where(kind == int(EdgeKind.ALIAS))
    latest = alias.groupBy(*ends[:2]).agg(f.max("last_at").alias("latest"))
    current = alias.join(latest, ends[:2]).where("last_at = latest").drop("latest")
    renamed = relevant.where(kind == int(EdgeKind.RENAMED))
    pairs = current.unionByName(renamed).select("kind", *ends, f.lit(0).alias("last_at"))
    stated = relevant.where(kind.isin(int(EdgeKind.SAME), int(EdgeKind.DIFFERENT)))
    return pairs.distinct().unionByName(stated.select("kind", *ends, "last_at"))
