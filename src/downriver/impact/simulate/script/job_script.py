"""The SQL of one job: parsed once, and read under any table schemas."""

from __future__ import annotations

from functools import cached_property
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sqlglot import exp

from downriver.capture.sql.limits import Budget, SqlLimits
from downriver.capture.sql.query.names import DialectNames
from downriver.capture.sql.script import RESULT, Script
from downriver.capture.sql.script_parser import ScriptParser
from downriver.capture.sql.templates.jinja import Template, render_template
from downriver.capture.sql.templates.tags import is_template
from downriver.capture.sql.text.dialect import get_dialect, guess_dialect
from downriver.columns.dependencies import NOTHING, Deps, TableName
from downriver.columns.relations import Column, Relation, Star
from downriver.impact.simulate.column_types import CHECKED, UNKNOWN, parse_type
from downriver.impact.simulate.script.node_places import number_nodes
from downriver.impact.simulate.script.resolution import ResolutionRecorder
from downriver.impact.simulate.script.script_types import ScriptTypes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlglot.dialects.dialect import Dialect

    from downriver.capture.sql.catalog import TemporaryTables
    from downriver.capture.sql.listener import ScriptFault, StatementReading
    from downriver.capture.sql.statements.context import StatementEffect, TableWrite
    from downriver.capture.sql.text.parse import ScriptStatement
    from downriver.columns.relations import Computation
    from downriver.impact.simulate.column_types import ColumnType
    from downriver.impact.simulate.script.resolution import SqlProblem

_REPLACING = frozenset({"CREATE TABLE AS", "CREATE VIEW", "SELECT INTO", "CLONE", "SELECT"})
_CHECKED_WRITES = frozenset({"INSERT", "UPDATE", "MERGE", "COPY", "LOAD"})
_LIMITS = SqlLimits(seconds=10**9)  # cached scripts are read again: limit only steps
_SCRIPTS_KEPT = 50_000
_FEWER_VALUES_ALLOWED = frozenset({"postgres", "redshift", "sqlite"})


class TableShape(NamedTuple):
    """The columns of a table. An `open` one has other columns too, except those in `without`."""

    columns: Sequence[str] = ()
    types: Mapping[str, str] = MappingProxyType({})
    required: frozenset[str] = frozenset()
    open: bool = False
    without: frozenset[str] = frozenset()
    removed: bool = False


class TableSchemas(Protocol):
    """The shapes of tables, by their names in SQL."""

    def shape(self, table: TableName) -> TableShape:
        """Return the shape of a table, as far as it is known."""


class ScriptColumn(NamedTuple):
    """A column that a script fills."""

    name: str
    deps: Deps
    type: ColumnType
    computation: Computation | None


class ScriptOutput(NamedTuple):
    """The effect of a script on one table. It `replaces` the table or changes the existing one.

    A `view` stores no rows: if its query fails, it cannot be read. An output that `defines` the
    table lists its columns and fills none.
    """

    table: TableName
    columns: list[ScriptColumn]
    rows: Deps
    open: bool
    replaces: bool
    stars: frozenset[TableName]
    view: bool
    defines: bool = False


class ScriptReading(NamedTuple):
    """The names, types and outputs of a script under some schemas."""

    names: ResolutionRecorder
    types: ScriptTypes
    outputs: list[ScriptOutput]
    inputs: frozenset[TableName]

    def with_types(self, types: ScriptTypes) -> ScriptReading:
        """Return the same reading with other column types. The names resolve as before."""
        outputs = [
            output._replace(
                columns=[c._replace(type=types.type_of_column(c)) for c in output.columns]
            )
            for output in self.outputs
        ]
        return ScriptReading(self.names, types, outputs, self.inputs)

    def problems(self) -> Iterator[SqlProblem]:
        """Yield the problems that a database would report as errors."""
        yield from self.names.problems
        yield from self.types.problems


