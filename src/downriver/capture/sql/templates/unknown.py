"""Values of a template known only at run time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Protocol

from jinja2 import Undefined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_IDENTIFIER = re.compile(r"[A-Za-z_][\w.]*\Z")


class TemplateRendering(Protocol):
    """The rendering in which the names of dbt are used."""

    def branch(self, condition: str) -> bool:
        """Return the value of a condition known only at run time."""

    def table(self, key: str, name: str) -> TemplateTable:
        """Return the table that a template refers to."""

    def this(self) -> TemplateTable:
        """Return the table that the template builds."""

    def variable(self, name: str, default: Any = None) -> Any:
        """Return a variable of the project."""

    def has_variable(self, name: str) -> bool:
        """Return whether the project sets a variable."""

    def configure(self, options: dict[str, Any]) -> None:
        """Record the options of a call of `config`."""

    def setting(self, name: str, default: Any = None) -> Any:
        """Return an option that an earlier call of `config` has set."""

    def columns(self, table: str) -> Sequence[str] | None:
        """Return the columns of a table, None when they are not known."""

    def adapter(self) -> str:
        """Return the name of the adapter, "" when it is not known."""

    def execute(self, sql: str) -> None:
        """Record a statement that the template runs."""

    def unknown(self, message: str, word: str) -> None:
        """Record a value that is known only at run time."""

    def approximate(self, macro: str) -> None:
        """Record that a macro prints SQL with the right columns but other values."""


class TemplateTable(str):
    """A table in a template: its name as SQL, with the attributes that templates use."""

    __slots__ = ()

    @property
    def parts(self) -> list[str]:
        """The parts of the name, without quotes."""
        return split_name(self)

    @property
    def identifier(self) -> str:
        """The last part of the name."""
        return self.parts[-1]

    name = table = identifier

    @property
    def schema(self) -> str:
        """The part before the last."""
        return "".join(self.parts[-2:-1])

    @property
    def database(self) -> str:
        """The first of three parts."""
        return "".join(self.parts[-3:-2])

    is_table = is_view = is_cte = False
    type = "table"

    def include(self, **_: bool) -> TemplateTable:
        """Return the table itself; dbt's ways to print it differently do not matter."""
        return self

    quote = include

    def render(self) -> str:
        """Return the name as SQL."""
        return str(self)


_PART = re.compile(r'"((?:[^"]|"")*)"|`([^`]*)`|\[([^\]]*)\]|([^.]+)')


def split_name(name: str) -> list[str]:
    """Return the parts of a table's name, without quotes."""
    return [next(part for part in found if part) for found in _PART.findall(name) if any(found)]


def list_arguments(value: Any) -> Iterator[str]:
    """Yield a value as SQL; a single word is assumed to be a column."""
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from list_arguments(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from list_arguments(part)
    elif (
        isinstance(value, str)
        and not isinstance(value, TemplateTable)
        and not _IDENTIFIER.match(value)
    ):
        yield "'" + value.replace("'", "''") + "'"
    elif value is not None:
        yield str(value)


class TemplateUnknown(Undefined):
    """An unknown value of a template. It prints its own source."""

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
        run_block(kwargs)
        arguments = [*args, *kwargs.values()]
        texts = [text for value in arguments for text in list_arguments(value)]
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

    def __index__(self) -> int:
        """Return how often `range(unknown)` runs its body."""
        self._note()
        return 1

    __int__ = __index__  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return self._rendering.branch(self._text)

    def _compare(self, other: object) -> bool:
        other_text = other._text if isinstance(other, TemplateUnknown) else repr(other)
        return self._rendering.branch(f"{self._text} compared with {other_text}")

    __eq__ = __ne__ = __lt__ = __gt__ = __le__ = __ge__ = _compare  # type: ignore[assignment]

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


class RunTime(TemplateUnknown):
    """The time of a run, or a value computed from it. It affects no table and no column."""

    __slots__ = ()

    def __init__(self, rendering: TemplateRendering, text: str) -> None:
        super().__init__(rendering, text, noted=True)

    def __getattr__(self, name: str) -> TemplateUnknown:
        if name.startswith("__"):
            raise AttributeError(name)
        return RunTime(self._rendering, f"{self._text.removesuffix('()')}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> TemplateUnknown:  # type: ignore[override]
        """Return a call without its arguments, which may be in a string of SQL."""
        return RunTime(self._rendering, f"{self._text.replace('.', '_')}()")


def bind_unknown(rendering: TemplateRendering) -> type[TemplateUnknown]:
    """Return the class that Jinja uses for unknown names."""

    class UnknownHere(TemplateUnknown):
        __slots__ = ()

        def __init__(
            self, hint: str | None = None, obj: object = None, name: object = None, exc: Any = None
        ) -> None:
            super().__init__(rendering, str(name or hint or "unknown"))

    return UnknownHere


def run_block(options: dict[str, Any]) -> str:
    """Return the body of `{% call … %}`, and find the tables it refers to."""
    block = options.pop("caller", None)
    return "" if block is None else str(block())


class DatabaseQuery:
    """`run_query` and the other functions that query the database."""

    unsafe_callable = alters_data = False

    def __init__(self, rendering: TemplateRendering, name: str) -> None:
        self._rendering = rendering
        self._name = name

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Return an unknown value: there is no database to query."""
        self._rendering.unknown(f"{self._name} queries the database", self._name.split(".")[0])
        if "caller" in options:
            self._rendering.execute(run_block(options))
            return ""
        if self._name == "run_query":
            for sql in [*args, *options.values()]:
                self._rendering.execute(str(sql))
        return TemplateUnknown(
            self._rendering, f"result_of_{self._name.replace('.', '_')}", noted=True
        )


class MacroPackage:
    """A name with macros or values. Undefined attributes are unknown values."""

    def __init__(
        self, rendering: TemplateRendering, name: str, find: Callable[[str], Any | None]
    ) -> None:
        self._rendering = rendering
        self._name = name
        self._find = find

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = self._find(name)
        if value is not None:
            return value
        return TemplateUnknown(self._rendering, f"{self._name}.{name}")
