"""The names that dbt gives to templates, without dbt."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from downriver.capture.sql.templates.package_macros import (
    DBT_MACROS,
    MACROS_WITHOUT_OUTPUT,
    note_approximations,
    print_nothing,
)
from downriver.capture.sql.templates.unknown import (
    DatabaseQuery,
    MacroPackage,
    RunTime,
    TemplateTable,
    TemplateUnknown,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.capture.sql.templates.unknown import TemplateRendering


class MacroReturnError(Exception):
    """`return(value)` in a macro: its call has this value."""

    def __init__(self, value: Any) -> None:
        super().__init__("return outside of a macro")
        self.value = value


def dbt_globals(
    rendering: TemplateRendering, find_macro: Callable[[str, str], Any | None]
) -> dict[str, Any]:
    """Return the names that dbt defines for every template.

    `find_macro` returns the macro that `adapter.dispatch` selects for a name and a package.
    """
    variable = _Variables(rendering)
    own = note_approximations(rendering, DBT_MACROS)
    names: dict[str, Any] = {
        **own,
        "ref": _ref(rendering),
        "source": lambda source, table: rendering.table(f"{source}.{table}", f"{source}.{table}"),
        "metric": lambda name, *_: rendering.table(f"metrics/{name}", f"metrics/{name}"),
        "this": _This(rendering),
        "var": variable,
        "env_var": lambda name, default=None: _environment(rendering, name, default),
        "config": _Config(rendering),
        "is_incremental": lambda: rendering.branch("is_incremental"),
        "should_full_refresh": lambda: rendering.branch("should_full_refresh"),
        "execute": True,
        "return": _return,
        "log": print_nothing,
        "print": print_nothing,
        "debug": print_nothing,
        "target": MacroPackage(rendering, "target", _target(rendering)),
        "adapter": _Adapter(rendering, find_macro),
        "api": MacroPackage(rendering, "api", {"Relation": _Relations(), "Column": _Columns()}.get),
        "run_query": DatabaseQuery(rendering, "run_query"),
        "statement": DatabaseQuery(rendering, "statement"),
        "load_result": DatabaseQuery(rendering, "load_result"),
        "load_relation": lambda relation: TemplateUnknown(rendering, f"load_relation({relation})"),
        "exceptions": MacroPackage(rendering, "exceptions", MACROS_WITHOUT_OUTPUT.get),
        "modules": MacroPackage(rendering, "modules", _module_of_time(rendering)),
        "dbt": MacroPackage(rendering, "dbt", own.get),
        "fromjson": lambda text, default=None: _from_json(text, default),
        "tojson": lambda value, default=None, sort_keys=False: str(value),
        "set": lambda value, default=None: list(dict.fromkeys(value)),
        "zip": lambda *lists: list(zip(*lists, strict=False)),
        "invocation_id": "invocation_id",
        "run_started_at": RunTime(rendering, "run_started_at"),
        "model": TemplateUnknown(rendering, "model"),
        "graph": TemplateUnknown(rendering, "graph"),
        "flags": TemplateUnknown(rendering, "flags"),
        "None": None,
    }
    builtins = {key: names[key] for key in ("ref", "source", "config")}
    names["builtins"] = MacroPackage(rendering, "builtins", builtins.get)
    return names


def _return(value: Any = "") -> Any:
    raise MacroReturnError(value)


def _from_json(text: Any, default: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return default


def _environment(rendering: TemplateRendering, name: Any, default: Any) -> Any:
    if default is not None:
        return default
    rendering.unknown(f"the environment variable {name} is unknown", str(name))
    return TemplateUnknown(rendering, str(name), noted=True)


def _module_of_time(rendering: TemplateRendering) -> Callable[[str], RunTime | None]:
    """Return modules whose values are times: neither tables nor columns, so no blind spots."""
    return lambda name: (
        RunTime(rendering, f"modules.{name}") if name in ("datetime", "pytz") else None
    )


def _target(rendering: TemplateRendering) -> Callable[[str], str | None]:
    return lambda name: (rendering.adapter() or None) if name == "type" else None


class _Variables:
    """`var('name')` and `var.has_var('name')`."""

    def __init__(self, rendering: TemplateRendering) -> None:
        self._rendering = rendering

    def __call__(self, name: Any, default: Any = None) -> Any:
        value = self._rendering.variable(str(name), default)
        # A template may change a list, and other templates use the same variable.
        return deepcopy(value) if isinstance(value, (list, dict)) else value

    def has_var(self, name: Any) -> bool:
        """Return whether the project sets a variable."""
        return self._rendering.has_variable(str(name))


class _This:
    """`this`: the table being built. Its name is looked up when it is used."""

    def __init__(self, rendering: TemplateRendering) -> None:
        self._rendering = rendering

    def __str__(self) -> str:
        return str(self._rendering.this())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rendering.this(), name)


class _Config:
    """`config(...)`, which prints nothing."""

    def __init__(self, rendering: TemplateRendering) -> None:
        self._rendering = rendering

    def __call__(self, *given: Any, **options: Any) -> str:
        for value in given:
            if isinstance(value, dict):
                options = {**value, **options}
        self._rendering.configure(options)
        return ""

    def get(self, name: str, default: Any = None, **_: Any) -> Any:
        """Return an option that the template has set, else the default."""
        return self._rendering.setting(name, default)

    require = get


class _Adapter:
    """`adapter`: most of its functions query the database."""

    def __init__(
        self, rendering: TemplateRendering, find_macro: Callable[[str, str], Any | None]
    ) -> None:
        self._rendering = rendering
        self._find_macro = find_macro

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return DatabaseQuery(self._rendering, f"adapter.{name}")

    def dispatch(self, macro_name: Any, macro_namespace: Any = "", *_: Any, **__: Any) -> Any:
        """Return the macro for the adapter of the project."""
        package = macro_namespace if isinstance(macro_namespace, str) else ""
        macro = self._find_macro(str(macro_name), package)
        if macro is not None:
            return macro
        name = ".".join(part for part in (package, str(macro_name)) if part)
        return TemplateUnknown(self._rendering, name)

    def type(self) -> Any:
        """Return the name of the adapter."""
        return self._rendering.adapter() or TemplateUnknown(self._rendering, "adapter.type")

    def quote(self, identifier: Any) -> str:
        """Return a name in quotes."""
        return f'"{identifier}"'

    def quote_as_configured(self, identifier: Any, *_: Any) -> str:
        """Return a name as SQL."""
        return str(identifier)

    def get_relation(self, database: Any = None, schema: Any = None, identifier: Any = None) -> Any:
        """Return the table of a name."""
        return _Relations.create(database, schema, identifier)

    def get_columns_in_relation(self, relation: Any) -> Any:
        """Return the columns of a table, if they are known without the database."""
        columns = self._rendering.columns(str(relation))
        if columns is None:
            message = f"the columns of {relation} are unknown"
            self._rendering.unknown(message, "get_columns_in_relation")
            return TemplateUnknown(self._rendering, "columns", noted=True)
        return [TemplateColumn(name) for name in columns]


class TemplateColumn(str):
    """A column in a template: its name, with the attributes that templates use."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name."""
        return str(self)

    column = name

    @property
    def quoted(self) -> str:
        """The name in quotes."""
        return f'"{self}"'

    data_type = dtype = "varchar"

    def is_string(self) -> bool:
        """Return true: the type of a column is not known."""
        return True

    def is_number(self) -> bool:
        """Return false: the type of a column is not known."""
        return False

    is_integer = is_float = is_numeric = is_number


class _Relations:
    """`api.Relation`."""

    @staticmethod
    def create(database: Any = None, schema: Any = None, identifier: Any = None, **_: Any) -> Any:
        """Return the table of a name. Parts known only at run time are left out."""
        if isinstance(identifier, TemplateUnknown):
            return identifier
        parts = [part for part in (database, schema, identifier) if isinstance(part, str) and part]
        return TemplateTable(".".join(parts))


class _Columns:
    """`api.Column`."""

    @staticmethod
    def translate_type(name: Any) -> str:
        """Return a type as SQL."""
        return "varchar" if name == "string" else str(name)


def _ref(rendering: TemplateRendering) -> Callable[..., TemplateTable]:
    def ref(*names: Any, **options: Any) -> TemplateTable:
        """Return the table of `ref('model')`, `ref('package', 'model')`, `ref('model', v=2)`."""
        version = options.get("v") or options.get("version")
        model = f"{names[-1]}_v{version}" if version else str(names[-1])
        return rendering.table(model, model)

    return ref
