"""SELECT lists: columns, stars, and patterns such as `COLUMNS('…')`."""

from __future__ import annotations

import re
from fnmatch import translate
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.errors import SqlglotError

from downriver.capture.sql.query.scope import QueryScope
from downriver.columns import (
    Column,
    DependencyKind,
    Deps,
    Item,
    Relation,
    Star,
    direct,
    merge_all,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot.dialects.dialect import Dialect

    from downriver.capture.sql.query.walker import QueryWalker

# Dialects in which a select item may use the alias of an earlier one.
_LATERAL_ALIASES = frozenset(
    {"redshift", "snowflake", "databricks", "spark", "spark2", "duckdb", "teradata", "clickhouse"}
)

# Dialects in which `*` leaves a USING column in its place; in others it comes first.
_MERGED_IN_PLACE = frozenset({"duckdb", "clickhouse", "sqlite"})
_WITH_COLUMNS_PATTERN = frozenset({"duckdb", "clickhouse"})  # COLUMNS('regular expression')
# Dialects in which `(a|b)?+.+` in backticks is every column except a and b.
_WITH_QUOTED_PATTERN = frozenset({"hive", "spark", "spark2", "databricks"})
_ALL_BUT = re.compile(r"\(([\w|]+)\)\?\+\.\+")


class SelectTranslator:
    """Computes the columns of select lists."""

    def __init__(self, walker: QueryWalker) -> None:
        self._walker = walker

    def select(self, node: exp.Select, outer: QueryScope | None) -> Relation:
        """Return the relation of a SELECT."""
        scope = QueryScope(outer)
        scope.uses = self._walker.uses
        scope.is_hierarchy = node.args.get("connect") is not None
        self._walker.sources.from_clause(node, scope)
        for window in node.args.get("windows") or ():
            scope.windows[self._walker.name(window.this)] = window
        items = self.items(node.expressions, scope)
        scope.items = items
        scope.aliases = {}
        for item in items:
            if isinstance(item, Column):
                scope.aliases.setdefault(item.name, item)
        return self._walker.clauses.select(node, Relation(items, dict(scope.rows)), scope)

    def items(self, expressions: Sequence[exp.Expression], scope: QueryScope) -> list[Item]:
        """Return the columns of a select list, in order."""
        scope.lateral_aliases = self._walker.dialect_name in _LATERAL_ALIASES
        items: list[Item] = []
        for written in expressions:
            expression = self._quoted_pattern(written) or written
            if isinstance(expression, exp.Star):
                items += self._starred(expression, self.all_items(scope), scope)
            elif isinstance(expression, exp.Column) and isinstance(expression.this, exp.Star):
                source = scope.find_source(self._walker.name(expression.parts[-2]))
                star_items = (
                    source.items if source is not None else self._field_star(expression, scope)
                )
                items += self._starred(expression.this, star_items, scope)
            elif isinstance(expression, exp.Dot) and isinstance(expression.expression, exp.Star):
                star_items = self._value_star(expression.this, scope)
                items += self._starred(expression.expression, star_items, scope)
            elif (
                self._walker.dialect_name in _WITH_COLUMNS_PATTERN
                and (pattern := find_pattern(expression)) is not None
            ):
                items += expand_item(expression, pattern, self._walker, scope)
            else:
                items += self._item(expression, scope)
            if isinstance(expression, exp.Alias) and items and isinstance(items[-1], Column):
                scope.aliases.setdefault(items[-1].name, items[-1])
        return items

    def _quoted_pattern(self, node: exp.Expression) -> exp.Star | None:
        """Return Hive's `(a|b)?+.+` as `* EXCEPT (a, b)`."""
        if self._walker.dialect_name not in _WITH_QUOTED_PATTERN or not isinstance(
            node, exp.Column
        ):
            return None
        match = _ALL_BUT.fullmatch(node.name)
        if match is None:
            return None
        return exp.Star(except_=[exp.to_identifier(name) for name in match.group(1).split("|")])

    def item(self, expression: exp.Expression, name: str, scope: QueryScope) -> Column:
        """Return an expression as a column with a name."""
        column = self._walker.expressions.column(expression, name, scope)
        if not isinstance(expression, exp.Column):
            column.definition = SqlExpression(expression, self._walker.dialect)
        return column

    def _item(self, expression: exp.Expression, scope: QueryScope) -> list[Column]:
        if isinstance(expression, exp.QueryTransform):  # TRANSFORM (a) USING 'script' AS (b)
            return self._transformed(expression, scope)
        if isinstance(expression, exp.Aliases):  # explode(m) as (k, v), inline(...)
            deps = self._walker.expressions.of(expression.this, scope)
            deps = direct(deps, DependencyKind.TRANSFORMATION)
            return [Column(self._walker.name(alias), deps) for alias in expression.aliases]
        inner = expression.this if isinstance(expression, exp.Alias) else expression
        if isinstance(inner, exp.Explode):  # of a struct, it makes columns instead of rows
            fields = self._walker.expressions.column(inner.this, "", scope).fields
            if fields:
                return list(fields.values())
        definition = SqlExpression(inner, self._walker.dialect)
        name = self._walker.output_name(expression) or definition.text() or inner.key
        column = self._walker.expressions.column(expression, name, scope)
        # A path into a struct is kept as the expression over its column.
        if not isinstance(inner, exp.Column) or (len(inner.parts) > 1 and _computes(column)):
            column.definition = definition
        return [column]

    def _transformed(self, node: exp.QueryTransform, scope: QueryScope) -> list[Column]:
        deps = merge_all(self._walker.expressions.of(part, scope) for part in node.expressions)
        deps = direct(deps, DependencyKind.TRANSFORMATION)
        schema = node.args.get("schema")
        columns = schema.expressions if isinstance(schema, exp.Expression) else ()
        names = [self._walker.name(c.this if isinstance(c, exp.ColumnDef) else c) for c in columns]
        return [Column(name, deps) for name in names or ["key", "value"]]

    def _field_star(self, node: exp.Column, scope: QueryScope) -> list[Item]:
        """Return the fields of a struct, for `column.*`."""
        record = self._walker.paths.find(exp.Column(this=node.parts[-2]), scope)
        return _fields_of(record) if record is not None else []

    def _value_star(self, node: exp.Expression, scope: QueryScope) -> list[Item]:
        """Return the fields of a computed struct, for `ARRAY_AGG(t)[OFFSET(0)].*`."""
        return _fields_of(self._walker.expressions.column(node, "", scope))

    def all_items(self, scope: QueryScope) -> list[Item]:
        """Return the columns of `*`: every column, those of USING once."""
        self._walker.budget.spend(sum(len(relation.items) for relation in scope.sources.values()))
        if not scope.merged:
            return [item for relation in scope.sources.values() for item in relation.items]
        pending = dict(scope.merged)
        items: list[Item] = []
        if self._walker.dialect_name not in _MERGED_IN_PLACE:
            items += [Column(name, deps) for name, deps in pending.items()]
            pending = {}
        for relation in scope.sources.values():
            for item in relation.items:
                if isinstance(item, Star):
                    items.append(item.without(scope.merged))
                elif item.name not in scope.merged:
                    items.append(item)
                elif item.name in pending:
                    items.append(Column(item.name, pending.pop(item.name)))
        return items + [Column(name, deps) for name, deps in pending.items()]

    def _starred(self, star: exp.Star, star_items: Sequence[Item], scope: QueryScope) -> list[Item]:
        """Apply ILIKE, EXCEPT, REPLACE and RENAME to the columns of a star."""
        self._walker.listener.star(star, star_items)
        like = star.args.get("ilike")
        if isinstance(like, exp.Expression):
            star_items = named_like(
                star_items, exp.ILike(this=exp.Star(), expression=like), self._walker
            )
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
            return list(star_items)
        hidden = frozenset(dropped | replaced.keys() | renamed.keys())
        items: list[Item] = []
        for item in star_items:
            if isinstance(item, Star):
                items.append(item.without(hidden))
                items += [Column(new, item.column(old).deps) for old, new in renamed.items()]
            elif item.name in replaced:
                items.append(Column(item.name, replaced[item.name]))
            elif item.name not in dropped:
                name = renamed.get(item.name, item.name)
                items.append(
                    Column(name, item.deps, fields=item.fields, computation=item.computation)
                )
        named = {item.name for item in items if isinstance(item, Column)}
        items += [Column(name, deps) for name, deps in replaced.items() if name not in named]
        return items


def _computes(column: Column) -> bool:
    return any(key[2] != DependencyKind.IDENTITY for key in column.deps)


def _fields_of(column: Column) -> list[Item]:
    if column.fields:
        return [*column.fields.values()]
    return [Column("*", direct(column.deps, DependencyKind.TRANSFORMATION))]


def _identifier(node: exp.Expression) -> exp.Expression:
    return node.this if isinstance(node, exp.Column) else node


_NAMED_LIKE = (exp.Like, exp.ILike, exp.SimilarTo, exp.Glob)
_LONGEST_NAME = 128
_REPEATS = re.compile(r"[*+{]")
# Patterns that may backtrack for very long: `(a+)+`, `(a|b)*`, back references.
_SLOW = re.compile(r"\([^)]*[*+{|][^)]*\)\s*[*+{]|\\\d")


def find_pattern(expression: exp.Expression) -> exp.Expression | None:
    """Return the part of a select item that selects several columns by name, if it has one."""
    if isinstance(expression, _NAMED_LIKE) and isinstance(expression.this, exp.Star):
        return expression
    pattern = expression.find(exp.Columns)
    # coalesce(*COLUMNS(…)) is one item over all of them.
    return None if pattern is None or pattern.args.get("unpack") else pattern


def expand_item(
    expression: exp.Expression, pattern: exp.Expression, walker: QueryWalker, scope: QueryScope
) -> list[Item]:
    """Return a select item such as `min(COLUMNS('a.*'))` once for each matching column."""
    if any(source.open for source in scope.sources.values()):
        walker.blind_spots.append("some columns that the pattern selects are unknown")
        everything = Relation(walker.selects.all_items(scope)).value()
        kind = DependencyKind.IDENTITY if expression is pattern else DependencyKind.TRANSFORMATION
        return [Column("*", direct(everything, kind))]
    items: list[Item] = []
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
    """Return the columns that `*` or a pattern selects; any other expression as it is."""
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
        walker.blind_spots.append("the pattern that selects columns is too complex to evaluate")
    return [exp.column(name) for name in names]


def named_like(items: Sequence[Item], node: exp.Expression, walker: QueryWalker) -> Sequence[Item]:
    """Return the columns whose names match, as far as they are known."""
    pattern = _pattern_of(node)
    if pattern is None or any(isinstance(item, Star) for item in items):
        walker.blind_spots.append("some columns that the pattern selects are unknown")
        return items
    return [i for i in items if isinstance(i, Column) and pattern.search(i.name[:_LONGEST_NAME])]


def pattern_deps(node: exp.Expression, walker: QueryWalker, scope: QueryScope) -> Deps:
    """Return the dependencies of a pattern outside of a select list: all columns that match."""
    if any(source.open for source in scope.sources.values()):
        everything = Relation(walker.selects.all_items(scope)).value()
        return direct(everything, DependencyKind.TRANSFORMATION)
    columns = expand_columns(node, walker, scope)
    return merge_all(walker.expressions.of(column, scope) for column in columns)


def _pattern_of(node: exp.Expression) -> re.Pattern[str] | None:
    """Return the regular expression that names must match, None when it is not a constant."""
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
    """Return a compiled pattern, None when it is invalid or may take very long."""
    if len(pattern) > _LONGEST_NAME or _SLOW.search(pattern) or len(_REPEATS.findall(pattern)) > 3:
        return None
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return None


_LONGEST_TEXT = 2_000  # characters
# sqlglot cannot print every tree it parses: very long expressions exceed its stack, and some
# nodes are printable only in their own dialect.
_PRINTING_FAULTS = (
    AttributeError,
    KeyError,
    RecursionError,
    SqlglotError,
    TypeError,
    ValueError,
)


class SqlExpression:
    """The expression of a computed column. Its text is rendered only on request."""

    __slots__ = ("_dialect", "_node")

    def __init__(self, node: exp.Expression, dialect: Dialect) -> None:
        self._node = node
        self._dialect = dialect

    def text(self) -> str:
        """Return the expression as SQL, "" when it cannot be printed."""
        try:
            text = str(self._node.sql(dialect=self._dialect, comments=False))
        except _PRINTING_FAULTS:
            return ""
        return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"
