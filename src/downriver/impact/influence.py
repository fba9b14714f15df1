"""How what happened to tables reaches what a query computes from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.capture.sql.deps import Kind as DepKind
from downriver.impact.delta import Kind, Touch
from downriver.impact.result import extend
from downriver.impact.types import compare_types

if TYPE_CHECKING:
    from collections.abc import Mapping

    from downriver.capture.sql.deps import Deps, TableName
    from downriver.impact.delta import Delta, Trail
    from downriver.impact.reading import Reading
    from downriver.impact.world import World


class Influence:
    """Follows the dependencies of one process's SQL to what happened to their columns."""

    def __init__(self, reading: Reading, world: World, deltas: Mapping[int, Delta]) -> None:
        self._reading = reading
        self._process = reading.process
        self._world = world
        self._deltas = deltas

    def new_name(self, table: TableName, column: str) -> str:
        """Return the name a base column goes by after the changes."""
        node = self._reading.tables.node(table)
        delta = self._deltas.get(node) if node is not None else None
        touch = delta.find(column, Kind.RENAMED) if delta is not None else None
        return column if touch is None else touch.to

    def output_name(self, node: int | None) -> str:
        """Return what an output is called: its dataset, else the process itself."""
        return self._process.id.name if node is None else self.dataset_name(node)

    def dataset_name(self, node: int) -> str:
        """Return the name of a dataset."""
        return self._world.dataset(node).id.name

    def renamed_deps(self, deps: Deps) -> set[object]:
        """Return dependencies as they are after columns they begin at were renamed."""
        found: set[object] = set()
        for table, column, kind, masked in deps:
            node = self._reading.tables.node(table)
            delta = self._deltas.get(node) if node is not None else None
            touch = delta.find(column, Kind.RENAMED) if delta is not None else None
            found.add((table, touch.to if touch else column, kind, masked))
        return found

    def is_converted(self, deps: Deps) -> bool:
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

    def touched(
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
            if touch is not None and not (rows and self.is_harmless(node, column, touch, delta)):
                return touch
        if rows:
            return self.other_rows()
        return None

    def other_rows(self) -> Touch | None:
        """Return what makes an input have other rows, if anything does."""
        for node in self._reading.inputs:
            delta = self._deltas.get(node)
            if delta is not None and delta.rows is not None:
                return Touch("", delta.rows)
        return None

    def is_harmless(self, node: int | None, column: str, touch: Touch, delta: Delta) -> bool:
        """A wider type selects the same rows."""
        if node is None or delta.find(column, Kind.CHANGED, Kind.NULLABLE) is not None:
            return False
        types = {f.name.casefold(): f.type for f in self._world.fields(node) or ()}
        return compare_types(types.get(column.casefold(), ""), touch.to) in ("same", "widening")

    def any_trail(self, node: int | None, column: str) -> Trail:
        """Return the way that led to a column, else any that led here."""
        for source in self._reading.inputs:
            delta = self._deltas.get(source)
            touch = delta.find(column, *Kind) if delta is not None else None
            if touch is not None:
                return extend(touch.trail, self.column_id(node, column))
        for source in self._reading.inputs:
            delta = self._deltas.get(source)
            for touch in delta.touches.values() if delta is not None else ():
                return touch.trail
        return ()

    def column_id(self, node: int | None, column: str) -> str:
        """Return a column that is filled here, as people write it."""
        if node is None:
            return f"{self._process.id.name}.{column}"
        return self._world.column_name(node, column)
