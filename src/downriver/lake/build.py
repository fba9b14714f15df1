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
from downriver.lake.storage.versions import PARQUET, StoredTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from downriver.lake.pipeline import StageReport, Stages, TableTransform
    from downriver.lake.storage.tables import TableStorage
    from downriver.lake.storage.versions import BronzeBatch


class LakeBuild:
    """One build, in a folder; `made` are its tables so far."""

    def __init__(self, stored: TableStorage, path: str, stages: Stages) -> None:
        self._tables = stored
        self._path = path
        self._stages = stages
        self.made: dict[str, StoredTable] = {}
        self.reports: list[StageReport] = []

    def make_all(
        self,
        batches: Sequence[BronzeBatch],
        before: Mapping[str, StoredTable],
        until: int | None = None,
    ) -> None:
        """Fold batches into the facts of `before`, and make everything else of the facts.

        With `until`, only of events up to that time.
        """
        self._make_facts(batches, before, until)
        stale_days = settings.read_number(settings.STALE_DAYS)
        self._make("silver", "silver", SILVER_TRANSFORMS)
        self._make("gold", "gold", (*graph_transforms(stale_days), *health_transforms(stale_days)))
        self._make("kpis", "gold", (*COVERAGE_TRANSFORMS, *KPI_TRANSFORMS))
        self._make_reach()

    def _make_facts(
        self, batches: Sequence[BronzeBatch], before: Mapping[str, StoredTable], until: int | None
    ) -> None:
        with self._stages.running("facts") as stage:
            events = self._tables.read(schemas.EVENTS, bronze_locations(schemas.EVENTS, batches))
            stage.rows_in = sum(batch.events for batch in batches)
            if until is not None:
                events = events.where(f.col("at") <= until)
                stage.rows_in = events.count()
            # Written once and read by each table: folding is the costly part.
            told = self._tables.write(fold_events(events), f"{self._path}/told", PARQUET)
            known = {
                name.removeprefix("facts."): table for name, table in self._frames(before).items()
            }
            merged = merge_facts(self._tables.read(FOLDED, [told]), known)
            stage.rows_out = self._write("facts", merged)
            self._tables.folder.remove(told.path)
        self.reports.append(stage)

    def _make(self, name: str, layer: str, recipes: Sequence[TableTransform]) -> None:
        with self._stages.running(name) as stage:
            inputs = self._frames(self.made)
            wanted = {name for recipe in recipes for name in recipe.inputs}
            stage.rows_in = sum(self.made[name].rows for name in wanted)
            frames = {
                recipe.table.name: recipe.make(*(inputs[name] for name in recipe.inputs))
                for recipe in recipes
            }
            stage.rows_out = self._write(layer, frames)
        self.reports.append(stage)

    def _make_reach(self) -> None:
        with self._stages.running("reach") as stage:
            made = self._frames(self.made)
            path = f"{self._path}/reach"
            reach = ReachTables(self._tables, path, block_counter(self._tables, path), made)
            frames = {**reach.measure(), **governance_tables(reach, made)}
            stage.rows_in = self.made["facts.edges"].rows + self.made["facts.derivations"].rows
            stage.rows_out = self._write("gold", frames)
            self._tables.folder.remove(path)
        self.reports.append(stage)

    def _write(self, layer: str, frames: Mapping[str, DataFrame]) -> int:
        """Write the tables of a layer, and return how many rows they have."""
        stored = self._tables.write_all(frames, f"{self._path}/{layer}")
        self.made |= {f"{layer}.{name}": at for name, at in stored.items()}
        return sum(at.rows for at in stored.values())

    def _frames(self, stored: Mapping[str, StoredTable]) -> dict[str, DataFrame]:
        return read_tables(self._tables, stored)


def read_tables(tables_of: TableStorage, stored: Mapping[str, StoredTable]) -> dict[str, DataFrame]:
    """Return tables as a build wrote them, without those that only an older Downriver had."""
    return {
        name: tables_of.read(schemas.BY_NAME[name], [at])
        for name, at in stored.items()
        if name in schemas.BY_NAME
    }
