"""What a query gives after a change, next to what it gave before."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from downriver.impact.delta import ABSENT, Delta, Kind, Touch
from downriver.impact.meaning import Meaning
from downriver.impact.reading import type_text
from downriver.impact.result import extend

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from downriver.capture.sql.deps import TableName
    from downriver.impact.delta import Trail
    from downriver.impact.influence import Influence
    from downriver.impact.reading import Reading
    from downriver.impact.script import OutColumn, Output, Script, ScriptReading


class Difference(NamedTuple):
    """How one output differs; an output that is added to must `fit` the table that is there."""

    node: int | None
    delta: Delta
    fits: bool


class Comparison:
    """Compares the outputs of one process. `head` is the SQL it will have, where that changes."""

    def __init__(
        self,
        reading: Reading,
        influence: Influence,
        deltas: Mapping[int, Delta],
        head: Script | None,
    ) -> None:
        self._reading = reading
        self._process = reading.process
        self._influence = influence
        self._deltas = deltas
        self._head = head
        self._script = head or reading.script

    def differences(self, after: ScriptReading) -> Iterator[Difference]:
        """Yield the outputs that are not as before."""
        for before, now in self._pairs(after):
            node = self._reading.output_node(before)
            if now is None:
                name = self._influence.output_name(node)
                yield Difference(node, Delta(gone=(name,)), fits=True)
                continue
            delta = self._difference(before, now, after, node)
            if self._head is not None:
                self._compare_meaning(before, now, after, node, delta)
            if delta:
                added_to = before.replaces and self._process.incremental
                yield Difference(node, delta, fits=not (added_to and delta.columns(*ABSENT)))

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
        old = Meaning(self._reading.script, self._reading.found, self._influence.new_name)
        new = Meaning(self._script, after, _same_name)
        columns = new.columns(now)
        for name, told in old.columns(before).items():
            changed = name in columns and columns[name] != told
            if changed and delta.find(name, Kind.CHANGED, Kind.RETYPED) is None:
                delta.put(name, Kind.CHANGED, Touch("", (self._influence.column_id(node, name),)))
        if old.rows != new.rows and delta.rows is None:
            delta.rows = (self._influence.output_name(node),)

    def _difference(
        self, before: Output, now: Output, after: ScriptReading, node: int | None
    ) -> Delta:
        delta = Delta()
        old = {column.name.casefold(): column for column in before.columns}
        new = {column.name.casefold(): column for column in now.columns}
        replaces = before.replaces and not self._process.incremental
        vanished = [column for name, column in old.items() if name not in new]
        appeared = [column for name, column in new.items() if name not in old]
        for column in vanished:
            self._vanish(column, appeared, node, delta)
        for column in appeared if replaces else ():
            trail = self._influence.any_trail(node, column.name)
            delta.put(column.name, Kind.ADDED, Touch(type_text(column.type), trail))
        for name in [name for name in old if name in new]:
            self._compare_column(old[name], new[name], node, delta, replaces=replaces)
        if before.open:
            self._compare_star(before, node, delta)
        rows = self._influence.touched(
            before.rows, (Kind.CHANGED, Kind.RETYPED, Kind.NULLABLE), rows=True
        )
        if rows is not None:
            delta.rows = rows.trail
        elif after.heard.natural != self._reading.found.heard.natural:
            delta.rows = self._influence.any_trail(node, "")
        return delta

    def _vanish(
        self, column: OutColumn, appeared: list[OutColumn], node: int | None, delta: Delta
    ) -> None:
        touch = self._influence.touched(column.deps, ABSENT, direct=True)
        trail = extend(touch.trail if touch else (), self._influence.column_id(node, column.name))
        renamed = self._influence.renamed_deps(column.deps)
        for other in appeared:
            if renamed and set(other.deps) == renamed:
                appeared.remove(other)
                delta.put(column.name, Kind.RENAMED, Touch(other.name, trail))
                return
        delta.put(column.name, Kind.LOST, Touch("", trail))

    def _compare_column(
        self, old: OutColumn, new: OutColumn, node: int | None, delta: Delta, *, replaces: bool
    ) -> None:
        step = self._influence.column_id(node, old.name)
        changed = self._influence.touched(old.deps, (Kind.CHANGED, Kind.NULLABLE))
        retyped = self._influence.touched(old.deps, (Kind.RETYPED,))
        if changed is not None:
            delta.put(old.name, Kind.CHANGED, Touch("", extend(changed.trail, step)))
        elif set(new.deps) != self._influence.renamed_deps(old.deps):
            trail = extend(self._influence.any_trail(node, old.name), step)
            delta.put(old.name, Kind.CHANGED, Touch("", trail))  # it means another column now
        if retyped is None:
            return
        trail = extend(retyped.trail, step)
        if replaces and old.type != new.type:
            delta.put(old.name, Kind.RETYPED, Touch(type_text(new.type), trail))
        elif self._influence.is_converted(old.deps):
            delta.put(old.name, Kind.CHANGED, Touch("", trail))

    def _compare_star(self, before: Output, node: int | None, delta: Delta) -> None:
        """Of tables whose columns we do not know, what is known to change passes through."""
        for table in before.stars:
            source = self._reading.tables.node(table)
            touched = self._deltas.get(source) if source is not None else None
            for (column, kind), touch in touched.touches.items() if touched else ():
                if kind is not Kind.REQUIRED and kind is not Kind.UNAVAILABLE:
                    trail = extend(touch.trail, self._influence.column_id(node, column))
                    delta.put(column, kind, Touch(touch.to, trail))


def _same_name(table: TableName, column: str) -> str:
    return column


def tell(delta: Delta) -> str:
    """Return in words what is different about an output."""
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


def first_trail(delta: Delta) -> Trail:
    """Return a way that led to a difference."""
    for touch in delta.touches.values():
        if touch.trail:
            return touch.trail
    return delta.rows or ()


_CHANGED_WORDS = (
    ((Kind.LOST,), "loses"),
    ((Kind.RENAMED,), "renames"),
    ((Kind.ADDED,), "gains"),
    ((Kind.RETYPED,), "changes the type of"),
    ((Kind.CHANGED,), "changes the values of"),
)
