"""Loads millions of rows into PostgreSQL: numpy builds the binary COPY format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Mapping

    import psycopg

    from downriver.store.catalog.tables import CatalogTable

Values = npt.NDArray[Any]

_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END = b"\xff\xff"
_NUMBERS = {"smallint": ">i2", "int": ">i4", "bigint": ">i8"}
_CHUNK = 100_000


def copy_rows(
    connection: psycopg.Connection, table: CatalogTable, values: Mapping[str, Values | int | bytes]
) -> None:
    """Copy rows into a table, given as columns; a value that is no array is used in every row.

    Texts and bytes have a fixed width (`S12`), so that all rows have the same length.
    """
    count = max(len(value) for value in values.values() if isinstance(value, np.ndarray))
    layout = _layout(table, values)
    statement = f"COPY {table.name} ({', '.join(table.column_names)}) FROM STDIN (FORMAT binary)"
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.write(_SIGNATURE)
        for start in range(0, count, _CHUNK):
            end = min(start + _CHUNK, count)
            rows = np.zeros(end - start, layout)
            rows["columns in a row"] = len(table.columns)
            for name, _ in table.columns:
                value = values[name]
                rows[f"{name} size"] = layout[name].itemsize
                rows[name] = value[start:end] if isinstance(value, np.ndarray) else value
            copy.write(rows.tobytes())
        copy.write(_END)


def _layout(table: CatalogTable, values: Mapping[str, Values | int | bytes]) -> np.dtype[Any]:
    fields: list[tuple[str, Any]] = [("columns in a row", ">i2")]
    for name, kind in table.columns:
        value = values[name]
        width = value.dtype if isinstance(value, np.ndarray) else f"S{len(str(value))}"
        if isinstance(value, bytes):
            width = f"S{len(value)}"
        fields += [(f"{name} size", ">i4"), (name, _NUMBERS.get(kind, width))]
    return np.dtype(fields)
