"""One build of a lake: writes facts, silver and gold tables into new folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from downriver import settings
from downriver.lake import schemas
from downriver.lake.bronze.batches import bronze_locations
from downriver.lake.gold.governance import governance_tables
from downriver.lake.gold.graph import COLUMN_EDGES_TRANSFORM, graph_transforms
from downriver.lake.gold.health import (
    DAILY_COUNTS_TRANSFORM,
    ENTITY_HEALTH_TRANSFORMS,
    summary_transforms,
)
from downriver.lake.reach.counts import ReachTables, block_counter
from downriver.lake.silver.facts import FOLDED, fold_events, merge_facts, read_facts
from downriver.lake.silver.transforms import DERIVE_ENDS_TRANSFORM, SILVER_TRANSFORMS
from downriver.lake.storage.runs import entity_of, read_current
from downriver.lake.storage.tables import PARQUET, StoredTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from downriver.lake.schemas import TableTransform
    from downriver.lake.stages import StageReport, Stages
    from downriver.lake.storage.tables import BronzeBatch, TableStorage


class LakeBuild:
    """One build of all tables, in a new folder. `tables` are the tables written so far."""

    def __init__(self, storage: TableStorage, path: str, stages: Stages) -> None:
        self._storage = storage
        self._path = path
        self._stages = stages
        self.tables: dict[str, StoredTable] = {}
        self.reports: list[StageReport] = []

    def run(
        self,
        batches: Sequence[BronzeBatch],
        before: Mapping[str, StoredTable],
        until: int | None = None,
    ) -> None:
        """Fold batches into the facts of `before`, then write silver and gold tables.

        With `until`, only events up to that time are folded.
        """
        self._write_facts(batches, before, until)
        stale_days = settings.read_number(settings.STALE_DAYS)
        graph = graph_transforms(stale_days)
        self._write_tables("silver", SILVER_TRANSFORMS)
        self._write_tables(
            "gold",
            (*graph, COLUMN_EDGES_TRANSFORM, DERIVE_ENDS_TRANSFORM, *ENTITY_HEALTH_TRANSFORMS),
        )
        self._write_tables("kpis", (DAILY_COUNTS_TRANSFORM,), *summary_transforms(stale_days))
        self._write_reach()

    def _write_facts(
        self, batches: Sequence[BronzeBatch], before: Mapping[str, StoredTable], until: int | None
    ) -> None:
        with self._stages.running("facts") as stage:
            events = self._storage.read(schemas.EVENTS, bronze_locations(schemas.EVENTS, batches))
            stage.rows_in = sum(batch.events for batch in batches)
            if until is not None:
                events = events.where(f.col("at") <= until)
                stage.rows_in = events.count()
            # Folding is the costly part: write its result once, for all tables of facts.
            folded = self._storage.write(fold_events(events), f"{self._path}/folded", PARQUET)
            known = {
                name.removeprefix("facts."): table
                for name, table in read_tables(self._storage, before).items()
            }
            merged = merge_facts(self._storage.read(FOLDED, [folded]), known)
            stage.rows_out = self._write({f"facts.{name}": frame for name, frame in merged.items()})
            self._storage.folder.remove(folded.path)
        self.reports.append(stage)

    def _write_tables(self, name: str, *steps: Sequence[TableTransform]) -> None:
        """Write the tables of a stage. A step may read the tables of the steps before it."""
        with self._stages.running(name) as stage:
            for transforms in steps:
                inputs = read_tables(self._storage, self.tables)
                read = {name for transform in transforms for name in transform.inputs}
                stage.rows_in += sum(self.tables[name].rows for name in read)
                stage.rows_out += self._write(run_transforms(transforms, inputs))
        self.reports.append(stage)

    def _write_reach(self) -> None:
        with self._stages.running("reach") as stage:
            written = write_reach(self._storage, self._path, self.tables)
            self.tables |= written
            stage.rows_in = self.tables["facts.edges"].rows + self.tables["facts.derivations"].rows
            stage.rows_out = sum(table.rows for table in written.values())
        self.reports.append(stage)

    def _write(self, frames: Mapping[str, DataFrame]) -> int:
        """Write tables by name, and return their number of rows."""
        written = write_tables(self._storage, self._path, frames)
        self.tables |= written
        return sum(table.rows for table in written.values())


def run_transforms(
    transforms: Sequence[TableTransform], inputs: Mapping[str, DataFrame]
) -> dict[str, DataFrame]:
    """Return the results of transforms by the full name of the table."""
    return {
        schemas.FULL_NAMES[transform.table]: transform.run(
            *(inputs[name] for name in transform.inputs)
        )
        for transform in transforms
    }


def write_tables(
    storage: TableStorage, path: str, frames: Mapping[str, DataFrame]
) -> dict[str, StoredTable]:
    """Write tables below a folder, those of entities with the hash of the entity."""
    stored = {
        name: frame.withColumn("_entity", entity_of(schemas.BY_NAME[name].entity))
        if schemas.BY_NAME[name].entity
        else frame
        for name, frame in frames.items()
    }
    paths = {name: name.replace(".", "/") for name in stored}
    written = storage.write_all({paths[name]: frame for name, frame in stored.items()}, path)
    return {name: written[paths[name]] for name in stored}


def write_reach(
    storage: TableStorage, path: str, tables: Mapping[str, StoredTable]
) -> dict[str, StoredTable]:
    """Write the tables of reach and governance, from the facts and silver tables."""
    frames = read_tables(storage, tables)
    arrays = f"{path}/reach"
    reach = ReachTables(storage, arrays, block_counter(storage, arrays), frames)
    gold = {**reach.measure(), **governance_tables(reach, frames)}
    written = write_tables(storage, path, {f"gold.{name}": of for name, of in gold.items()})
    storage.folder.remove(arrays)
    return written


def read_tables(storage: TableStorage, stored: Mapping[str, StoredTable]) -> dict[str, DataFrame]:
    """Return the tables of a build, except tables that only older releases wrote."""
    return {
        name: _read_table(storage, name, table)
        for name, table in stored.items()
        if name in schemas.BY_NAME
    }


def _read_table(storage: TableStorage, name: str, stored: StoredTable) -> DataFrame:
    table = schemas.BY_NAME[name]
    if name.startswith("facts."):
        return read_facts(storage, table, stored.runs)
    return read_current(storage, table, stored)
