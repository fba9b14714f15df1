"""Tables in Parquet files, in folders of the lake."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from downriver.lake.snapshots import Stored

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from downriver.lake.condense import Ints
    from downriver.lake.places import Folder
    from downriver.lake.tables import Table

_AT_ONCE = 4  # tables written at the same time: one alone leaves a cluster idle at its end


class Parquet:
    """Reads and writes the tables of one lake."""

    def __init__(self, folder: Folder, spark: SparkSession) -> None:
        self.folder = folder
        self.spark = spark

    def read(self, table: Table, paths: Sequence[str]) -> DataFrame:
        """Return a table that lies in one or several folders."""
        places = [self.folder.of(path) for path in paths]
        return self.spark.read.schema(table.ddl).parquet(*places)

    def write(self, frame: DataFrame, path: str) -> Stored:
        """Write a table into a folder that does not exist yet."""
        frame.write.parquet(self.folder.of(path))
        return Stored(path, self.folder.count_rows(path))

    def read_arrays(self, table: Table, path: str) -> dict[str, Ints]:
        """Return the columns of a table of numbers, on the driver."""
        found = self.folder.read_table(path)
        return {name: found.column(name).to_numpy() for name in table.column_names}

    def write_arrays(self, table: Table, columns: Mapping[str, Ints], path: str) -> DataFrame:
        """Write columns of numbers from the driver, and return them as a table."""
        self.folder.write_columns(path, columns)
        return self.read(table, [path])

    def write_all(self, frames: Mapping[str, DataFrame], path: str) -> dict[str, Stored]:
        """Write several tables, each into a folder of its name."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            writing = {
                name: pool.submit(self.write, frame, f"{path}/{name}")
                for name, frame in frames.items()
            }
            return {name: written.result() for name, written in writing.items()}
