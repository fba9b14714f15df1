"""Compares a query's outputs before and after a change: columns, types, values, rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlglot import exp

from downriver.columns.dependencies import DependencyKind as DepKind
from downriver.impact.simulate.build_rules import (
    ContractViolation,
    adds_columns,
    check_contract,
)
from downriver.impact.simulate.column_types import UNKNOWN, parse_type
from downriver.impact.simulate.delta import ABSENT, ColumnDelta, Delta, DeltaKind, extend_trail
from downriver.impact.simulate.retype_visibility import ValueChange, converted
from downriver.impact.simulate.script.bound_script import type_text
from downriver.model.ids import ColumnId, DatasetId, NodeId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from downriver.columns.dependencies import Deps, TableName
    from downriver.impact.simulate.catalog import SimulationCatalog
    from downriver.impact.simulate.column_types import ColumnType
    from downriver.impact.simulate.delta import Trail
    from downriver.impact.simulate.retype_visibility import RetypeVisibility
    from downriver.impact.simulate.script.bound_script import BoundScript
    from downriver.impact.simulate.script.job_script import (
        JobScript,
        ScriptColumn,
        ScriptOutput,
        ScriptReading,
    )
    from downriver.openlineage.facets.custom import BuildFacet

    Renamed = Callable[[TableName, str], str]  # the name of a base column after the changes

_ROW_CLAUSES = ("where", "having", "qualify", "distinct", "limit", "offset", "order")
_DEEPEST = 40  # limit of nested expressions when names are followed


class QueryNormalForm:
    """The columns of each output as expressions over base tables, and what decides its rows."""

    def __init__(self, script: JobScript, reading: ScriptReading, renamed: Renamed) -> None:
        self._names = reading.names
        self._renamed = renamed
        self._constants = dict(_constants(script))
        self._rows = tuple(sorted(self._conditions(script)))

    @property
    def rows(self) -> tuple[str, ...]:
        """Every condition, key and limit, with names followed to base tables."""
        return self._rows

    def columns(self, output: ScriptOutput) -> dict[str, str]:
        """Return the expression of each column of an output."""
        return {
            name: self._names.render_value(column, self.render, self._renamed)
            if column.deps
            else self._constants.get(name, "")
            for column in output.columns
            for name in (column.name.casefold(),)
        }

    def _conditions(self, script: JobScript) -> Iterator[str]:
        for tree in script.trees:
            for node in tree.walk():
                yield from self._condition(node)

    def _condition(self, node: exp.Expression) -> Iterator[str]:
        if isinstance(node, exp.Join):
            kind = f"{node.args.get('side') or ''} {node.args.get('kind') or ''}".upper().strip()
            on = node.args.get("on")
            using = sorted(str(name.name).casefold() for name in node.args.get("using") or ())
            yield f"JOIN {kind} {self.render(on) if on is not None else using}"
        elif isinstance(node, exp.SetOperation):
            yield f"{type(node).__name__} {bool(node.args.get('distinct'))}"
        elif isinstance(node, exp.Group):
            yield from (f"GROUP {self.render(part)}" for part in node.expressions)
        elif isinstance(node, exp.Select):
            for part in _ROW_CLAUSES:
                clause = node.args.get(part)
                # The order of rows matters only where it decides which rows remain.
                if clause is None or (part == "order" and not node.args.get("limit")):
                    continue
                yield f"{part} {self.render(clause)}"
        elif isinstance(node, exp.Table) and self._names.is_base(str(node.name)):
            yield f"FROM {node.name.casefold()}"

    def render(self, node: object, depth: int = 0) -> str:
        """Return an expression as text, in which each column is replaced by its expression."""
        if isinstance(node, list):
            return f"[{', '.join(self.render(part, depth) for part in node)}]"
        if not isinstance(node, exp.Expression):
            return "" if node in (None, False) else str(node).casefold()
        if depth > _DEEPEST:
            return str(node.sql()).casefold()
        if isinstance(node, exp.Column):
            return self._names.render_column(
                node, lambda inner: self.render(inner, depth + 1), self._renamed
            )
        if isinstance(node, exp.Literal):
            return repr(node.this)
        if isinstance(node, (exp.Paren, exp.Alias)) and not isinstance(node, exp.Subquery):
            return self.render(node.this, depth)
        if isinstance(node, exp.Identifier):
            return str(node.this).casefold()
        if isinstance(node, exp.Subquery):
            return self.render(node.this, depth)
        inner = "; ".join(
            f"{name}={text}"
            for name, part in node.args.items()
            if name not in ("comments", "with_") and (text := self.render(part, depth))
        )
        return f"{type(node).__name__}({inner})"


def _constants(script: JobScript) -> Iterator[tuple[str, str]]:
    """Yield the columns without dependencies. Only their expressions can differ."""
    for tree in script.trees:
        for select in tree.find_all(exp.Select):
            for item in select.expressions:
                if item.find(exp.Column) is None:
                    yield str(item.alias_or_name).casefold(), item.unalias().sql().casefold()


class ChangedDependencies:
    """Follows the dependencies of one process's SQL to the deltas of their columns."""

    def __init__(
        self, reading: BoundScript, catalog: SimulationCatalog, deltas: Mapping[int, Delta]
    ) -> None:
        self._reading = reading
        self._process = reading.process
        self._catalog = catalog
        self._deltas = deltas

    def new_name(self, table: TableName, column: str) -> str:
        """Return the name of a base column after the changes."""
        node = self._reading.tables.node(table)
        delta = self._deltas.get(node) if node is not None else None
        touch = delta.find(column, DeltaKind.RENAMED) if delta is not None else None
        return column if touch is None else touch.to

    def type_of(self, node: int, column: str) -> ColumnType:
        """Return the type of a column of a dataset after the changes."""
        delta = self._deltas.get(node)
        touch = delta.find(column, DeltaKind.RETYPED) if delta is not None else None
        if touch is not None:
            return parse_type(touch.to)
        types = {field.name.casefold(): field.type for field in self._catalog.fields(node) or ()}
        return parse_type(types.get(column.casefold(), ""))

    def output_id(self, node: int | None) -> NodeId:
        """Return the dataset of an output; the process, where the output is not stored."""
        return self._process.id if node is None else self._catalog.dataset(node).id

    def renamed_deps(self, deps: Deps) -> set[object]:
        """Return dependencies with the new names of renamed base columns."""
        keys: set[object] = set()
        for table, column, kind, masked in deps:
            node = self._reading.tables.node(table)
            delta = self._deltas.get(node) if node is not None else None
            touch = delta.find(column, DeltaKind.RENAMED) if delta is not None else None
            keys.add((table, touch.to if touch else column, kind, masked))
        return keys

    def touched(
        self, deps: Deps, kinds: tuple[DeltaKind, ...], *, direct: bool = False
    ) -> ColumnDelta | None:
        """Return the delta of the first changed column. Deltas that keep nulls come last."""
        column_delta: ColumnDelta | None = None
        for table, column, kind, _ in deps:
            if direct and kind >= DepKind.JOIN:
                continue
            node = self._reading.tables.node(table)
            delta = self._deltas.get(node) if node is not None else None
            if delta is None:
                continue
            touch = delta.find(column, *kinds)
            if touch is not None and not touch.keeps_nulls:
                return touch
            column_delta = column_delta or touch
        return column_delta

    def other_rows(self) -> ColumnDelta | None:
        """Return why the rows of an input differ, None if they do not."""
        for node in self._reading.inputs:
            delta = self._deltas.get(node)
            if delta is not None and delta.rows is not None:
                return ColumnDelta("", delta.rows)
        return None

    def any_trail(self, node: int | None, column: str) -> Trail:
        """Return the trail of a column, or else the first trail of any column."""
        for source in self._reading.inputs:
            delta = self._deltas.get(source)
            touch = delta.find(column, *DeltaKind) if delta is not None else None
            if touch is not None:
                return extend_trail(touch.trail, self.column_id(node, column))
        for source in self._reading.inputs:
            delta = self._deltas.get(source)
            for touch in delta.touches.values() if delta is not None else ():
                return touch.trail
        return ()

    def column_id(self, node: int | None, column: str) -> ColumnId:
        """Return a column that is filled here; the job names a result that is not stored."""
        if node is None:
            job = self._process.id
            return ColumnId(DatasetId(job.namespace, job.name), column)
        return self._catalog.column(node, column)


