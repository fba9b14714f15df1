"""Values of Python expressions and arguments of calls, known without running the code.

Numbers, lists, dictionaries, tuples and None stand for themselves. Text is `LocatedText`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from downriver.capture.code.job import Clause
    from downriver.capture.scan.python.frames.frame import Deps, Frame
    from downriver.capture.scan.python.interpreter.interpreter import Interpreter
    from downriver.model.ids import DatasetId, JobId

Value: TypeAlias = Any

HOLE = "unknown_at_run"  # stands in a text for what only a run knows


class UnknownValue:
    """What cannot be known. Whatever is made from it is unknown too."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = UnknownValue()


class LocatedText(str):
    """A text with the line it was written on.

    `maybe`: it names a column that may be absent. `elsewhere`: it comes from another file, and
    `line` is where that file is named.
    """

    __slots__ = ("elsewhere", "line", "maybe")
    line: int
    maybe: bool
    elsewhere: bool

    def __new__(
        cls, text: str, line: int, *, maybe: bool = False, elsewhere: bool = False
    ) -> LocatedText:
        """Make a text that knows its line."""
        made = super().__new__(cls, text)
        made.line = line
        made.maybe = maybe
        made.elsewhere = elsewhere
        return made

    @property
    def has_holes(self) -> bool:
        """Whether a part of it is known only when it runs."""
        return HOLE in self


class ImportedName(NamedTuple):
    """Something imported, by its full name: `pyspark.sql.functions.col`."""

    name: str

    @property
    def last(self) -> str:
        """The last part of the name."""
        return self.name.rpartition(".")[2]


class ColumnUse(NamedTuple):
    """A column by name, of the frame it will be used on, and how it is used."""

    name: str
    subtype: str
    line: int
    maybe: bool = False


class ColumnExpression(NamedTuple):
    """An expression over columns: of frames that are known already, and of one to come."""

    deps: Deps
    uses: tuple[ColumnUse, ...] = ()
    name: str = ""
    generated: bool = False  # has a name of its own making, as `sum(x)`
    told: str = ""  # the expression, names followed to what they mean


class GroupedFrame(NamedTuple):
    """Rows grouped by keys, before they are aggregated."""

    frame: Frame
    keys: Mapping[str, Deps]
    only: tuple[str, ...] = ()  # columns picked before aggregating, as pandas allows


class SparkSessionValue(NamedTuple):
    """A SparkSession, or something used like one."""


class SparkReader(NamedTuple):
    """`spark.read` with what was set on it."""

    format: str = ""
    options: Mapping[str, Value] = {}


class SparkWriter(NamedTuple):
    """`df.write` with what was set on it; `table` is set by `df.writeTo`."""

    frame: Frame
    format: str = ""
    options: Mapping[str, Value] = {}
    table: str = ""


class DeltaMerge(NamedTuple):
    """A Delta table, and what is merged into it."""

    table: DatasetId
    frame: Frame | None = None


class ColumnNames(NamedTuple):
    """`df.columns`, or a list made of it."""

    frame: Frame


class ColumnPresence(NamedTuple):
    """The answer to whether a frame has some columns."""

    names: frozenset[str]
    negated: bool = False


class Udf(NamedTuple):
    """A function of the user that Spark calls with columns."""


class Function(NamedTuple):
    """A function of the module, with the scope it was made in."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: NameScope
    owner: Object | None = None
    decorators: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its name, if it has one."""
        return getattr(self.node, "name", "<lambda>")


class Class(NamedTuple):
    """A class of the module."""

    node: ast.ClassDef
    scope: NameScope
    bases: tuple[Value, ...] = ()


class Object:
    """An instance of a class of the module, or what a call of something imported returns."""

    def __init__(
        self,
        kind: Class | ImportedName,
        args: tuple[Value, ...] = (),
        options: Mapping[str, Value] | None = None,
    ) -> None:
        self.kind = kind
        self.args = args
        self.options = dict(options or {})
        self.fields: dict[str, Value] = {}

    def argument(self, name: str, position: int = 0) -> Value:
        """Return an argument it was made with, by name or else by position."""
        if name in self.options:
            return self.options[name]
        return self.args[position] if 0 <= position < len(self.args) else None


class Module(NamedTuple):
    """Another file of the repository."""

    scope: NameScope


class Dag(NamedTuple):
    """An Airflow DAG."""

    job: JobId


class Task(NamedTuple):
    """A task of a DAG; as a value it is also what the task returns."""

    job: JobId
    returns: Value = UNKNOWN


class NameScope:
    """Names and what they stand for, inside other scopes; `path` is set if the file is another."""

    __slots__ = ("names", "outer", "path")

    def __init__(
        self, outer: NameScope | None = None, names: dict[str, Value] | None = None, path: str = ""
    ) -> None:
        self.outer = outer
        self.names = names if names is not None else {}
        self.path: str = path or (outer.path if outer is not None else "")

    def find(self, name: str) -> Value | None:
        """Return what a name stands for, None when nothing here or around defines it."""
        scope: NameScope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return None

    def has(self, name: str) -> bool:
        """Whether the name is defined here or around."""
        scope: NameScope | None = self
        while scope is not None:
            if name in scope.names:
                return True
            scope = scope.outer
        return False


class Arguments(NamedTuple):
    """The arguments of a call, as far as they are known."""

    given: list[Value]
    named: dict[str, Value]
    line: int

    def get(self, name: str, position: int = -1) -> Value:
        """Return an argument by name or else by position; None when it is not given."""
        if name in self.named:
            return self.named[name]
        return self.given[position] if 0 <= position < len(self.given) else None

    def all(self) -> list[Value]:
        """Return every argument."""
        return [*self.given, *self.named.values()]


def line_of_call(node: ast.Call) -> int:
    """Return the line a call is written on: that of its name, in a chain over several lines."""
    return node.func.end_lineno or node.lineno


def read_args(run: Interpreter, node: ast.Call) -> Arguments:
    """Evaluate the arguments of a call."""
    from downriver.capture.scan.python.interpreter.expressions import evaluate

    given: list[Value] = []
    for part in node.args:
        value = evaluate(run, part.value if isinstance(part, ast.Starred) else part)
        spread = isinstance(part, ast.Starred) and isinstance(value, (list, tuple))
        if spread and not hasattr(value, "_fields"):
            given += value
        else:
            given.append(value)
    named: dict[str, Value] = {}
    for keyword in node.keywords:
        value = evaluate(run, keyword.value)
        if keyword.arg is not None:
            named[keyword.arg] = value
        elif isinstance(value, dict):
            named.update({str(key): item for key, item in value.items()})
    return Arguments(given, named, line_of_call(node))


def clause_args(run: Interpreter, node: ast.Call, clause: Clause) -> Arguments:
    """Evaluate the arguments of a call that says what columns are named for."""
    with run.recorder.clause(clause):
        return read_args(run, node)
