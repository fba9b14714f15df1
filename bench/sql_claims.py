"""The edges of a statement or script, traced back to the tables that existed before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from bench.sql_execution import QUERY, Run, Source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from downriver.capture.sql import ColumnEdge, SqlLineage, StatementLineage

Origins: TypeAlias = dict[Source, set[str]]  # with the kinds of edges from there


class Claims(msgspec.Struct):
    """The reported edges to one output, by source."""

    columns: dict[tuple[Source, int], set[str]]  # to one column, by position
    rows: Origins  # to every row
    names: list[str]

    def fed(self, source: Source) -> set[int]:
        """Return the output columns that a source has a column edge to."""
        return {at for of, at in self.columns if of == source}


DIRECT = ("IDENTITY", "TRANSFORMATION", "AGGREGATION")


class Held(NamedTuple):
    """The sources of a table's columns and rows. `old`: it also has rows from before the script."""

    columns: dict[str, Origins]
    rows: Origins
    old: bool

    def depends(self, source: Source, column: str) -> bool:
        """Return whether a column or every row depends on a source, or on its whole table."""
        of_column = self.columns.get(column.casefold(), {})
        return any(s in of_column or s in self.rows for s in (source, (source[0], "*")))


def held_after(lineage: SqlLineage, schema: Mapping[str, Sequence[str]]) -> dict[str, Held]:
    """Return the sources of every table that a script writes."""
    held: dict[str, Held] = {}
    for statement in lineage.statements:
        _follow(statement, held, schema)
    return held


def claims_of(
    lineage: SqlLineage, results: Run, schema: Mapping[str, Sequence[str]]
) -> dict[str, Claims]:
    """Return the edges of each output, traced back to the tables that existed before the script."""
    held = held_after(lineage, schema)
    found: dict[str, Claims] = {}
    for output, result in results.items():
        names = lineage.statements[-1].columns if output == QUERY else list(result.names)
        says = held.get(output, Held({}, {}, old=False))
        columns = {
            (source, at): kinds
            for at, name in enumerate(names)
            for source, kinds in says.columns.get(name.casefold(), {}).items()
        }
        found[output] = Claims(columns, says.rows, names)
    return found


def _follow(
    statement: StatementLineage, held: dict[str, Held], schema: Mapping[str, Sequence[str]]
) -> None:
    """Apply what one statement does to the tables."""
    edges = [*statement.column_edges, *statement.dataset_edges]
    if statement.kind == "RENAME":
        for edge in edges:
            old = edge.source.table
            own = {column: {(old, column): {"IDENTITY"}} for column in schema.get(old, ())}
            held[edge.target.table] = held.pop(old, Held(own, {}, old=False))
        return
    for table in statement.changed:
        held.pop(table, None)
    new: dict[str, Held] = {}
    for table in statement.outputs or [QUERY]:
        fresh = table == QUERY or statement.kind.startswith("CREATE")
        before = held.get(table, Held({}, {}, old=True))
        into = Held({}, {}, old=False) if fresh else before
        new[table] = Held({c: dict(o) for c, o in into.columns.items()}, dict(into.rows), into.old)
        for name in statement.inputs:
            if name in held:
                _add(new[table].rows, held[name].rows)
    for edge in edges:
        into = new[edge.target.table]
        column = edge.target.column.casefold()
        origins = into.rows if column == "*" else into.columns.setdefault(column, {})
        _add(origins, _origins(edge, held))
    held.update(new)


def _origins(edge: ColumnEdge, held: Mapping[str, Held]) -> Origins:
    """Return the sources of an edge, traced through the tables that the script wrote before."""
    table = edge.source.table.casefold().removeprefix("main.")
    column = edge.source.column.casefold()
    before = held.get(table, Held({}, {}, old=True))
    found: Origins = {(table, column): {edge.subtype}} if before.old else {}
    for source, kinds in before.columns.get(column, {}).items():
        _add(found, {source: {_passed(kind, edge.subtype) for kind in kinds}})
    return found


def _passed(kind: str, through: str) -> str:
    """Return the kind of two consecutive edges."""
    if kind not in DIRECT or through not in DIRECT:
        return through if kind in DIRECT else kind
    return DIRECT[max(DIRECT.index(kind), DIRECT.index(through))]


def _add(into: Origins, more: Mapping[Source, AbstractSet[str]]) -> None:
    for source, kinds in more.items():
        into[source] = into.get(source, set()) | kinds
