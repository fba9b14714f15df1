"""The columns inside schema facets, read as the server reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.events.facets import schema_columns
from downriver.lake.tables import SCHEMA_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame


def read_schemas(bodies: DataFrame) -> DataFrame:
    """Return the columns of schema facets by digest: nesting has no depth that SQL could name."""
    return bodies.select("digest", "body").mapInArrow(
        _read_batches, f"digest BINARY, fields {SCHEMA_FIELDS}"
    )


def _read_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    field = pa.struct([(name, pa.string()) for name in ("path", "type", "description")])
    for batch in batches:
        read = [
            [
                {"path": column.path, "type": column.type, "description": column.description}
                for column in schema_columns(body.as_py())
            ]
            for body in batch.column("body")
        ]
        yield pa.RecordBatch.from_arrays(
            [batch.column("digest").cast(pa.binary()), pa.array(read, pa.list_(field))],
            names=["digest", "fields"],
        )
