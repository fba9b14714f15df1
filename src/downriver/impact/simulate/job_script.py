"""The SQL of one job, parsed once, and read under any schemas: what resolves, what comes out."""

from __future__ import annotations

from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sqlglot import exp

from downriver.capture.sql.catalog import TemporaryTables
from downriver.capture.sql.limits import Budget, OverLimitError, SqlLimits
from downriver.capture.sql.query.names import DialectNames
from downriver.capture.sql.query.walker import QueryWalker
from downriver.capture.sql.script_parser import ScriptParser
from downriver.capture.sql.statements.context import StatementContext
from downriver.capture.sql.statements.dispatch import read_statement
from downriver.capture.sql.templates.jinja import Template, is_template, render_template
from downriver.capture.sql.text.dialect import get_dialect, guess_dialect
from downriver.columns.dependencies import NOTHING, Deps, TableName
from downriver.columns.relations import Column, Relation, Star
from downriver.impact.simulate.column_types import CHECKED
from downriver.impact.simulate.resolution import ResolutionRecorder, SqlProblem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlglot.dialects.dialect import Dialect

    from downriver.capture.sql.statements.context import StatementEffect, TableWrite
    from downriver.impact.simulate.column_types import ColumnType

RESULT: TableName = ("",)  # what a query returns: a dbt model's table, a dashboard's numbers
_REPLACING = frozenset({"CREATE TABLE AS", "CREATE VIEW", "SELECT INTO", "CLONE", "SELECT"})
_FAULTS = (AttributeError, IndexError, KeyError, TypeError, ValueError, AssertionError)
_LIMITS = SqlLimits(seconds=10**9)  # a script is kept and read again: only the steps are limited
_FEWER_VALUES_ALLOWED = frozenset({"postgres", "redshift", "sqlite"})


class TableShape(NamedTuple):
    """The columns a table has at one moment; an open one has others too, except those `without`."""

    columns: Sequence[str] = ()
    types: Mapping[str, str] = MappingProxyType({})
    required: frozenset[str] = frozenset()
    open: bool = False
    without: frozenset[str] = frozenset()
    gone: bool = False


class TableSchemas(Protocol):
    """Tells the shape of tables, as SQL names them."""

    def shape(self, table: TableName) -> TableShape:
        """Return what is known of a table."""


class ScriptColumn(NamedTuple):
    """A column that a script fills."""

    name: str
    deps: Deps
    type: ColumnType


class ScriptOutput(NamedTuple):
    """What a script does to one table; it `replaces` the table or changes the one that is there.

    A `view` keeps no rows: when its query fails, nothing of it is left to read.
    """

    table: TableName
    columns: list[ScriptColumn]
    rows: Deps
    open: bool
    replaces: bool
    stars: frozenset[TableName]
    view: bool


class ScriptReading(NamedTuple):
    """What a script says under some schemas."""

    heard: ResolutionRecorder
    outputs: list[ScriptOutput]
    inputs: frozenset[TableName]

    def under(self, tables: TableSchemas) -> ScriptReading:
        """Return what the script says when only types are different: nothing resolves anew."""
        heard = self.heard.under(tables)
        outputs = [
            output._replace(
                columns=[c._replace(type=heard.type_of_deps(c.deps)) for c in output.columns]
            )
            for output in self.outputs
        ]
        return ScriptReading(heard, outputs, self.inputs)

    @property
    def problems(self) -> dict[tuple[str, int], SqlProblem]:
        """What would end in an error."""
        return self.heard.problems


class ParsedStatement(NamedTuple):
    """A parsed statement and the first line it stands on."""

    tree: exp.Expression
    line: int


