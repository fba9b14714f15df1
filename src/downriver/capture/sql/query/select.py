"""SELECT lists: columns, stars, and patterns such as `COLUMNS('…')`."""

from __future__ import annotations

import re
from fnmatch import translate
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.errors import SqlglotError

from downriver.capture.sql.query.scope import QueryScope
from downriver.columns.dependencies import NOTHING, Certainty, DependencyKind, Deps, direct, merge
from downriver.columns.relations import Column, Relation, Star, opaque_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot.dialects.dialect import Dialect

    from downriver.capture.sql.query.walker import QueryWalker

# Where an alias of the same SELECT may be used further on in it.
_LATERAL_ALIASES = frozenset(
    {"redshift", "snowflake", "databricks", "spark", "spark2", "duckdb", "teradata", "clickhouse"}
)

# Where `*` shows the columns of USING where the first table has them, and not before all others.
_MERGED_IN_PLACE = frozenset({"duckdb", "clickhouse", "sqlite"})
_PATTERNS = frozenset({"duckdb", "clickhouse"})  # which know COLUMNS('regular expression')

_QUOTED_PATTERNS = frozenset({"hive", "spark", "spark2", "databricks"})
_ALL_BUT = re.compile(r"\(([\w|]+)\)\?\+\.\+")


class SelectTranslator:
    """Computes the columns of select lists."""

    def __init__(self, walker: QueryWalker) -> None:
        self._walker = walker

    def select(self, node: exp.Select, outer: QueryScope | None) -> Relation:
        """Return the relation of a SELECT."""
        scope = QueryScope(outer, {})
        scope.is_hierarchy = node.args.get("connect") is not None
        rows: Deps = {}
        self._walker.sources.from_clause(node, scope, rows)
        for window in node.args.get("windows") or ():
            scope.windows[self._walker.name(window.this)] = window
        items = self.items(node.expressions, scope)
        merge(rows, scope.generates)
        scope.items = items
        scope.aliases = {}
        for item in items:
            if isinstance(item, Column):
                scope.aliases.setdefault(item.name, item)
        self._walker.rows.steer(node, scope, rows)
        self._walker.budget.spend(len(items) + len(rows))
        self._walker.rows.group(node, scope, rows)
        if node.args.get("distinct") is not None:
            self._walker.rows.distinct(node.args["distinct"], scope, items, rows)
        return Relation(items, rows)

    def items(
        self, expressions: Sequence[exp.Expression], scope: QueryScope
    ) -> list[Column | Star]:
        """Return the columns of a select list, in order."""
        scope.lateral_aliases = self._walker.dialect_name in _LATERAL_ALIASES
        items: list[Column | Star] = []
        for at, written in enumerate(expressions):
            expression = self._all_but(written) or written
            if isinstance(expression, exp.Star):
                items += self._starred(expression, self.all_items(scope), scope)
            elif isinstance(expression, exp.Column) and isinstance(expression.this, exp.Star):
                source = scope.find_source(self._walker.name(expression.parts[-2]))
                found = source.items if source is not None else self._field_star(expression, scope)
                items += self._starred(expression.this, found, scope)
            elif (
                self._walker.dialect_name in _PATTERNS
                and (pattern := find_pattern(expression)) is not None
            ):
                items += expand_item(expression, pattern, self._walker, scope)
            else:
                items += self._item(expression, at, scope)
            if isinstance(expression, exp.Alias) and items and isinstance(items[-1], Column):
                scope.aliases.setdefault(items[-1].name, items[-1])
        return items

    def _all_but(self, node: exp.Expression) -> exp.Star | None:
        """Return Hive's quoted pattern for all columns but some as what it means."""
        if self._walker.dialect_name not in _QUOTED_PATTERNS or not isinstance(node, exp.Column):
            return None
        found = _ALL_BUT.fullmatch(node.name)
        if found is None:
            return None
        return exp.Star(except_=[exp.to_identifier(name) for name in found.group(1).split("|")])

    def item(self, expression: exp.Expression, name: str, scope: QueryScope) -> Column:
        """Return what a column that is assigned an expression depends on."""
        column = self._walker.expressions.column(expression, name, scope)
        if isinstance(expression, exp.Column):
            return column
        return ComputedColumn(column, expression, self._walker.dialect, named=True)

    def relation(
        self, expressions: Sequence[exp.Expression], scope: QueryScope, rows: Deps
    ) -> Relation:
        """Return the relation of a list of select items, as RETURNING has."""
        return Relation(self.items(expressions, scope), rows)

    def _item(self, expression: exp.Expression, at: int, scope: QueryScope) -> list[Column]:
        if isinstance(expression, exp.QueryTransform):  # TRANSFORM (a) USING 'script' AS (b)
            return self._transformed(expression, scope)
        if isinstance(expression, exp.Aliases):  # explode(m) as (k, v), inline(...)
            deps = direct(
                self._walker.expressions.of(expression.this, scope), DependencyKind.TRANSFORMATION
            )
            return [Column(self._walker.name(alias), deps) for alias in expression.aliases]
        name = self._walker.output_name(expression)
        inner = expression.this if isinstance(expression, exp.Alias) else expression
        if isinstance(inner, exp.Explode):  # of a struct, it makes columns instead of rows
            parts = self._walker.expressions.column(inner.this, "", scope).fields
            if parts:
                return list(parts.values())
        column = self._walker.expressions.column(expression, name or f"\x00{at}", scope)
        if not isinstance(inner, exp.Column):
            column = ComputedColumn(column, inner, self._walker.dialect, named=bool(name))
        return [column]

    def _transformed(self, node: exp.QueryTransform, scope: QueryScope) -> list[Column]:
        deps: Deps = {}
        for part in node.expressions:
            merge(
                deps,
                direct(self._walker.expressions.of(part, scope), DependencyKind.TRANSFORMATION),
            )
        schema = node.args.get("schema")
        columns = schema.expressions if isinstance(schema, exp.Expression) else ()
        names = [self._walker.name(c.this if isinstance(c, exp.ColumnDef) else c) for c in columns]
        return [Column(name, deps) for name in names or ["key", "value"]]

    def _field_star(self, node: exp.Column, scope: QueryScope) -> list[Column | Star]:
        """`column.*`: the fields of a struct."""
        found = self._walker.paths.find(exp.Column(this=node.parts[-2]), scope)
        if found is None:
            return []
        if found.fields:
            return [*found.fields.values()]
        deps = direct(found.deps, DependencyKind.TRANSFORMATION)
        return [Column("*", deps)]

    def all_items(self, scope: QueryScope) -> list[Column | Star]:
        """Return what `*` stands for: every column, those of USING once and first."""
        self._walker.budget.spend(sum(len(relation.items) for relation in scope.sources.values()))
        if not scope.merged:
            return [item for relation in scope.sources.values() for item in relation.items]
        waiting = dict(scope.merged)
        items: list[Column | Star] = []
        if self._walker.dialect_name not in _MERGED_IN_PLACE:
            items += [Column(name, deps) for name, deps in waiting.items()]
            waiting = {}
        for relation in scope.sources.values():
            for item in relation.items:
                if isinstance(item, Star):
                    items.append(item.without(scope.merged))
                elif item.name not in scope.merged:
                    items.append(item)
                elif item.name in waiting:
                    items.append(Column(item.name, waiting.pop(item.name)))
        return items + [Column(name, deps) for name, deps in waiting.items()]

    def _starred(
        self, star: exp.Star, found: list[Column | Star], scope: QueryScope
    ) -> list[Column | Star]:
        """Apply ILIKE, EXCEPT, REPLACE and RENAME to the columns of a star."""
        self._walker.listener.star(star, found)
        like = star.args.get("ilike")
        if isinstance(like, exp.Expression):
            found = named_like(found, exp.ILike(this=exp.Star(), expression=like), self._walker)
        dropped = {self._walker.name(_identifier(c)) for c in star.args.get("except_") or ()}
        replaced = {
            self._walker.name(alias.args["alias"]): self._walker.expressions.of(alias.this, scope)
            for alias in star.args.get("replace") or ()
            if isinstance(alias, exp.Alias)
        }
        renamed = {
            self._walker.name(_identifier(alias.this)): self._walker.name(alias.args["alias"])
            for alias in star.args.get("rename") or ()
            if isinstance(alias, exp.Alias)
        }
        if not (dropped or replaced or renamed):
            return list(found)
        gone = frozenset(dropped | replaced.keys() | renamed.keys())
        items: list[Column | Star] = []
        for item in found:
            if isinstance(item, Star):
                items.append(item.without(gone))
                items += [
                    Column(new, item.column(old, Certainty.INFERRED).deps)
                    for old, new in renamed.items()
                ]
            elif item.name in replaced:
                items.append(Column(item.name, replaced[item.name]))
            elif item.name not in dropped:
                items.append(
                    Column(
                        renamed.get(item.name, item.name), item.deps, item.expression, item.fields
                    )
                )
        named = {item.name for item in items if isinstance(item, Column)}
        items += [Column(name, deps) for name, deps in replaced.items() if name not in named]
        return items


