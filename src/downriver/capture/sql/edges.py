"""Turns what a statement writes into column edges and dataset edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from downriver.capture.sql.result import ColumnEdge, ColumnRef
from downriver.columns import Certainty, DependencyKind, Star

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from downriver.capture.sql.statements.context import TableWrite
    from downriver.columns import Deps, TableName

    TableText = Callable[[TableName], str]

_RESOLUTIONS: dict[int, Literal["exact", "inferred", "ambiguous"]] = {
    Certainty.EXACT: "exact",
    Certainty.INFERRED: "inferred",
    Certainty.AMBIGUOUS: "ambiguous",
}


def count_edges(written: TableWrite) -> int:
    """Return the number of edges that `column_edges` and `dataset_edges` yield."""
    return len(written.rows) + sum(
        1 if isinstance(item, Star) else len(item.deps) for item in written.columns
    )


def column_edges(written: TableWrite, text: TableText) -> Iterator[ColumnEdge]:
    """Yield the edges into each column of a written table; `text` renders table names."""
    target = text(written.table)
    for item in written.columns:
        if isinstance(item, Star):
            yield ColumnEdge(
                source=ColumnRef(text(item.table), "*"),
                target=ColumnRef(target, "*"),
                type="DIRECT",
                subtype="IDENTITY",
                resolution="inferred",
                expression=_except(item),
            )
        elif item.deps:
            expression = item.definition.text() if item.definition is not None else ""
            yield from _edges(item.deps, ColumnRef(target, item.name), expression, text)


def dataset_edges(written: TableWrite, text: TableText) -> Iterator[ColumnEdge]:
    """Yield the edges into a written table as a whole: what decides its rows."""
    yield from _edges(written.rows, ColumnRef(text(written.table), "*"), "", text)


def _except(star: Star) -> str:
    return f"* EXCEPT ({', '.join(sorted(star.dropped))})" if star.dropped else ""


def _edges(deps: Deps, target: ColumnRef, expression: str, text: TableText) -> Iterator[ColumnEdge]:
    for (table, column, kind, masked), certainty in deps.items():
        yield ColumnEdge(
            source=ColumnRef(text(table), column),
            target=target,
            type="DIRECT" if kind < DependencyKind.JOIN else "INDIRECT",
            subtype=DependencyKind(kind).name,
            masking=masked,
            resolution=_RESOLUTIONS[certainty],
            expression=expression,
        )
