"""What frames look like, whichever library they are of; nothing is computed to find out."""

from __future__ import annotations

from typing import Any

from downriver.capture.functions.runs import UNSEEN, Described

_LIBRARIES = frozenset({"pandas", "polars", "pyarrow", "duckdb", "_duckdb"})


def library_of(value: Any) -> str:
    """Return the library a value belongs to, by where its type is defined."""
    return type(value).__module__.partition(".")[0]


def is_frame(value: Any) -> bool:
    """Tell whether a value is a table of one of the libraries."""
    return library_of(value) in _LIBRARIES and _looks_like_a_table(value)


def describe(value: Any) -> Described:
    """Return the columns and rows of a frame; of anything else, nothing."""
    if not is_frame(value):
        return UNSEEN
    match library_of(value):
        case "pandas":
            return Described(_pairs(value.columns, value.dtypes), len(value))
        case "polars":
            return _polars(value)
        case "pyarrow":
            schema = value.schema
            rows = getattr(value, "num_rows", None)
            return Described(_pairs(schema.names, schema.types), rows)
        case _:
            return Described(_pairs(value.columns, value.types))


def _looks_like_a_table(value: Any) -> bool:
    kind = type(value)  # asking a lazy frame itself would make it work
    return hasattr(kind, "columns") and any(
        hasattr(kind, name) for name in ("dtypes", "schema", "types")
    )


def _polars(value: Any) -> Described:
    if hasattr(value, "collect_schema"):  # also of a lazy frame, whose rows are not there yet
        schema = value.collect_schema()
        rows = getattr(value, "height", None)
        return Described(_pairs(schema.names(), schema.dtypes()), rows)
    return Described(_pairs(value.columns, value.dtypes), value.height)


def _pairs(names: Any, types: Any) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), str(kind)) for name, kind in zip(names, types, strict=True))