class JobScript:
    """One job's SQL. `unread` says which statements could not be parsed."""

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
        name = dialect or guess_dialect(texts[-1])
        self.dialect: Dialect = get_dialect(name)
        self.dialect_name = type(self.dialect).__name__.lower()
        self._scripts = [list(self._parse(text, budget)) for text in texts]

    @property
    def statements(self) -> list[ParsedStatement]:
        """Every statement, of each way the template can be rendered."""
        return [statement for script in self._scripts for statement in script]

    def _parse(self, text: str, budget: Budget) -> Iterable[ParsedStatement]:
        reader = ScriptParser(self.dialect, budget)
        for parsed in reader.read(text):
            for spot in parsed.blind_spots:
                self.unread.append(f"line {spot.line or parsed.line}: {spot.message}")
            if parsed.tree is not None:
                yield ParsedStatement(parsed.tree, parsed.line)
        self._variables = set(reader.variables)

    def read(self, tables: TableSchemas, *, typed: bool = True) -> ScriptReading:
        """Read every statement in order, under these schemas; types cost time of their own."""
        heard = ResolutionRecorder(self.dialect, tables, typed=typed)
        outputs: list[ScriptOutput] = []
        inputs: set[TableName] = set()
        for script in self._scripts:
            reading = _Reading(self, tables, heard)
            for statement in script:
                outputs += reading.statement(statement.tree)
            inputs |= reading.inputs
        return ScriptReading(heard, outputs, frozenset(inputs))

    @property
    def variables(self) -> set[str]:
        """Names that are no columns."""
        return self._variables

    @cached_property
    def nodes(self) -> list[exp.Expression]:
        """Every part of every statement that cares for the types it is given."""
        return [
            node
            for statement in self.statements
            for node in statement.tree.walk()
            if isinstance(node, CHECKED)
        ]

    @cached_property
    def plain(self) -> bool:
        """True of one statement with one SELECT over tables, and nothing inside it."""
        if len(self.statements) != 1:
            return False
        tree = self.statements[0].tree
        return (
            sum(1 for _ in tree.find_all(exp.Query)) == 1
            and tree.find(exp.Lateral, exp.Unnest, exp.Pivot, exp.Lambda, exp.Columns) is None
            and not any(join.args.get("method") for join in tree.find_all(exp.Join))
        )

    @cached_property
    def pass_(self) -> _Pass:
        """What walks the statements; kept, for it has learned how names are spelled."""
        return _Pass(self)


class _Pass:
    """A walker over one script's statements, for whatever reading is under way."""

    def __init__(self, script: JobScript) -> None:
        self._reading: _Reading | None = None
        self.views = _Views()
        self._budget = Budget(_LIMITS)
        self.walker = QueryWalker(
            DialectNames(script.dialect), self._columns_of, self.views.get, self._budget
        )
        self.walker.variables = script.variables

    def begin(
        self, reading: _Reading, views: tuple[dict[TableName, Relation], TableSchemas]
    ) -> QueryWalker:
        """Forget the statement before, and walk for this reading."""
        self._reading = reading
        self.views.begin(*views)
        self._budget.renew()
        self.walker.inputs = {}
        self.walker.blind_spots = []
        return self.walker

    def _columns_of(self, table: TableName) -> Sequence[str] | None:
        assert self._reading is not None  # noqa: S101
        return self._reading.columns_of(table)


