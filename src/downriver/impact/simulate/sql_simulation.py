"""Simulates SQL under changed schemas: whether names resolve, and how its outputs differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.impact.simulate.build_rules import apply_build
from downriver.impact.simulate.delta import (
    ABSENT,
    MISSING,
    VALUES,
    ColumnDelta,
    Delta,
    DeltaKind,
    ProcessResult,
    extend_trail,
)
from downriver.impact.simulate.output_diff import (
    ChangedDependencies,
    OutputComparison,
    describe_delta,
    first_trail,
)
from downriver.impact.simulate.retype_visibility import RetypeVisibility
from downriver.impact.simulate.script.bound_script import BoundScript, BoundTables, locate_reference
from downriver.impact.simulate.script.resolution import SqlProblem, SqlProblems
from downriver.model.changes import Outcome
from downriver.model.ids import ColumnId

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from downriver.impact.simulate.build_rules import ContractViolation
    from downriver.impact.simulate.catalog import SimulationCatalog
    from downriver.impact.simulate.delta import Sentence, Trail
    from downriver.impact.simulate.script.job_script import JobScript, ScriptReading
    from downriver.model.ids import EntityId
    from downriver.model.verdicts import Reference
    from downriver.openlineage.facets.custom import BuildFacet

# Kinds of deltas that change the columns of a table or their types.
_RESHAPING = frozenset({*ABSENT, DeltaKind.ADDED, DeltaKind.RETYPED, DeltaKind.REQUIRED})
_RENAMING = _RESHAPING - {DeltaKind.RETYPED}
# The text of a problem, before and after its names.
_WHY = {
    "missing_column": ("cannot resolve ", ""),
    "ambiguous": ("uses ", ", which is ambiguous: two of its tables have it"),
    "missing_table": ("reads ", ", which no longer exists or fails"),
    "arity": ("has the wrong number of columns: ", ""),
    "required": ("does not fill ", ", which is now required"),
    "natural": ("uses NATURAL JOIN, and ", ""),
    "duplicate": ("has two columns named ", " now"),
    "type": ("is not valid for the new type: ", ""),
}


def simulate_script(
    reading: BoundScript,
    catalog: SimulationCatalog,
    deltas: Mapping[int, Delta],
    head: JobScript | None = None,
    build: BuildFacet | None = None,
) -> ProcessResult:
    """Return the effect of table deltas on a process with known SQL.

    `head` is its SQL after the change, and `build` how it is built then, if these change.
    """
    return _Simulation(reading, catalog, deltas, head, build or reading.process.build).run()


def _unknown_function(problem: SqlProblem) -> str:
    """Return the unknown function that is called with the column of a problem."""
    call = problem.node.find_ancestor(exp.Anonymous) if problem.node is not None else None
    return "" if call is None else str(call.name).casefold()


class _Simulation:
    def __init__(
        self,
        reading: BoundScript,
        catalog: SimulationCatalog,
        deltas: Mapping[int, Delta],
        head: JobScript | None,
        build: BuildFacet,
    ) -> None:
        self._reading = reading
        self._catalog = catalog
        self._head = head
        self._build = build
        self._script = head or reading.script
        self._process = reading.process._replace(script=self._script)
        self._deltas = deltas
        self._result = ProcessResult()
        self._influence = ChangedDependencies(reading, catalog, deltas)

    def run(self) -> ProcessResult:
        self._receive()
        if self._is_concerned():
            after, problems = self._read_after_change()
            if problems:
                self._fail(problems)
            if self._lacks_columns() or problems:
                self._outputs_fail({problem.kind for problem in problems})
            else:
                self._compare(after)
        self._receive_staleness()
        self._pass_on_staleness()
        return self._result

    def _read_after_change(self) -> tuple[ScriptReading, list[SqlProblem]]:
        """Return the SQL under the new schemas and its errors.

        The SQL is read again only if these may differ.
        """
        near = self._input_deltas()
        kinds = {kind for delta in near for _, kind in delta.touches}
        is_removed = any(delta.removed is not None for delta in near)
        if self._head is None and not is_removed:
            if not kinds.intersection(_RESHAPING):
                return self._reading.found, []
            if kinds.issubset(MISSING):
                missing = self._certainly_missing()
                if missing:
                    return self._reading.found, missing
        after = self._read_again()
        return after, self._new_problems(after)

    def _certainly_missing(self) -> list[SqlProblem]:
        """Return the dropped names that cannot refer to another column.

        In a simple SELECT over known tables, a name is a column of one of them.
        """
        if not self._script.is_plain or any(
            self._reading.tables.shape(table).open for table in self._reading.found.inputs
        ):
            return []
        sql_problems = SqlProblems()
        for node in self._reading.inputs:
            delta = self._deltas.get(node)
            for column in delta.columns(*ABSENT) if delta is not None else ():
                if self._has_elsewhere(column, node):
                    return []
                for lookup in self._reading.lookups.get((node, column), ()):
                    sql_problems.add("missing_column", lookup.node, lookup.name)
        return list(sql_problems)

    def _has_elsewhere(self, column: str, but: int) -> bool:
        tables = self._reading.tables
        return any(
            column in tables.shape(table).types
            for table in self._reading.found.inputs
            if tables.node(table) != but
        )

    def _new_problems(self, after: ScriptReading) -> list[SqlProblem]:
        """Return the problems that the change causes.

        Earlier problems are limits of this reader.
        """
        if self._head is None:
            return [p for p in after.problems() if not self._reading.has_problem(p)]
        before = list(self._reading.problems())
        names = {(problem.kind, problem.name) for problem in before}
        # Before the change, the arguments of these unknown functions were no columns either.
        calls = {called for problem in before if (called := _unknown_function(problem))}
        return [
            problem
            for problem in after.problems()
            if (problem.kind, problem.name) not in names and _unknown_function(problem) not in calls
        ]

    # Deltas that every reader of a dataset receives

    def _receive(self) -> None:
        for node in self._reading.inputs:
            delta = self._deltas.get(node)
            if delta is None:
                continue
            dataset = self._catalog.dataset(node).id
            if delta.possible is not None:
                self._result.worsen(
                    Outcome.MAY_FAIL,
                    ("reads ", dataset, ", which may be affected: its column lineage is unknown"),
                    delta.possible,
                    "table_edges",
                )
            if delta.deprecated is not None:
                self._result.worsen(Outcome.DEPRECATED, ("uses ", dataset), delta.deprecated)

    def _receive_staleness(self) -> None:
        """Record inputs that are no longer updated."""
        for node in self._reading.inputs:
            delta = self._deltas.get(node)
            if delta is not None and delta.stale is not None:
                dataset = self._catalog.dataset(node).id
                reason = ("reads ", dataset, ", which is no longer updated")
                self._result.worsen(Outcome.NOT_REBUILT, reason, delta.stale)

    def _pass_on_staleness(self) -> None:
        flags = {
            name: trail
            for node in self._reading.inputs
            if (delta := self._deltas.get(node)) is not None
            for name in ("stale", "possible", "deprecated")
            if (trail := getattr(delta, name)) is not None
        }
        for output in self._reading.found.outputs if flags else ():
            node = self._reading.output_node(output)
            if node is not None:
                for name, trail in flags.items():
                    self._result.output(node).mark(name, trail)

    def _is_concerned(self) -> bool:
        """Return whether the meaning of this SQL can change."""
        if self._head is not None:
            return True
        nodes = {*self._reading.inputs, *self._process.outputs}
        return any(
            self._concerns(node, delta)
            for node in nodes
            if (delta := self._deltas.get(node)) is not None
        )

    def _input_deltas(self) -> list[Delta]:
        """Return the deltas of the datasets that this SQL names."""
        nodes = {*self._reading.inputs, *self._process.outputs}
        return [delta for node in nodes if (delta := self._deltas.get(node)) is not None]

    def _concerns(self, node: int, delta: Delta) -> bool:
        if delta.removed is not None or delta.rows is not None:
            return True
        if not delta.touches:
            return False
        if node in self._reading.starred or node in self._process.outputs:
            return True
        if any((node, column) in self._reading.used for column, _ in delta.touches):
            return True
        plain = self._reading.found.names.plain_names
        appeared = [touch.to for touch in delta.columns(DeltaKind.RENAMED).values()]
        appeared += delta.columns(DeltaKind.ADDED)
        return any(name.casefold() in plain for name in appeared)

    def _read_again(self) -> ScriptReading:
        before = self._reading.tables if self._head is None else None
        tables = BoundTables(self._process, self._catalog, self._deltas, before)
        near = self._input_deltas()
        kinds = {kind for delta in near for _, kind in delta.touches}
        retyped = DeltaKind.RETYPED in kinds
        same_names = not kinds.intersection(_RENAMING) and all(d.removed is None for d in near)
        if retyped and same_names and self._head is None:
            reading = self._reading.found
            after = reading.with_types(self._script.types_under(reading, tables))
        else:
            by_nature = bool(self._reading.found.names.natural)
            after = self._script.read(tables, typed=retyped or by_nature or self._head is not None)
        if retyped:
            after.types.check_types(self._script.nodes)
        if not retyped and after.names.natural != self._reading.found.names.natural:
            after.types.check_joins()
        return after

    # Failures

    def _fail(self, problems: list[SqlProblem]) -> None:
        first = problems[0]
        alike = dict.fromkeys(problem.name for problem in problems if problem.kind == first.kind)
        before, after = _WHY[first.kind]
        names: Sentence = (", ".join(alike),)
        if first.kind == "missing_table":
            names = self._lost_tables() or names
        reason = (before, *names, after)
        self._result.worsen(Outcome.FAILS, reason, self._trail_of(first))
        for problem in problems:
            self._result.refer(list(self._references(problem)))

    def _lost_tables(self) -> Sentence:
        """Return the removed tables that the process reads, separated by commas."""
        names: list[str | EntityId] = []
        for node in sorted(self._reading.inputs):
            delta = self._deltas.get(node)
            if delta is not None and delta.removed is not None:
                names += (
                    [", ", self._catalog.dataset(node).id]
                    if names
                    else [self._catalog.dataset(node).id]
                )
        return tuple(names)

    def _references(self, problem: SqlProblem) -> Iterator[Reference]:
        if problem.kind == "missing_table":
            wanted = problem.name.rpartition(".")[2].casefold()
            for tree in self._script.trees:
                for table in tree.find_all(exp.Table):
                    if str(table.name).casefold() == wanted:
                        yield locate_reference(self._process, table, problem.name, "")
            return
        node = problem.node
        if node is None:
            return
        if problem.kind == "type":
            for column in node.find_all(exp.Column):
                yield from self._lookup_references(column)
            return
        name = problem.name if problem.kind != "arity" else ""
        dataset = self._dataset_of(problem.name)
        yield locate_reference(self._process, node, dataset, name)

    def _lookup_references(self, column: exp.Expression) -> Iterator[Reference]:
        for (node, name), lookups in self._reading.lookups.items():
            delta = self._deltas.get(node)
            if delta is None or delta.find(name, DeltaKind.RETYPED) is None:
                continue
            if any(lookup.node is column for lookup in lookups):
                dataset = str(self._catalog.dataset(node).id)
                yield locate_reference(self._process, column, dataset, name)

    def _dataset_of(self, column: str) -> str:
        for node, delta in self._deltas.items():
            if delta.find(column, *DeltaKind) is not None:
                return str(self._catalog.dataset(node).id)
        return ""

    def _trail_of(self, problem: SqlProblem) -> Trail:
        """Return the trail of a problem: of the column in it, or else of any column."""
        concerned = [
            delta
            for node, delta in self._deltas.items()
            if node in self._reading.inputs or node in self._process.outputs
        ]
        for delta in concerned:
            touch = delta.find(problem.name, *DeltaKind)
            if touch is not None:
                return touch.trail
        for delta in concerned:
            if delta.removed is not None:
                return delta.removed
            for touch in delta.touches.values():
                return touch.trail
        return ()

    def _lacks_columns(self) -> bool:
        """Return whether the process reads columns that a failed job no longer fills."""
        lacks = False
        for node in self._reading.inputs:
            delta = self._deltas.get(node)
            for column, touch in delta.columns(DeltaKind.UNAVAILABLE).items() if delta else ():
                lookups = self._reading.lookups.get((node, column), ())
                dataset = self._catalog.dataset(node).id
                if lookups or node in self._reading.starred:
                    produced = ColumnId(dataset, column)
                    reason = ("reads ", produced, ", which its job no longer produces")
                    self._result.worsen(Outcome.NOT_REBUILT, reason, touch.trail)
                    lacks = True
                self._result.refer(
                    [
                        locate_reference(self._process, lookup.node, str(dataset), column)
                        for lookup in lookups
                    ]
                )
        return lacks

    def _outputs_fail(self, problems: set[str]) -> None:
        kinds = (*MISSING, DeltaKind.RETYPED) if "type" in problems else MISSING
        for output in self._reading.found.outputs:
            node = self._reading.output_node(output)
            if node is None:
                continue
            delta = self._result.output(node)
            delta.stale = delta.stale if delta.stale is not None else self._result.trail
            if output.view and self._result.outcome is Outcome.FAILS:
                delta.removed = self._result.trail
            for column in output.columns:
                touch = self._influence.touched(column.deps, kinds, direct=True)
                if touch is not None:
                    trail = extend_trail(touch.trail, self._influence.column_id(node, column.name))
                    delta.put(column.name, DeltaKind.UNAVAILABLE, ColumnDelta("", trail))

    # Differences of the outputs

    def _compare(self, after: ScriptReading) -> None:
        comparison = OutputComparison(
            self._reading,
            self._influence,
            self._deltas,
            self._head,
            self._build,
            RetypeVisibility(self._reading, self._catalog, self._deltas),
        )
        for node, delta, violations in comparison.differences(after):
            built = apply_build(self._build, delta)
            error = violations[0].reason if violations else built.error
            if error:
                reason: Sentence = (self._build_error(error, violations),)
                self._result.worsen(Outcome.FAILS, reason, first_trail(delta))
                passed_on = Delta(stale=first_trail(delta))
            else:
                reason = (describe_delta(built.delta),)
                self._result.worsen(Outcome.CHANGES, reason, first_trail(delta))
                self._result.note = self._result.note or built.note
                self._result.data_loss |= built.data_loss
                passed_on = built.delta
            if node is not None:
                self._result.output(node).merge(passed_on)
        self._compare_targets()
        if self._result.outcome is Outcome.CHANGES:
            self._refer_to_values()

    def _compare_targets(self) -> None:
        """Record existing columns with a new type that the process inserts into."""
        for output in self._reading.found.outputs:
            node = None if output.replaces else self._reading.output_node(output)
            delta = self._deltas.get(node) if node is not None else None
            for column in output.columns if node is not None and delta is not None else ():
                touch = delta.find(column.name, DeltaKind.RETYPED) if delta is not None else None
                if touch is not None and node is not None:
                    target = self._influence.column_id(node, column.name)
                    reason = ("writes ", target, f", which has the type {touch.to} now")
                    self._result.worsen(Outcome.CHANGES, reason, touch.trail)

    def _build_error(self, error: str, violations: tuple[ContractViolation, ...]) -> str:
        more = len(violations) - 1
        return f"{error} (and {more} more)" if more > 0 else error

    def _refer_to_values(self) -> None:
        for (node, column), lookups in self._reading.lookups.items():
            delta = self._deltas.get(node)
            if delta is None or delta.find(column, *VALUES) is None:
                continue
            dataset = str(self._catalog.dataset(node).id)
            self._result.refer(
                [
                    locate_reference(self._process, lookup.node, dataset, column)
                    for lookup in lookups
                ]
            )
