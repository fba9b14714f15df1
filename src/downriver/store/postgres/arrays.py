"""Rows are sent to PostgreSQL as one binary array per column.

The driver can encode arrays too, but it checks the type of every value. The types of our columns
are known, which makes this three times as fast.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from psycopg.adapt import Dumper
from psycopg.pq import Format

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

_pack_header = struct.Struct(">iiIii").pack  # dimensions, has nulls, element type, length, base
_pack_size = struct.Struct(">i").pack
_NULL = _pack_size(-1)

# PostgreSQL's number for an element type, and the struct code of those that are integers.
_ELEMENTS = {
    "smallint": (21, "h"),
    "int": (23, "i"),
    "bigint": (20, "q"),
    "text": (25, ""),
    "bytea": (17, ""),
}


class PostgresArray(bytes):
    """A binary array. The statement must cast it to its type: `%b::bigint[]`."""

    __slots__ = ()


class _ArrayDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: PostgresArray) -> bytes:
        """Return the bytes to send."""
        return obj


def register_array_dumper(connection: psycopg.Connection) -> None:
    """Register the encoder of arrays with a connection."""
    connection.adapters.register_dumper(PostgresArray, _ArrayDumper)


def encode_array(kind: str, values: Sequence[Any]) -> PostgresArray:
    """Return values of one PostgreSQL type as an array."""
    number, code = _ELEMENTS[kind]
    if not code:
        body = _encode_sized([v.encode() for v in values] if kind == "text" else values)
    elif None in values:
        body = _encode_nullable(code, values)
    else:
        body = _encode_integers(code, values)
    return PostgresArray(_pack_header(1, 0, number, len(values), 1) + body)


def _encode_integers(code: str, values: Sequence[int]) -> bytes:
    sized = [struct.calcsize(f">{code}")] * (2 * len(values))
    sized[1::2] = values
    return struct.pack(">" + f"i{code}" * len(values), *sized)


def _encode_nullable(code: str, values: Sequence[int | None]) -> bytes:
    pack, size = struct.Struct(f">i{code}").pack, struct.calcsize(f">{code}")
    return b"".join(_NULL if value is None else pack(size, value) for value in values)


def _encode_sized(values: Sequence[bytes]) -> bytes:
    parts = [b""] * (2 * len(values))
    parts[::2] = map(_pack_size, map(len, values))
    parts[1::2] = values
    return b"".join(parts)
