"""Rows that a query over the lake's tables answers, as plain values."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class QueryAnswer(msgspec.Struct):
    """The first rows of a query; `more` when there are others."""

    columns: list[str]
    rows: list[list[Any]]
    more: bool


def answer_query(frame: DataFrame, limit: int) -> QueryAnswer:
    """Return up to `limit` rows."""
    found = frame.limit(limit + 1).collect()
    rows = [[_plain(value) for value in row] for row in found[:limit]]
    return QueryAnswer(frame.columns, rows, len(found) > limit)


def _plain(value: Any) -> Any:
    match value:
        case bytes() | bytearray():
            return bytes(value).hex()
        case dt.datetime():
            return value.replace(tzinfo=dt.timezone.utc).isoformat().replace("+00:00", "Z")
        case dt.date():
            return value.isoformat()
        case Decimal():
            return float(value)
        case list():
            return [_plain(item) for item in value]
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case tuple():
            return _plain(value.asDict()) if hasattr(value, "asDict") else list(map(_plain, value))
        case _:
            return value