class JobScript:
    """The SQL of one job. It is immutable after parsing, so threads can share it.

    `unread` describes the statements that could not be parsed.
    """

    def __init__(self, sql: str, dialect: str | None) -> None:
        budget = Budget(SqlLimits())
        self.unread: list[str] = []
        self.sql = sql
        texts = [sql]
        if is_template(sql):
            rendered = render_template(sql, Template(), budget)
            texts = rendered.texts
            self.unread += [spot.message for spot in rendered.blind_spots]
        self.texts = texts
        self.dialect: Dialect = get_dialect(dialect or guess_dialect(texts[-1]))
        self._names = DialectNames(self.dialect)
        self.dialect_name = self._names.dialect_name
        self._variables: set[str] = set()
        self._scripts = [self._parse(text, budget) for text in texts]
        number_nodes(self.trees)

    def _parse(self, text: str, budget: Budget) -> list[ScriptStatement]:
        parser = ScriptParser(self.dialect, budget)
        statements = list(parser.read(text))
        for statement in statements:
            for spot in statement.blind_spots:
                self.unread.append(f"line {spot.line or statement.line}: {spot.message}")
        self._variables |= set(parser.variables)
        return statements

    @property
    def named_dialect(self) -> str | None:
        """The name of the dialect, None for the general one."""
        return None if self.dialect_name == "dialect" else self.dialect_name

    @cached_property
    def trees(self) -> list[exp.Expression]:
        """Every parsed statement of every rendering of the template."""
        statements = (statement for script in self._scripts for statement in script)
        return [statement.tree for statement in statements if statement.tree is not None]

    def read(self, tables: TableSchemas, *, typed: bool = True) -> ScriptReading:
        """Read every statement under these schemas. Without `typed`, outputs have no types."""
        names = _JobReader(self.dialect_name, tables, typed=typed)
        for statements in self._scripts:
            reader = _ReaderTables(tables, names)
            variables = self._variables
            Script(self._names, reader, Budget(_LIMITS), names, variables=variables).read(
                statements
            )
        return ScriptReading(names, names.types, names.outputs, frozenset(names.inputs))

    def types_under(self, reading: ScriptReading, tables: TableSchemas) -> ScriptTypes:
        """Return the types of a reading under other schemas."""
        return ScriptTypes(reading.names, tables, self.dialect_name)

    @cached_property
    def nodes(self) -> list[exp.Expression]:
        """Every expression that requires certain operand types."""
        return [node for tree in self.trees for node in tree.walk() if isinstance(node, CHECKED)]

    @cached_property
    def is_plain(self) -> bool:
        """Whether the script is one SELECT over tables without subqueries."""
        if len(self.trees) != 1:
            return False
        (tree,) = self.trees
        return (
            sum(1 for _ in tree.find_all(exp.Query)) == 1
            and tree.find(exp.Lateral, exp.Unnest, exp.Pivot, exp.Lambda, exp.Columns) is None
            and not any(join.args.get("method") for join in tree.find_all(exp.Join))
        )


