"""Schemas as Avro, JSON Schema and protobuf files declare them, and their compatibility."""

from downriver.govern.schemas.compatibility import check_compatibility, compare_columns
from downriver.govern.schemas.declared_schema import parse_schema, read_schema_file

__all__ = ["check_compatibility", "compare_columns", "parse_schema", "read_schema_file"]
