"""MATCH_RECOGNIZE: rows found by a pattern over rows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.capture.sql.deps import Deps, Kind, merge, steering
from downriver.capture.sql.relations import Column, Relation, Star
from downriver.capture.sql.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.capture.sql.walker import Walker

_NAME = re.compile(r"[^\W\d]\w*")


def matched(clause: exp.Expression, scope: Scope, rows: Deps, walker: Walker) -> Relation:
    """Return the rows of a pattern: what it is partitioned by, and what each match measures."""
    source = Relation(walker.selects.all_items(scope), rows)
    around = Scope(scope, {})
    for name in _variables(clause, walker):
        around.sources[name] = source  # `u.price` is a row's price
    inner = Scope(around, {})
    inner.sources["\x00"] = source
    defined = [p for p in clause.args.get("define") or () if isinstance(p, exp.Alias)]
    decided: Deps = dict(rows)
    for node in _arranged_by(clause):
        merge(decided, steering(walker.expressions.of(node, inner), Kind.WINDOW))
    for part in defined:
        merge(decided, steering(walker.expressions.of(part.this, inner), Kind.FILTER))
    measures = [part.this for part in clause.args.get("measures") or ()]
    shown = clause.args.get("partition_by") or ()
    every_row = "ALL ROWS" in str(clause.args.get("rows") or "").upper()
    items: list[Column | Star] = list(source.items) if every_row else []
    if not every_row:
        items += walker.selects.relation(shown, inner, decided).items
    items += walker.selects.relation(measures, inner, decided).items
    return Relation(items, decided)


def _variables(clause: exp.Expression, walker: Walker) -> Iterator[str]:
    """Yield what a pattern calls rows; not all of them have a condition."""
    pattern = clause.args.get("pattern")
    for name in _NAME.findall(pattern.name if isinstance(pattern, exp.Expression) else ""):
        yield walker.fold(name)


def _arranged_by(clause: exp.Expression) -> Iterator[exp.Expression]:
    yield from clause.args.get("partition_by") or ()
    order = clause.args.get("order")
    if isinstance(order, exp.Expression):
        yield from order.expressions
