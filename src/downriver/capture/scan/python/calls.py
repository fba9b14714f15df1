"""Calls: of functions of the module, of methods, and of what is imported."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

from downriver.capture.scan.python import feast, pandas, spark
from downriver.capture.scan.python.columns import flat, mixed
from downriver.capture.scan.python.frames import Frame
from downriver.capture.scan.python.sql_text import looks_like_sql, run_sql
from downriver.capture.scan.python.values import (
    HOLE,
    UNKNOWN,
    Class,
    Col,
    ColumnNames,
    Dotted,
    Function,
    Grouped,
    Merge,
    Object,
    Presence,
    Reader,
    Session,
    Task,
    Text,
    Value,
    Writer,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.capture.scan.python.interpreter import Interpreter

# Methods that hand a query to a database, and those of them that return a frame.
_RUNS_SQL = frozenset({
    "execute", "executemany", "execute_sql", "exec_driver_sql", "sql", "query", "run", "raw",
    "get_records", "get_first", "get_pandas_df", "get_df", "read_sql", "fetch", "fetchall",
    "fetchrow", "fetchval", "scalar", "scalars", "execute_query", "run_query", "execute_string",
})  # fmt: skip
_SAME_TEXT = frozenset({
    "textwrap.dedent", "inspect.cleandoc", "sqlalchemy.text", "sqlalchemy.sql.text",
    "sqlalchemy.sql.expression.text", "str", "pathlib.Path", "pathlib.PurePath",
    "psycopg2.sql.SQL", "psycopg.sql.SQL",
})  # fmt: skip
_TRIMS = frozenset({"strip", "lstrip", "rstrip", "lower", "upper", "removesuffix", "removeprefix"})
_FIELD = re.compile(r"\{(\w*)(?:![rsa])?(?::[^}]*)?\}")


class Args(NamedTuple):
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


def read_args(run: Interpreter, node: ast.Call) -> Args:
    """Evaluate the arguments of a call."""
    from downriver.capture.scan.python.expressions import evaluate

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
    return Args(given, named, line_of_call(node))


def call(run: Interpreter, node: ast.Call) -> Value:
    """Return what a call returns, as far as that can be told; note what it does."""
    from downriver.capture.scan.python.expressions import evaluate

    if isinstance(node.func, ast.Attribute):
        base = evaluate(run, node.func.value)
        return _method(run, base, node.func.attr, node)
    if isinstance(node.func, ast.Name) and not run.scope.has(node.func.id):
        return _builtin(run, node.func.id, read_args(run, node))
    return _callable(run, evaluate(run, node.func), node)


def _callable(run: Interpreter, target: Value, node: ast.Call) -> Value:
    match target:
        case Function():
            args = read_args(run, node)
            if run.airflow.is_task(target):
                return run.airflow.call_task(run, target, args)
            if run.airflow.is_dag(target):
                return run.airflow.run_dag(run, target, args.given, args.named)
            return run.call(target, args.given, args.named)
        case Class():
            args = read_args(run, node)
            return run.instantiate(target, args.given, args.named)
        case Dotted():
            return _imported(run, target, node)
        case _:
            read_args(run, node)
            return UNKNOWN


def _method(run: Interpreter, base: Value, name: str, node: ast.Call) -> Value:
    if isinstance(base, Dotted):
        return _imported(run, Dotted(f"{base.name}.{name}"), node)
    for kind, handle in _METHODS:
        if isinstance(base, kind):
            return handle(run, base, name, node)
    args = read_args(run, node)
    return _on_anything(run, name, args)


def _on_anything(run: Interpreter, name: str, args: Args) -> Value:
    """A method of something unknown: that it runs SQL can still be seen."""
    query = args.get("sql", 0) or args.get("query")
    for text in query if isinstance(query, list) else [query]:
        if name in _RUNS_SQL and isinstance(text, Text) and looks_like_sql(text):
            frame = run_sql(run, text, library="pandas")
            if not isinstance(query, list):
                return frame
    return UNKNOWN


def _on_object(run: Interpreter, base: Object, name: str, node: ast.Call) -> Value:
    method = run.method(base, name)
    if method is not None:
        args = read_args(run, node)
        return run.call(method, args.given, args.named)
    args = read_args(run, node)
    if isinstance(base.kind, Dotted) and base.kind.name in ("open", "pathlib.Path"):
        path = base.argument("file")
        if name in ("read", "read_text") and isinstance(path, Text):
            return _file_text(run, path)
    if name in ("set_downstream", "set_upstream"):
        run.airflow.order(base, args.get("", 0), reverse=name == "set_upstream")
    return _on_anything(run, name, args)


def _on_function(run: Interpreter, base: Function, name: str, node: ast.Call) -> Value:
    """`task.override(…)`, `task.partial(…)`, `task.expand(…)`."""
    read_args(run, node)
    if name in ("expand", "expand_kwargs") and run.airflow.is_task(base):
        return run.airflow.call_task(run, base, Args([], {}, line_of_call(node)))
    return base if name in ("override", "partial") else UNKNOWN


def _on_task(run: Interpreter, base: Task, name: str, node: ast.Call) -> Value:
    args = read_args(run, node)
    if name in ("set_downstream", "set_upstream"):
        run.airflow.order(base, args.get("", 0), reverse=name == "set_upstream")
    return base


def _on_column(run: Interpreter, base: Col, name: str, node: ast.Call) -> Value:
    return spark.column_method(run, base, name, read_args(run, node))


def _on_columns(run: Interpreter, base: ColumnNames, name: str, node: ast.Call) -> Value:
    read_args(run, node)
    return base


def _on_text(run: Interpreter, base: Text, name: str, node: ast.Call) -> Value:
    args = read_args(run, node)
    if name == "format":
        return _formatted(base, args)
    known = all(isinstance(value, str) for value in args.given)
    if name in _TRIMS and known:
        skipped = base[: len(base) - len(base.lstrip())].count("\n") if "strip" in name else 0
        return Text(getattr(str(base), name)(*args.given), base.line + skipped)
    if name == "replace" and len(args.given) == 2:
        old, new = args.given
        shown = new if isinstance(new, str) else HOLE
        return Text(base.replace(old, shown), base.line) if isinstance(old, str) else base
    if name == "join":
        parts = args.get("", 0)
        texts = parts if isinstance(parts, (list, tuple)) else [UNKNOWN]
        shown = str(base).join(str(t) if isinstance(t, str) else HOLE for t in texts)
        return Text(shown, args.line)
    if name == "read_text":
        return _file_text(run, base)
    if name in ("split", "splitlines") and known:
        return [Text(part, base.line) for part in getattr(str(base), name)(*args.given)]
    return UNKNOWN


def _formatted(text: Text, args: Args) -> Text:
    position = iter(args.given)

    def filled(found: re.Match[str]) -> str:
        key = found[1]
        value = args.get(key, int(key)) if key.isdigit() else args.named.get(key)
        if not key:
            value = next(position, None)
        return str(value) if isinstance(value, (str, int, float)) else HOLE

    return Text(_FIELD.sub(filled, text), text.line)


def _file_text(run: Interpreter, path: Text) -> Value:
    found = run.recorder.around.read_file(str(path))
    return UNKNOWN if found is None else Text(found.text, path.line, elsewhere=True)


def _on_list(run: Interpreter, base: list[Value], name: str, node: ast.Call) -> Value:
    args = read_args(run, node)
    if name == "append" and args.given:
        base.append(args.given[0])
    elif name == "extend" and args.given and isinstance(args.given[0], (list, tuple)):
        base.extend(args.given[0])
    elif name in ("issubset", "copy"):
        other = args.get("", 0)
        if isinstance(other, ColumnNames):
            names = [n for n in base if isinstance(n, str)]
            for column in names:
                run.recorder.names_column(
                    other.frame, column, args.line, clause="other", maybe=True
                )
            return Presence(frozenset(n.casefold() for n in names))
        return base
    return UNKNOWN


def _on_dict(run: Interpreter, base: dict[Value, Value], name: str, node: ast.Call) -> Value:
    args = read_args(run, node)
    if name == "get":
        key = args.get("", 0)
        default = args.get("", 1)
        return base.get(key, default) if isinstance(key, (str, int)) else UNKNOWN
    if name == "items":
        return list(base.items())
    if name == "values":
        return list(base.values())
    return list(base) if name == "keys" else UNKNOWN


# What is imported


def _imported(run: Interpreter, target: Dotted, node: ast.Call) -> Value:
    args = read_args(run, node)
    for handle in _LIBRARIES:
        made = handle(run, target, args)
        if made is not None:
            return made
    return Object(target, tuple(args.given), args.named)


def _of_spark(run: Interpreter, target: Dotted, args: Args) -> Value | None:
    name = target.name
    if name.startswith("pyspark.") and (".functions." in name or ".Window." in name):
        return spark.function(run, target.last, args)
    if "SparkSession" in name or "DatabricksSession" in name or name.endswith("SQLContext"):
        return Session()
    if name.startswith("delta.") and target.last in ("forName", "forPath"):
        return spark.delta_table(run, target.last, args)
    return None


def _of_pandas(run: Interpreter, target: Dotted, args: Args) -> Value | None:
    if target.name.startswith("pandas."):
        return pandas.function(run, target.last, args)
    return None


def _of_texts(run: Interpreter, target: Dotted, args: Args) -> Value | None:
    """Functions that return a text, or the one they are given."""
    name = target.name
    if name in ("os.getenv", "os.environ.get"):
        default = args.get("default", 1)
        return default if isinstance(default, Text) else Text(HOLE, args.line)
    if name in _SAME_TEXT and isinstance(args.get("", 0), Text):
        return _path(args) if name.startswith("pathlib") else args.given[0]
    return _path(args) if name == "os.path.join" else None


def _of_feast(run: Interpreter, target: Dotted, args: Args) -> Value | None:
    return feast.make(run, target.last, args) if target.name.startswith("feast.") else None


def _of_airflow(run: Interpreter, target: Dotted, args: Args) -> Value | None:
    return run.airflow.made(run, target, args)


def _of_databases(run: Interpreter, target: Dotted, args: Args) -> Value | None:
    if target.last not in _RUNS_SQL | {"read_sql_query"}:
        return None
    found = _on_anything(run, target.last, args)
    return None if found is UNKNOWN else found


def _of_other_modules(run: Interpreter, target: Dotted, args: Args) -> Value | None:
    """A helper of another module, given columns or a frame, returns something made of them."""
    columns = flat(args.all())
    if columns:
        return mixed(columns, "TRANSFORMATION")
    frames = [value for value in args.all() if isinstance(value, Frame)]
    if not frames or not target.last[:1].islower():
        return None
    run.recorder.cannot_see(
        "other_module", f"{target.name} is given a frame; what it does is not followed", args.line
    )
    return frames[0]


_LIBRARIES: tuple[Callable[[Interpreter, Dotted, Args], Value | None], ...] = (
    _of_spark,
    _of_pandas,
    _of_texts,
    _of_feast,
    _of_airflow,
    _of_databases,
    _of_other_modules,
)


def _path(args: Args) -> Text:
    parts = [str(p) if isinstance(p, (str, int)) else HOLE for p in args.given]
    joined = "/".join(
        part.rstrip("/") if at < len(parts) - 1 else part for at, part in enumerate(parts)
    )
    return Text(joined, args.line)


def _builtin(run: Interpreter, name: str, args: Args) -> Value:
    first = args.get("", 0)
    if name == "open":
        return Object(Dotted("open"), tuple(args.given), args.named)
    if name in ("list", "set", "tuple", "sorted", "frozenset"):
        if isinstance(first, ColumnNames):
            return first
        return (
            list(first) if isinstance(first, (list, tuple)) else ([] if first is None else UNKNOWN)
        )
    if name == "dict":
        return {**(first if isinstance(first, dict) else {}), **args.named}
    if name == "str" and isinstance(first, (str, int, float)):
        return Text(str(first), args.line)
    if name == "hasattr" and isinstance(first, Frame) and isinstance(args.get("", 1), Text):
        column = args.given[1]
        run.recorder.names_column(first, column, args.line, clause="other", maybe=True)
        return Presence(frozenset({column.casefold()}))
    if name == "getattr" and isinstance(first, Frame) and isinstance(args.get("", 1), Text):
        from downriver.capture.scan.python.columns import column_of

        return column_of(run, first, args.given[1], args.line)
    if name == "display":  # of notebooks
        return None
    return mixed(args.all(), "TRANSFORMATION") if flat(args.all()) else UNKNOWN


_METHODS: tuple[tuple[type, Callable[[Interpreter, Value, str, ast.Call], Value]], ...] = (
    (Frame, spark.frame_method),
    (Grouped, spark.grouped_method),
    (Reader, spark.reader_method),
    (Writer, spark.writer_method),
    (Session, spark.session_method),
    (Merge, spark.merge_method),
    (Col, _on_column),
    (ColumnNames, _on_columns),
    (Task, _on_task),
    (Function, _on_function),
    (Object, _on_object),
    (Text, _on_text),
    (list, _on_list),
    (dict, _on_dict),
)
