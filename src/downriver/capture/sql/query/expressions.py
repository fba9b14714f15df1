"""Expressions: what the value of an expression depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.capture.sql.query.names import is_row
from downriver.capture.sql.query.remote_tables import find_lookup
from downriver.capture.sql.query.scope import QueryScope
from downriver.capture.sql.query.select import pattern_deps
from downriver.columns import (
    NOTHING,
    Column,
    DependencyKind,
    Deps,
    Relation,
    choose,
    count,
    direct,
    first_known,
    indirect,
    merge,
    null_if,
    source,
    window,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from downriver.capture.sql.query.walker import QueryWalker

_SAME_VALUE = (exp.Paren, exp.Alias, exp.Distinct, exp.Ordered, exp.Kwarg, exp.PropertyEQ)
_OF_ROWS = (exp.Bracket, exp.AnyValue, exp.Paren)
_OF_ONE_ROW = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)
_FILE_METADATA = "_metadata"  # Spark's column with the path, size and time of a row's file
_FILE_FUNCTIONS = frozenset(
    {"input_file_name", "input_file_block_start", "input_file_block_length"}
)
_ROW_MAKERS = (
    exp.Explode,
    exp.ExplodeOuter,
    exp.Posexplode,
    exp.PosexplodeOuter,
    exp.Inline,
    exp.Unnest,
    exp.ExplodingGenerateSeries,
)


class ExpressionTranslator:
    """Computes the dependencies of expressions in a scope; the walker reads subqueries."""

    def __init__(self, walker: QueryWalker) -> None:
        self._walker = walker

    def of(self, node: exp.Expression, scope: QueryScope) -> Deps:
        """Return what the value of an expression depends on."""
        translate = _TRANSLATORS.get(type(node))
        if translate is not None:
            return translate(self, node, scope)
        if isinstance(node, exp.Binary) and not isinstance(node, exp.Dot):
            return self._chain(node, scope)
        if isinstance(node, _SAME_VALUE):
            return self._children(node, scope)
        deps = self._children(node, scope)
        if not deps:
            return NOTHING
        kind = DependencyKind.AGGREGATION if _aggregates(node) else DependencyKind.TRANSFORMATION
        return direct(deps, kind, masked=masks(node))

    def column(self, node: exp.Expression, name: str, scope: QueryScope) -> Column:
        """Return a select item as a column, with its struct fields if it builds a struct."""
        inner = node.this if isinstance(node, exp.Alias) else node
        if isinstance(inner, exp.Column):
            origin = self._walker.paths.find(inner, scope)
            if origin is not None:
                return Column(
                    name, origin.deps, fields=origin.fields, computation=origin.computation
                )
        if isinstance(inner, exp.Struct):
            return self._walker.paths.struct(inner, name, scope)
        fields = (
            self._walker.paths.row_fields(inner, scope) if isinstance(inner, _OF_ROWS) else None
        )
        computed = Column(name, self.of(inner, scope), fields=fields)
        self._walker.listener.computed(inner, computed)
        return computed

    def _nothing(self, node: exp.Expression, scope: QueryScope) -> Deps:
        return NOTHING

    def _path(self, node: exp.Expression, scope: QueryScope) -> Deps:
        return self._walker.paths.follow(node, scope)

    def _children(self, node: exp.Expression, scope: QueryScope) -> Deps:
        deps: Deps = {}
        for child in node.iter_expressions():
            if isinstance(child, exp.Expression):
                more = self.of(child, scope)
                if more:
                    merge(deps, more)
        return deps

    def _transformed(self, node: exp.Expression, scope: QueryScope) -> Deps:
        return direct(self._children(node, scope), DependencyKind.TRANSFORMATION)

    def _chain(self, node: exp.Expression, scope: QueryScope) -> Deps:
        """Return the dependencies of `a + b + c + …` without recursion: its tree is very deep."""
        deps: Deps = {}
        while isinstance(node, exp.Binary) and type(node) not in _TRANSLATORS:
            right = node.args.get("expression")
            if isinstance(right, exp.Expression):
                merge(deps, self.of(right, scope))
            node = node.this
        if isinstance(node, exp.Expression):
            merge(deps, self.of(node, scope))
        return direct(deps, DependencyKind.TRANSFORMATION)

    def _column(self, node: exp.Expression, scope: QueryScope) -> Deps:
        if isinstance(node.this, exp.Star):
            return self._star(node, scope)
        origin = self._walker.paths.find(node, scope)
        return origin.deps if origin is not None else NOTHING

    def _star(self, node: exp.Expression, scope: QueryScope) -> Deps:
        """Return the dependencies of a star: `hash(*)` uses every column, `count(*)` none."""
        if _counts(node.parent):
            return NOTHING
        row = Relation(self._walker.selects.items([node], scope))
        return direct(row.value(), DependencyKind.TRANSFORMATION)

    def _parameter(self, node: exp.Expression, scope: QueryScope) -> Deps:
        """Return the dependencies of `$1`: in Snowflake the first column of a staged file."""
        name = self._walker.name(node)
        if not name.startswith("$") or self._walker.dialect_name != "snowflake":
            return NOTHING
        column = scope.find_column(name)
        return column.deps if column is not None else NOTHING

    def _function(self, node: exp.Expression, scope: QueryScope) -> Deps:
        """Return the dependencies of a function without a class in sqlglot."""
        lookup_deps = find_lookup(node, self._walker, scope)
        if lookup_deps is not None:
            return lookup_deps
        if str(node.name).lower() in _FILE_FUNCTIONS and not node.expressions:
            return _file_metadata(scope)
        deps = self._children(node, scope)
        if not deps or _counts_rows(node):
            return NOTHING
        return direct(deps, DependencyKind.TRANSFORMATION, masked=masks(node))

    def _case(self, node: exp.Expression, scope: QueryScope) -> Deps:
        conditions = [node.this] if node.this is not None else []
        values = []
        for branch in node.args.get("ifs") or ():
            conditions.append(branch.this)
            values.append(branch.args["true"])
        if node.args.get("default") is not None:
            values.append(node.args["default"])
        chosen = [self.of(value, scope) for value in values]
        return choose([self.of(condition, scope) for condition in conditions], chosen)

    def _if(self, node: exp.Expression, scope: QueryScope) -> Deps:
        branches = [node.args.get("true"), node.args.get("false")]
        return self._chosen([node.this], [b for b in branches if b is not None], scope)

    def _decode(self, node: exp.Expression, scope: QueryScope) -> Deps:
        """`DECODE(a, 1, b, 2, c, d)`: compares a with every second argument."""
        if not node.expressions:
            return NOTHING
        compared, *rest = node.expressions
        conditions, values = [compared, *rest[:-1:2]], rest[1::2]
        if len(rest) % 2:
            values.append(rest[-1])  # the default
        return self._chosen(conditions, values, scope)

    def _chosen(
        self,
        conditions: Sequence[exp.Expression],
        values: Sequence[exp.Expression],
        scope: QueryScope,
    ) -> Deps:
        return choose(
            [self.of(condition, scope) for condition in conditions],
            [self.of(value, scope) for value in values],
        )

    def _window(self, node: exp.Expression, scope: QueryScope) -> Deps:
        value = self.of(node.this, scope)
        keys: list[Deps] = []
        seen: set[str] = set()
        spec: exp.Expression | None = node
        while spec is not None:
            keys += [self.of(part, scope) for part in _window_parts(spec)]
            name = self._walker.name(spec.args["alias"]) if spec.args.get("alias") else ""
            spec = None if name in seen else scope.windows.get(name)
            seen.add(name)
        return window(value, keys)

    def _filter(self, node: exp.Expression, scope: QueryScope) -> Deps:
        deps = dict(self.of(node.this, scope))
        merge(deps, indirect(self.of(node.expression, scope), DependencyKind.CONDITIONAL))
        return deps

    def _within_group(self, node: exp.Expression, scope: QueryScope) -> Deps:
        deps = dict(direct(self.of(node.this, scope), DependencyKind.AGGREGATION))
        if deps:  # listagg(a) within group (order by b)
            merge(deps, self.of(node.expression, scope))
            return deps
        for part in node.expression.expressions:  # percentile_cont(0.5) within group (order by a)
            merge(deps, direct(self.of(part, scope), DependencyKind.AGGREGATION))
        return deps

    def _order(self, node: exp.Expression, scope: QueryScope) -> Deps:
        """Return the dependencies of an ordered argument, as in `string_agg(a order by b)`."""
        deps = dict(self.of(node.this, scope)) if node.this is not None else {}
        for part in node.expressions:
            merge(deps, indirect(self.of(part, scope), DependencyKind.SORT))
        return deps

    def _arg_max(self, node: exp.Expression, scope: QueryScope) -> Deps:
        deps = dict(direct(self.of(node.this, scope), DependencyKind.AGGREGATION))
        merge(deps, indirect(self.of(node.expression, scope), DependencyKind.SORT))
        return deps

    def _count(self, node: exp.Expression, scope: QueryScope) -> Deps:
        counted = node.this
        if isinstance(counted, exp.Column) and len(counted.parts) == 1:
            name = self._walker.name(counted.this)
            source = scope.find_source(name)
            if source is not None and is_row(source, name, scope):
                return NOTHING  # counts whole rows
        return count(self._children(node, scope))

    def _coalesce(self, node: exp.Expression, scope: QueryScope) -> Deps:
        values = [node.this, *node.expressions]
        return first_known([self.of(value, scope) for value in values])

    def _null_if(self, node: exp.Expression, scope: QueryScope) -> Deps:
        return null_if(self.of(node.this, scope), self.of(node.expression, scope))

    def _rows_made(self, node: exp.Expression, scope: QueryScope) -> Deps:
        deps = direct(self._children(node, scope), DependencyKind.TRANSFORMATION)
        if not isinstance(node.this, exp.Array):  # a literal array always has the same length
            scope.influence(deps, DependencyKind.JOIN)
        return deps

    def _subquery(self, node: exp.Expression, scope: QueryScope) -> Deps:
        relation = self._walker.query(node, scope)
        deps = dict(direct(relation.value(), DependencyKind.TRANSFORMATION))
        merge(deps, relation.rows)
        return deps

    def _exists(self, node: exp.Expression, scope: QueryScope) -> Deps:
        if isinstance(node.this, exp.Query):
            return self._walker.query(node.this, scope).rows
        return self._transformed(node, scope)  # Spark: exists(array, x -> x > 0)

    def _pattern(self, node: exp.Expression, scope: QueryScope) -> Deps:
        return pattern_deps(node, self._walker, scope)

    def _in(self, node: exp.Expression, scope: QueryScope) -> Deps:
        deps = dict(direct(self.of(node.this, scope), DependencyKind.TRANSFORMATION))
        parts = [node.args.get(part) for part in ("query", "unnest", "field")]
        for part in (*parts, *node.expressions):
            if isinstance(part, exp.Expression):
                merge(deps, direct(self.of(part, scope), DependencyKind.TRANSFORMATION))
        return deps

    def _comprehension(self, node: exp.Expression, scope: QueryScope) -> Deps:
        """Return the dependencies of `[x + 1 FOR x IN xs IF x > 0]`; x is an element of xs."""
        elements = direct(self.of(node.args["iterator"], scope), DependencyKind.TRANSFORMATION)
        inner = QueryScope(scope)
        name = self._walker.name(node.expression)
        inner.sources[""] = Relation([Column(name, elements)])
        deps = dict(direct(self.of(node.this, inner), DependencyKind.TRANSFORMATION))
        merge(deps, elements)
        condition = node.args.get("condition")
        if isinstance(condition, exp.Expression):
            merge(deps, indirect(self.of(condition, inner), DependencyKind.CONDITIONAL))
        return deps

    def _lambda(self, node: exp.Expression, scope: QueryScope) -> Deps:
        """Return the dependencies of a lambda's body; its parameters hide outer names."""
        inner = QueryScope(scope)
        parameters = [Column(self._walker.name(p), NOTHING) for p in node.expressions if p.name]
        inner.sources[""] = Relation(parameters)
        for parameter in parameters:
            inner.sources.setdefault(parameter.name, Relation([]))
        return direct(self.of(node.this, inner), DependencyKind.TRANSFORMATION)


