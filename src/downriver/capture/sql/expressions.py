"""From an expression to what its value depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.capture.sql.deps import NOTHING, Deps, Kind, at_least, merge, steering
from downriver.capture.sql.relations import Column, Relation, opaque
from downriver.capture.sql.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.capture.sql.walker import Walker

_MASKING_NAMES = frozenset(
    {
        "md5", "md5_hex", "md5_digest", "sha", "sha1", "sha2", "sha256", "sha512", "sha1_hex", "sha2_hex",
        "sha2_binary", "hash", "xxhash64", "murmurhash3_32", "farm_fingerprint", "hashbytes", "crc32",
        "mask", "mask_hash", "mask_first_n", "mask_last_n", "mask_show_first_n", "mask_show_last_n",
        "anonymize", "encrypt", "aes_encrypt", "tokenize", "redact", "fnv_hash", "siphash64", "cityhash64",
        "standard_hash", "checksum", "digest",
    }
)  # fmt: skip
_MASKING = tuple(
    kind
    for name in ("MD5", "MD5Digest", "SHA", "SHA2", "SHA1Digest", "SHA2Digest", "FarmFingerprint")
    if (kind := getattr(exp, name, None)) is not None
)
_SAME_VALUE = (exp.Paren, exp.Alias, exp.Distinct, exp.Ordered, exp.Kwarg, exp.PropertyEQ)
_STRUCTS = (exp.Struct,)
_ROW_MAKERS = (
    exp.Explode,
    exp.ExplodeOuter,
    exp.Posexplode,
    exp.PosexplodeOuter,
    exp.Inline,
    exp.Unnest,
    exp.ExplodingGenerateSeries,
)


class Expressions:
    """Computes dependencies of expressions in a scope; subqueries go back to the walker."""

    def __init__(self, walker: Walker) -> None:
        self._walker = walker
        self._special: dict[type, Callable[[exp.Expression, Scope], Deps]] = {
            exp.Column: self._column,
            exp.Dot: self._dot,
            exp.Case: self._case,
            exp.If: self._if,
            exp.Window: self._window,
            exp.Subquery: self._subquery,
            exp.Select: self._subquery,
            exp.Union: self._subquery,
            exp.Intersect: self._subquery,
            exp.Except: self._subquery,
            exp.Exists: self._exists,
            exp.In: self._in,
            exp.Lambda: self._lambda,
            exp.Comprehension: self._comprehension,
            exp.Filter: self._filter,
            exp.WithinGroup: self._within_group,
            exp.Order: self._order,
            exp.ArgMax: self._arg_max,
            exp.ArgMin: self._arg_max,
            exp.Count: self._count,
            exp.Bracket: self._dot,
            **dict.fromkeys(_ROW_MAKERS, self._rows_made),
            exp.Literal: _nothing,
            exp.Null: _nothing,
            exp.Boolean: _nothing,
            exp.DataType: _nothing,
            exp.Var: _nothing,
            exp.Star: _nothing,
            exp.Identifier: _nothing,
            exp.Parameter: self._parameter,
            exp.Placeholder: _nothing,
            exp.Interval: self._passed_on,
        }

    def of(self, node: exp.Expression, scope: Scope) -> Deps:
        """Return what the value of an expression depends on."""
        special = self._special.get(type(node))
        if special is not None:
            return special(node, scope)
        if isinstance(node, exp.Binary) and not isinstance(node, exp.Dot):
            return self._chain(node, scope)
        if isinstance(node, _SAME_VALUE):
            return self._children(node, scope)
        deps = self._children(node, scope)
        if not deps:
            return deps
        kind = Kind.AGGREGATION if _aggregates(node) else Kind.TRANSFORMATION
        return at_least(deps, kind, masked=_masks(node))

    def column(self, node: exp.Expression, name: str, scope: Scope) -> Column:
        """Return a select item as a column, with its struct fields if it builds a struct."""
        inner = node.this if isinstance(node, exp.Alias) else node
        if isinstance(inner, exp.Column):
            found = self.find(inner, scope)
            if found is not None:
                return Column(name, found.deps, "", found.fields)
        if isinstance(inner, _STRUCTS):
            return self._struct(inner, name, scope)
        computed = Column(name, self.of(inner, scope), fields=None)
        self._walker.listener.computed(inner, computed)
        return computed

    def _children(self, node: exp.Expression, scope: Scope) -> Deps:
        deps: Deps = {}
        for child in node.iter_expressions():
            if isinstance(child, exp.Expression):
                more = self.of(child, scope)
                if more:
                    merge(deps, more)
        return deps

    def _passed_on(self, node: exp.Expression, scope: Scope) -> Deps:
        return at_least(self._children(node, scope), Kind.TRANSFORMATION)

    def _chain(self, node: exp.Expression, scope: Scope) -> Deps:
        """Walk `a + b + c + …` without recursion: such chains are as deep as they are long."""
        deps: Deps = {}
        while isinstance(node, exp.Binary) and type(node) not in self._special:
            right = node.args.get("expression")
            if isinstance(right, exp.Expression):
                merge(deps, self.of(right, scope))
            node = node.this
        if isinstance(node, exp.Expression):
            merge(deps, self.of(node, scope))
        return at_least(deps, Kind.TRANSFORMATION)

    def _column(self, node: exp.Expression, scope: Scope) -> Deps:
        found = self.find(node, scope)
        return found.deps if found is not None else NOTHING

    def _parameter(self, node: exp.Expression, scope: Scope) -> Deps:
        """`$1` is the first column of a file in a Snowflake stage; elsewhere a value given."""
        name = self._walker.name(node)
        if not name.startswith("$") or self._walker.dialect_name != "snowflake":
            return NOTHING
        found = scope.find_column(name)
        return found.deps if found is not None else NOTHING

    def find(self, node: exp.Expression, scope: Scope) -> Column | None:
        """Resolve `column`, `source.column`, `db.source.column` or `column.field`."""
        found = self._resolve(node, scope)
        self._walker.listener.column(node, scope, found)
        return found

    def _resolve(self, node: exp.Expression, scope: Scope) -> Column | None:
        parts = [self._walker.name(part) for part in node.parts]
        if len(parts) == 1:
            return self._plain(parts[0], scope)
        for at in range(len(parts) - 1, 0, -1):
            source = scope.find_source(".".join(parts[:at]))
            if source is None and at > 1:
                source = scope.find_source(parts[at - 1])
            if source is not None:
                return _inside(source.find(parts[at]), parts[at + 1 :])
        return _inside(self._named(parts[0], scope), parts[1:])

    def _named(self, name: str, scope: Scope) -> Column | None:
        """Return what a name means: a column, unless it is a variable and none is known."""
        if name.casefold() in self._walker.variables and not scope.knows(name):
            return Column(name, NOTHING)
        return scope.find_column(name)

    def _plain(self, name: str, scope: Scope) -> Column | None:
        source = scope.find_source(name)
        if source is None or not _is_row(source, name, scope):
            found = self._named(name, scope)
            if found is not None or source is None:
                return found
        row = opaque(source, name)  # a whole row: `select t from t`
        row.fields = {column.name: column for column in source.columns}
        return row

    def _dot(self, node: exp.Expression, scope: Scope) -> Deps:
        """`a.b.c`, `a['b']`: a path into a struct, or into anything else."""
        names: list[str] = []
        indexes: Deps = {}
        while isinstance(node, (exp.Dot, exp.Bracket, exp.Paren)):
            if isinstance(node, exp.Dot):
                names.insert(0, self._walker.name(node.expression))
            elif isinstance(node, exp.Bracket):
                keys = node.expressions
                names.insert(0, str(keys[0].this) if len(keys) == 1 and keys[0].is_string else "")
                for key in keys:
                    merge(indexes, at_least(self.of(key, scope), Kind.TRANSFORMATION))
            node = node.this
        if isinstance(node, exp.Column):
            found = _inside(self.find(node, scope), names)
        elif isinstance(node, _STRUCTS):
            found = _inside(self._struct(node, "", scope), names)
        else:
            found = Column("", at_least(self.of(node, scope), Kind.TRANSFORMATION))
        if not indexes or found is None:
            return found.deps if found is not None else indexes
        merge(indexes, found.deps)
        return indexes

    def _struct(self, node: exp.Expression, name: str, scope: Scope) -> Column:
        fields: dict[str, Column] = {}
        for at, part in enumerate(node.expressions):
            if isinstance(part, exp.PropertyEQ):
                field, value = self._walker.name(part.this), part.expression
            elif isinstance(part, exp.Alias):
                field, value = self._walker.name(part.args["alias"]), part.this
            else:
                field, value = self._walker.output_name(part) or f"_{at}", part
            fields[field] = self.column(value, field, scope)
        deps: Deps = {}
        for column in fields.values():
            merge(deps, at_least(column.deps, Kind.TRANSFORMATION))
        return Column(name, deps, fields=fields)

    def _case(self, node: exp.Expression, scope: Scope) -> Deps:
        deps: Deps = {}
        looked_at = [node.this] if node.this is not None else []
        for branch in node.args.get("ifs") or ():
            looked_at.append(branch.this)
            merge(deps, at_least(self.of(branch.args["true"], scope), Kind.TRANSFORMATION))
        if node.args.get("default") is not None:
            merge(deps, at_least(self.of(node.args["default"], scope), Kind.TRANSFORMATION))
        for condition in looked_at:
            merge(deps, steering(self.of(condition, scope), Kind.CONDITIONAL))
        return deps

    def _if(self, node: exp.Expression, scope: Scope) -> Deps:
        deps = steering(self.of(node.this, scope), Kind.CONDITIONAL)
        for branch in ("true", "false"):
            if node.args.get(branch) is not None:
                merge(deps, at_least(self.of(node.args[branch], scope), Kind.TRANSFORMATION))
        return deps

    def _window(self, node: exp.Expression, scope: Scope) -> Deps:
        deps = dict(at_least(self.of(node.this, scope), Kind.TRANSFORMATION))
        seen: set[str] = set()
        window: exp.Expression | None = node
        while window is not None:
            for part in self._walker.window_parts(window):
                merge(deps, steering(self.of(part, scope), Kind.WINDOW))
            name = self._walker.name(window.args["alias"]) if window.args.get("alias") else ""
            window = None if name in seen else scope.windows.get(name)
            seen.add(name)
        return deps

    def _filter(self, node: exp.Expression, scope: Scope) -> Deps:
        deps = dict(self.of(node.this, scope))
        merge(deps, steering(self.of(node.expression, scope), Kind.CONDITIONAL))
        return deps

    def _within_group(self, node: exp.Expression, scope: Scope) -> Deps:
        deps = dict(at_least(self.of(node.this, scope), Kind.AGGREGATION))
        if deps:  # listagg(a) within group (order by b)
            merge(deps, self.of(node.expression, scope))
        for part in (
            node.expression.expressions if not deps else ()
        ):  # a percentile of what is ordered
            merge(deps, at_least(self.of(part, scope), Kind.AGGREGATION))
        return deps

    def _order(self, node: exp.Expression, scope: Scope) -> Deps:
        """The order inside an aggregate, as in `string_agg(a order by b)`."""
        deps = dict(self.of(node.this, scope)) if node.this is not None else {}
        for part in node.expressions:
            merge(deps, steering(self.of(part, scope), Kind.SORT))
        return deps

    def _arg_max(self, node: exp.Expression, scope: Scope) -> Deps:
        deps = dict(at_least(self.of(node.this, scope), Kind.AGGREGATION))
        merge(deps, steering(self.of(node.expression, scope), Kind.SORT))
        return deps

    def _count(self, node: exp.Expression, scope: Scope) -> Deps:
        counted = node.this
        if isinstance(counted, exp.Column) and len(counted.parts) == 1:
            name = self._walker.name(counted.this)
            source = scope.find_source(name)
            if source is not None and _is_row(source, name, scope):
                return NOTHING  # whole rows: none of them is missing
        return at_least(self._children(node, scope), Kind.AGGREGATION)

    def _rows_made(self, node: exp.Expression, scope: Scope) -> Deps:
        deps = at_least(self._children(node, scope), Kind.TRANSFORMATION)
        if not isinstance(node.this, exp.Array):  # as many rows as are written there
            merge(scope.generates, steering(deps, Kind.JOIN))
        return deps

    def _subquery(self, node: exp.Expression, scope: Scope) -> Deps:
        relation = self._walker.query(node, scope)
        deps: Deps = {}
        for item in relation.items:
            column = item if isinstance(item, Column) else item.column("*", 1)
            merge(deps, at_least(column.deps, Kind.TRANSFORMATION))
        merge(deps, relation.rows)
        return deps

    def _exists(self, node: exp.Expression, scope: Scope) -> Deps:
        return self._walker.query(node.this, scope).rows

    def _in(self, node: exp.Expression, scope: Scope) -> Deps:
        deps = dict(at_least(self.of(node.this, scope), Kind.TRANSFORMATION))
        for part in (node.args.get("query"), node.args.get("unnest"), *node.expressions):
            if part is not None:
                merge(deps, at_least(self.of(part, scope), Kind.TRANSFORMATION))
        return deps

    def _comprehension(self, node: exp.Expression, scope: Scope) -> Deps:
        """`[x + 1 FOR x IN xs IF x > 0]`: x is an element of xs."""
        elements = at_least(self.of(node.args["iterator"], scope), Kind.TRANSFORMATION)
        inner = Scope(scope, {})
        name = self._walker.name(node.expression)
        inner.sources[""] = Relation([Column(name, elements)], NOTHING)
        deps = dict(at_least(self.of(node.this, inner), Kind.TRANSFORMATION))
        merge(deps, elements)
        condition = node.args.get("condition")
        if isinstance(condition, exp.Expression):
            merge(deps, steering(self.of(condition, inner), Kind.CONDITIONAL))
        return deps

    def _lambda(self, node: exp.Expression, scope: Scope) -> Deps:
        """A lambda's parameters are its own; the rest of its body looks outside."""
        inner = Scope(scope, {})
        parameters: list[Column] = [
            Column(self._walker.name(p), NOTHING) for p in node.expressions if p.name
        ]
        inner.sources[""] = Relation([*parameters], NOTHING)
        for parameter in parameters:
            inner.sources.setdefault(parameter.name, Relation([], NOTHING))
        return at_least(self.of(node.this, inner), Kind.TRANSFORMATION)


def _nothing(node: exp.Expression, scope: Scope) -> Deps:
    return NOTHING


def _is_row(source: Relation, name: str, scope: Scope) -> bool:
    """Whether a name that a source goes by means its rows and not a column we do not know of."""
    own_name = any(star.table[-1] == name for star in source.stars)
    return not own_name and not scope.knows(name)


def _inside(column: Column | None, path: list[str]) -> Column | None:
    """Follow a path into a struct that was built in the query; else all of it is used."""
    for name in path:
        if column is None:
            return None
        inner = (column.fields or {}).get(name)
        if inner is None:
            return Column(name, at_least(column.deps, Kind.TRANSFORMATION))
        column = inner
    return column


def _aggregates(node: exp.Expression) -> bool:
    return isinstance(node, exp.AggFunc)


def _masks(node: exp.Expression) -> bool:
    if isinstance(node, _MASKING):
        return True
    return isinstance(node, exp.Anonymous) and str(node.this).casefold() in _MASKING_NAMES
