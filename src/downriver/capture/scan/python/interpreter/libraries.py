"""Calls of what is imported: the libraries that are known, and what others may do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.capture.scan.python import feast, spark_session
from downriver.capture.scan.python.frames import columns, pandas
from downriver.capture.scan.python.frames.columns import combined, list_columns
from downriver.capture.scan.python.frames.frame import Frame
from downriver.capture.scan.python.interpreter.values import (
    HOLE,
    UNKNOWN,
    ImportedName,
    LocatedText,
    Object,
    SparkSessionValue,
    Value,
    read_args,
)
from downriver.capture.scan.python.sql_text import looks_like_sql, run_sql

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable

    from downriver.capture.scan.python.interpreter.interpreter import Interpreter
    from downriver.capture.scan.python.interpreter.values import Arguments

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


def on_anything(run: Interpreter, name: str, args: Arguments) -> Value:
    """A method of something unknown: that it runs SQL can still be seen."""
    query = args.get("sql", 0) or args.get("query")
    for text in query if isinstance(query, list) else [query]:
        if name in _RUNS_SQL and isinstance(text, LocatedText) and looks_like_sql(text):
            frame = run_sql(run, text, library="pandas")
            if not isinstance(query, list):
                return frame
    return UNKNOWN


def imported(run: Interpreter, target: ImportedName, node: ast.Call) -> Value:
    """Return what a call of something imported returns; note what it does."""
    args = read_args(run, node)
    for handle in _LIBRARIES:
        made = handle(run, target, args)
        if made is not None:
            return made
    return Object(target, tuple(args.given), args.named)


def _of_spark(run: Interpreter, target: ImportedName, args: Arguments) -> Value | None:
    name = target.name
    if name.startswith("pyspark.") and (".functions." in name or ".Window." in name):
        return columns.function(run, target.last, args)
    if "SparkSession" in name or "DatabricksSession" in name or name.endswith("SQLContext"):
        return SparkSessionValue()
    if name.startswith("delta.") and target.last in ("forName", "forPath"):
        return spark_session.delta_table(run, target.last, args)
    return None


def _of_pandas(run: Interpreter, target: ImportedName, args: Arguments) -> Value | None:
    if target.name.startswith("pandas."):
        return pandas.function(run, target.last, args)
    return None


def _of_texts(run: Interpreter, target: ImportedName, args: Arguments) -> Value | None:
    """Functions that return a text, or the one they are given."""
    name = target.name
    if name in ("os.getenv", "os.environ.get"):
        default = args.get("default", 1)
        return default if isinstance(default, LocatedText) else LocatedText(HOLE, args.line)
    if name in _SAME_TEXT and isinstance(args.get("", 0), LocatedText):
        return _path(args) if name.startswith("pathlib") else args.given[0]
    return _path(args) if name == "os.path.join" else None


def _of_feast(run: Interpreter, target: ImportedName, args: Arguments) -> Value | None:
    return feast.make(run, target.last, args) if target.name.startswith("feast.") else None


def _of_airflow(run: Interpreter, target: ImportedName, args: Arguments) -> Value | None:
    return run.airflow.made(run, target, args)


def _of_databases(run: Interpreter, target: ImportedName, args: Arguments) -> Value | None:
    if target.last not in _RUNS_SQL | {"read_sql_query"}:
        return None
    found = on_anything(run, target.last, args)
    return None if found is UNKNOWN else found


def _of_other_modules(run: Interpreter, target: ImportedName, args: Arguments) -> Value | None:
    """A helper of another module, given columns or a frame, returns something made of them."""
    columns = list_columns(args.all())
    if columns:
        return combined(columns, "TRANSFORMATION")
    frames = [value for value in args.all() if isinstance(value, Frame)]
    if not frames or not target.last[:1].islower():
        return None
    run.recorder.cannot_see(
        "other_module", f"{target.name} is given a frame; what it does is not followed", args.line
    )
    return frames[0]


_LIBRARIES: tuple[Callable[[Interpreter, ImportedName, Arguments], Value | None], ...] = (
    _of_spark,
    _of_pandas,
    _of_texts,
    _of_feast,
    _of_airflow,
    _of_databases,
    _of_other_modules,
)


def _path(args: Arguments) -> LocatedText:
    parts = [str(p) if isinstance(p, (str, int)) else HOLE for p in args.given]
    joined = "/".join(
        part.rstrip("/") if at < len(parts) - 1 else part for at, part in enumerate(parts)
    )
    return LocatedText(joined, args.line)
