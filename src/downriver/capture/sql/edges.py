"""From what the walker computed to the edges that users see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from downriver.capture.sql.deps import Kind, Sure
from downriver.capture.sql.expressed import Expressed
from downriver.capture.sql.relations import Star
from downriver.capture.sql.result import ColumnEdge, ColumnRef

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from downriver.capture.sql.deps import Deps, TableName
    from downriver.capture.sql.effects import Written

    TableText = Callable[[TableName], str]

_RESOLUTIONS: dict[int, Literal["exact", "inferred", "ambiguous"]] = {
    Sure.EXACT: "exact",
    Sure.INFERRED: "inferred",
    Sure.AMBIGUOUS: "ambiguous",
}


def count_edges(written: Written) -> int:
    """Return how many edges `column_edges` and `dataset_edges` would make."""
    return len(written.rows) + sum(
        1 if isinstance(item, Star) else len(item.deps) for item in written.columns
    )


def column_edges(written: Written, text: TableText) -> Iterator[ColumnEdge]:
    """Yield the edges into each column of a written table; `text` gives tables their names."""
    target = text(written.table)
    for item in written.columns:
        if isinstance(item, Star):
            yield ColumnEdge(
                source=ColumnRef(text(item.table), "*"),
                target=ColumnRef(target, "*"),
                type="DIRECT",
                subtype="IDENTITY",
                resolution="inferred",
                expression=_all_but(item),
            )
        elif item.deps:
            expression = item.text() if isinstance(item, Expressed) else ""
            yield from _edges(item.deps, ColumnRef(target, item.name), expression, text)


def dataset_edges(written: Written, text: TableText) -> Iterator[ColumnEdge]:
    """Yield the edges into a written table as a whole: what decides its rows."""
    yield from _edges(written.rows, ColumnRef(text(written.table), "*"), "", text)


def _all_but(star: Star) -> str:
    return f"* EXCEPT ({', '.join(sorted(star.dropped))})" if star.dropped else ""


def _edges(deps: Deps, target: ColumnRef, expression: str, text: TableText) -> Iterator[ColumnEdge]:
    for (table, column, kind, masked), sure in deps.items():
        yield ColumnEdge(
            source=ColumnRef(text(table), column),
            target=target,
            type="DIRECT" if kind < Kind.JOIN else "INDIRECT",
            subtype=Kind(kind).name,
            masking=masked,
            resolution=_RESOLUTIONS[sure],
            expression=expression,
        )
