"""SELECT: which columns a query has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.capture.sql.deps import Deps, Kind, Sure, at_least, merge
from downriver.capture.sql.expressed import Expressed
from downriver.capture.sql.patterns import expand_item, find_pattern, named_like
from downriver.capture.sql.relations import Column, Relation, Star
from downriver.capture.sql.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.capture.sql.walker import Walker

# Where an alias of the same SELECT may be used further on in it.
_LATERAL_ALIASES = frozenset(
    {"redshift", "snowflake", "databricks", "spark", "spark2", "duckdb", "teradata", "clickhouse"}
)

# Where `*` shows the columns of USING where the first table has them, and not before all others.
_MERGED_IN_PLACE = frozenset({"duckdb", "clickhouse", "sqlite"})
_PATTERNS = frozenset({"duckdb", "clickhouse"})  # which know COLUMNS('regular expression')

_QUOTED_PATTERNS = frozenset({"hive", "spark", "spark2", "databricks"})
_ALL_BUT = re.compile(r"\(([\w|]+)\)\?\+\.\+")


class Selects:
    """Computes the columns of select lists."""

    def __init__(self, walker: Walker) -> None:
        self._walker = walker

    def select(self, node: exp.Select, outer: Scope | None) -> Relation:
        """Return the relation of a SELECT."""
        scope = Scope(outer, {})
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

    def items(self, expressions: Sequence[exp.Expression], scope: Scope) -> list[Column | Star]:
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

    def item(self, expression: exp.Expression, name: str, scope: Scope) -> Column:
        """Return what a column that is assigned an expression depends on."""
        column = self._walker.expressions.column(expression, name, scope)
        if isinstance(expression, exp.Column):
            return column
        return Expressed(column, expression, self._walker.dialect, named=True)

    def relation(self, expressions: Sequence[exp.Expression], scope: Scope, rows: Deps) -> Relation:
        """Return the relation of a list of select items, as RETURNING has."""
        return Relation(self.items(expressions, scope), rows)

    def _item(self, expression: exp.Expression, at: int, scope: Scope) -> list[Column]:
        if isinstance(expression, exp.QueryTransform):  # TRANSFORM (a) USING 'script' AS (b)
            return self._transformed(expression, scope)
        if isinstance(expression, exp.Aliases):  # explode(m) as (k, v), inline(...)
            deps = at_least(
                self._walker.expressions.of(expression.this, scope), Kind.TRANSFORMATION
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
            column = Expressed(column, inner, self._walker.dialect, named=bool(name))
        return [column]

    def _transformed(self, node: exp.QueryTransform, scope: Scope) -> list[Column]:
        deps: Deps = {}
        for part in node.expressions:
            merge(deps, at_least(self._walker.expressions.of(part, scope), Kind.TRANSFORMATION))
        schema = node.args.get("schema")
        columns = schema.expressions if isinstance(schema, exp.Expression) else ()
        names = [self._walker.name(c.this if isinstance(c, exp.ColumnDef) else c) for c in columns]
        return [Column(name, deps) for name in names or ["key", "value"]]

    def _field_star(self, node: exp.Column, scope: Scope) -> list[Column | Star]:
        """`column.*`: the fields of a struct."""
        found = self._walker.paths.find(exp.Column(this=node.parts[-2]), scope)
        if found is None:
            return []
        if found.fields:
            return [*found.fields.values()]
        deps = at_least(found.deps, Kind.TRANSFORMATION)
        return [Column("*", deps)]

    def all_items(self, scope: Scope) -> list[Column | Star]:
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
        self, star: exp.Star, found: list[Column | Star], scope: Scope
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
                    Column(new, item.column(old, Sure.INFERRED).deps)
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
