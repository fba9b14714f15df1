"""The names dbt gives to templates, without dbt: enough to see which tables and columns matter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from jinja2 import Undefined

from downriver.capture.sql.dbt_macros import (
    DBT,
    DBT_UTILS,
    SILENT,
    list_arguments,
    print_nothing,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Rendering(Protocol):
    """The rendering these names belong to."""

    def ask(self) -> bool:
        """Return the answer to a question only a running dbt knows; the other one comes later."""

    def table(self, key: str, name: str) -> Relation:
        """Return the table a template refers to."""

    def this(self) -> Relation:
        """Return the table the template builds."""

    def variable(self, name: str, default: Any = None) -> Any:
        """Return a variable of the project."""

    def unknown(self, message: str, word: str) -> None:
        """Note something that only a running dbt knows."""


class Relation(str):
    """A table in a template: its name as text, with the parts that templates ask for."""

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

    def include(self, **_: bool) -> Relation:
        """Return the table itself, as do all of dbt's ways to print it differently."""
        return self

    quote = include


class Unknown(Undefined):
    """Something a template uses and nobody told us of. It prints as what was written."""

    __slots__ = ("_noted", "_rendering", "_text")
    unsafe_callable = alters_data = False  # what the sandbox asks before it lets a thing be called

    def __init__(self, rendering: Rendering, text: str, *, noted: bool = False) -> None:
        super().__init__(name=text)
        self._rendering = rendering
        self._text = text
        self._noted = noted  # that it is unknown has been said already

    def _note(self) -> None:
        if self._noted:
            return
        name = self._text.partition("(")[0]
        self._rendering.unknown(f"{name} is not known", name.rpartition(".")[2])

    def __getattr__(self, name: str) -> Unknown:
        if name.startswith("__"):
            raise AttributeError(name)
        return Unknown(self._rendering, f"{self._text}.{name}", noted=self._noted)

    def __getitem__(self, key: object) -> Unknown:  # type: ignore[override]
        return Unknown(self._rendering, f"{self._text}.{key}", noted=self._noted)

    def __call__(self, *args: Any, **kwargs: Any) -> Unknown:  # type: ignore[override]
        """Return a call of a macro we do not have: what it is given, it may use."""
        name = self._text.replace(".", "_")
        _run_block(kwargs)
        given = [*args, *kwargs.values()]
        texts = [text for value in given for text in list_arguments(value)]
        self._note()
        return Unknown(self._rendering, f"{name}({', '.join(texts)})", noted=True)

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
        return self._rendering.ask()

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

    def _arithmetic(self, other: object) -> Unknown:
        return self

    __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _arithmetic  # type: ignore[assignment]
    __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = __pow__ = __rpow__ = _arithmetic  # type: ignore[assignment]


def unknown_in(rendering: Rendering) -> type[Unknown]:
    """Return the class Jinja makes of every name it does not know."""

    class UnknownHere(Unknown):
        __slots__ = ()

        def __init__(
            self, hint: str | None = None, obj: object = None, name: object = None, exc: Any = None
        ) -> None:
            super().__init__(rendering, str(name or hint or "unknown"))

    return UnknownHere


def _run_block(options: dict[str, Any]) -> None:
    """Render what stands inside `{% call … %}`, for the tables it refers to."""
    block = options.pop("caller", None)
    if block is not None:
        block()


class Target:
    """The connection a run uses: every question about it is one only a run can answer."""

    def __init__(self, rendering: Rendering) -> None:
        self._rendering = rendering

    def __getattr__(self, name: str) -> Unknown:
        if name.startswith("__"):
            raise AttributeError(name)
        return Unknown(self._rendering, f"target.{name}")


class Package:
    """Macros of a package that are known by name; the others are unknown."""

    def __init__(
        self, rendering: Rendering, name: str, macros: dict[str, Callable[..., str]]
    ) -> None:
        self._rendering = rendering
        self._name = name
        self._macros = macros

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._macros.get(name) or Unknown(self._rendering, f"{self._name}.{name}")


class Queries:
    """`adapter`, `run_query`: they ask the database, which is not here."""

    unsafe_callable = alters_data = False

    def __init__(self, rendering: Rendering, name: str) -> None:
        self._rendering = rendering
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Queries(self._rendering, f"{self._name}.{name}")

    def __call__(self, *_: Any, **options: Any) -> Any:
        """Return nothing: only the database has the answer."""
        self._rendering.unknown(f"{self._name} asks the database", self._name.split(".")[0])
        if "caller" in options:
            _run_block(options)
            return ""
        return Unknown(self._rendering, f"result_of_{self._name.replace('.', '_')}", noted=True)


def dbt_globals(rendering: Rendering) -> dict[str, Any]:
    """Return the names that every dbt template may use."""
    return {
        "ref": _ref(rendering),
        "source": lambda source, table: rendering.table(f"{source}.{table}", f"{source}.{table}"),
        "this": _This(rendering),
        "var": _variable(rendering),
        "env_var": _variable(rendering),
        "config": _Config(),
        "is_incremental": rendering.ask,
        "should_full_refresh": lambda: False,
        "execute": True,
        "return": lambda value: value,
        "log": print_nothing,
        "print": print_nothing,
        "debug": print_nothing,
        "target": Target(rendering),
        "adapter": Queries(rendering, "adapter"),
        "run_query": Queries(rendering, "run_query"),
        "statement": Queries(rendering, "statement"),
        "load_result": Queries(rendering, "load_result"),
        "exceptions": Package(rendering, "exceptions", SILENT),
        "modules": Package(rendering, "modules", {}),
        "dbt": Package(rendering, "dbt", DBT),
        "dbt_utils": Package(rendering, "dbt_utils", DBT_UTILS),
        "fromjson": lambda text, default=None: default,
        "tojson": lambda value, default=None: str(value),
        "set": lambda value, default=None: list(dict.fromkeys(value)),
        "zip": lambda *lists: list(zip(*lists, strict=False)),
        "invocation_id": "invocation_id",
        "run_started_at": Unknown(rendering, "run_started_at"),
        "model": Unknown(rendering, "model"),
        "graph": Unknown(rendering, "graph"),
        "flags": Unknown(rendering, "flags"),
    }


class _This:
    """`this`: the table being built, looked up when it is used and not before."""

    def __init__(self, rendering: Rendering) -> None:
        self._rendering = rendering

    def __str__(self) -> str:
        return str(self._rendering.this())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rendering.this(), name)


class _Config:
    """`config(...)` says how a model is built, which changes no column."""

    def __call__(self, *_: Any, **__: Any) -> str:
        return ""

    def get(self, name: str, default: Any = None, **_: Any) -> Any:
        """Return the default: what a project file sets is not known here."""
        return default

    require = get


def _ref(rendering: Rendering) -> Callable[..., Relation]:
    def ref(*names: str, **options: Any) -> Relation:
        """`ref('model')`, `ref('package', 'model')`, `ref('model', v=2)`."""
        version = options.get("v") or options.get("version")
        model = f"{names[-1]}_v{version}" if version else str(names[-1])
        return rendering.table(model, model)

    return ref


def _variable(rendering: Rendering) -> Callable[..., Any]:
    def variable(name: str, default: Any = None) -> Any:
        return rendering.variable(str(name), default)

    return variable