def _identifier(node: exp.Expression) -> exp.Expression:
    return node.this if isinstance(node, exp.Column) else node


_NAMED_LIKE = (exp.Like, exp.ILike, exp.SimilarTo, exp.Glob)
_LONGEST_NAME = 128
_REPEATS = re.compile(r"[*+{]")
# A repetition of what repeats or has alternatives, or that refers back: `(a+)+`, `(a|b)*`.
_SLOW = re.compile(r"\([^)]*[*+{|][^)]*\)\s*[*+{]|\\\d")


def find_pattern(expression: exp.Expression) -> exp.Expression | None:
    """Return the part of a select item that stands for several columns, if it has one."""
    if isinstance(expression, _NAMED_LIKE) and isinstance(expression.this, exp.Star):
        return expression
    found = expression.find(exp.Columns)
    # coalesce(*COLUMNS(…)) takes them all at once.
    return None if found is None or found.args.get("unpack") else found


def expand_item(
    expression: exp.Expression, pattern: exp.Expression, walker: QueryWalker, scope: QueryScope
) -> list[Column | Star]:
    """Return a select item such as `min(COLUMNS('a.*'))` once for each column that fits."""
    if any(source.open for source in scope.sources.values()):
        walker.blind_spots.append("the columns that a pattern takes are not all known")
        row = opaque_column(
            Relation(walker.selects.all_items(scope), NOTHING), "*", DependencyKind.IDENTITY
        )
        kind = DependencyKind.IDENTITY if expression is pattern else DependencyKind.TRANSFORMATION
        return [Column("*", direct(row.deps, kind))]
    items: list[Column | Star] = []
    for column in expand_columns(pattern, walker, scope):
        written = column if expression is pattern else expression.copy()
        for node in list(written.find_all(exp.Columns)):
            node.replace(column.copy())
        if not isinstance(written, (exp.Alias, exp.Column)):
            written = exp.alias_(written, column.name, quoted=True)
        items += walker.selects.items([written], scope)
    return items


