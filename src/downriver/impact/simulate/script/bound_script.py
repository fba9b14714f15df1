"""The SQL of one process, resolved against the catalog, with places in its file."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import exp

from downriver.capture.sql.script import RESULT
from downriver.impact.simulate.delta import CatalogColumn, shape_of
from downriver.impact.simulate.script.job_script import ScriptOutput, TableShape
from downriver.model.verdicts import Reference

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from downriver.columns.dependencies import TableName
    from downriver.impact.simulate.catalog import SimulationCatalog
    from downriver.impact.simulate.column_types import ColumnType
    from downriver.impact.simulate.delta import Delta
    from downriver.impact.simulate.process import Job
    from downriver.impact.simulate.script.job_script import JobScript, ScriptReading
    from downriver.impact.simulate.script.resolution import ColumnLookup, SqlProblem, SqlProblems

_CLAUSES: tuple[tuple[type[exp.Expression], str], ...] = (
    (exp.Where, "filter"),
    (exp.Having, "filter"),
    (exp.Qualify, "filter"),
    (exp.Join, "join"),
    (exp.Group, "group"),
    (exp.Order, "order"),
    (exp.Merge, "write"),
    (exp.Update, "write"),
    (exp.Schema, "write"),
)


def clause_of(node: exp.Expression) -> str:
    """Return the clause that contains a node: select, join, filter, group, order, write or read."""
    if isinstance(node, exp.Table):
        return "read"
    current: exp.Expression | None = node
    while current is not None:
        for kind, clause in _CLAUSES:
            if isinstance(current, kind):
                return clause
        if isinstance(current, exp.Query):
            return "select"
        current = current.parent
    return "other"


def identifier_of(node: exp.Expression) -> exp.Expression:
    """Return the name inside a node. Only names have a place in the text."""
    if isinstance(node, exp.Identifier):
        return node
    if isinstance(node, (exp.Column, exp.Table)) and isinstance(node.this, exp.Identifier):
        return node.this
    return next((i for i in node.find_all(exp.Identifier) if "line" in i.meta), node)


def locate_reference(process: Job, node: exp.Expression, dataset: str, column: str) -> Reference:
    """Return the place of a node in the source file of its SQL, as far as it is known."""
    script = process.script
    name = identifier_of(node)
    line = int(name.meta.get("line", 0))
    text = ""
    if script is not None and line:
        text, line = _in_file(process, script.texts, name, line)
    return Reference(
        dataset=dataset,
        column=column,
        clause=clause_of(node),
        path=process.path,
        line=line,
        text=text,
    )


def _in_file(process: Job, texts: list[str], name: exp.Expression, line: int) -> tuple[str, int]:
    start = int(name.meta.get("start", 0))
    source = texts[-1] if len(texts) == 1 else _text_with(texts, name, start)
    raw = process.code.raw if process.code is not None else ""
    sql = process.script.sql if process.script is not None else source
    original = raw or sql
    if original != source:
        line = _matching_line(source, original, str(name.name), start) or 0
    lines = original.splitlines()
    text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    first = process.code.line if process.code is not None else 0
    return text, line + max(first - 1, 0) if line else 0


def _text_with(texts: list[str], name: exp.Expression, start: int) -> str:
    wanted = str(name.name).casefold()
    for text in texts:
        if text[start : start + len(wanted) + 1].casefold().strip('"`[').startswith(wanted):
            return text
    return texts[0]


def _matching_line(rendered: str, original: str, name: str, start: int) -> int | None:
    """Find a word of rendered text in its template: the occurrence with the same index."""
    pattern = re.compile(rf"\b{re.escape(name)}\b", re.IGNORECASE)
    before = sum(1 for _ in pattern.finditer(rendered[:start]))
    places = [match.start() for match in pattern.finditer(original)]
    if not places:
        return None
    at = places[min(before, len(places) - 1)]
    return original.count("\n", 0, at) + 1


class BoundTables:
    """The shapes of the tables that a process names, after the deltas of their datasets.

    `before` has their shapes before the deltas. Tables keep their names; tables without a delta
    keep their shapes.
    """

    def __init__(
        self,
        process: Job,
        catalog: SimulationCatalog,
        deltas: Mapping[int, Delta],
        before: PresentTables | None = None,
    ) -> None:
        self._process = process
        self._catalog = catalog
        self._deltas = deltas
        self._before = before
        self._nodes: dict[TableName, int | None] = {} if before is None else dict(before.nodes)
        self._shapes: dict[TableName, TableShape] = {}

    def node(self, table: TableName) -> int | None:
        """Return the dataset of a table."""
        if table not in self._nodes:
            self._nodes[table] = self._catalog.bind(self._process, table)
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
        if delta is None and self._before is not None and table in self._before.shapes:
            return self._before.shapes[table]
        return shape_of(self._catalog.fields(node), delta)

    def present(self) -> PresentTables:
        """Return the tables that were looked up so far."""
        return PresentTables(dict(self._nodes), dict(self._shapes))


class PresentTables(NamedTuple):
    """The tables that a process names, as they are in the catalog."""

    nodes: dict[TableName, int | None]
    shapes: dict[TableName, TableShape]

    def node(self, table: TableName) -> int | None:
        """Return the dataset of a table, None for a table that the process does not name."""
        return self.nodes.get(table)

    def shape(self, table: TableName) -> TableShape:
        """Return the columns of a table."""
        return self.shapes.get(table) or TableShape(open=True)


class BoundScript:
    """A process's SQL, read under the current schemas and indexed by dataset and column.

    It is immutable, so threads can share it.
    """

    def __init__(self, process: Job, script: JobScript, catalog: SimulationCatalog) -> None:
        self.process = process
        self.script = script
        tables = BoundTables(process, catalog, {})
        self.found: ScriptReading = script.read(tables)
        self.lookups: dict[tuple[int, str], list[ColumnLookup]] = defaultdict(list)
        for lookup in self.found.names.lookups:
            for table, column in lookup.bases:
                node = tables.node(table)
                if node is not None:
                    self.lookups[(node, column.casefold())].append(lookup)
        starred = (tables.node(table) for table in self.found.names.starred)
        self.starred = {node for node in starred if node is not None}
        named = (tables.node(table) for table in self.found.inputs)
        self.inputs = {node for node in named if node is not None}
        self.used = {(node, column) for node, column in self.lookups}
        for output in self.found.outputs:
            for deps in (output.rows, *(column.deps for column in output.columns)):
                for table, column, _, _ in deps:
                    node = tables.node(table)
                    if node is not None:
                        self.used.add((node, column.casefold()))
            tables.node(output.table)
        self.tables = tables.present()

    def output_node(self, output: ScriptOutput) -> int | None:
        """Return the dataset that an output writes, None when it is unknown."""
        if output.table == RESULT:
            outputs = self.process.outputs
            return outputs[0] if len(outputs) == 1 else None
        return self.tables.node(output.table)

    def columns_of(self, node: int) -> tuple[CatalogColumn, ...] | None:
        """Return the columns of a dataset, if this SQL alone fills them or lists them."""
        for output in self.found.outputs:
            decides = output.replaces or output.defines
            if decides and not output.open and self.output_node(output) == node:
                return tuple(CatalogColumn(c.name, type_text(c.type)) for c in output.columns)
        return None

    @cached_property
    def type_problems(self) -> SqlProblems:
        """The type errors of the current SQL. Only errors that are not among them count."""
        types = self.script.types_under(self.found, self.tables)
        types.check_types(self.script.nodes)
        return types.problems

    def problems(self) -> Iterator[SqlProblem]:
        """Yield the errors of the current SQL: this reader cannot resolve them correctly."""
        yield from self.found.names.problems
        yield from self.type_problems

    def has_problem(self, problem: SqlProblem) -> bool:
        """Return whether the current SQL has the same problem at the same place."""
        if problem.kind == "type":
            return problem in self.type_problems
        return problem in self.found.names.problems

    @property
    def understood(self) -> bool:
        """True when every statement could be read."""
        return bool(self.script.trees) and not self.found.names.unread


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
