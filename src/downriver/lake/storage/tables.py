"""Tables of the lake on disk, in Parquet or Delta format."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from downriver.errors import LakeError
from downriver.lake.storage.versions import PARQUET, StoredTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from downriver.lake.reach.closure import Ints
    from downriver.lake.schemas import LakeTable
    from downriver.lake.storage.files import Folder

_PARALLEL_WRITES = 4  # tables written at the same time: one alone leaves a cluster idle at its end
DELTA = "delta"
FORMATS = (PARQUET, DELTA)


class TableStorage:
    """Reads and writes the tables of one lake. `format` is that of tables written."""

    def __init__(self, folder: Folder, spark: SparkSession, written_as: str = PARQUET) -> None:
        self.folder = folder
        self.spark = spark
        self.format = written_as

    def read(self, table: LakeTable, stored: Iterable[StoredTable]) -> DataFrame:
        """Return a table that lies in one or several folders."""
        by_format: dict[str, list[str]] = {}
        for at in stored:
            by_format.setdefault(at.format, []).append(self.folder.of(at.path))
        parts = [
            part
            for of, places in by_format.items()
            for part in ([self._parquet(table, places)] if of == PARQUET else self._delta(places))
        ]
        whole = parts[0]
        for part in parts[1:]:
            whole = whole.unionByName(part)
        return whole

    def _parquet(self, table: LakeTable, places: list[str]) -> DataFrame:
        return self.spark.read.schema(table.ddl).parquet(*places)

    def _delta(self, places: list[str]) -> list[DataFrame]:
        return [self.spark.read.format(DELTA).load(place) for place in places]

    def write(self, frame: DataFrame, path: str, written_as: str | None = None) -> StoredTable:
        """Write a table into a folder that does not exist yet."""
        used = written_as or self.format
        frame.write.format(used).save(self.folder.of(path))
        return StoredTable(path, self.folder.count_rows(path), used)

    def read_arrays(self, table: LakeTable, path: str) -> dict[str, Ints]:
        """Return the columns of a table of numbers, on the driver."""
        found = self.folder.read_table(path)
        return {name: found.column(name).to_numpy() for name in table.column_names}

    def write_arrays(self, table: LakeTable, columns: Mapping[str, Ints], path: str) -> DataFrame:
        """Write columns of numbers from the driver, and return them as a table."""
        self.folder.write_columns(path, columns)
        return self._parquet(table, [self.folder.of(path)])

    def write_all(self, frames: Mapping[str, DataFrame], path: str) -> dict[str, StoredTable]:
        """Write several tables, each into a folder of its name."""
        with ThreadPoolExecutor(_PARALLEL_WRITES) as pool:
            writing = {
                name: pool.submit(self.write, frame, f"{path}/{name}")
                for name, frame in frames.items()
            }
            return {name: written.result() for name, written in writing.items()}


def check_format(spark: SparkSession, wanted: str) -> None:
    """Say what to do when Spark cannot write this format."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    if wanted not in FORMATS:
        raise LakeError(f"there is no format {wanted!r}; there is {' and '.join(FORMATS)}")
    try:
        spark.read.format(wanted).load("/nonexistent")
    except (PySparkException, Py4JError) as exc:
        if is_unknown_format(exc):
            raise LakeError(_NO_DELTA) from exc


_NO_DELTA = (
    "this Spark has no Delta; add it by --packages, such as "
    "io.delta:delta-spark_4.1_2.13:4.1.0 for Spark 4.1"
)


def is_unknown_format(exc: BaseException) -> bool:
    """True when Spark lacks the package that a format or source is in.

    By its text, as some ways to ask for a format give no error class that PySpark knows.
    """
    return any(sign in str(exc) for sign in ("DATA_SOURCE_NOT_FOUND", "Failed to find data source"))
