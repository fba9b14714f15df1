"""The types that `parse_sql_lineage` returns, and end-to-end lineage of a whole script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from downriver.columns.dependencies import DependencyKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class ColumnRef(msgspec.Struct, frozen=True, order=True):
    """A column of a table; `*` is every column of a table whose schema is unknown."""

    table: str
    column: str

    def __str__(self) -> str:
        return f"{self.table}.{self.column}"


class ColumnEdge(msgspec.Struct, frozen=True, order=True, kw_only=True):
    """One output column depends on one input column.

    `target.column` is `*` when the input decides which rows exist, which affects every column.
    """

    source: ColumnRef
    target: ColumnRef
    type: Literal["DIRECT", "INDIRECT"]
    subtype: str
    masking: bool = False
    resolution: Literal["exact", "inferred", "ambiguous"] = "exact"
    expression: str = ""


class SqlBlindSpot(msgspec.Struct, frozen=True, order=True):
    """A part of a statement whose lineage is not known."""

    kind: str
    message: str
    line: int = 0
    column: int = 0


class StatementLineage(msgspec.Struct, kw_only=True):
    """The lineage of one statement.

    A column edge is about one output column. A dataset edge is about every row of the output. A
    statement that drops, truncates or renames tables has a `lifecycle`, and the tables `changed`.
    `routine` is the procedure or function that contains the statement.
    """

    kind: str
    line: int
    sql: str
    inputs: list[str] = []
    outputs: list[str] = []
    columns: list[str] = []
    column_edges: list[ColumnEdge] = []
    dataset_edges: list[ColumnEdge] = []
    lifecycle: str | None = None
    changed: list[str] = []
    routine: str = ""
    blind_spots: list[SqlBlindSpot] = []


class SqlLineage(msgspec.Struct, kw_only=True):
    """The lineage of a script: of each statement, and of the whole."""

    dialect: str
    dialect_guessed: bool
    statements: list[StatementLineage]
    inputs: list[str]
    outputs: list[str]
    column_edges: list[ColumnEdge]
    dataset_edges: list[ColumnEdge]
    blind_spots: list[SqlBlindSpot]

    @property
    def complete(self) -> bool:
        """True when the script has no blind spot."""
        return not self.blind_spots

    def end_to_end(self) -> SqlLineage:
        """Return the lineage from the inputs to the outputs, without the tables in between.

        A script that fills `b` from `a` and then `c` from `b` has edges a → b and b → c; end to end
        it has a → c. Tables that the script drops are left out, and renamed tables have their last
        name. `statements` do not change.
        """

        return compose_end_to_end(self)


_RESOLUTIONS = ("exact", "inferred", "ambiguous")


def compose_end_to_end(lineage: SqlLineage) -> SqlLineage:
    """Return the lineage from the inputs of a script to its outputs."""
    names = _final_names(lineage.statements)
    intermediate = _intermediate_tables(lineage.statements)
    dropped = {name for name, final in names.items() if final is None}
    flow = _Flow(lineage, intermediate)
    outputs = [
        names.get(name) or name
        for name in lineage.outputs
        if name not in intermediate and name not in dropped
    ]
    kept = set(outputs)

    def finished(edges: Iterable[ColumnEdge]) -> list[ColumnEdge]:
        renamed = (
            _retarget(edge, names.get(edge.target.table) or edge.target.table) for edge in edges
        )
        return sorted({e for e in renamed if e.target.table in kept or not e.target.table})

    return SqlLineage(
        dialect=lineage.dialect,
        dialect_guessed=lineage.dialect_guessed,
        statements=lineage.statements,
        inputs=[name for name in lineage.inputs if name not in intermediate],
        outputs=list(dict.fromkeys(outputs)),
        column_edges=finished(e for edge in flow.column_edges for e in flow.through(edge)),
        dataset_edges=finished(e for edge in flow.dataset_edges() for e in flow.through(edge)),
        blind_spots=lineage.blind_spots,
    )


def _final_names(statements: list[StatementLineage]) -> dict[str, str | None]:
    """Return the last name of each renamed table, None for a dropped one."""
    names: dict[str, str | None] = {}
    for statement in statements:
        if statement.lifecycle == "DROP":
            for table in statement.changed:
                names[table] = None
                names.update({old: None for old, new in names.items() if new == table})
        elif statement.lifecycle == "RENAME":
            for edge in statement.column_edges:
                old, new = edge.source.table, edge.target.table
                names.update({first: new for first, last in names.items() if last == old})
                names[old] = new
        else:
            for table in statement.outputs:
                names.pop(table, None)
    return names


def _intermediate_tables(statements: list[StatementLineage]) -> set[str]:
    """Return the tables that one statement writes and another reads."""
    tables: set[str] = set()
    for reader in statements:
        for table in reader.inputs:
            if table not in reader.outputs and any(
                table in writer.outputs for writer in statements if writer is not reader
            ):
                tables.add(table)
    return tables


class _Flow:
    """The edges into the tables between inputs and outputs, followed backwards."""

    def __init__(self, lineage: SqlLineage, intermediate: set[str]) -> None:
        self._intermediate = intermediate
        self._lineage = lineage
        self._columns: dict[ColumnRef, list[ColumnEdge]] = {}
        self._tables: dict[str, list[ColumnEdge]] = {}
        # A rename is not a flow from one table to another.
        self.column_edges = sorted(
            {e for s in lineage.statements if s.lifecycle != "RENAME" for e in s.column_edges}
        )
        for edge in self.column_edges:
            self._columns.setdefault(edge.target, []).append(edge)
            self._tables.setdefault(edge.target.table, []).append(edge)

    def dataset_edges(self) -> Iterator[ColumnEdge]:
        """Yield the dataset edges, also those of the tables in between."""
        yield from self._lineage.dataset_edges
        into: dict[str, set[str]] = {}
        for statement in self._lineage.statements:
            for output in statement.outputs or [""]:
                into.setdefault(output, set()).update(statement.inputs)
        for output in list(into):
            for table in self._reached(output, into):
                for edge in self._lineage.dataset_edges:
                    if edge.target.table == table:
                        yield _retarget(edge, output)

    def _reached(self, output: str, into: dict[str, set[str]]) -> set[str]:
        """Return the tables between the inputs and an output."""
        tables: set[str] = set()
        pending = [output]
        while pending:
            for table in into.get(pending.pop(), ()):
                if table in self._intermediate and table not in tables and table != output:
                    tables.add(table)
                    pending.append(table)
        return tables

    def through(self, edge: ColumnEdge) -> Iterator[ColumnEdge]:
        """Yield an edge, or the edges that replace it when its source is a table in between."""
        pending = [edge]
        seen = {edge}
        while pending:
            current = pending.pop()
            if current.source.table not in self._intermediate:
                yield current
                continue
            for before in self._into(current.source):
                joined = _join(before, current)
                if joined not in seen:
                    seen.add(joined)
                    pending.append(joined)

    def _into(self, ref: ColumnRef) -> Iterator[ColumnEdge]:
        if ref.column == "*":
            yield from self._tables.get(ref.table, ())
            return
        exact = self._columns.get(ref)
        if exact is not None:
            yield from exact
            return
        for star in self._columns.get(ColumnRef(ref.table, "*"), ()):
            yield _with(star, source=ColumnRef(star.source.table, ref.column), target=ref)


def _join(before: ColumnEdge, after: ColumnEdge) -> ColumnEdge:
    """Return one edge for two consecutive ones."""
    kinds = (DependencyKind[before.subtype], DependencyKind[after.subtype])
    if after.type == "INDIRECT":
        kind = kinds[1]
    else:
        kind = kinds[0] if before.type == "INDIRECT" else max(kinds)
    named = after.target.column == "*" and after.source.column == "*" and after.type == "DIRECT"
    return ColumnEdge(
        source=before.source,
        target=ColumnRef(after.target.table, before.target.column) if named else after.target,
        type="DIRECT" if kind < DependencyKind.JOIN else "INDIRECT",
        subtype=kind.name,
        masking=kind < DependencyKind.JOIN and (before.masking or after.masking),
        resolution=max(before.resolution, after.resolution, key=_RESOLUTIONS.index),
        expression=after.expression or before.expression,
    )


def _retarget(edge: ColumnEdge, table: str) -> ColumnEdge:
    return _with(edge, source=edge.source, target=ColumnRef(table, edge.target.column))


def _with(edge: ColumnEdge, *, source: ColumnRef, target: ColumnRef) -> ColumnEdge:
    return ColumnEdge(
        source=source,
        target=target,
        type=edge.type,
        subtype=edge.subtype,
        masking=edge.masking,
        resolution=edge.resolution,
        expression=edge.expression,
    )