class OutputDifference(NamedTuple):
    """How one output differs. `violations` are of the contract, where they are new."""

    node: int | None
    delta: Delta
    violations: tuple[ContractViolation, ...] = ()


class OutputComparison:
    """Compares the outputs of one process.

    `head` is the SQL it will have, where that changes; `build` is how it will be built.
    """

    def __init__(
        self,
        reading: BoundScript,
        influence: ChangedDependencies,
        deltas: Mapping[int, Delta],
        head: JobScript | None,
        build: BuildFacet,
        visibility: RetypeVisibility,
    ) -> None:
        self._reading = reading
        self._process = reading.process
        self._build = build
        self._visibility = visibility
        self._influence = influence
        self._deltas = deltas
        self._head = head
        self._script = head or reading.script

    def differences(self, after: ScriptReading) -> Iterator[OutputDifference]:
        """Yield the outputs that differ."""
        for before, now in self._pairs(after):
            node = self._reading.output_node(before)
            if now is None:
                output = self._influence.output_id(node)
                yield OutputDifference(node, Delta(removed=(output,)))
                continue
            delta = self._difference(before, now, after, node)
            if self._head is not None:
                self._compare_meaning(before, now, after, node, delta)
            violations = tuple(self._violations(before, now, delta))
            if delta or violations:
                yield OutputDifference(node, delta, violations)

    def _violations(
        self, before: ScriptOutput, now: ScriptOutput, delta: Delta
    ) -> Iterator[ContractViolation]:
        """Yield the violations of the contract that did not exist before."""
        known = set(check_contract(self._process.build, before))
        yield from (v for v in check_contract(self._build, now) if v not in known)
        if now.open:
            promised = {column.name.casefold() for column in self._build.contract or ()}
            for name in delta.columns(*ABSENT).keys() & promised:
                yield ContractViolation(name, f"its enforced contract has {name}")

    def _pairs(self, after: ScriptReading) -> Iterator[tuple[ScriptOutput, ScriptOutput | None]]:
        """Yield each output with its delta."""
        if self._head is None:
            yield from zip(self._reading.found.outputs, after.outputs, strict=False)
            return
        now = {output.table: output for output in after.outputs}
        for output in self._reading.found.outputs:
            yield output, now.get(output.table)

    def _compare_meaning(
        self,
        before: ScriptOutput,
        now: ScriptOutput,
        after: ScriptReading,
        node: int | None,
        delta: Delta,
    ) -> None:
        """Record what new SQL computes differently from the same columns."""
        old = QueryNormalForm(self._reading.script, self._reading.found, self._influence.new_name)
        new = QueryNormalForm(self._script, after, _same_name)
        columns = new.columns(now)
        for name, text in old.columns(before).items():
            changed = name in columns and columns[name] != text
            if changed and delta.find(name, DeltaKind.CHANGED, DeltaKind.RETYPED) is None:
                delta.put(
                    name,
                    DeltaKind.CHANGED,
                    ColumnDelta("", (self._influence.column_id(node, name),)),
                )
        if old.rows != new.rows and delta.rows is None:
            delta.rows = (self._influence.output_id(node),)

    def _difference(
        self, before: ScriptOutput, now: ScriptOutput, after: ScriptReading, node: int | None
    ) -> Delta:
        delta = Delta()
        if before.defines and now.defines:
            return delta  # the lists themselves were compared, with constraints and renames
        old = {column.name.casefold(): column for column in before.columns}
        new = {column.name.casefold(): column for column in now.columns}
        replaces = before.replaces and adds_columns(self._build)
        vanished = [column for name, column in old.items() if name not in new]
        appeared = [column for name, column in new.items() if name not in old]
        for column in vanished:
            self._record_missing(column, appeared, node, delta)
        for column in appeared if replaces else ():
            trail = self._influence.any_trail(node, column.name)
            delta.put(column.name, DeltaKind.ADDED, ColumnDelta(type_text(column.type), trail))
        for name in [name for name in old if name in new]:
            target = None if before.replaces else self._target_type(node, name)
            self._compare_column(old[name], new[name], node, delta, replaces=replaces, into=target)
        if before.open:
            self._compare_star(before, node, delta)
        rows = self._influence.touched(before.rows, (DeltaKind.CHANGED, DeltaKind.NULLABLE))
        if rows is None:
            rows = self._influence.touched(before.rows, (DeltaKind.RETYPED,))
            is_hidden = rows is not None and not self._visibility.rows_differ()
        else:
            is_hidden = rows.keeps_nulls and not self._visibility.rows_differ()
        if rows is None or is_hidden:
            rows = self._influence.other_rows()
        if rows is not None:
            delta.rows = rows.trail
        elif after.names.natural != self._reading.found.names.natural:
            delta.rows = self._influence.any_trail(node, "")
        return delta

    def _record_missing(
        self, column: ScriptColumn, appeared: list[ScriptColumn], node: int | None, delta: Delta
    ) -> None:
        touch = self._influence.touched(column.deps, ABSENT, direct=True)
        trail = extend_trail(
            touch.trail if touch else (), self._influence.column_id(node, column.name)
        )
        renamed = self._influence.renamed_deps(column.deps)
        for other in appeared:
            if renamed and set(other.deps) == renamed:
                appeared.remove(other)
                delta.put(column.name, DeltaKind.RENAMED, ColumnDelta(other.name, trail))
                return
        delta.put(column.name, DeltaKind.LOST, ColumnDelta("", trail))

    def _compare_column(
        self,
        old: ScriptColumn,
        new: ScriptColumn,
        node: int | None,
        delta: Delta,
        *,
        replaces: bool,
        into: ColumnType | None,
    ) -> None:
        """Compare a column. `into` is the type of the existing column that receives its values."""
        step = self._influence.column_id(node, old.name)
        changed = self._influence.touched(old.deps, (DeltaKind.CHANGED, DeltaKind.NULLABLE))
        retyped = self._influence.touched(old.deps, (DeltaKind.RETYPED,))
        is_hidden = changed is None or changed.keeps_nulls
        change = self._visibility.of_column(old) if is_hidden else ValueChange.OTHER
        if into is not None:
            change = converted(change, into)
        keeps_nulls = change <= ValueChange.DIFFERENT
        if changed is not None:
            if change > ValueChange.SAME:
                trail = extend_trail(changed.trail, step)
                delta.put(old.name, DeltaKind.CHANGED, ColumnDelta("", trail, keeps_nulls))
        elif set(new.deps) != self._influence.renamed_deps(old.deps):
            trail = extend_trail(self._influence.any_trail(node, old.name), step)
            delta.put(
                old.name, DeltaKind.CHANGED, ColumnDelta("", trail)
            )  # it means another column now
        if retyped is None:
            return
        trail = extend_trail(retyped.trail, step)
        is_typed = old.type != UNKNOWN and new.type != UNKNOWN
        if replaces and old.type != new.type:
            delta.put(old.name, DeltaKind.RETYPED, ColumnDelta(type_text(new.type), trail))
        if change > (ValueChange.LOSSY if replaces and is_typed else ValueChange.SAME):
            delta.put(old.name, DeltaKind.CHANGED, ColumnDelta("", trail, keeps_nulls))

    def _target_type(self, node: int | None, column: str) -> ColumnType | None:
        """Return the type of an existing column that values are converted to, if it is known."""
        known = self._influence.type_of(node, column) if node is not None else UNKNOWN
        return None if known == UNKNOWN else known

    def _compare_star(self, before: ScriptOutput, node: int | None, delta: Delta) -> None:
        """Pass known deltas through a `*` over tables with unknown columns."""
        for table in before.stars:
            source = self._reading.tables.node(table)
            touched = self._deltas.get(source) if source is not None else None
            for (column, kind), touch in touched.touches.items() if touched else ():
                if kind is not DeltaKind.REQUIRED and kind is not DeltaKind.UNAVAILABLE:
                    trail = extend_trail(touch.trail, self._influence.column_id(node, column))
                    delta.put(column, kind, ColumnDelta(touch.to, trail))


def _same_name(table: TableName, column: str) -> str:
    return column


def describe_delta(delta: Delta) -> str:
    """Return the difference of an output in words."""
    parts = []
    for kinds, words in _CHANGED_WORDS:
        names = delta.columns(*kinds)
        if names:
            listed = ", ".join(
                f"{name} to {touch.to}" if DeltaKind.RENAMED in kinds else name
                for name, touch in names.items()
            )
            parts.append(f"{words} {listed}")
    if delta.rows is not None:
        parts.append("may have other rows")
    return "; ".join(parts) or "changes"


def first_trail(delta: Delta) -> Trail:
    """Return a trail of a difference."""
    for touch in delta.touches.values():
        if touch.trail:
            return touch.trail
    return delta.rows or ()


_CHANGED_WORDS = (
    ((DeltaKind.LOST,), "loses"),
    ((DeltaKind.RENAMED,), "renames"),
    ((DeltaKind.ADDED,), "gains"),
    ((DeltaKind.RETYPED,), "changes the type of"),
    ((DeltaKind.CHANGED,), "changes the values of"),
)
