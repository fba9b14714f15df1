"""The names and macros that dbt gives to templates, without dbt."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Protocol

from jinja2 import Undefined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_IDENTIFIER = re.compile(r"[A-Za-z_][\w.]*\Z")


def list_arguments(value: Any) -> Iterator[str]:
    """Yield a value as SQL; a single word is assumed to be a column."""
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
    """Render a macro that prints nothing."""
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
    # This SQL is parsed, never executed.
    return "(" + " union all ".join(f"select * from {name}" for name in relations) + ")"  # noqa: S608


MACROS_WITHOUT_OUTPUT: dict[str, Callable[..., str]] = dict.fromkeys(
    ("raise_compiler_error", "warn", "raise_database_error", "raise_not_implemented"), print_nothing
)
DBT_MACROS: dict[str, Callable[..., str]] = {
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
DBT_UTILS_MACROS: dict[str, Callable[..., str]] = {
    **DBT_MACROS,
    "star": _star,
    "union_relations": _union,
    "generate_surrogate_key": lambda *args, **_: f"md5({_call_of('concat')(*args)})",
    "surrogate_key": lambda *args, **_: f"md5({_call_of('concat')(*args)})",
    "safe_add": _call_of("safe_add"),
    "safe_divide": _call_of("safe_divide"),
    "safe_subtract": _call_of("safe_subtract"),
    "group_by": lambda n, *_, **__: "group by " + ", ".join(str(i) for i in range(1, n + 1)),
}


class TemplateRendering(Protocol):
    """The rendering in which the names of dbt are used."""

    def branch(self) -> bool:
        """Return the value of a condition that only a run knows."""

    def table(self, key: str, name: str) -> TemplateTable:
        """Return the table that a template refers to."""

    def this(self) -> TemplateTable:
        """Return the table that the template builds."""

    def variable(self, name: str, default: Any = None) -> Any:
        """Return a variable of the project."""

    def unknown(self, message: str, word: str) -> None:
        """Record a value that is known only at run time."""


class TemplateTable(str):
    """A table in a template: its name, with the attributes that templates use."""

    __slots__ = ()

    @property
    def identifier(self) -> str:
        """The last part of the name."""
        return self.rpartition(".")[2]

    name = table = identifier

    @property
    def schema(self) -> str:
        """The part before the last."""
        return self.rpartition(".")[0].rpartition(".")[2]

    @property
    def database(self) -> str:
        """The first of three parts."""
        return self.rpartition(".")[0].rpartition(".")[0]

    def include(self, **_: bool) -> TemplateTable:
        """Return the table itself; dbt's ways to print it differently do not matter."""
        return self

    quote = include


class TemplateUnknown(Undefined):
    """An unknown value of a template. It prints as it was written."""

    __slots__ = ("_noted", "_rendering", "_text")
    unsafe_callable = alters_data = False  # checked by the sandbox before a call

    def __init__(self, rendering: TemplateRendering, text: str, *, noted: bool = False) -> None:
        super().__init__(name=text)
        self._rendering = rendering
        self._text = text
        self._noted = noted  # already recorded as unknown

    def _note(self) -> None:
        if self._noted:
            return
        name = self._text.partition("(")[0]
        self._rendering.unknown(f"{name} is unknown", name.rpartition(".")[2])

    def __getattr__(self, name: str) -> TemplateUnknown:
        if name.startswith("__"):
            raise AttributeError(name)
        return TemplateUnknown(self._rendering, f"{self._text}.{name}", noted=self._noted)

    def __getitem__(self, key: object) -> TemplateUnknown:  # type: ignore[override]
        return TemplateUnknown(self._rendering, f"{self._text}.{key}", noted=self._noted)

    def __call__(self, *args: Any, **kwargs: Any) -> TemplateUnknown:  # type: ignore[override]
        """Return the call of an unknown macro as SQL: it may use its arguments."""
        name = self._text.replace(".", "_")
        _run_block(kwargs)
        given = [*args, *kwargs.values()]
        texts = [text for value in given for text in list_arguments(value)]
        self._note()
        return TemplateUnknown(self._rendering, f"{name}({', '.join(texts)})", noted=True)

    def __str__(self) -> str:
        self._note()
        return self._text if "(" in self._text else self._text.replace(".", "_")

    __html__ = __str__

    def __iter__(self) -> Iterator[Any]:
        self._note()
        return iter(())

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        self._note()
        return self._rendering.branch()

    def __eq__(self, other: object) -> bool:
        return bool(self)

    def __ne__(self, other: object) -> bool:
        return bool(self)

    def __lt__(self, other: object) -> bool:  # type: ignore[override]
        return bool(self)

    __gt__ = __le__ = __ge__ = __lt__  # type: ignore[assignment]

    def __hash__(self) -> int:
        return hash(self._text)

    def __add__(self, other: object) -> str:  # type: ignore[override]
        return f"{self}{other}"

    def __radd__(self, other: object) -> str:  # type: ignore[override]
        return f"{other}{self}"

    def _arithmetic(self, other: object) -> TemplateUnknown:
        return self

    __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _arithmetic  # type: ignore[assignment]
    __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = __pow__ = __rpow__ = _arithmetic  # type: ignore[assignment]