def expand_columns(
    node: exp.Expression, walker: QueryWalker, scope: QueryScope
) -> list[exp.Expression]:
    """Return the columns that `*` or a pattern stands for, or an expression that is neither."""
    inner = node.this if isinstance(node, (exp.Columns, *_NAMED_LIKE)) else node
    if node is inner and not inner.is_star:
        return [node]
    star = inner if inner.is_star else exp.Star()
    names = [item.name for item in walker.selects.items([star], scope) if isinstance(item, Column)]
    pattern = _pattern_of(node)
    if isinstance(inner, exp.Array):
        listed = {str(part.name) for part in inner.expressions}
        names = [name for name in names if name in listed]
    elif pattern is not None:
        names = [name for name in names if pattern.search(name[:_LONGEST_NAME])]
    elif node is not inner and not (inner.is_star and isinstance(node, exp.Columns)):
        walker.blind_spots.append("which columns a pattern takes was not tried")
    return [exp.column(name) for name in names]


def named_like(
    items: list[Column | Star], node: exp.Expression, walker: QueryWalker
) -> list[Column | Star]:
    """Return the columns whose names fit, as far as they are known."""
    pattern = _pattern_of(node)
    if pattern is None or any(isinstance(item, Star) for item in items):
        walker.blind_spots.append("the columns that a pattern takes are not all known")
        return items
    return [i for i in items if isinstance(i, Column) and pattern.search(i.name[:_LONGEST_NAME])]


def pattern_deps(node: exp.Expression, walker: QueryWalker, scope: QueryScope) -> Deps:
    """Return what a pattern outside of a select list depends on: all that fits."""
    if any(source.open for source in scope.sources.values()):
        return opaque_column(Relation(walker.selects.all_items(scope), NOTHING), "").deps
    deps: Deps = {}
    for column in expand_columns(node, walker, scope):
        merge(deps, walker.expressions.of(column, scope))
    return deps


def _pattern_of(node: exp.Expression) -> re.Pattern[str] | None:
    """Return the names that are looked for as a regular expression, if we can tell."""
    if isinstance(node, exp.Columns):
        return _compile(str(node.this.this)) if isinstance(node.this, exp.Literal) else None
    wanted = node.expression
    if not isinstance(node, _NAMED_LIKE) or not isinstance(wanted, exp.Literal):
        return None
    if isinstance(node, exp.Glob):
        return _compile(translate(wanted.name))
    if isinstance(node, exp.SimilarTo):
        return _compile(f"^(?:{wanted.name})$")
    text = re.escape(wanted.name).replace("%", ".*").replace("_", ".")
    return _compile(f"{'(?i)' if isinstance(node, exp.ILike) else ''}^{text}$")


def _compile(pattern: str) -> re.Pattern[str] | None:
    """Return a pattern, None when it is wrong or could take longer than anyone will wait."""
    if len(pattern) > _LONGEST_NAME or _SLOW.search(pattern) or len(_REPEATS.findall(pattern)) > 3:
        return None
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return None


_LONGEST = 2_000  # characters
# An expression of thousands of terms can be followed but not printed (where sqlglot runs out of
# stack, the error may be its own), and some of what it parses it prints in no dialect but its own.
_UNPRINTABLE = (
    AttributeError,
    KeyError,
    RecursionError,
    SqlglotError,
    TypeError,
    ValueError,
)


class ComputedColumn(Column):
    """A column whose expression text is written only when someone asks for it."""

    __slots__ = ("_dialect", "_node")

    def __init__(
        self, column: Column, node: exp.Expression, dialect: Dialect, *, named: bool
    ) -> None:
        self._node = node
        self._dialect = dialect
        name = column.name if named else self.text() or node.key
        super().__init__(name, column.deps, fields=column.fields)

    def text(self) -> str:
        """Return the SQL this column is computed by, nothing when it cannot be written."""
        try:
            text = str(self._node.sql(dialect=self._dialect, comments=False))
        except _UNPRINTABLE:
            return ""
        return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
