"""The runs of a table are read as one table, without Spark."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from downriver.lake.exports import export_parquet
from downriver.lake.storage.files import Folder
from downriver.lake.storage.runs import add_run
from downriver.lake.storage.tables import LakeVersion, StoredRun, StoredTable, commit_version

NEVER_NULL = pa.list_(pa.field("element", pa.string(), nullable=False))


def write(folder: Folder, path: str, rows: list[tuple[int, str]], *, nullable: bool) -> StoredRun:
    """Write rows of `gold.failure_rates` as Spark does: new runs have columns that are not null."""
    kinds = pa.list_(pa.string()) if nullable else NEVER_NULL
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([job for _, job in rows]),
            pa.array([[job] for _, job in rows], kinds),
            pa.array([entity for entity, _ in rows], pa.int64()),
        ],
        schema=pa.schema(
            [
                ("job_name", pa.string()),
                pa.field("kinds", kinds, nullable=nullable),
                pa.field("_entity", pa.int64(), nullable=nullable),
            ]
        ),
    )
    folder.write_batch(f"{path}/part-0.parquet", batch)
    return StoredRun(path, len(rows))


def test_an_export_has_the_newest_rows_of_merged_and_new_runs(tmp_path):
    folder = Folder(str(tmp_path / "lake"))
    merged = write(folder, "builds/1/t", [(1, "old"), (2, "kept"), (1, "old too")], nullable=True)
    new = write(folder, "builds/2/t", [(1, "new"), (3, "first")], nullable=False)
    table, replaced = add_run(folder, StoredTable(merged.path, merged.rows), new)
    assert (table.rows, replaced) == (3, 2)
    version = LakeVersion(tables={"gold.failure_rates": table})
    commit_version(folder, LakeVersion(), version)
    [written] = export_parquet(folder, str(tmp_path / "out"))
    rows = pq.read_table(tmp_path / "out" / written.path).to_pylist()
    assert sorted(row["job_name"] for row in rows) == ["first", "kept", "new"]
    assert written.rows == len(rows)
    assert rows[0].keys() == {"job_name", "kinds"}


def test_a_run_replaces_only_the_newest_rows_of_its_entities(tmp_path):
    folder = Folder(str(tmp_path))
    base = write(folder, "builds/1/t", [(1, "a"), (2, "b")], nullable=True)
    table = StoredTable(base.path, base.rows)
    for number, rows in enumerate(([(1, "a"), (3, "c")], [(1, "a"), (2, "b"), (4, "d")]), 2):
        run = write(folder, f"builds/{number}/t", rows, nullable=True)
        table, replaced = add_run(folder, table, run)
        assert replaced == number - 1
    assert table.rows == 4
    assert [run.rows for run in table.runs] == [2, 2, 3]
