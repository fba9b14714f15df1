"""One build of a lake: writes facts, silver and gold tables into new folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from downriver import settings
from downriver.lake import schemas
from downriver.lake.bronze.ingest import bronze_locations
from downriver.lake.gold.governance import governance_tables
from downriver.lake.gold.graph import graph_transforms
from downriver.lake.gold.health import COVERAGE_TRANSFORMS, KPI_TRANSFORMS, health_transforms
from downriver.lake.reach.counts import ReachTables, block_counter
from downriver.lake.silver.facts import FOLDED, fold_events, merge_facts
from downriver.lake.silver.transforms import SILVER_TRANSFORMS
from downriver.lake.storage.tables import PARQUET, StoredTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from downriver.lake.schemas import StageReport, Stages, TableTransform
    from downriver.lake.storage.tables import BronzeBatch, TableStorage


class LakeBuild:
    """One build, in a new folder. `tables` are the tables written so far."""

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
        self._write_layer("silver", "silver", SILVER_TRANSFORMS)
        gold = (*graph_transforms(stale_days), *health_transforms(stale_days))
        self._write_layer("gold", "gold", gold)
        self._write_layer("kpis", "gold", (*COVERAGE_TRANSFORMS, *KPI_TRANSFORMS))
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
                name.removeprefix("facts."): table for name, table in self._frames(before).items()
            }
            merged = merge_facts(self._storage.read(FOLDED, [folded]), known)
            stage.rows_out = self._write("facts", merged)
            self._storage.folder.remove(folded.path)
        self.reports.append(stage)

    def _write_layer(self, name: str, layer: str, transforms: Sequence[TableTransform]) -> None:
        with self._stages.running(name) as stage:
            inputs = self._frames(self.tables)
            names = {name for transform in transforms for name in transform.inputs}
            stage.rows_in = sum(self.tables[name].rows for name in names)
            frames = {
                transform.table.name: transform.run(*(inputs[name] for name in transform.inputs))
                for transform in transforms
            }
            stage.rows_out = self._write(layer, frames)
        self.reports.append(stage)

    def _write_reach(self) -> None:
        with self._stages.running("reach") as stage:
            frames = self._frames(self.tables)
            path = f"{self._path}/reach"
            reach = ReachTables(self._storage, path, block_counter(self._storage, path), frames)
            gold = {**reach.measure(), **governance_tables(reach, frames)}
            stage.rows_in = self.tables["facts.edges"].rows + self.tables["facts.derivations"].rows
            stage.rows_out = self._write("gold", gold)
            self._storage.folder.remove(path)
        self.reports.append(stage)

    def _write(self, layer: str, frames: Mapping[str, DataFrame]) -> int:
        """Write the tables of a layer, and return their number of rows."""
        stored = self._storage.write_all(frames, f"{self._path}/{layer}")
        self.tables |= {f"{layer}.{name}": table for name, table in stored.items()}
        return sum(table.rows for table in stored.values())

    def _frames(self, stored: Mapping[str, StoredTable]) -> dict[str, DataFrame]:
        return read_tables(self._storage, stored)


def read_tables(storage: TableStorage, stored: Mapping[str, StoredTable]) -> dict[str, DataFrame]:
    """Return the tables of a build, without those that only older releases wrote."""
    return {
        name: storage.read(schemas.BY_NAME[name], [table])
        for name, table in stored.items()
        if name in schemas.BY_NAME
    }
