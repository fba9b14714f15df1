"""Which functions of pandas, polars, pyarrow and duckdb read and write, and what they name."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from downriver.capture.functions.connections import table_at
from downriver.capture.functions.returned import describe, is_frame
from downriver.capture.places import dataset_at
from downriver.model.ids import DatasetId

if TYPE_CHECKING:
    from types import ModuleType

    from downriver.capture.functions.runs import FunctionRun

    Names = Callable[[str], DatasetId]
    # Takes the run, how tables are found, what was returned and the arguments.
    Watched = Callable[[FunctionRun, Names, Any, tuple[Any, ...], dict[str, Any]], None]


class Patch(NamedTuple):
    """A function to watch: an attribute of a module or a class.

    `reads_variables`: it looks at the variables of whoever calls it, as DuckDB does for frames.
    """

    owner: Any
    name: str
    watched: Watched
    reads_variables: bool = False


MODULES = (
    "pandas", "polars", "pyarrow.parquet", "pyarrow.csv", "pyarrow.dataset", "pyarrow.feather",
    "pyarrow.json", "pyarrow.orc", "duckdb",
)  # fmt: skip


def patches_of(module: ModuleType) -> Iterator[Patch]:
    """Yield what to watch of a library."""
    match module.__name__:
        case "pandas":
            yield from _pandas(module)
        case "polars":
            yield from _polars(module)
        case "duckdb":
            yield from _duckdb(module)
        case _:
            yield from _pyarrow(module)


_PANDAS_PATHS = (
    "filepath_or_buffer", "path", "path_or_buf", "io", "path_or_buffer", "excel_writer",
)  # fmt: skip


def _pandas(pandas: ModuleType) -> Iterator[Patch]:
    for kind in ("csv", "table", "fwf", "parquet", "json", "excel", "feather", "orc", "pickle",
                 "stata", "spss", "sas", "xml", "hdf"):  # fmt: skip
        yield Patch(pandas, f"read_{kind}", _reads_path(0, *_PANDAS_PATHS))
    for name in ("read_sql", "read_sql_query", "read_sql_table"):
        yield Patch(pandas, name, _reads_query)
    # Some are inherited from a class that Series shares: whichever has it is the owner.
    for owner in pandas.DataFrame.__mro__[:2]:
        for kind in ("csv", "parquet", "json", "excel", "feather", "orc", "pickle", "stata", "xml"):
            yield Patch(owner, f"to_{kind}", _writes_path(1, *_PANDAS_PATHS))
        yield Patch(owner, "to_sql", _writes_table)


def _polars(polars: ModuleType) -> Iterator[Patch]:
    for kind in ("csv", "parquet", "json", "ndjson", "ipc", "avro", "excel", "delta"):
        yield Patch(polars, f"read_{kind}", _reads_path(0, "source"))
        yield Patch(polars, f"scan_{kind}", _reads_path(0, "source"))
        yield Patch(
            polars.DataFrame, f"write_{kind}", _writes_path(1, "file", "target", "workbook")
        )
        yield Patch(polars.LazyFrame, f"sink_{kind}", _writes_path(1, "path", "target"))
    yield Patch(polars, "read_database", _reads_query)
    yield Patch(polars, "read_database_uri", _reads_query)
    yield Patch(polars.DataFrame, "write_database", _writes_table)


def _pyarrow(module: ModuleType) -> Iterator[Patch]:
    for name in ("read_table", "read_pandas", "read_csv", "read_json", "read_feather", "dataset"):
        yield Patch(module, name, _reads_path(0, "source", "input_file", "source", "path_or_paths"))
    for name in ("write_table", "write_csv", "write_feather"):
        yield Patch(module, name, _writes_path(1, "where", "output_file", "dest"))
    yield Patch(module, "write_dataset", _writes_path(1, "base_dir"))


def _duckdb(duckdb: ModuleType) -> Iterator[Patch]:
    connection, relation = duckdb.DuckDBPyConnection, duckdb.DuckDBPyRelation
    for owner, at in ((duckdb, 0), (connection, 1)):
        for name in ("sql", "query", "execute", "from_query"):
            yield Patch(owner, name, _runs_sql(at), reads_variables=True)
        for name in ("read_parquet", "read_csv", "read_json", "from_parquet", "from_csv_auto"):
            yield Patch(owner, name, _reads_path(at, "path_or_buffer", "file_glob", "file_globs"))
    for name in ("write_parquet", "to_parquet", "write_csv", "to_csv"):
        yield Patch(relation, name, _writes_path(1, "file_name"))
    for name in ("create", "to_table", "insert_into"):
        yield Patch(relation, name, _fills_table)


# What a call says


def _reads_path(at: int, *names: str) -> Watched:
    def noted(
        run: FunctionRun, _: Names, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        for path in _paths(_argument(at, names, args, kwargs)):
            run.reads(dataset_at(path), describe(result))

    return noted


def _writes_path(at: int, *names: str) -> Watched:
    def noted(
        run: FunctionRun, _: Names, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        del result
        frame = next((value for value in args if is_frame(value)), None)
        for path in _paths(_argument(at, names, args, kwargs)):
            run.writes(dataset_at(path), describe(frame))

    return noted


def _reads_query(
    run: FunctionRun, names: Names, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    query = _argument(0, ("sql", "query", "table_name"), args, kwargs)
    connection = _argument(1, ("con", "connection", "uri"), args, kwargs)
    text = str(query)
    if not any(char.isspace() for char in text.strip()):
        run.reads(table_at(text, connection, names), describe(result))
        return
    _note_sql(run, text, lambda table: table_at(table, connection, names), None)


def _writes_table(
    run: FunctionRun, names: Names, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    del result
    table = _argument(1, ("name", "table_name"), args, kwargs)
    connection = _argument(2, ("con", "connection"), args, kwargs)
    schema = kwargs.get("schema")
    whole = f"{schema}.{table}" if schema else str(table)
    run.writes(table_at(whole, connection, names), describe(args[0]))


def _runs_sql(at: int) -> Watched:
    def noted(
        run: FunctionRun, names: Names, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        del result
        query = _argument(at, ("query", "sql"), args, kwargs)
        if isinstance(query, str):
            _note_sql(run, query, names, "duckdb", _frames_of_caller())

    return noted


def _fills_table(
    run: FunctionRun, names: Names, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    del result
    table = _argument(1, ("table_name",), args, kwargs)
    if isinstance(table, str):
        run.writes(names(table), describe(args[0]))


def _note_sql(
    run: FunctionRun,
    sql: str,
    names: Names,
    dialect: str | None,
    frames: frozenset[str] = frozenset(),
) -> None:
    from downriver.capture.sql import parse_sql_lineage  # a moment that no other function needs

    found = parse_sql_lineage(sql, dialect=dialect)
    for table in found.inputs:
        if table not in frames:
            run.reads(_table(table, names))
    for table in found.outputs:
        run.writes(_table(table, names))


def _table(name: str, names: Names) -> DatasetId:
    """Return the file a query names by its path, or a table."""
    is_path = "/" in name or name.endswith((".parquet", ".csv", ".json", ".jsonl"))
    return dataset_at(absolute(name)) if is_path else names(name)


def _frames_of_caller() -> frozenset[str]:
    """Return the variables that hold frames where a query is run: DuckDB reads them by name."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("downriver."):
        frame = frame.f_back
    found = {**frame.f_globals, **frame.f_locals}
    return frozenset(name for name, value in found.items() if is_frame(value))


def _argument(
    at: int, names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    for name in names:
        if name in kwargs:
            return kwargs[name]
    return args[at] if at < len(args) else None


def _paths(value: Any) -> list[str]:
    """Return the paths that an argument names; an open file or a buffer names none."""
    if isinstance(value, list | tuple):
        return [path for part in value for path in _paths(part)]
    if isinstance(value, str | os.PathLike):
        text = os.fspath(value)
        return [absolute(text)] if isinstance(text, str) and "\n" not in text else []
    return []


def absolute(path: str) -> str:
    """Return a path that means the same from everywhere; a URL does already."""
    return path if "://" in path or path.startswith("dbfs:") else os.path.abspath(path)
