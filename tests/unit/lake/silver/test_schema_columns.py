"""Schema facets become columns with distinct paths."""

from __future__ import annotations

import msgspec
import pyarrow as pa

from downriver.lake.silver.transforms import parse_schema_batches


def test_of_columns_with_the_same_path_the_first_counts():
    """A map from paths to types, which schema drift needs, cannot have a path twice."""
    fields = [
        {"name": "id", "type": "int"},
        {"name": "Id", "type": "int"},
        {"name": "id", "type": "string"},
    ]
    body = msgspec.json.encode({"fields": fields})
    batch = pa.RecordBatch.from_pydict({"digest": [b"1"], "body": [body]})
    [parsed] = parse_schema_batches([batch])
    [columns] = parsed.column("fields").to_pylist()
    assert [(column["path"], column["type"]) for column in columns] == [
        ("id", "int"),
        ("Id", "int"),
    ]
