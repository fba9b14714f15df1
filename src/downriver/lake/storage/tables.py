"""Tables of the lake on disk, in Parquet or Delta format."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import TYPE_CHECKING

from downriver.errors import LakeError
from downriver.lake.storage.versions import PARQUET, StoredTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from downriver.lake.reach.closure import Ints
    from downriver.lake.schemas import LakeTable
    from downriver.lake.storage.files import Folder

_PARALLEL_WRITES = 4  # the last tasks of a single write would leave the cluster idle
DELTA = "delta"
FORMATS = (PARQUET, DELTA)


class TableStorage:
    """Reads and writes the tables of one lake. `format` is the format of new tables."""

    def __init__(self, folder: Folder, spark: SparkSession, written_as: str = PARQUET) -> None:
        self.folder = folder
        self.spark = spark
        self.format = written_as

    def read(self, table: LakeTable, stored: Iterable[StoredTable]) -> DataFrame:
        """Return a table that is stored in one or several folders."""
        by_format: dict[str, list[str]] = {}
        for part in stored:
            by_format.setdefault(part.format, []).append(self.folder.url_of(part.path))
        frames = [self.spark.read.format(DELTA).load(url) for url in by_format.get(DELTA, ())]
        if PARQUET in by_format:
            frames.append(self._parquet(table, by_format[PARQUET]))
        return reduce(lambda whole, part: whole.unionByName(part), frames)

    def _parquet(self, table: LakeTable, urls: list[str]) -> DataFrame:
        return self.spark.read.schema(table.ddl).parquet(*urls)

    def write(self, frame: DataFrame, path: str, written_as: str | None = None) -> StoredTable:
        """Write a table into a new folder."""
        table_format = written_as or self.format
        frame.write.format(table_format).save(self.folder.url_of(path))
        return StoredTable(path, self.folder.count_rows(path), table_format)

    def read_arrays(self, table: LakeTable, path: str) -> dict[str, Ints]:
        """Return the columns of a table of numbers as arrays on the driver."""
        rows = self.folder.read_table(path)
        return {name: rows.column(name).to_numpy() for name in table.column_names}

    def write_arrays(self, table: LakeTable, columns: Mapping[str, Ints], path: str) -> DataFrame:
        """Write arrays from the driver as a table, and return the table."""
        self.folder.write_columns(path, columns)
        return self._parquet(table, [self.folder.url_of(path)])

    def write_all(self, frames: Mapping[str, DataFrame], path: str) -> dict[str, StoredTable]:
        """Write several tables in parallel, each into a folder of its name."""
        with ThreadPoolExecutor(_PARALLEL_WRITES) as pool:
            writing = {
                name: pool.submit(self.write, frame, f"{path}/{name}")
                for name, frame in frames.items()
            }
            return {name: written.result() for name, written in writing.items()}


def check_format(spark: SparkSession, wanted: str) -> None:
    """Raise an error with instructions if Spark cannot write this format."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    if wanted not in FORMATS:
        raise LakeError(f"unknown table format {wanted!r}; choose {' or '.join(FORMATS)}")
    try:
        spark.read.format(wanted).load("/nonexistent")
    except (PySparkException, Py4JError) as exc:
        if is_unknown_format(exc):
            raise LakeError(_NO_DELTA) from exc


_NO_DELTA = (
    "Spark cannot write Delta tables; add the package with --packages, for example "
    "io.delta:delta-spark_4.1_2.13:4.1.0 for Spark 4.1"
)


def is_unknown_format(exc: BaseException) -> bool:
    """True when Spark lacks the package of a format or source.

    Checks the text, as some code paths raise an error without an error class in PySpark.
    """
    return any(sign in str(exc) for sign in ("DATA_SOURCE_NOT_FOUND", "Failed to find data source"))
