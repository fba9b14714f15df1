"""SQL expressions in Python texts: `expr("a + b")`, `filter("status = 'paid'")`."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from downriver.capture.scan.python.frames import NOTHING
from downriver.capture.scan.python.values import Col, Use
from downriver.capture.sql import parse_sql_lineage

if TYPE_CHECKING:
    from downriver.capture.scan.python.values import Text

_FRAME = "frame_of_the_expression"


def expression_columns(text: Text) -> list[Col]:
    """Return the columns an expression makes, of a frame to come; `a as b` makes `b`."""
    found: list[Col] = []
    for name, uses in _parsed(str(text)):
        made = tuple(Use(field, subtype, text.line) for field, subtype in uses)
        found.append(Col(NOTHING, made, name))
    return found


@lru_cache(maxsize=1024)
def _parsed(text: str) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    if text.strip() == "*":
        return (("*", (("*", "IDENTITY"),)),)
    # Read, never run.
    lineage = parse_sql_lineage(f"SELECT {text} FROM {_FRAME}", dialect="spark")  # noqa: S608
    names = lineage.statements[0].columns if lineage.statements else []
    return tuple(
        (
            name,
            tuple(
                (edge.source.column, edge.subtype)
                for edge in lineage.column_edges
                if edge.target.column == name
            ),
        )
        for name in names or list(dict.fromkeys(e.target.column for e in lineage.column_edges))
    )
