"""Values of Python expressions and arguments of calls, known without running the code.

Numbers, lists, dictionaries, tuples and None are plain Python values. Text is `LocatedText`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from downriver.capture.scan.python.io_calls import line_of_call

if TYPE_CHECKING:
    from collections.abc import Mapping

    from downriver.capture.code.job import Clause
    from downriver.capture.scan.python.frames.frame import Frame
    from downriver.capture.scan.python.interpreter.interpreter import Interpreter
    from downriver.columns import Deps
    from downriver.model.ids import DatasetId, JobId

Value: TypeAlias = Any


class UnknownValue:
    """A value that cannot be known. Values computed from it are unknown too."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = UnknownValue()


class ImportedName(NamedTuple):
    """An imported object, by its full name: `pyspark.sql.functions.col`."""

    name: str

    @property
    def last(self) -> str:
        """The last part of the name."""
        return self.name.rpartition(".")[2]


class ColumnExpression(NamedTuple):
    """An expression over columns: of datasets, and by name of the frame it will be used on."""

    deps: Deps
    name: str = ""
    generated: bool = False  # named after its expression, such as `sum(x)`
    text: str = ""  # the expression, with variables replaced by their values


class GroupedFrame(NamedTuple):
    """A frame grouped by keys."""

    frame: Frame
    keys: Mapping[str, Deps]
    only: tuple[str, ...] = ()  # columns selected before aggregating (pandas)


class SparkSessionValue(NamedTuple):
    """A SparkSession, or an object used like one."""


class SparkReader(NamedTuple):
    """`spark.read` with its settings."""

    format: str = ""
    options: Mapping[str, Value] = {}


class SparkWriter(NamedTuple):
    """`df.write` with its settings; `table` is set by `df.writeTo`."""

    frame: Frame
    format: str = ""
    options: Mapping[str, Value] = {}
    table: str = ""


class GlueIo(NamedTuple):
    """`glueContext.create_dynamic_frame` or one of its relatives; a method follows."""

    name: str


class GlueSink(NamedTuple):
    """`glueContext.getSink(…)` with its options."""

    options: dict[str, Value]


class StoredObject(NamedTuple):
    """A bucket of object storage, or an object in it."""

    scheme: str
    bucket: str
    key: Value = None


class DeltaMerge(NamedTuple):
    """A Delta table, and the frame that is merged into it."""

    table: DatasetId
    frame: Frame | None = None


class ColumnNames(NamedTuple):
    """`df.columns`, or a list derived from it."""

    frame: Frame


class ColumnPresence(NamedTuple):
    """A test whether a frame has columns: `"x" in df.columns`."""

    names: frozenset[str]
    negated: bool = False


class Udf(NamedTuple):
    """A user-defined function that Spark calls with columns."""


class Function(NamedTuple):
    """A function of the repository, with the scope that defines it."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: NameScope
    owner: Object | None = None
    decorators: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its name; `<lambda>` for a lambda."""
        return getattr(self.node, "name", "<lambda>")


class FunctionChoice(NamedTuple):
    """One of several functions: which one is only known at run time."""

    functions: tuple[Function, ...]


class Class(NamedTuple):
    """A class of the repository."""

    node: ast.ClassDef
    scope: NameScope
    bases: tuple[Value, ...] = ()


class Object:
    """An instance of a class of the repository, or the result of calling an imported object."""

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
        """Return an argument of its constructor, by name or by position."""
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
    """A task of a DAG, with the value it returns."""

    job: JobId
    returns: Value = UNKNOWN


class NameScope:
    """Variables and their values, nested in outer scopes. `path` is set for an imported file."""

    __slots__ = ("names", "outer", "path")

    def __init__(
        self, outer: NameScope | None = None, names: dict[str, Value] | None = None, path: str = ""
    ) -> None:
        self.outer = outer
        self.names = names if names is not None else {}
        self.path: str = path or (outer.path if outer is not None else "")

    def find(self, name: str) -> Value | None:
        """Return the value of a variable; None when neither this nor an outer scope has it."""
        scope: NameScope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return None

    def has(self, name: str) -> bool:
        """Whether this or an outer scope has the variable."""
        scope: NameScope | None = self
        while scope is not None:
            if name in scope.names:
                return True
            scope = scope.outer
        return False


class Arguments(NamedTuple):
    """The arguments of a call. Unknown ones are `UNKNOWN`."""

    given: list[Value]
    named: dict[str, Value]
    line: int

    def get(self, name: str, position: int = -1) -> Value:
        """Return an argument by name or by position; None when it is missing."""
        if name in self.named:
            return self.named[name]
        return self.given[position] if 0 <= position < len(self.given) else None

    def all(self) -> list[Value]:
        """Return every argument."""
        return [*self.given, *self.named.values()]


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
    """Evaluate the arguments of a call; columns they name are recorded with this clause."""
    with run.recorder.clause(clause):
        return read_args(run, node)