class ScriptCache:
    """Parsed SQL by text and dialect, shared by all threads and all states of the store."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._scripts: dict[tuple[str, str], JobScript] = {}

    def get(self, sql: str, dialect: str) -> JobScript:
        """Return a script. Two threads may parse the same text at the same time."""
        key = (sql, dialect)
        known = self._scripts.get(key)
        if known is None:
            known = JobScript(sql, dialect or None)
            with self._lock:
                if len(self._scripts) >= _SCRIPTS_KEPT:
                    self._scripts.clear()
                known = self._scripts.setdefault(key, known)
        return known


class _ReaderTables:
    """The tables of one reading: those of the schemas, and those that the script replaces."""

    def __init__(self, tables: TableSchemas, reader: _JobReader) -> None:
        self._tables = tables
        self._reader = reader

    def columns_of(self, table: TableName) -> Sequence[str] | None:
        """Return the columns of a table, None when they are not all known."""
        shape = self._tables.shape(table)
        if shape.removed:
            self._reader.missing_table(table)
            return None
        return None if shape.open else shape.columns

    def find_relation(self, table: TableName) -> Relation | None:
        """Return a table with unknown columns, without those that are known not to exist."""
        shape = self._tables.shape(table)
        if shape.open and shape.without:
            self._reader.inputs.add(table)
            return Relation([Star(table, shape.without)], NOTHING)
        return None

    def apply(
        self, effect: StatementEffect, writes: Sequence[TableWrite], temporary: TemporaryTables
    ) -> None:
        """Make the tables that this statement replaces visible to later statements."""
        if effect.kind in _REPLACING and effect.result is None and effect.lifecycle is None:
            for write in writes:
                relation = Relation(list(write.columns), dict(write.rows))
                temporary.relations[write.table] = relation


class _JobReader(ResolutionRecorder):
    """Collects the outputs of a script, and the writes that a database would reject."""

    def __init__(self, dialect_name: str, tables: TableSchemas, *, typed: bool) -> None:
        super().__init__(dialect_name)
        self._tables = tables
        self._typed = typed
        self.types = ScriptTypes(self, tables, dialect_name)
        self.outputs: list[ScriptOutput] = []
        self.inputs: set[TableName] = set()

    def fault(self, statement: ScriptStatement, fault: ScriptFault) -> None:
        """Record that a statement could not be read."""
        self.unread = True

    def statement(self, reading: StatementReading) -> None:
        """Record the inputs and outputs of a statement."""
        effect, tree = reading.effect, reading.statement.tree
        if effect is None or tree is None:
            return
        self.inputs.update(reading.inputs)
        if effect.kind in _CHECKED_WRITES:
            self._check_writes(tree, effect, reading.lasting_writes)
        if effect.lifecycle is None:
            replaces, is_view = effect.kind in _REPLACING, effect.kind == "CREATE VIEW"
            outputs = [
                self._output(self._number_duplicates(write), replaces, is_view)
                for write in reading.lasting_writes
            ]
            if effect.kind == "CREATE TABLE" and not effect.inputs:
                outputs = [_with_declared_types(output, tree) for output in outputs]
            self.outputs += outputs

    def _number_duplicates(self, written: TableWrite) -> TableWrite:
        """Number duplicate column names as DuckDB does, and record them for other databases."""
        seen: dict[str, int] = {}
        columns: list[Column | Star] = []
        for item in written.columns:
            if isinstance(item, Column):
                name = item.name.casefold()
                seen[name] = seen.get(name, -1) + 1
                if seen[name]:
                    item = item.with_name(f"{item.name}_{seen[name]}")
            columns.append(item)
        twice = [name for name, count in seen.items() if count]
        if twice and written.table != RESULT and self._dialect_name != "duckdb":
            self.problems.add("duplicate", None, twice[0])
        return written._replace(columns=columns)

    def _output(self, written: TableWrite, replaces: bool, is_view: bool) -> ScriptOutput:
        columns = [
            ScriptColumn(item.name, item.deps, self._type_of(item), item.computation)
            for item in written.columns
            if isinstance(item, Column)
        ]
        stars = frozenset(item.table for item in written.columns if isinstance(item, Star))
        return ScriptOutput(
            written.table, columns, written.rows, bool(stars), replaces, stars, is_view
        )

    def _type_of(self, column: Column) -> ColumnType:
        return self.types.type_of_column(column) if self._typed else UNKNOWN

    # Writes that a database would reject

    def _check_writes(
        self, tree: exp.Expression, effect: StatementEffect, writes: Sequence[TableWrite]
    ) -> None:
        for write in writes:
            shape = self._tables.shape(write.table)
            if shape.removed:
                self.missing_table(write.table)
            elif not shape.open:
                self._check_target(tree, effect, write, shape)

    def _check_target(
        self, tree: exp.Expression, effect: StatementEffect, written: TableWrite, shape: TableShape
    ) -> None:
        known = {column.casefold() for column in shape.columns}
        names = [item.name for item in written.columns if isinstance(item, Column)]
        is_open = any(isinstance(item, Star) for item in written.columns)
        listed = isinstance(tree, exp.Insert) and isinstance(tree.this, exp.Schema)
        by_position = isinstance(tree, exp.Insert) and not listed and not tree.args.get("by_name")
        if by_position:
            if not is_open and not self._fits(len(names), len(shape.columns)):
                message = f"{len(names)} columns for the {len(shape.columns)} of the table"
                self.problems.add("arity", tree, message)
            return
        if listed and not is_open and len(names) != len(tree.this.expressions):
            self.problems.add("arity", tree, f"{len(names)} values for the columns listed")
        for name in names:
            if name.casefold() not in known:
                self.problems.add("missing_column", _written_node(tree, name), name)
        filled = {name.casefold() for name in names}
        if effect.kind == "INSERT" and not is_open:
            for column in sorted(shape.required - filled):
                self.problems.add("required", tree, column)

    def _fits(self, given: int, wanted: int) -> bool:
        if self._dialect_name in _FEWER_VALUES_ALLOWED:
            return given <= wanted
        return given == wanted


def _with_declared_types(output: ScriptOutput, tree: exp.Expression) -> ScriptOutput:
    """Return an output with the types that CREATE TABLE lists for its columns."""
    types = {
        str(part.name).casefold(): parse_type(kind.sql())
        for part in tree.find_all(exp.ColumnDef)
        if isinstance(kind := part.args.get("kind"), exp.DataType)
    }
    columns = [c._replace(type=types.get(c.name.casefold(), c.type)) for c in output.columns]
    return output._replace(columns=columns, defines=bool(columns))


def _written_node(tree: exp.Expression, name: str) -> exp.Expression:
    """Return the place where a statement names a column it writes."""
    for identifier in tree.find_all(exp.Identifier):
        if str(identifier.this).casefold() == name.casefold():
            return identifier
    return tree
