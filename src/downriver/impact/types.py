"""Column types as databases write them, compared: does the new one hold all the old one did?"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple

Family = Literal[
    "number", "text", "boolean", "date", "timestamp", "time", "interval", "other", "unknown"
]
Comparison = Literal["same", "widening", "narrowing", "conversion"]

_INTEGERS = {
    "tinyint": 1, "int1": 1, "byteint": 1, "smallint": 2, "int2": 2, "short": 2, "mediumint": 3,
    "int": 4, "integer": 4, "int4": 4, "serial": 4, "bigint": 8, "int8": 8, "int64": 8, "long": 8,
    "bigserial": 8, "hugeint": 16, "int128": 16, "utinyint": 1, "usmallint": 2, "uinteger": 4,
    "ubigint": 8, "int16": 2, "int32": 4,
}  # fmt: skip
_FLOATS = {"real": 4, "float4": 4, "float": 8, "float8": 8, "float64": 8, "float32": 4, "double": 8}
_DECIMALS = frozenset({"decimal", "numeric", "number", "bignumeric", "dec", "money"})
_TEXTS = frozenset(
    {"varchar", "char", "text", "string", "nvarchar", "nchar", "character", "bpchar", "clob"}
)
_FAMILIES: dict[str, Family] = {
    "boolean": "boolean", "bool": "boolean", "bit": "boolean", "date": "date", "time": "time",
    "timestamp": "timestamp", "timestamptz": "timestamp", "datetime": "timestamp",
    "datetime2": "timestamp", "timestamp_ntz": "timestamp", "timestamp_ltz": "timestamp",
    "timestamp_tz": "timestamp", "timestampntz": "timestamp", "timestampltz": "timestamp",
    "smalldatetime": "timestamp", "interval": "interval",
}  # fmt: skip
_SHAPE = re.compile(
    r"\s*([a-z_][a-z0-9_]*)[^(]*(?:\(\s*(\d+|max)\s*(?:,\s*(\d+)\s*)?\))?", re.IGNORECASE
)
_UNBOUNDED = 1 << 30
_DIGITS = {1: 3, 2: 5, 3: 7, 4: 10, 8: 19, 16: 39}  # decimal digits an integer of n bytes may have


class ColumnType(NamedTuple):
    """A type: its family, and how much it holds (digits before and after the point, characters)."""

    family: Family
    whole: int = 0
    scale: int = 0
    name: str = ""


UNKNOWN = ColumnType("unknown")


@lru_cache(maxsize=4096)
def parse_type(text: str) -> ColumnType:
    """Return a type as written in any dialect; one we do not know is only equal to itself."""
    match = _SHAPE.match(text)
    if match is None or text.rstrip().endswith("[]"):
        return ColumnType("other", name=text.casefold()) if text.strip() else UNKNOWN
    word = match[1].casefold()
    size, scale = match[2], match[3]
    if word in _INTEGERS:
        return ColumnType("number", _DIGITS[_INTEGERS[word]], 0, "integer")
    if word in _FLOATS:
        return ColumnType("number", _FLOATS[word] * 40, _FLOATS[word] * 2 - 1, "float")
    if word in _DECIMALS:
        return _decimal(size, scale)
    if word in _TEXTS:
        return ColumnType("text", int(size) if size and size.isdigit() else _UNBOUNDED)
    if word in _FAMILIES:
        return ColumnType(_FAMILIES[word])
    return ColumnType("other", name=text.casefold().strip())


def _decimal(size: str | None, scale: str | None) -> ColumnType:
    if size is None or not size.isdigit():
        return ColumnType("number", 38, 38, "decimal")
    after = int(scale or 0)
    return ColumnType("number", int(size) - after, after, "decimal")


def compare_types(old: str, new: str) -> Comparison:
    """Tell a type that holds all the old one held from one that holds less, or something else."""
    before, after = parse_type(old), parse_type(new)
    if before == after:
        return "same"
    if before.family == after.family and before.family in ("number", "text"):
        holds_all = after.whole >= before.whole and after.scale >= before.scale
        return "widening" if holds_all else "narrowing"
    if (before.family, after.family) == ("date", "timestamp"):
        return "widening"
    if (before.family, after.family) == ("timestamp", "date"):
        return "narrowing"
    return "conversion"
