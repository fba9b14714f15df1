"""What one process's SQL says today: its references by column, its outputs by dataset."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from downriver.impact.delta import Field, shape_of
from downriver.impact.script import RESULT, Output, TableShape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from downriver.capture.sql.deps import TableName
    from downriver.impact.delta import Delta
    from downriver.impact.heard import Lookup
    from downriver.impact.script import ScriptReading
    from downriver.impact.types import ColumnType
    from downriver.impact.world import Process, World


class BoundTables:
    """The shapes of the tables a process names, after what happened to their datasets."""

    def __init__(
        self,
        process: Process,
        world: World,
        deltas: Mapping[int, Delta],
        before: BoundTables | None = None,
    ) -> None:
        self._process = process
        self._world = world
        self._deltas = deltas
        # What the tables are called does not change, nor the shape of those nothing happened to.
        self._before = before
        self._nodes: dict[TableName, int | None] = {} if before is None else before._nodes
        self._shapes: dict[TableName, TableShape] = {}

    def node(self, table: TableName) -> int | None:
        """Return the dataset a table is."""
        if table not in self._nodes:
            self._nodes[table] = self._world.bind(self._process, table)
        return self._nodes[table]

    def shape(self, table: TableName) -> TableShape:
        """Return the columns of a table."""
        known = self._shapes.get(table)
        if known is None:
            known = self._shapes[table] = self._find_shape(table)
        return known

    def _find_shape(self, table: TableName) -> TableShape:
        node = self.node(table)
        if node is None:
            return TableShape(open=True)
        delta = self._deltas.get(node)
        if delta is None and self._before is not None:
            return self._before.shape(table)
        return shape_of(self._world.fields(node), delta)


class Reading:
    """A process's SQL read under the schemas of today, indexed by dataset and column."""

    def __init__(self, process: Process, world: World) -> None:
        assert process.script is not None  # noqa: S101
        self.process = process
        self.script = process.script
        self.tables = BoundTables(process, world, {})
        self.found: ScriptReading = process.script.read(self.tables)
        self._types_checked = False
        self.lookups: dict[tuple[int, str], list[Lookup]] = defaultdict(list)
        for lookup in self.found.heard.lookups:
            for table, column in lookup.bases:
                node = self.tables.node(table)
                if node is not None:
                    self.lookups[(node, column.casefold())].append(lookup)
        starred = (self.tables.node(table) for table in self.found.heard.starred)
        self.starred = {node for node in starred if node is not None}
        named = (self.tables.node(table) for table in self.found.inputs)
        self.inputs = {node for node in named if node is not None}
        self.used = {(node, column) for node, column in self.lookups}
        for output in self.found.outputs:
            for deps in (output.rows, *(column.deps for column in output.columns)):
                for table, column, _, _ in deps:
                    node = self.tables.node(table)
                    if node is not None:
                        self.used.add((node, column.casefold()))

    def output_node(self, output: Output) -> int | None:
        """Return the dataset an output goes to: the one a query's result is kept in, if any."""
        if output.table == RESULT:
            outputs = self.process.outputs
            return outputs[0] if len(outputs) == 1 else None
        return self.tables.node(output.table)

    def columns_of(self, node: int) -> tuple[Field, ...] | None:
        """Return the columns this fills a dataset with, when it alone decides them."""
        for output in self.found.outputs:
            if output.replaces and not output.open and self.output_node(output) == node:
                return tuple(Field(c.name, type_text(c.type)) for c in output.columns)
        return None

    def check_types(self) -> None:
        """Note what is wrong with types already, so that only what is new counts."""
        if not self._types_checked:
            self.found.heard.check_types(self.script.nodes)
            self._types_checked = True

    @property
    def understood(self) -> bool:
        """True when every statement could be read."""
        return bool(self.script.statements) and not self.found.heard.unread


def type_text(kind: ColumnType) -> str:
    """Return a type as text that parses to the same type again."""
    match kind.family:
        case "number" if kind.name == "integer":
            return "hugeint" if kind.whole > 19 else "bigint" if kind.whole > 10 else "integer"
        case "number" if kind.name == "float":
            return "double"
        case "number":
            return f"decimal({kind.whole + kind.scale},{kind.scale})"
        case "text":
            return "text"
        case "other":
            return kind.name
        case "unknown":
            return ""
        case _:
            return kind.family
