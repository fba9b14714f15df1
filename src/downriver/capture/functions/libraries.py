"""Functions of pandas, polars, pyarrow and duckdb that read or write data, and their datasets."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from downriver.capture.functions.runs import describe_frame, is_frame
from downriver.model.ids import DatasetId
from downriver.openlineage.naming import dataset_at

if TYPE_CHECKING:
    from types import ModuleType

    from downriver.capture.functions.runs import FunctionRun

    Names = Callable[[str], DatasetId]
    RecordCall = Callable[[FunctionRun, Names, Any, tuple[Any, ...], dict[str, Any]], None]

_SCHEMES = {"postgresql": "postgres", "mariadb": "mysql", "mssql": "mssql"}
_PORTS = {"postgres": 5432, "mysql": 3306, "mssql": 1433, "redshift": 5439}


def table_at(table: str, connection: Any, names: Callable[[str], DatasetId]) -> DatasetId:
    """Return the dataset of a table behind a connection, an engine or a URL."""
    url = _url(connection)
    parts = urlsplit(url) if url else None
    if parts is None or not parts.hostname:
        return names(table)
    kind = parts.scheme.partition("+")[0].lower()
    scheme = _SCHEMES.get(kind, kind)
    port = parts.port or _PORTS.get(scheme)
    home = f"{scheme}://{parts.hostname}" + (f":{port}" if port else "")
    database = parts.path.strip("/")
    return DatasetId(home, f"{database}.{table}" if database else table)


def _url(connection: Any) -> str:
    """Return the URL of a SQLAlchemy connection; empty for a plain driver connection."""
    if isinstance(connection, str):
        return connection if "://" in connection else ""
    engine = getattr(connection, "engine", connection)
    url = getattr(engine, "url", None)
    render = getattr(url, "render_as_string", None)
    return str(render(hide_password=True)) if render is not None else ""


class LibraryPatch(NamedTuple):
    """A library function to record: an attribute of a module or a class.

    `reads_variables`: it reads variables of its caller, as DuckDB does to find frames.
    """

    owner: Any
    name: str
    record: RecordCall
    reads_variables: bool = False


MODULES = (
    "pandas", "polars", "pyarrow.parquet", "pyarrow.csv", "pyarrow.dataset", "pyarrow.feather",
    "pyarrow.json", "pyarrow.orc", "duckdb",
)  # fmt: skip


def patches_of(module: ModuleType) -> Iterator[LibraryPatch]:
    """Yield the functions of a library to record."""
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


def _pandas(pandas: ModuleType) -> Iterator[LibraryPatch]:
    for kind in ("csv", "table", "fwf", "parquet", "json", "excel", "feather", "orc", "pickle",
                 "stata", "spss", "sas", "xml", "hdf"):  # fmt: skip
        yield LibraryPatch(pandas, f"read_{kind}", _reads_path(0, *_PANDAS_PATHS))
    for name in ("read_sql", "read_sql_query", "read_sql_table"):
        yield LibraryPatch(pandas, name, _reads_query)
    # Some are inherited from a class shared with Series; patch the class that defines them.
    for owner in pandas.DataFrame.__mro__[:2]:
        for kind in ("csv", "parquet", "json", "excel", "feather", "orc", "pickle", "stata", "xml"):
            yield LibraryPatch(owner, f"to_{kind}", _writes_path(1, *_PANDAS_PATHS))
        yield LibraryPatch(owner, "to_sql", _writes_table)


def _polars(polars: ModuleType) -> Iterator[LibraryPatch]:
    for kind in ("csv", "parquet", "json", "ndjson", "ipc", "avro", "excel", "delta"):
        yield LibraryPatch(polars, f"read_{kind}", _reads_path(0, "source"))
        yield LibraryPatch(polars, f"scan_{kind}", _reads_path(0, "source"))
        yield LibraryPatch(
            polars.DataFrame, f"write_{kind}", _writes_path(1, "file", "target", "workbook")
        )
        yield LibraryPatch(polars.LazyFrame, f"sink_{kind}", _writes_path(1, "path", "target"))
    yield LibraryPatch(polars, "read_database", _reads_query)
    yield LibraryPatch(polars, "read_database_uri", _reads_query)
    yield LibraryPatch(polars.DataFrame, "write_database", _writes_table)


def _pyarrow(module: ModuleType) -> Iterator[LibraryPatch]:
    for name in ("read_table", "read_pandas", "read_csv", "read_json", "read_feather", "dataset"):
        yield LibraryPatch(
            module, name, _reads_path(0, "source", "input_file", "source", "path_or_paths")
        )
    for name in ("write_table", "write_csv", "write_feather"):
        yield LibraryPatch(module, name, _writes_path(1, "where", "output_file", "dest"))
    yield LibraryPatch(module, "write_dataset", _writes_path(1, "base_dir"))


def _duckdb(duckdb: ModuleType) -> Iterator[LibraryPatch]:
    connection, relation = duckdb.DuckDBPyConnection, duckdb.DuckDBPyRelation
    for owner, at in ((duckdb, 0), (connection, 1)):
        for name in ("sql", "query", "execute", "from_query"):
            yield LibraryPatch(owner, name, _runs_sql(at), reads_variables=True)
        for name in ("read_parquet", "read_csv", "read_json", "from_parquet", "from_csv_auto"):
            yield LibraryPatch(
                owner, name, _reads_path(at, "path_or_buffer", "file_glob", "file_globs")
            )
    for name in ("write_parquet", "to_parquet", "write_csv", "to_csv"):
        yield LibraryPatch(relation, name, _writes_path(1, "file_name"))
    for name in ("create", "to_table", "insert_into"):
        yield LibraryPatch(relation, name, _fills_table)


# How a call is recorded


def _reads_path(at: int, *names: str) -> RecordCall:
    def record(
        run: FunctionRun, _: Names, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        for path in _paths(_argument(at, names, args, kwargs)):
            run.reads(dataset_at(path), describe_frame(result))

    return record


def _writes_path(at: int, *names: str) -> RecordCall:
    def record(
        run: FunctionRun, _: Names, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        del result
        frame = next((value for value in args if is_frame(value)), None)
        for path in _paths(_argument(at, names, args, kwargs)):
            run.writes(dataset_at(path), describe_frame(frame))

    return record


def _reads_query(
    run: FunctionRun, names: Names, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    query = _argument(0, ("sql", "query", "table_name"), args, kwargs)
    connection = _argument(1, ("con", "connection", "uri"), args, kwargs)
    text = str(query)
    if not any(char.isspace() for char in text.strip()):
        run.reads(table_at(text, connection, names), describe_frame(result))
        return
    _record_sql(run, text, lambda table: table_at(table, connection, names), None)


def _writes_table(
    run: FunctionRun, names: Names, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    del result
    table = _argument(1, ("name", "table_name"), args, kwargs)
    connection = _argument(2, ("con", "connection"), args, kwargs)
    schema = kwargs.get("schema")
    whole = f"{schema}.{table}" if schema else str(table)
    run.writes(table_at(whole, connection, names), describe_frame(args[0]))


def _runs_sql(at: int) -> RecordCall:
    def record(
        run: FunctionRun, names: Names, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        del result
        query = _argument(at, ("query", "sql"), args, kwargs)
        if isinstance(query, str):
            _record_sql(run, query, names, "duckdb", _frames_of_caller())

    return record


def _fills_table(
    run: FunctionRun, names: Names, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    del result
    table = _argument(1, ("table_name",), args, kwargs)
    if isinstance(table, str):
        run.writes(names(table), describe_frame(args[0]))


def _record_sql(
    run: FunctionRun,
    sql: str,
    names: Names,
    dialect: str | None,
    frames: frozenset[str] = frozenset(),
) -> None:
    from downriver.capture.sql import parse_sql_lineage  # slow to import, and only SQL needs it

    lineage = parse_sql_lineage(sql, dialect=dialect)
    for table in lineage.inputs:
        if table not in frames:
            run.reads(_table(table, names))
    for table in lineage.outputs:
        run.writes(_table(table, names))


def _table(name: str, names: Names) -> DatasetId:
    """Return the dataset of a name in a query: a file path or a table."""
    is_path = "/" in name or name.endswith((".parquet", ".csv", ".json", ".jsonl"))
    return dataset_at(absolute_path(name)) if is_path else names(name)


def _frames_of_caller() -> frozenset[str]:
    """Return the caller's variables that hold frames: DuckDB reads them by name."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("downriver."):
        frame = frame.f_back
    variables = {**frame.f_globals, **frame.f_locals}
    return frozenset(name for name, value in variables.items() if is_frame(value))


def _argument(
    at: int, names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    for name in names:
        if name in kwargs:
            return kwargs[name]
    return args[at] if at < len(args) else None


def _paths(value: Any) -> list[str]:
    """Return the paths in an argument; an open file or a buffer has none."""
    if isinstance(value, list | tuple):
        return [path for part in value for path in _paths(part)]
    if isinstance(value, str | os.PathLike):
        text = os.fspath(value)
        return [absolute_path(text)] if isinstance(text, str) and "\n" not in text else []
    return []


def absolute_path(path: str) -> str:
    """Return an absolute path; a URL stays as it is."""
    return path if "://" in path or path.startswith("dbfs:") else os.path.abspath(path)
