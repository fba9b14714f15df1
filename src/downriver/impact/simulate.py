"""SQL under changed schemas: does it still resolve, and what becomes of what it fills?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.capture.sql.deps import Kind as DepKind
from downriver.impact.delta import ABSENT, HURT, VALUES, Delta, Kind, Touch
from downriver.impact.heard import Problem
from downriver.impact.meaning import Meaning
from downriver.impact.places import reference_to
from downriver.impact.reading import BoundTables, Reading, type_text
from downriver.impact.result import Result, extend
from downriver.impact.types import compare_types
from downriver.model.verdicts import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from downriver.capture.sql.deps import Deps, TableName
    from downriver.impact.delta import Trail
    from downriver.impact.script import OutColumn, Output, Script, ScriptReading
    from downriver.impact.world import World
    from downriver.model.verdicts import Reference

# What makes a table have other columns, or columns of other types.
_RESHAPING = frozenset({*ABSENT, Kind.ADDED, Kind.RETYPED, Kind.REQUIRED})
_RENAMING = _RESHAPING - {Kind.RETYPED}
_WHY = {
    "missing_column": "no longer finds {name}",
    "ambiguous": "names {name}, which two of its tables have now",
    "missing_table": "reads {name}, which is gone or no longer works",
    "arity": "no longer fits: {name}",
    "required": "does not fill {name}, which is required now",
    "natural": "joins by what both sides have, and {name}",
    "duplicate": "has two columns called {name} now",
    "type": "no longer makes sense for the new type: {name}",
}


def simulate(
    reading: Reading, world: World, deltas: Mapping[int, Delta], head: Script | None = None
) -> Result:
    """Return what happens to a process whose SQL is known, when its tables are changed so.

    `head` is the SQL it will have by then, where that is to change too.
    """
    return _Simulation(reading, world, deltas, head).run()


class _Simulation:
    def __init__(
        self,
        reading: Reading,
        world: World,
        deltas: Mapping[int, Delta],
        head: Script | None,
    ) -> None:
        self._reading = reading
        self._world = world
        self._head = head
        self._script = head or reading.script
        self._process = reading.process._replace(script=self._script)
        self._deltas = deltas
        self._result = Result()
        self._natural_changed = False

    def run(self) -> Result:
        self._receive()
        if self._is_concerned():
            after, problems = self._foresee()
            if problems:
                self._fail(problems)
            self._lose()
            if self._result.outcome in (Outcome.FAILS, Outcome.LOSES):
                self._outputs_fail({problem.kind for problem in problems})
            else:
                self._compare(after)
        self._pass_on_staleness()
        return self._result

    def _foresee(self) -> tuple[ScriptReading, list[Problem]]:
        """Return what the SQL will say and what will be wrong; read again only if it may differ."""
        near = self._near()
        kinds = {kind for delta in near for _, kind in delta.touches}
        gone = any(delta.gone is not None for delta in near)
        if self._head is None and not gone:
            if not kinds.intersection(_RESHAPING):
                return self._reading.found, []
            if kinds.issubset(HURT):
                missing = self._certainly_missing()
                if missing:
                    return self._reading.found, missing
        after = self._read_again()
        return after, self._new_problems(after)

    def _certainly_missing(self) -> list[Problem]:
        """Return the names that are gone, where nothing else can be meant by them.

        In one plain SELECT over tables that are all known, a name means a column of one of them.
        """
        if not self._script.plain or any(
            self._reading.tables.shape(table).open for table in self._reading.found.inputs
        ):
            return []
        found: dict[int, Problem] = {}
        for node in self._reading.inputs:
            delta = self._deltas.get(node)
            for column in delta.columns(*ABSENT) if delta is not None else ():
                if self._has_elsewhere(column, node):
                    return []
                for lookup in self._reading.lookups.get((node, column), ()):
                    problem = Problem("missing_column", lookup.node, lookup.name)
                    found.setdefault(id(lookup.node), problem)
        return list(found.values())

    def _has_elsewhere(self, column: str, but: int) -> bool:
        tables = self._reading.tables
        return any(
            column in tables.shape(table).types
            for table in self._reading.found.inputs
            if tables.node(table) != but
        )

    def _new_problems(self, after: ScriptReading) -> list[Problem]:
        """Return what does not work any more; what never did says more of us than of the SQL."""
        known = self._reading.found.problems
        if self._head is None:
            return [problem for key, problem in after.problems.items() if key not in known]
        names = {(problem.kind, problem.name) for problem in known.values()}
        return [p for p in after.problems.values() if (p.kind, p.name) not in names]

    # What every reader of a dataset receives, whatever its columns

    def _receive(self) -> None:
        for node in self._reading.inputs:
            delta = self._deltas.get(node)
            if delta is None:
                continue
            name = self._world.dataset(node).id.name
            if delta.may is not None:
                self._result.worsen(
                    Outcome.MAY_FAIL,
                    f"reads {name}, which may be hurt: no one knows which columns fill it",
                    delta.may,
                    "table_edges",
                )
            if delta.stale is not None:
                reason = f"reads {name}, which is no longer renewed"
                self._result.worsen(Outcome.STALE, reason, delta.stale)
            if delta.deprecated is not None:
                self._result.worsen(Outcome.DEPRECATED, f"uses {name}", delta.deprecated)

    def _pass_on_staleness(self) -> None:
        flags = {
            name: trail
            for node in self._reading.inputs
            if (delta := self._deltas.get(node)) is not None
            for name in ("stale", "may", "deprecated")
            if (trail := getattr(delta, name)) is not None
        }
        for output in self._reading.found.outputs if flags else ():
            node = self._reading.output_node(output)
            if node is not None:
                for name, trail in flags.items():
                    self._result.output(node).mark(name, trail)

    def _is_concerned(self) -> bool:
        """Tell whether anything this SQL says can mean something else now."""
        if self._head is not None:
            return True
        nodes = {*self._reading.inputs, *self._process.outputs}
        return any(
            self._concerns(node, delta)
            for node in nodes
            if (delta := self._deltas.get(node)) is not None
        )

    def _near(self) -> list[Delta]:
        """Return what happened to the datasets this SQL names."""
        nodes = {*self._reading.inputs, *self._process.outputs}
        return [delta for node in nodes if (delta := self._deltas.get(node)) is not None]

    def _concerns(self, node: int, delta: Delta) -> bool:
        if delta.gone is not None or delta.rows is not None:
            return True
        if not delta.touches:
            return False
        if node in self._reading.starred or node in self._process.outputs:
            return True
        if any((node, column) in self._reading.used for column, _ in delta.touches):
            return True
        plain = self._reading.found.heard.plain_names
        appeared = [touch.to for touch in delta.columns(Kind.RENAMED).values()]
        appeared += delta.columns(Kind.ADDED)
        return any(name.casefold() in plain for name in appeared)

    def _read_again(self) -> ScriptReading:
        before = self._reading.tables if self._head is None else None
        tables = BoundTables(self._process, self._world, self._deltas, before)
        near = self._near()
        kinds = {kind for delta in near for _, kind in delta.touches}
        retyped = Kind.RETYPED in kinds
        same_names = not kinds.intersection(_RENAMING) and all(d.gone is None for d in near)
        if retyped and same_names and self._head is None:
            after = self._reading.found.under(tables)
        else:
            by_nature = bool(self._reading.found.heard.natural)
            after = self._script.read(tables, typed=retyped or by_nature or self._head is not None)
        if retyped:
            self._reading.check_types()
            after.heard.check_types(self._script.nodes)
        self._natural_changed = after.heard.natural != self._reading.found.heard.natural
        if self._natural_changed and not retyped:
            after.heard.check_joins()
        return after

    # It fails, or loses what it reads

    def _fail(self, problems: list[Problem]) -> None:
        first = problems[0]
        alike = dict.fromkeys(problem.name for problem in problems if problem.kind == first.kind)
        reason = _WHY[first.kind].format(name=", ".join(alike))
        self._result.worsen(Outcome.FAILS, reason, self._trail_of(first))
        for problem in problems:
            self._result.refer(list(self._references(problem)))

    def _references(self, problem: Problem) -> Iterator[Reference]:
        if problem.kind == "missing_table":
            wanted = problem.name.rpartition(".")[2].casefold()
            for statement in self._script.statements:
                for table in statement.tree.find_all(exp.Table):
                    if str(table.name).casefold() == wanted:
                        yield reference_to(self._process, table, problem.name, "")
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
        yield reference_to(self._process, node, dataset, name)

    def _lookup_references(self, column: exp.Expression) -> Iterator[Reference]:
        for (node, name), lookups in self._reading.lookups.items():
            delta = self._deltas.get(node)
            if delta is None or delta.find(name, Kind.RETYPED) is None:
                continue
            if any(lookup.node is column for lookup in lookups):
                dataset = str(self._world.dataset(node).id)
                yield reference_to(self._process, column, dataset, name)

    def _dataset_of(self, column: str) -> str:
        for node, delta in self._deltas.items():
            if delta.find(column, *Kind) is not None:
                return str(self._world.dataset(node).id)
        return ""

    def _trail_of(self, problem: Problem) -> Trail:
        """Return the way that led to a problem: that of the column it names, else of any."""
        concerned = [
            delta
            for node, delta in self._deltas.items()
            if node in self._reading.inputs or node in self._process.outputs
        ]
        for delta in concerned:
            touch = delta.find(problem.name, *Kind)
            if touch is not None:
                return touch.trail
        for delta in concerned:
            if delta.gone is not None:
                return delta.gone
            for touch in delta.touches.values():
                return touch.trail
        return ()

    def _lose(self) -> None:
        """Columns that a failed job no longer fills are as good as gone for those who name them."""
        for node in self._reading.inputs:
            delta = self._deltas.get(node)
            for column, touch in delta.columns(Kind.UNAVAILABLE).items() if delta else ():
                lookups = self._reading.lookups.get((node, column), ())
                dataset = self._world.dataset(node).id
                if lookups or node in self._reading.starred:
                    reason = f"reads {dataset.name}.{column}, which its job can no longer fill"
                    self._result.worsen(Outcome.LOSES, reason, touch.trail)
                self._result.refer(
                    [
                        reference_to(self._process, lookup.node, str(dataset), column)
                        for lookup in lookups
                    ]
                )

    def _outputs_fail(self, problems: set[str]) -> None:
        kinds = (*HURT, Kind.RETYPED) if "type" in problems else HURT
        for output in self._reading.found.outputs:
            node = self._reading.output_node(output)
            if node is None:
                continue
            delta = self._result.output(node)
            delta.stale = delta.stale if delta.stale is not None else self._result.trail
            if output.view and self._result.outcome is Outcome.FAILS:
                delta.gone = self._result.trail
            for column in output.columns:
                touch = self._touched(column.deps, kinds, direct=True)
                if touch is not None:
                    trail = extend(touch.trail, self._column_id(node, column.name))
                    delta.put(column.name, Kind.UNAVAILABLE, Touch("", trail))

    # It runs: what comes out?

    def _compare(self, after: ScriptReading) -> None:
        for before, now in self._pairs(after):
            node = self._reading.output_node(before)
            if now is None:
                name = self._process.id.name if node is None else self._dataset_name(node)
                delta = Delta(gone=(name,))
            else:
                delta = self._difference(before, now, node)
                if self._head is not None:
                    self._compare_meaning(before, now, after, node, delta)
            if not delta:
                continue
            self._result.worsen(Outcome.CHANGES, self._told(delta), self._first_trail(delta))
            if node is not None:
                self._result.output(node).merge(delta)
        if self._result.outcome is Outcome.CHANGES:
            self._refer_to_values()

    def _pairs(self, after: ScriptReading) -> Iterator[tuple[Output, Output | None]]:
        """Yield each output with what has become of it."""
        if self._head is None:
            yield from zip(self._reading.found.outputs, after.outputs, strict=False)
            return
        now = {output.table: output for output in after.outputs}
        for output in self._reading.found.outputs:
            yield output, now.get(output.table)

    def _compare_meaning(
        self, before: Output, now: Output, after: ScriptReading, node: int | None, delta: Delta
    ) -> None:
        """Find what new SQL computes in another way, though from the same columns."""
        old = Meaning(self._reading.script, self._reading.found, self._new_name)
        new = Meaning(self._script, after, _same_name)
        columns = new.columns(now)
        for name, told in old.columns(before).items():
            changed = name in columns and columns[name] != told
            if changed and delta.find(name, Kind.CHANGED, Kind.RETYPED) is None:
                delta.put(name, Kind.CHANGED, Touch("", (self._column_id(node, name),)))
        if old.rows != new.rows and delta.rows is None:
            delta.rows = (self._process.id.name if node is None else self._dataset_name(node),)

    def _new_name(self, table: TableName, column: str) -> str:
        node = self._reading.tables.node(table)
        delta = self._deltas.get(node) if node is not None else None
        touch = delta.find(column, Kind.RENAMED) if delta is not None else None
        return column if touch is None else touch.to

    def _dataset_name(self, node: int) -> str:
        return self._world.dataset(node).id.name

    def _difference(self, before: Output, now: Output, node: int | None) -> Delta:
        delta = Delta()
        old = {column.name.casefold(): column for column in before.columns}
        new = {column.name.casefold(): column for column in now.columns}
        replaces = before.replaces and not self._process.incremental
        vanished = [column for name, column in old.items() if name not in new]
        appeared = [column for name, column in new.items() if name not in old]
        for column in vanished:
            self._vanish(column, appeared, node, delta)
        for column in appeared if replaces else ():
            trail = self._any_trail(node, column.name)
            delta.put(column.name, Kind.ADDED, Touch(type_text(column.type), trail))
        for name in old.keys() & new.keys():
            self._compare_column(old[name], new[name], node, delta, replaces=replaces)
        if before.open:
            self._compare_star(before, node, delta)
        rows = self._touched(before.rows, (Kind.CHANGED, Kind.RETYPED, Kind.NULLABLE), rows=True)
        if rows is not None:
            delta.rows = rows.trail
        elif self._natural_changed:
            delta.rows = self._any_trail(node, "")
        if not replaces and delta.columns(*ABSENT) and before.replaces:
            self._stop_incremental(delta)
            return Delta(stale=self._result.trail)
        return delta

    def _stop_incremental(self, delta: Delta) -> None:
        """A table that is added to keeps its columns: a query that lost one no longer fits."""
        (column, touch), *_ = delta.columns(*ABSENT).items()
        reason = f"adds to a table that has {column}, and no longer has it to give"
        self._result.worsen(Outcome.FAILS, reason, touch.trail)

    def _vanish(
        self, column: OutColumn, appeared: list[OutColumn], node: int | None, delta: Delta
    ) -> None:
        touch = self._touched(column.deps, ABSENT, direct=True)
        trail = extend(touch.trail if touch else (), self._column_id(node, column.name))
        renamed = self._renamed_deps(column.deps)
        for other in appeared:
            if renamed and set(other.deps) == renamed:
                appeared.remove(other)
                delta.put(column.name, Kind.RENAMED, Touch(other.name, trail))
                return
        delta.put(column.name, Kind.LOST, Touch("", trail))

    def _renamed_deps(self, deps: Deps) -> set[object]:
        found: set[object] = set()
        for table, column, kind, masked in deps:
            node = self._reading.tables.node(table)
            delta = self._deltas.get(node) if node is not None else None
            touch = delta.find(column, Kind.RENAMED) if delta is not None else None
            found.add((table, touch.to if touch else column, kind, masked))
        return found

    def _compare_column(
        self, old: OutColumn, new: OutColumn, node: int | None, delta: Delta, *, replaces: bool
    ) -> None:
        step = self._column_id(node, old.name)
        changed = self._touched(old.deps, (Kind.CHANGED, Kind.NULLABLE))
        retyped = self._touched(old.deps, (Kind.RETYPED,))
        if changed is not None:
            delta.put(old.name, Kind.CHANGED, Touch("", extend(changed.trail, step)))
        elif set(new.deps) != self._renamed_deps(old.deps):
            trail = extend(self._any_trail(node, old.name), step)
            delta.put(old.name, Kind.CHANGED, Touch("", trail))  # it means another column now
        if retyped is None:
            return
        trail = extend(retyped.trail, step)
        if replaces and old.type != new.type:
            delta.put(old.name, Kind.RETYPED, Touch(type_text(new.type), trail))
        elif self._is_converted(old.deps):
            delta.put(old.name, Kind.CHANGED, Touch("", trail))

    def _is_converted(self, deps: Deps) -> bool:
        """Tell whether a type a value comes from is now one that may hold something else."""
        for table, column, kind, _ in deps:
            node = self._reading.tables.node(table)
            delta = self._deltas.get(node) if node is not None else None
            touch = delta.find(column, Kind.RETYPED) if delta is not None else None
            if node is None or touch is None or kind >= DepKind.JOIN:
                continue
            types = {f.name.casefold(): f.type for f in self._world.fields(node) or ()}
            if compare_types(types.get(column.casefold(), ""), touch.to) != "widening":
                return True
        return False

    def _compare_star(self, before: Output, node: int | None, delta: Delta) -> None:
        """Of tables whose columns we do not know, what is known to change passes through."""
        for table in before.stars:
            source = self._reading.tables.node(table)
            touched = self._deltas.get(source) if source is not None else None
            for (column, kind), touch in touched.touches.items() if touched else ():
                if kind is not Kind.REQUIRED and kind is not Kind.UNAVAILABLE:
                    trail = extend(touch.trail, self._column_id(node, column))
                    delta.put(column, kind, Touch(touch.to, trail))

    def _touched(
        self, deps: Deps, kinds: tuple[Kind, ...], *, direct: bool = False, rows: bool = False
    ) -> Touch | None:
        """Return what happened to the first of these columns that anything happened to."""
        for table, column, kind, _ in deps:
            if direct and kind >= DepKind.JOIN:
                continue
            node = self._reading.tables.node(table)
            delta = self._deltas.get(node) if node is not None else None
            if delta is None:
                continue
            touch = delta.find(column, *kinds)
            if touch is not None and not (rows and self._is_harmless(node, column, touch, delta)):
                return touch
        if rows:
            return self._other_rows()
        return None

    def _other_rows(self) -> Touch | None:
        for node in self._reading.inputs:
            delta = self._deltas.get(node)
            if delta is not None and delta.rows is not None:
                return Touch("", delta.rows)
        return None

    def _is_harmless(self, node: int | None, column: str, touch: Touch, delta: Delta) -> bool:
        """A wider type selects the same rows."""
        if node is None or delta.find(column, Kind.CHANGED, Kind.NULLABLE) is not None:
            return False
        types = {f.name.casefold(): f.type for f in self._world.fields(node) or ()}
        return compare_types(types.get(column.casefold(), ""), touch.to) in ("same", "widening")

    # Telling

    def _refer_to_values(self) -> None:
        for (node, column), lookups in self._reading.lookups.items():
            delta = self._deltas.get(node)
            if delta is None or delta.find(column, *VALUES) is None:
                continue
            dataset = str(self._world.dataset(node).id)
            self._result.refer(
                [reference_to(self._process, found.node, dataset, column) for found in lookups]
            )

    def _told(self, delta: Delta) -> str:
        parts = []
        for kinds, words in _CHANGED_WORDS:
            names = delta.columns(*kinds)
            if names:
                listed = ", ".join(
                    f"{name} to {touch.to}" if Kind.RENAMED in kinds else name
                    for name, touch in names.items()
                )
                parts.append(f"{words} {listed}")
        if delta.rows is not None:
            parts.append("may have other rows")
        return "; ".join(parts) or "changes"

    def _first_trail(self, delta: Delta) -> Trail:
        for touch in delta.touches.values():
            if touch.trail:
                return touch.trail
        return delta.rows or ()

    def _any_trail(self, node: int | None, column: str) -> Trail:
        for source in self._reading.inputs:
            delta = self._deltas.get(source)
            touch = delta.find(column, *Kind) if delta is not None else None
            if touch is not None:
                return extend(touch.trail, self._column_id(node, column))
        for source in self._reading.inputs:
            delta = self._deltas.get(source)
            for touch in delta.touches.values() if delta is not None else ():
                return touch.trail
        return ()

    def _column_id(self, node: int | None, column: str) -> str:
        if node is None:
            return f"{self._process.id.name}.{column}"
        return self._world.column_name(node, column)


def _same_name(table: TableName, column: str) -> str:
    return column


_CHANGED_WORDS = (
    ((Kind.LOST,), "loses"),
    ((Kind.RENAMED,), "renames"),
    ((Kind.ADDED,), "gains"),
    ((Kind.RETYPED,), "changes the type of"),
    ((Kind.CHANGED,), "changes the values of"),
)
