"""Tables as runs: a build adds the rows of the entities it touched, and readers merge the runs.

A run of a silver or gold table replaces the rows that older runs have for the same entities. The
column `_entity`, a hash of 64 bits, identifies the entity of a row.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from downriver.lake.storage.tables import StoredRun, StoredTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from downriver.lake.reach.closure import Ints
    from downriver.lake.schemas import LakeTable
    from downriver.lake.storage.files import Folder
    from downriver.lake.storage.tables import TableStorage

ENTITY = "_entity"
_ROWS_AT_ONCE = 1_000_000

_GROWTH = 4
_FEW_RUNS = 8
_FEW_ROWS = 100_000


def count_runs_to_merge(rows: Sequence[int]) -> int:
    """Return how many of the last runs to merge; `rows` are the sizes of all runs, oldest first.

    A run is merged with the newer ones when it has at most four times their rows. So a table has a
    logarithmic number of runs, and a row is written again a logarithmic number of times. Opening a
    run costs more than reading a few rows, so runs of few rows are merged only if there are many.
    """
    total, count = rows[-1], 1
    for size in reversed(rows[:-1]):
        if size > _GROWTH * total:
            break
        total += size
        count += 1
    return count if count > 1 and (total > _FEW_ROWS or count > _FEW_RUNS) else 0


def entity_of(entity: Sequence[str]) -> Column:
    """Return the hash of an entity, from SQL expressions that identify it."""
    from pyspark.sql import functions as f  # here, as exports need no Spark

    return f.xxhash64(*map(f.expr, entity)).alias(ENTITY)


def with_entity(table: LakeTable) -> LakeTable:
    """Return a table with the column `_entity`, as stored."""
    return table._replace(columns=(*table.columns, (ENTITY, "BIGINT")))


def read_current(storage: TableStorage, table: LakeTable, stored: StoredTable) -> DataFrame:
    """Return the rows of a table: of each entity those of the newest run."""
    if not stored.newer:
        return storage.read(table, [stored])
    return read_runs(storage, table, stored.runs).select(table.column_names)


def read_runs(storage: TableStorage, table: LakeTable, runs: Sequence[StoredRun]) -> DataFrame:
    """Return the current rows among some runs of a table, with the column `_entity`."""
    from pyspark.sql import functions as f

    frames = [
        storage.read(with_entity(table), [run]).withColumn("_run", f.lit(number))
        for number, run in enumerate(runs)
    ]
    rows = reduce(lambda whole, part: whole.unionByName(part), frames)
    if len(runs) > 1:  # one join, however many runs there are
        newer = rows.where("_run > 0").groupBy(ENTITY).agg(f.max("_run").alias("_newest"))
        rows = rows.join(newer, ENTITY, "left").where("_newest IS NULL OR _newest = _run")
    return rows.select(*table.column_names, ENTITY)


def scan_current(folder: Folder, stored: StoredTable, size: int) -> Iterator[Any]:
    """Yield the current rows of a table as Arrow batches of the schema `schema_of`."""
    import pyarrow as pa

    schema = schema_of(folder, stored)
    newer = [np.unique(_entities(folder, run.path)) for run in stored.newer]
    for number, run in enumerate(stored.runs):
        replaced = np.concatenate([np.empty(0, np.int64), *newer[number:]])
        for batch in folder.scan(run.path, None, size):
            rows = batch
            if len(replaced):
                current = ~np.isin(batch.column(ENTITY).to_numpy(), replaced)
                rows = batch.filter(pa.array(current))
            columns = [rows.column(field.name).cast(field.type) for field in schema]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def schema_of(folder: Folder, stored: StoredTable) -> Any:
    """Return the Arrow schema of the rows of a table, without the column `_entity`.

    All values may be null: Spark declares some columns of a new run as never null, but no column
    of a merged run.
    """
    import pyarrow as pa

    fields = folder.read_schema(stored.path)
    return pa.schema(
        [(field.name, _nullable(field.type, pa)) for field in fields if field.name != ENTITY]
    )


def _nullable(kind: Any, pa: Any) -> Any:
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _nullable(field.type, pa)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, _nullable(kind.value_type, pa)))
    return kind


def select_current(
    folder: Folder, table: LakeTable, stored: StoredTable, entities: Ints
) -> pa.Table:
    """Return the current rows of some entities as an Arrow table, with the column `_entity`.

    Times are in UTC, as Spark expects them: Spark writes them without a zone.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    names = [*table.column_names, ENTITY]
    stored_as = {field.name: field.type for field in schema_of(folder, stored)}
    kinds = {
        name: pa.timestamp("us", "UTC") if pa.types.is_timestamp(kind) else kind
        for name, kind in (stored_as | {ENTITY: pa.int64()}).items()
    }
    parts = [pa.Table.from_batches([], pa.schema([(name, kinds[name]) for name in names]))]
    for run in reversed(stored.runs):
        rows = folder.select_rows(run.path, names, pc.field(ENTITY).isin(pa.array(entities)))
        parts.append(rows.cast(parts[0].schema))
        entities = np.setdiff1d(entities, rows.column(ENTITY).to_numpy())
    return pa.concat_tables(parts)


def entities_of(folder: Folder, run: StoredRun) -> Ints:
    """Return the entities that have rows in a run."""
    return np.unique(_entities(folder, run.path))


def add_run(folder: Folder, before: StoredTable, run: StoredRun) -> tuple[StoredTable, int]:
    """Return a table with one more run, and the number of rows that the run replaces."""
    added = np.unique(_entities(folder, run.path))
    later = np.empty(0, np.int64)
    replaced = 0
    for older in reversed(before.runs):
        seen = [later]
        for entities in _scan_entities(folder, older.path):
            touched = np.isin(entities, added)
            replaced += int((touched & ~np.isin(entities, later)).sum())
            if older.path != before.path:
                seen.append(entities)
        later = np.unique(np.concatenate(seen))
    changed = msgspec.structs.replace(
        before,
        rows=before.rows - replaced + run.rows,
        newer=(*before.newer, run),
        stored=before.runs[0].rows,
    )
    return changed, replaced


def _entities(folder: Folder, path: str) -> Ints:
    return np.concatenate([np.empty(0, np.int64), *_scan_entities(folder, path)])


def _scan_entities(folder: Folder, path: str) -> Iterator[Ints]:
    for batch in folder.scan(path, [ENTITY], _ROWS_AT_ONCE):
        yield batch.column(0).to_numpy()


def replace_last_runs(stored: StoredTable, count: int, merged: StoredRun) -> StoredTable:
    """Return a table with one run in place of its last `count` runs."""
    runs = (*stored.runs[:-count], merged)
    first, *newer = runs
    if not newer:
        return StoredTable(first.path, first.rows, first.format)
    return StoredTable(first.path, stored.rows, first.format, tuple(newer), first.rows)
