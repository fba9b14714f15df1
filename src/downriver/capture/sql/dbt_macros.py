"""Macros everybody has, as SQL that uses the same columns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_IDENTIFIER = re.compile(r"[A-Za-z_][\w.]*\Z")


def list_arguments(value: Any) -> Iterator[str]:
    """Yield a value as SQL: a word is most likely a column's name."""
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from list_arguments(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from list_arguments(part)
    elif isinstance(value, str) and not _IDENTIFIER.match(value):
        yield "'" + value.replace("'", "''") + "'"
    elif value is not None:
        yield str(value)


def print_nothing(*_: Any, **__: Any) -> str:
    """Stand for a macro that prints nothing."""
    return ""


def _call_of(name: str) -> Callable[..., str]:
    def macro(*args: Any, **kwargs: Any) -> str:
        texts = [text for value in [*args, *kwargs.values()] for text in list_arguments(value)]
        return f"{name}({', '.join(texts)})"

    return macro


def _star(*args: Any, **kwargs: Any) -> str:
    alias = kwargs.get("relation_alias")
    return f"{alias}.*" if alias else "*"


def _union(relations: Any = (), *_: Any, **__: Any) -> str:
    # Rendered to be read, never run.
    return "(" + " union all ".join(f"select * from {name}" for name in relations) + ")"  # noqa: S608


SILENT: dict[str, Callable[..., str]] = dict.fromkeys(
    ("raise_compiler_error", "warn", "raise_database_error", "raise_not_implemented"), print_nothing
)
DBT: dict[str, Callable[..., str]] = {
    **{
        name: _call_of(name)
        for name in (
            "concat", "dateadd", "datediff", "date_trunc", "last_day", "length", "listagg",
            "position", "replace", "right", "left", "split_part", "safe_cast", "cast", "hash",
            "any_value", "bool_or", "array_construct", "escape_single_quotes",
        )
    },
    **{
        name: lambda *_, **__: "varchar"
        for name in ("type_string", "type_timestamp", "type_int", "type_bigint", "type_float",
                     "type_numeric", "type_boolean")
    },
    "current_timestamp": lambda *_, **__: "current_timestamp",
    "except": lambda *_, **__: "except",
    "intersect": lambda *_, **__: "intersect",
}  # fmt: skip
DBT_UTILS: dict[str, Callable[..., str]] = {
    **DBT,
    "star": _star,
    "union_relations": _union,
    "generate_surrogate_key": lambda *args, **_: f"md5({_call_of('concat')(*args)})",
    "surrogate_key": lambda *args, **_: f"md5({_call_of('concat')(*args)})",
    "safe_add": _call_of("safe_add"),
    "safe_divide": _call_of("safe_divide"),
    "safe_subtract": _call_of("safe_subtract"),
    "group_by": lambda n, *_, **__: "group by " + ", ".join(str(i) for i in range(1, n + 1)),
}