class _Reading:
    """One pass over a script: what earlier statements made, later ones use."""

    def __init__(self, script: JobScript, tables: TableSchemas, heard: ResolutionRecorder) -> None:
        self._script = script
        self._tables = tables
        self._heard = heard
        self._temporary = TemporaryTables(script.dialect)
        self.inputs: set[TableName] = set()

    def statement(self, tree: exp.Expression) -> list[ScriptOutput]:
        walker = self._script.pass_.begin(self, (self._temporary.relations, self._tables))
        walker.listener = self._heard
        context = StatementContext(walker, self.columns_of, self._temporary.relations)
        try:
            effect = read_statement(tree, context)
        except (RecursionError, OverLimitError, *_FAULTS):
            self._heard.unread = True
            return []
        if effect is None:
            return []
        self.inputs.update(walker.inputs)
        self.inputs.update(self._script.pass_.views.opened)
        self._check_writes(tree, effect)
        return self._outputs(effect)

    def columns_of(self, table: TableName) -> Sequence[str] | None:
        """Return the columns of a table, None when they are not all known."""
        shape = self._tables.shape(table)
        if shape.gone:
            self._heard.missing_table(table)
            return None
        return None if shape.open else shape.columns

    def _outputs(self, effect: StatementEffect) -> list[ScriptOutput]:
        written = list(effect.written)
        if effect.result is not None:
            written.append(_as_written(effect.result))
        if effect.lifecycle is not None:
            return []
        kept = self._temporary.keep(effect, written)
        replaces = effect.kind in _REPLACING
        for one in kept if replaces and effect.result is None else ():
            # Later statements of the script see through what it makes itself.
            self._temporary.relations[one.table] = Relation(list(one.columns), dict(one.rows))
        is_view = effect.kind == "CREATE VIEW"
        return [self._output(one, replaces, is_view) for one in map(self._named_once, kept)]

    def _named_once(self, written: TableWrite) -> TableWrite:
        """Two columns of one name: DuckDB numbers the later ones, others refuse."""
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
        if twice and written.table != RESULT and self._script.dialect_name != "duckdb":
            self._heard.problems.setdefault(
                ("duplicate", hash(twice[0])), SqlProblem("duplicate", None, twice[0])
            )
        return written._replace(columns=columns)

    def _output(self, written: TableWrite, replaces: bool, is_view: bool) -> ScriptOutput:
        columns = [
            ScriptColumn(item.name, item.deps, self._heard.type_of_column(item))
            for item in written.columns
            if isinstance(item, Column)
        ]
        stars = frozenset(item.table for item in written.columns if isinstance(item, Star))
        return ScriptOutput(
            written.table, columns, written.rows, bool(stars), replaces, stars, is_view
        )

    # What a database refuses to write

    def _check_writes(self, tree: exp.Expression, effect: StatementEffect) -> None:
        if effect.kind not in ("INSERT", "UPDATE", "MERGE"):
            return
        for written in effect.written:
            if written.table in self._temporary.relations:
                continue
            shape = self._tables.shape(written.table)
            if shape.gone:
                self._heard.missing_table(written.table)
            elif not shape.open:
                self._check_target(tree, effect, written, shape)

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
                self._heard.problem("arity", tree, message)
            return
        if listed and not is_open and len(names) != len(tree.this.expressions):
            self._heard.problem("arity", tree, f"{len(names)} values for the columns listed")
        for name in names:
            if name.casefold() not in known:
                self._heard.problem("missing_column", _written_node(tree, name), name)
        filled = {name.casefold() for name in names}
        if effect.kind == "INSERT" and not is_open:
            for column in sorted(shape.required - filled):
                self._heard.problem("required", tree, column)

    def _fits(self, given: int, wanted: int) -> bool:
        if self._script.dialect_name in _FEWER_VALUES_ALLOWED:
            return given <= wanted
        return given == wanted


class _Views(dict[TableName, Relation]):
    """Tables that are seen through, and open ones of which some columns are known to be gone."""

    def begin(self, temporary: dict[TableName, Relation], tables: TableSchemas) -> None:
        """Look at these tables from now on."""
        self._temporary = temporary
        self._tables = tables
        self.opened: set[TableName] = set()

    def get(self, table: TableName, default: object = None) -> Relation | None:  # type: ignore[override]
        relation = self._temporary.get(table)
        if relation is not None:
            return relation
        shape = self._tables.shape(table)
        if shape.open and shape.without:
            self.opened.add(table)
            return Relation([Star(table, shape.without)], NOTHING)
        return None


def _as_written(result: Relation) -> TableWrite:
    from downriver.capture.sql.statements.context import TableWrite

    return TableWrite(RESULT, result.items, result.rows)


def _written_node(tree: exp.Expression, name: str) -> exp.Expression:
    """Return the place where a statement names a column it writes."""
    for identifier in tree.find_all(exp.Identifier):
        if str(identifier.this).casefold() == name.casefold():
            return identifier
    return tree
