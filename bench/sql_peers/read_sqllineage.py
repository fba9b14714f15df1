"""sqllineage on the statements."""

from sqllineage.config import SQLLineageConfig
from sqllineage.core.metadata.dummy import DummyMetaDataProvider
from sqllineage.runner import LineageRunner
from timing import main


def prepare(schema):  # type: ignore[no-untyped-def]
    provider = DummyMetaDataProvider({f"main.{table}": c for table, c in schema.items()})

    def read(sql):  # type: ignore[no-untyped-def]
        with SQLLineageConfig(DEFAULT_SCHEMA="main"):
            runner = LineageRunner(sql, dialect="duckdb", metadata_provider=provider)
            return runner.get_column_lineage()

    return read


main(prepare)
