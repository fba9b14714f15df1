"""`COLUMNS('…')` and `* LIKE '…'`: one select item for every column whose name fits."""

from __future__ import annotations

import re
from fnmatch import translate
from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.capture.sql.deps import NOTHING, Deps, Kind, at_least, merge
from downriver.capture.sql.relations import Column, Relation, Star, opaque

if TYPE_CHECKING:
    from downriver.capture.sql.scope import Scope
    from downriver.capture.sql.walker import Walker

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
    expression: exp.Expression, pattern: exp.Expression, walker: Walker, scope: Scope
) -> list[Column | Star]:
    """Return a select item such as `min(COLUMNS('a.*'))` once for each column that fits."""
    if any(source.open for source in scope.sources.values()):
        walker.blind_spots.append("the columns that a pattern takes are not all known")
        row = opaque(Relation(walker.selects.all_items(scope), NOTHING), "*", Kind.IDENTITY)
        kind = Kind.IDENTITY if expression is pattern else Kind.TRANSFORMATION
        return [Column("*", at_least(row.deps, kind))]
    items: list[Column | Star] = []
    for column in expand_columns(pattern, walker, scope):
        written = column if expression is pattern else expression.copy()
        for node in list(written.find_all(exp.Columns)):
            node.replace(column.copy())
        if not isinstance(written, (exp.Alias, exp.Column)):
            written = exp.alias_(written, column.name, quoted=True)
        items += walker.selects.items([written], scope)
    return items


def expand_columns(node: exp.Expression, walker: Walker, scope: Scope) -> list[exp.Expression]:
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
    items: list[Column | Star], node: exp.Expression, walker: Walker
) -> list[Column | Star]:
    """Return the columns whose names fit, as far as they are known."""
    pattern = _pattern_of(node)
    if pattern is None or any(isinstance(item, Star) for item in items):
        walker.blind_spots.append("the columns that a pattern takes are not all known")
        return items
    return [i for i in items if isinstance(i, Column) and pattern.search(i.name[:_LONGEST_NAME])]


def pattern_deps(node: exp.Expression, walker: Walker, scope: Scope) -> Deps:
    """Return what a pattern outside of a select list depends on: all that fits."""
    if any(source.open for source in scope.sources.values()):
        return opaque(Relation(walker.selects.all_items(scope), NOTHING), "").deps
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