def bind_unknown(rendering: TemplateRendering) -> type[TemplateUnknown]:
    """Return the class that Jinja uses for unknown names."""

    class UnknownHere(TemplateUnknown):
        __slots__ = ()

        def __init__(
            self, hint: str | None = None, obj: object = None, name: object = None, exc: Any = None
        ) -> None:
            super().__init__(rendering, str(name or hint or "unknown"))

    return UnknownHere


def _run_block(options: dict[str, Any]) -> None:
    """Render the body of `{% call … %}`, to find the tables it refers to."""
    block = options.pop("caller", None)
    if block is not None:
        block()


class TemplateTarget:
    """The connection of a run. All its attributes are unknown."""

    def __init__(self, rendering: TemplateRendering) -> None:
        self._rendering = rendering

    def __getattr__(self, name: str) -> TemplateUnknown:
        if name.startswith("__"):
            raise AttributeError(name)
        return TemplateUnknown(self._rendering, f"target.{name}")


class MacroPackage:
    """The macros of a package; those that are not defined here are unknown values."""

    def __init__(
        self, rendering: TemplateRendering, name: str, macros: dict[str, Callable[..., str]]
    ) -> None:
        self._rendering = rendering
        self._name = name
        self._macros = macros

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._macros.get(name) or TemplateUnknown(self._rendering, f"{self._name}.{name}")


class DatabaseQuery:
    """`adapter` and `run_query`, which query the database."""

    unsafe_callable = alters_data = False

    def __init__(self, rendering: TemplateRendering, name: str) -> None:
        self._rendering = rendering
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return DatabaseQuery(self._rendering, f"{self._name}.{name}")

    def __call__(self, *_: Any, **options: Any) -> Any:
        """Return an unknown value: there is no database to query."""
        self._rendering.unknown(f"{self._name} queries the database", self._name.split(".")[0])
        if "caller" in options:
            _run_block(options)
            return ""
        return TemplateUnknown(
            self._rendering, f"result_of_{self._name.replace('.', '_')}", noted=True
        )


def dbt_globals(rendering: TemplateRendering) -> dict[str, Any]:
    """Return the names that dbt defines for every template."""
    return {
        "ref": _ref(rendering),
        "source": lambda source, table: rendering.table(f"{source}.{table}", f"{source}.{table}"),
        "this": _This(rendering),
        "var": _variable(rendering),
        "env_var": _variable(rendering),
        "config": _Config(),
        "is_incremental": rendering.branch,
        "should_full_refresh": lambda: False,
        "execute": True,
        "return": lambda value: value,
        "log": print_nothing,
        "print": print_nothing,
        "debug": print_nothing,
        "target": TemplateTarget(rendering),
        "adapter": DatabaseQuery(rendering, "adapter"),
        "run_query": DatabaseQuery(rendering, "run_query"),
        "statement": DatabaseQuery(rendering, "statement"),
        "load_result": DatabaseQuery(rendering, "load_result"),
        "exceptions": MacroPackage(rendering, "exceptions", MACROS_WITHOUT_OUTPUT),
        "modules": MacroPackage(rendering, "modules", {}),
        "dbt": MacroPackage(rendering, "dbt", DBT_MACROS),
        "dbt_utils": MacroPackage(rendering, "dbt_utils", DBT_UTILS_MACROS),
        "fromjson": lambda text, default=None: default,
        "tojson": lambda value, default=None: str(value),
        "set": lambda value, default=None: list(dict.fromkeys(value)),
        "zip": lambda *lists: list(zip(*lists, strict=False)),
        "invocation_id": "invocation_id",
        "run_started_at": TemplateUnknown(rendering, "run_started_at"),
        "model": TemplateUnknown(rendering, "model"),
        "graph": TemplateUnknown(rendering, "graph"),
        "flags": TemplateUnknown(rendering, "flags"),
    }


class _This:
    """`this`: the table being built. Its name is looked up when it is used."""

    def __init__(self, rendering: TemplateRendering) -> None:
        self._rendering = rendering

    def __str__(self) -> str:
        return str(self._rendering.this())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rendering.this(), name)


class _Config:
    """`config(...)`, which does not affect columns."""

    def __call__(self, *_: Any, **__: Any) -> str:
        return ""

    def get(self, name: str, default: Any = None, **_: Any) -> Any:
        """Return the default: the settings of the project file are unknown."""
        return default

    require = get


def _ref(rendering: TemplateRendering) -> Callable[..., TemplateTable]:
    def ref(*names: str, **options: Any) -> TemplateTable:
        """Return the table of `ref('model')`, `ref('package', 'model')`, `ref('model', v=2)`."""
        version = options.get("v") or options.get("version")
        model = f"{names[-1]}_v{version}" if version else str(names[-1])
        return rendering.table(model, model)

    return ref


def _variable(rendering: TemplateRendering) -> Callable[..., Any]:
    def variable(name: str, default: Any = None) -> Any:
        return rendering.variable(str(name), default)

    return variable
