"""Evaluates processes without known SQL: by column edges and code, else by table edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.impact.simulate.delta import (
    MISSING,
    ColumnDelta,
    Delta,
    DeltaKind,
    ProcessResult,
    extend_trail,
)
from downriver.impact.simulate.process import Job, code_path
from downriver.model.changes import Outcome
from downriver.model.ids import EVERY_FIELD, ColumnId
from downriver.model.verdicts import Basis, Reference

if TYPE_CHECKING:
    from collections.abc import Mapping

    from downriver.impact.changes.dbt.names import BrokenReference
    from downriver.impact.simulate.catalog import SimulationCatalog
    from downriver.impact.simulate.delta import Sentence, Trail
    from downriver.impact.simulate.process import JobColumnEdge, Process
    from downriver.openlineage.facets.custom import CodeReference


def simulate_reader(
    process: Process, catalog: SimulationCatalog, deltas: Mapping[int, Delta]
) -> ProcessResult:
    """Return the effect on a process of which only edges or code references are known."""
    weighing = _EdgeSimulation(process, catalog)
    for node in process.inputs:
        delta = deltas.get(node)
        if delta is not None:
            weighing.receive(node, delta)
    return weighing.result


class _EdgeSimulation:
    def __init__(self, process: Process, catalog: SimulationCatalog) -> None:
        self._process = process
        self._catalog = catalog
        self.result = ProcessResult(basis="column_edges")

    def receive(self, node: int, delta: Delta) -> None:
        """Apply the delta of one input."""
        use = _InputUse(self._process, self._catalog, node)
        basis: Basis = "column_edges" if use.known else "table_edges"
        if delta.removed is not None:
            reason: Sentence = ("reads ", use.dataset, ", which no longer exists")
            self.result.worsen(Outcome.FAILS, reason, delta.removed, basis)
            self.result.refer(use.references(EVERY_FIELD, ""))
            self._fail_outputs(use, delta.removed, ())
        for (column, kind), touch in delta.touches.items():
            if not use.known:
                self._assume_worst(use, column, kind, touch)
            else:
                self._apply(use, column, kind, touch)
        self._receive_whole(use, delta, basis)

    def _receive_whole(self, use: _InputUse, delta: Delta, basis: Basis) -> None:
        states: tuple[tuple[Trail | None, Outcome, str, str], ...] = (
            (delta.possible, Outcome.MAY_FAIL, "possible", "which may be affected"),
            (delta.rows, Outcome.CHANGES, "rows", "whose rows change"),
            (delta.stale, Outcome.NOT_REBUILT, "stale", "which is no longer updated"),
            (delta.deprecated, Outcome.DEPRECATED, "deprecated", "which is deprecated"),
        )
        for trail, outcome, name, words in states:
            if trail is None:
                continue
            weak: Basis = "table_edges" if name == "possible" else basis
            self.result.worsen(outcome, ("reads ", use.dataset, f", {words}"), trail, weak)
            for output in use.outputs:
                self.result.output(output).mark(name, trail)

    def _assume_worst(
        self, use: _InputUse, column: str, kind: DeltaKind, touch: ColumnDelta
    ) -> None:
        """Record the worst possible effect, because the columns in use are unknown."""
        if kind in MISSING:
            reason: Sentence = ("reads ", use.dataset, f"; whether it uses {column} is unknown")
            self.result.worsen(Outcome.MAY_FAIL, reason, touch.trail, "table_edges")
            for output in use.outputs:
                self.result.output(output).merge(Delta(possible=touch.trail))
        elif kind in (DeltaKind.RETYPED, DeltaKind.CHANGED, DeltaKind.NULLABLE):
            rest = f"; whether it uses {column}, which changes, is unknown"
            reason = ("reads ", use.dataset, rest)
            self.result.worsen(Outcome.CHANGES, reason, touch.trail, "table_edges")
            for output in use.outputs:
                self.result.output(output).merge(Delta(rows=touch.trail))

    def _apply(self, use: _InputUse, column: str, kind: DeltaKind, touch: ColumnDelta) -> None:
        named = use.references(column, column)
        fed = use.derives(column)
        used = [reference for reference in named if reference.clause != "doc"]
        firm = [reference for reference in used if not reference.conditional]
        through = use.takes_all or len(firm) < len(used)
        if kind in (DeltaKind.REQUIRED, DeltaKind.ADDED):
            if kind is DeltaKind.ADDED and use.takes_all:
                self._pass_on(use, column, kind, touch)
            return
        trail = touch.trail
        if not (firm or fed or through):
            if named and kind in (DeltaKind.LOST, DeltaKind.RENAMED):
                self.result.refer(named)
                described = ("documents ", use.column(column), f", {_GONE[kind]}")
                self.result.worsen(Outcome.CHANGES, described, trail)
            return
        self.result.refer(named or [use.reference(column)])
        if kind in MISSING and (firm or (fed and not through)):
            self._record_missing_column(
                use, column, kind, trail, certain=bool(firm) or any(d.certain for d in fed)
            )
            self._fail_outputs(use, trail, fed)
            return
        reason = ("copies ", use.column(column), f", {_WORDS[kind]}")
        self.result.worsen(Outcome.CHANGES, reason, trail)
        if not fed:
            self._pass_on(use, column, kind, touch)
        for derives in fed:
            self._change(derives, trail)

    def _record_missing_column(
        self, use: _InputUse, column: str, kind: DeltaKind, trail: Trail, *, certain: bool
    ) -> None:
        """Record a use of a missing column."""
        reason: Sentence = ("uses ", use.column(column), f", {_GONE[kind]}")
        if kind is DeltaKind.UNAVAILABLE:
            self.result.worsen(Outcome.NOT_REBUILT, reason, trail)
        elif certain:
            self.result.worsen(Outcome.FAILS, reason, trail)
        else:
            rest = f", {_GONE[kind]}: another table may have it too"
            reason = ("may use ", use.column(column), rest)
            self.result.worsen(Outcome.MAY_FAIL, reason, trail)

    def _change(self, derives: JobColumnEdge, trail: Trail) -> None:
        delta = self.result.output(derives.output)
        if not derives.direct or derives.target == EVERY_FIELD:
            delta.rows = delta.rows if delta.rows is not None else trail
            return
        step = self._catalog.column(derives.output, derives.target)
        delta.put(derives.target, DeltaKind.CHANGED, ColumnDelta("", extend_trail(trail, step)))

    def _pass_on(self, use: _InputUse, column: str, kind: DeltaKind, touch: ColumnDelta) -> None:
        """Apply the delta of an input to an output that copies all its columns."""
        reason = ("copies every column of ", use.dataset)
        self.result.worsen(Outcome.CHANGES, reason, touch.trail)
        for output in use.copies:
            step = self._catalog.column(output, column)
            delta = self.result.output(output)
            delta.put(column, kind, ColumnDelta(touch.to, extend_trail(touch.trail, step)))

    def _fail_outputs(
        self, use: _InputUse, trail: Trail, fed: list[JobColumnEdge] | tuple[()]
    ) -> None:
        for output in use.outputs:
            delta = self.result.output(output)
            delta.stale = delta.stale if delta.stale is not None else trail
            if not use.known:
                delta.possible = delta.possible if delta.possible is not None else trail
        for derives in fed:
            if derives.direct and derives.target != EVERY_FIELD:
                step = self._catalog.column(derives.output, derives.target)
                touch = ColumnDelta("", extend_trail(trail, step))
                self.result.output(derives.output).put(derives.target, DeltaKind.UNAVAILABLE, touch)


_GONE = {
    DeltaKind.LOST: "which no longer exists",
    DeltaKind.RENAMED: "which was renamed",
    DeltaKind.UNAVAILABLE: "which its job no longer produces",
}
_WORDS = {
    **_GONE,
    DeltaKind.RETYPED: "whose type changes",
    DeltaKind.CHANGED: "whose values change",
    DeltaKind.NULLABLE: "which may be null",
}


class _InputUse:
    """How a process uses one input."""

    def __init__(self, process: Process, catalog: SimulationCatalog, node: int) -> None:
        self._process = process
        self._dataset = catalog.dataset(node)
        self._derives = catalog.derives(process, node)
        code = process.code if isinstance(process, Job) else None
        self._references = [
            reference
            for reference in (code.references or () if code is not None else ())
            if _names(reference, self._dataset.id.namespace, self._dataset.names)
        ]
        self.dataset = self._dataset.id
        self.known = bool(self._derives or self._references)
        self.takes_all = any(
            d.field == EVERY_FIELD and d.target == EVERY_FIELD and d.direct for d in self._derives
        ) or any(r.field == EVERY_FIELD for r in self._references)
        fed = {derives.output for derives in self._derives}
        self.outputs = tuple(fed) if fed else process.outputs
        self.copies = process.outputs if self.takes_all else ()

    def column(self, column: str) -> ColumnId:
        """Return a column of the input."""
        return ColumnId(self.dataset, column)

    def derives(self, column: str) -> list[JobColumnEdge]:
        """Return the column edges that begin at a column."""
        return [d for d in self._derives if d.field.casefold() == column.casefold()]

    def references(self, column: str, shown: str) -> list[Reference]:
        """Return the places in the code that name a column."""
        return [
            Reference(
                dataset=str(self._dataset.id),
                column=shown,
                clause=found.clause,
                path=code_path(self._process),
                line=found.line,
                text=found.text,
                conditional=found.conditional,
            )
            for found in self._references
            if found.field.casefold() == column.casefold()
        ]

    def reference(self, column: str) -> Reference:
        """Return a reference without a place, known by an edge alone."""
        return Reference(
            dataset=str(self._dataset.id), column=column, path=code_path(self._process)
        )


def _names(reference: CodeReference, namespace: str, names: tuple[str, ...]) -> bool:
    """Return whether a reference in code means a dataset. The reference may have no namespace."""
    if reference.namespace and reference.namespace != namespace:
        return False
    wanted = reference.name.casefold()
    return any(
        name.casefold() == wanted or name.casefold().endswith((f".{wanted}", f"/{wanted}"))
        for name in names
    )


def simulate_compile_error(process: Process, error: BrokenReference) -> ProcessResult:
    """Return the result of a process that refers to something that does not exist."""
    trail: Trail = (process.id,)
    reference = Reference(dataset="", column="", path=error.path, line=error.line, text=error.text)
    return ProcessResult(
        outcome=Outcome.FAILS,
        reason=(error.reason,),
        trail=trail,
        references=[reference],
        outputs={node: Delta(stale=trail) for node in process.outputs},
    )