_TRANSLATORS: dict[type, Callable[[ExpressionTranslator, exp.Expression, QueryScope], Deps]] = {
    exp.Column: ExpressionTranslator._column,
    exp.Anonymous: ExpressionTranslator._function,
    exp.Dot: ExpressionTranslator._path,
    exp.Case: ExpressionTranslator._case,
    exp.If: ExpressionTranslator._if,
    exp.Nvl2: ExpressionTranslator._if,
    exp.DecodeCase: ExpressionTranslator._decode,
    exp.Window: ExpressionTranslator._window,
    exp.Subquery: ExpressionTranslator._subquery,
    exp.Select: ExpressionTranslator._subquery,
    exp.Union: ExpressionTranslator._subquery,
    exp.Intersect: ExpressionTranslator._subquery,
    exp.Except: ExpressionTranslator._subquery,
    exp.Exists: ExpressionTranslator._exists,
    exp.In: ExpressionTranslator._in,
    exp.Lambda: ExpressionTranslator._lambda,
    exp.Comprehension: ExpressionTranslator._comprehension,
    exp.Filter: ExpressionTranslator._filter,
    exp.WithinGroup: ExpressionTranslator._within_group,
    exp.Order: ExpressionTranslator._order,
    exp.ArgMax: ExpressionTranslator._arg_max,
    exp.ArgMin: ExpressionTranslator._arg_max,
    exp.Count: ExpressionTranslator._count,
    exp.Bracket: ExpressionTranslator._path,
    exp.StructExtract: ExpressionTranslator._path,
    exp.Columns: ExpressionTranslator._pattern,
    exp.Coalesce: ExpressionTranslator._coalesce,
    exp.Nullif: ExpressionTranslator._null_if,
    exp.CountIf: ExpressionTranslator._count,
    exp.ApproxDistinct: ExpressionTranslator._count,
    **dict.fromkeys(_ROW_MAKERS, ExpressionTranslator._rows_made),
    exp.Literal: ExpressionTranslator._nothing,
    exp.Null: ExpressionTranslator._nothing,
    exp.Boolean: ExpressionTranslator._nothing,
    exp.DataType: ExpressionTranslator._nothing,
    exp.Var: ExpressionTranslator._nothing,
    exp.Star: ExpressionTranslator._star,
    exp.Identifier: ExpressionTranslator._nothing,
    exp.Parameter: ExpressionTranslator._parameter,
    exp.Placeholder: ExpressionTranslator._nothing,
    exp.Interval: ExpressionTranslator._transformed,
}


