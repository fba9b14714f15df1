"""PIVOT and UNPIVOT: rows to columns and back."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.capture.sql.query.scope import QueryScope
from downriver.capture.sql.query.select import expand_columns
from downriver.columns import (
    NOTHING,
    Column,
    DependencyKind,
    Deps,
    Item,
    Relation,
    aggregate,
    filter_rows,
    indirect,
    merge,
    merge_all,
    project,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.capture.sql.query.walker import QueryWalker


def pivot(
    node: exp.Pivot, relation: Relation, walker: QueryWalker, outer: QueryScope | None
) -> Relation:
    """Apply a PIVOT or UNPIVOT clause of FROM, or DuckDB's PIVOT statement, to a relation."""
    scope = QueryScope.over(relation, outer)
    if node.args.get("unpivot"):
        return _renamed(node, _unpivoted(node, relation, walker, scope), walker)
    fields = list(node.args.get("fields") or ())
    aggregates = list(node.expressions)
    names = [walker.name(column).strip("'") for column in node.args.get("columns") or ()]
    if not fields:  # PIVOT t ON … USING …
        fields, aggregates = aggregates, list(node.args.get("using") or ())
        names = _names(fields, aggregates, walker)
    result = _pivoted(node, relation, walker, scope, (fields, aggregates, names))
    return _renamed(node, result, walker)


def _renamed(node: exp.Pivot, relation: Relation, walker: QueryWalker) -> Relation:
    alias = node.args.get("alias")
    columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    return relation.renamed(map(walker.name, columns)) if columns else relation


def _pivoted(
    node: exp.Pivot,
    relation: Relation,
    walker: QueryWalker,
    scope: QueryScope,
    made: tuple[Sequence[exp.Expression], Sequence[exp.Expression], list[str]],
) -> Relation:
    fields, aggregates, names = made
    keys: Deps = {}
    for field in fields:
        key = field.this if isinstance(field, exp.In) else field
        merge(keys, indirect(walker.expressions.of(key, scope), DependencyKind.CONDITIONAL))
    values = [merge_all([walker.expressions.of(each, scope), keys]) for each in aggregates]
    values = values or [keys]
    kept = _grouping_columns(node, relation, walker, scope)
    result = aggregate(relation, kept.value(), kept.items)
    if not names:
        walker.blind_spots.append("the columns of a PIVOT depend on its data")
        any_of = merge_all(values)
        return Relation([*kept.items, Column("*", any_of)], result.rows, unnamed=any_of)
    # Names are ordered by key, and within a key by aggregate.
    columns = [Column(name, values[at % len(values)]) for at, name in enumerate(names)]
    return project(result, [*kept.items, *columns])


def _grouping_columns(
    node: exp.Pivot, relation: Relation, walker: QueryWalker, scope: QueryScope
) -> Relation:
    """Return the columns to group by: those that are listed, or all that are not pivoted."""
    group = node.args.get("group")
    if group is not None:
        return Relation(walker.selects.items(group.expressions, scope))
    # Columns inside the statement's own source do not count.
    outside = node.walk(prune=lambda inner: inner is node.this)
    used = {walker.name(c.this) for c in outside if isinstance(c, exp.Column) and c.name}
    return relation.without(used)


def _names(
    fields: Sequence[exp.Expression], aggregates: Sequence[exp.Expression], walker: QueryWalker
) -> list[str]:
    """Return the columns that a PIVOT statement makes, [] when they depend on its data."""
    values: list[list[str]] = []
    for field in fields:
        if not isinstance(field, exp.In) or not field.expressions:
            return []
        values.append([part.alias or part.name or part.sql().lower() for part in field.expressions])
    keys = ["_".join(parts) for parts in product(*values)]
    aliased = any(isinstance(aggregate, exp.Alias) for aggregate in aggregates)
    if len(aggregates) <= 1 and not aliased:
        return keys
    labels = [walker.output_name(a) or a.sql().lower() for a in aggregates]
    return [f"{key}_{label}" for key in keys for label in labels]


def _unpivoted(
    node: exp.Pivot, relation: Relation, walker: QueryWalker, scope: QueryScope
) -> Relation:
    made, names, parts = _unpivot_parts(node, walker, scope)
    values: list[Deps] = [{} for _ in made]
    sources: set[str] = set()
    for part in parts:
        inner = part.this if isinstance(part, (exp.PivotAlias, exp.Alias)) else part
        columns = inner.expressions if isinstance(inner, exp.Tuple) else [inner]
        for at, column in enumerate(columns):
            sources.add(walker.output_name(column) or column.name)
            merge(values[at % len(values)], walker.expressions.of(column, scope))
    rows = relation.without(sources)
    items: list[Item] = list(rows.items)
    items += [Column(name, NOTHING) for name in names]
    items += [Column(name, deps) for name, deps in zip(made, values, strict=True)]
    if not node.args.get("include_nulls"):  # a NULL makes no row
        rows = filter_rows(rows, merge_all(values))
    return project(rows, items)


def _unpivot_parts(
    node: exp.Pivot, walker: QueryWalker, scope: QueryScope
) -> tuple[list[str], list[str], list[exp.Expression]]:
    """Return the value columns and name columns that UNPIVOT makes, and their sources."""
    fields = [field for field in node.args.get("fields") or () if isinstance(field, exp.In)]
    if fields:
        made = _flat(node.expressions)
        named = [field.this for field in fields]
        parts = [part for field in fields for part in field.expressions]
    else:  # UNPIVOT t ON … INTO NAME … VALUE …
        into = node.args.get("into")
        made = _flat(into.expressions) if into is not None else [exp.to_identifier("value")]
        named = [into.this] if into is not None else [exp.to_identifier("name")]
        parts = [p for part in node.expressions for p in expand_columns(part, walker, scope)]
    return [_name(m, walker) for m in made], [_name(n, walker) for n in named], parts


def _flat(parts: Sequence[exp.Expression]) -> list[exp.Expression]:
    return [
        p for part in parts for p in (part.expressions if isinstance(part, exp.Tuple) else [part])
    ]


def _name(node: exp.Expression, walker: QueryWalker) -> str:
    return walker.output_name(node) or walker.name(node)
