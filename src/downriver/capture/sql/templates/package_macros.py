"""Macros of dbt and of dbt_utils as SQL of no particular dialect, without their source.

The arguments of these macros are SQL expressions, so they are printed as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from downriver.capture.sql.templates.unknown import TemplateTable, TemplateUnknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from downriver.capture.sql.templates.unknown import TemplateRendering


def print_nothing(*_: Any, **__: Any) -> str:
    """Render a macro that prints nothing."""
    return ""


def _expressions(values: Iterable[Any]) -> str:
    texts: list[str] = []
    for value in values:
        if isinstance(value, (list, tuple)):
            texts += [str(part) for part in value]
        elif value is not None:
            texts.append(str(value))
    return ", ".join(texts)


def call_of(name: str) -> Callable[..., str]:
    """Return a macro that prints the call of a function with its arguments."""

    def macro(*args: Any, **kwargs: Any) -> str:
        return f"{name}({_expressions([*args, *kwargs.values()])})"

    return macro


def _key(*args: Any, **kwargs: Any) -> str:
    return f"md5(concat({_expressions([*args, *kwargs.values()])}))"


def _added_date(datepart: Any, interval: Any, from_date_or_timestamp: Any) -> str:
    return f"({from_date_or_timestamp} + ({interval}) * interval '1' {datepart})"


def _date_difference(first_date: Any, second_date: Any, datepart: Any = "day") -> str:
    return f"({second_date} - {first_date})"


def _list(measure: Any, delimiter_text: Any = "','", order_by_clause: Any = "", *_: Any) -> str:
    within = f" within group ({order_by_clause})" if order_by_clause else ""
    return f"listagg({measure}, {delimiter_text}){within}"


def _cast(field: Any, type: Any) -> str:  # noqa: A002
    return f"cast({field} as {type})"


def _literal(value: Any) -> str:
    return "'" + str(value).replace("'", "''") + "'"


MACROS_WITHOUT_OUTPUT: dict[str, Callable[..., str]] = dict.fromkeys(
    ("raise_compiler_error", "warn", "raise_database_error", "raise_not_implemented"), print_nothing
)
DBT_MACROS: dict[str, Callable[..., str]] = {
    **{
        name: call_of(name)
        for name in (
            "concat", "length", "position", "replace", "right", "left", "split_part", "any_value",
            "bool_or", "array_construct", "array_append", "array_concat",
        )
    },
    **{
        f"type_{name}": lambda *_, name=name, **__: name
        for name in ("timestamp", "int", "bigint", "float", "numeric", "boolean")
    },
    "type_string": lambda *_, **__: "varchar",
    "dateadd": _added_date,
    "datediff": _date_difference,
    "date_trunc": lambda datepart, date: f"date_trunc('{datepart}', {date})",
    "last_day": lambda date, datepart="month": f"last_day({date})",
    "listagg": _list,
    "safe_cast": _cast,
    "cast": _cast,
    "cast_bool_to_text": lambda field: f"cast({field} as varchar)",
    "date": lambda year, month, day: f"date '{year}-{month}-{day}'",
    "hash": lambda field: f"md5({field})",
    "escape_single_quotes": lambda expression: str(expression).replace("'", "''"),
    "string_literal": _literal,
    "current_timestamp": lambda *_, **__: "current_timestamp",
    "except": lambda *_, **__: "except",
    "intersect": lambda *_, **__: "intersect",
}  # fmt: skip


# Their SQL has the right columns but other values: good enough for lineage, not to run.
_APPROXIMATE = frozenset({
    "datediff", "last_day", "date_spine", "generate_series", "deduplicate", "pivot", "safe_add",
    "safe_divide", "safe_subtract", "width_bucket", "haversine_distance", "get_url_host",
    "get_url_path", "get_url_parameter", "slugify",
})  # fmt: skip


def note_approximations(
    rendering: TemplateRendering, macros: dict[str, Callable[..., Any]]
) -> dict[str, Callable[..., Any]]:
    """Return the macros. Approximate ones add a blind spot when they are called."""

    def noted(name: str, macro: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            rendering.approximate(name)
            return macro(*args, **kwargs)

        return call

    return {
        name: noted(name, macro) if name in _APPROXIMATE else macro
        for name, macro in macros.items()
    }


class DbtUtils:
    """The macros of dbt_utils. Those that query the database use the known columns of tables."""

    def __init__(self, rendering: TemplateRendering) -> None:
        self._rendering = rendering
        self.of_database: dict[str, Callable[..., Any]] = {
            "star": self.star,
            "union_relations": self.union_relations,
            "get_filtered_columns_in_relation": self.list_columns,
        }
        expressions: dict[str, Callable[..., Any]] = {
            **DBT_MACROS,
            "generate_surrogate_key": _key,
            "surrogate_key": _key,
            "safe_add": call_of("safe_add"),
            "safe_divide": lambda numerator, denominator: f"({numerator}) / ({denominator})",
            "safe_subtract": call_of("safe_subtract"),
            "width_bucket": call_of("width_bucket"),
            "haversine_distance": call_of("haversine_distance"),
            "get_url_host": lambda field: f"get_url_host({field})",
            "get_url_path": lambda field: f"get_url_path({field})",
            "get_url_parameter": lambda field, url_parameter: f"get_url_parameter({field})",
            "group_by": lambda n: "group by " + ", ".join(str(i) for i in range(1, n + 1)),
            "date_spine": _date_spine,
            "generate_series": lambda upper_bound: "select 1 as generated_number",
            "deduplicate": _deduplicate,
            "pivot": _pivot,
            "log_info": print_nothing,
            "slugify": lambda string: "_".join(str(string).lower().split()),
        }
        self.of_expressions = note_approximations(rendering, expressions)

    def find(self, name: str) -> Callable[..., Any] | None:
        """Return a macro, None when it is not built in."""
        return self.of_database.get(name) or self.of_expressions.get(name)

    def list_columns(self, *args: Any, **options: Any) -> Any:
        """Return the columns of a relation, without the excluded ones."""
        options = {**dict(zip(("from", "except"), args, strict=False)), **options}
        relation = options.get("from")
        columns = self._rendering.columns(str(relation))
        if columns is None:
            self._rendering.unknown(f"the columns of {relation} are unknown", "dbt_utils")
            return TemplateUnknown(self._rendering, "columns", noted=True)
        return _without(columns, options.get("except"))

    def star(self, *args: Any, **options: Any) -> str:
        """Return the columns of a relation as select items, `*` when they are not known."""
        names = ("from", "relation_alias", "except", "prefix", "suffix", "quote_identifiers")
        options = {**dict(zip(names, args, strict=False)), **options}
        table, alias = options.get("from"), options.get("relation_alias") or ""
        excluded = [str(name) for name in options.get("except") or ()]
        prefix, suffix = str(options.get("prefix") or ""), str(options.get("suffix") or "")
        before = f"{alias}." if alias else ""
        columns = None if table is None else self._rendering.columns(str(table))
        if columns is not None:
            kept = _without(columns, excluded)
            return ", ".join(_select_item(before, name, prefix, suffix) for name in kept) or "*"
        if prefix or suffix:
            self._rendering.unknown(
                f"the columns of {table} that dbt_utils.star renames are unknown", "star"
            )
        return f"{before}*" + (f" except ({', '.join(excluded)})" if excluded else "")

    def union_relations(
        self, relations: Any = (), column_override: Any = None, include: Any = None,
        exclude: Any = None, source_column_name: Any = "_dbt_source_relation", where: Any = None,
        aliases: Any = None,
    ) -> str:  # fmt: skip
        """Return a union of tables by the names of their columns, as far as they are known."""
        if isinstance(relations, TemplateUnknown):
            return str(relations)
        tables = [relations] if isinstance(relations, str) else list(relations)
        known = [self._rendering.columns(str(table)) for table in tables]
        every = dict.fromkeys(name for columns in known for name in columns or ())
        kept = _without(every, exclude)
        if include:
            wanted = {str(name).casefold() for name in include}
            kept = [name for name in kept if name.casefold() in wanted]
        parts: list[str] = []
        for table, columns in zip(tables, known, strict=True):
            if all(listed is not None for listed in known):
                own = {name.casefold() for name in columns or ()}
                items = [n if n.casefold() in own else f"null as {n}" for n in kept] or ["*"]
            else:
                excluded = ", ".join(str(name) for name in exclude or ())
                items = [", ".join(map(str, include))] if include else ["*"]
                items[0] += f" except ({excluded})" if excluded and not include else ""
            if source_column_name is not None:
                items.append(f"'{TemplateTable(table).identifier}' as {source_column_name}")
            condition = f" where {where}" if where else ""
            # This SQL is parsed, never executed.
            parts.append(f"select {', '.join(items)} from {table}{condition}")  # noqa: S608
        return "(" + " union all ".join(parts) + ")"


def _without(columns: Iterable[str], excluded: Any) -> list[str]:
    dropped = {str(name).casefold() for name in excluded or ()}
    return [name for name in columns if name.casefold() not in dropped]


def _select_item(before: str, name: str, prefix: str, suffix: str) -> str:
    alias = f" as {prefix}{name}{suffix}" if prefix or suffix else ""
    return f"{before}{name}{alias}"


def _date_spine(datepart: Any, start_date: Any = "", end_date: Any = "") -> str:
    return f"(select cast({start_date or 'null'} as timestamp) as date_{datepart})"


def _deduplicate(relation: Any, partition_by: Any, order_by: Any = None, **_: Any) -> str:
    order = f" order by {order_by}" if order_by else ""
    # This SQL is parsed, never executed.
    return (
        f"select numbered.* from (select d.*, row_number() over (partition by {partition_by}"  # noqa: S608
        f"{order}) as rn from {relation} as d) as numbered where numbered.rn = 1"
    )


def _pivot(
    column: Any, values: Any, alias: Any = True, agg: Any = "sum", cmp: Any = "=",
    prefix: Any = "", suffix: Any = "", then_value: Any = 1, else_value: Any = 0,
    quote_identifiers: Any = True, distinct: Any = False,
) -> Any:  # fmt: skip
    if isinstance(values, TemplateUnknown):
        return f"{agg}(case when {column} {cmp} {values} then {then_value} else {else_value} end)"
    items = []
    for value in values:
        name = f' as "{prefix}{value}{suffix}"' if alias else ""
        compared = _literal(value)
        items.append(
            f"{agg}(case when {column} {cmp} {compared} then {then_value} else {else_value} end)"
            f"{name}"
        )
    return ", ".join(items)