def _window_parts(node: exp.Expression) -> Iterator[exp.Expression]:
    """Yield the expressions a window is partitioned and ordered by."""
    yield from node.args.get("partition_by") or ()
    if node.args.get("order") is not None:
        yield from node.args["order"].expressions
    if node.args.get("spec") is not None:
        yield node.args["spec"]


def _counts(node: exp.Expression | None) -> bool:
    if isinstance(node, exp.Anonymous):
        return "count" in str(node.name).lower()
    return isinstance(node, exp.Count)


def _file_metadata(scope: QueryScope) -> Deps:
    """Return the dependencies of `input_file_name()`: the metadata of the files that are read."""
    deps: Deps = {}
    for relation in scope.sources.values():
        tables = {star.table for star in relation.stars}
        tables |= {table for column in relation.columns for table, *_ in column.deps}
        for table in sorted(tables):
            merge(deps, source(table, _FILE_METADATA))
    return direct(deps, DependencyKind.TRANSFORMATION)


def _counts_rows(node: exp.Expression) -> bool:
    """Return whether a function numbers rows, such as T-SQL's `IDENTITY(INT, 1, 1)`."""
    return isinstance(node, exp.Anonymous) and str(node.name).upper() == "IDENTITY"


def _aggregates(node: exp.Expression) -> bool:
    """Return whether a function combines many rows; LAG and FIRST_VALUE take the value of one."""
    return isinstance(node, exp.AggFunc) and not isinstance(node, _OF_ONE_ROW)


_NAMES = frozenset(
    {
        "md5", "md5_hex", "md5_digest", "sha", "sha1", "sha2", "sha256", "sha512", "sha1_hex",
        "sha2_hex", "sha2_binary", "hash", "xxhash64", "murmurhash3_32", "farm_fingerprint",
        "hashbytes", "crc32", "mask", "mask_hash", "mask_first_n", "mask_last_n",
        "mask_show_first_n", "mask_show_last_n", "anonymize", "encrypt", "aes_encrypt", "tokenize",
        "redact", "fnv_hash", "siphash64", "cityhash64", "standard_hash", "checksum", "digest",
    }
)  # fmt: skip
# sqlglot versions differ in which of these functions have their own class.
_KINDS = tuple(
    kind
    for name in ("MD5", "MD5Digest", "SHA", "SHA2", "SHA1Digest", "SHA2Digest", "FarmFingerprint")
    if (kind := getattr(exp, name, None)) is not None
)


def masks(node: exp.Expression) -> bool:
    """Return whether the result of a function hides its argument."""
    if isinstance(node, _KINDS):
        return True
    return isinstance(node, exp.Anonymous) and str(node.this).casefold() in _NAMES
