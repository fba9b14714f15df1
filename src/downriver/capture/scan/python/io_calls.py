"""Lists the calls of a module that read or write data, by their names alone.

This pass does not follow values and shares no code with the interpreter. A call that it lists and
that the interpreter did not understand is a blind spot.
"""

from __future__ import annotations

import ast
import re
from typing import Literal, NamedTuple, TypeAlias

from downriver.capture.scan.python.airflow_operators import is_control

Access: TypeAlias = Literal["reads", "writes", "reads or writes"]


class IoCall(NamedTuple):
    """A call that reads or writes data, according to its name.

    `is_file`: it opens a file for writing, which holds data only if the job handles data.
    """

    node: ast.Call
    name: str
    access: Access
    is_file: bool = False


def list_io_calls(tree: ast.Module) -> list[IoCall]:
    """Return the calls of a module that read or write data."""
    libraries = _Libraries(tree)
    calls: list[IoCall] = []
    statements = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            site = _site(node, libraries, is_statement=node in statements)
            if site is not None and _is_io(site):
                calls.append(IoCall(node, site.shown, _access(site.name)))
            elif site is not None and _writes_file(site):
                calls.append(IoCall(node, site.shown, "writes", is_file=True))
    return sorted(calls, key=lambda call: (line_of_call(call.node), call.node.end_col_offset or 0))


def line_of_call(node: ast.Call) -> int:
    """Return the line of a call: the line of its name, in a chain over several lines."""
    return node.func.end_lineno or node.lineno


class _Site(NamedTuple):
    """A call in parts: `s3.put_object` has the base `s3` and the name `put_object`."""

    node: ast.Call
    base: str
    name: str
    library: str  # the imported name that the base comes from: `boto3.client`
    is_statement: bool  # its result is not used

    @property
    def shown(self) -> str:
        """The text of the call for messages."""
        last = self.base.rpartition(".")[2]
        return f"{last}.{self.name}" if last.isidentifier() else self.name

    def has(self, *arguments: str) -> bool:
        """Whether one of these arguments is given by name."""
        return any(keyword.arg in arguments for keyword in self.node.keywords)


def _site(node: ast.Call, libraries: _Libraries, *, is_statement: bool) -> _Site | None:
    match node.func:
        case ast.Name(id=name):
            origin = libraries.find(name)
            return _Site(node, "", origin.rpartition(".")[2] or name, origin, is_statement)
        case ast.Attribute(value=base, attr=name):
            origin = libraries.of(base)
            whole = f"{origin}.{name}" if origin else ""
            return _Site(node, _chain_text(base), name, whole, is_statement)
        case _:
            return None


def _chain_text(node: ast.expr) -> str:
    """Return a chain of attributes and calls as dotted names: `spark.read.format`."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=base, attr=name):
            return f"{_chain_text(base)}.{name}"
        case ast.Call(func=called):
            return _chain_text(called)
        case ast.Subscript(value=base):
            return _chain_text(base)
        case ast.Await(value=inner):
            return _chain_text(inner)
        case _:
            return ""


class _Libraries:
    """The imported objects of a module, and the variables that hold what they return."""

    def __init__(self, tree: ast.Module) -> None:
        self._names: dict[str, str] = {}
        bound: list[tuple[ast.expr, ast.expr]] = []
        for node in ast.walk(tree):
            match node:
                case ast.Import(names=names):
                    for part in names:
                        self._names[part.asname or part.name.partition(".")[0]] = (
                            part.name if part.asname else part.name.partition(".")[0]
                        )
                case ast.ImportFrom(module=module, names=names, level=level):
                    for part in names:
                        origin = f"{'.' * level}{module or ''}.{part.name}"
                        self._names[part.asname or part.name] = origin
                case ast.Assign(targets=targets, value=value):
                    bound += [(target, value) for target in targets]
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    bound.append((target, value))
                case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                    bound.append((target, value))
                case _:
                    pass
        for _ in range(2):  # a cursor of a connection of a driver
            for target, value in bound:
                key, origin = _chain_text(target), self.of(value)
                if key and origin and isinstance(target, (ast.Name, ast.Attribute)):
                    self._names.setdefault(key, origin)

    def find(self, name: str) -> str:
        """Return the imported object that a variable comes from; empty when there is none."""
        return self._names.get(name, "")

    def of(self, node: ast.expr) -> str:
        """Return the imported object that an expression comes from, with its attributes."""
        text = _chain_text(node)
        if text in self._names:
            return self._names[text]
        parts = text.split(".")
        for count in range(len(parts) - 1, 0, -1):
            imported_name = self._names.get(".".join(parts[:count]))
            if imported_name is not None:
                return ".".join([imported_name, *parts[count:]])
        return ""


# Names that read or write data on any object.
_FORMATS = (
    "csv|tsv|parquet|json|jsonl|ndjson|excel|feather|hdf|orc|pickle|stata|sas|spss|xml|fwf|avro|ipc"
    r"|delta|iceberg|lance|arrow|sql\w*|gbq|bigquery|table|database\w*|snowflake|redshift|postgis"
    r"|file|zarr|netcdf|textfiles?|mongo|kafka|shapefile|raster|records?"
)
_ALWAYS = re.compile(
    r"saveAs\w+|insertInto|toTable|textFile|wholeTextFiles|binaryFiles|binaryRecords"
    r"|sequenceFile|newAPIHadoop\w+|hadoopFile|socketTextStream|textFileStream"
    rf"|(?:read|scan|write|sink|stream|async_read|async_write)_(?:{_FORMATS})"
    r"|to_(?:sql|parquet|gbq|excel|feather|hdf|pickle|orc|stata|delta|iceberg|snowflake|zarr"
    r"|netcdf|postgis|avro|textfiles|bigquery|redshift)"
    r"|write_(?:pandas|dataset|dynamic_frame\w*|data_frame\w*|arrow|dataframe|from_options"
    r"|to_\w+)|load_(?:data|dataset|table|csv|parquet|dataframe|df|file|data_from_\w+)"
    r"|save_(?:data|dataset|table|csv|parquet|dataframe|df|file|to_\w+|as_\w+)"
    r"|create_(?:dynamic|data)_frame\w*|from_catalog|from_jdbc_conf|getSink|getSource|writeFrame"
    r"|(?:put|get|copy|select)_object(?:_content)?|(?:up|down)load_file(?:obj)?"
    r"|put_records?|put_record_batch|batch_write_item|put_item|start_query_execution"
    r"|execute_statement|batch_execute_statement|start_export_task\w*"
    r"|upload_from_\w+|download_to_\w+|download_as_\w+|upload_blob|download_blob"
    r"|load_table_from_\w+|insert_rows\w*|insert_arrow|extract_table|copy_table|query_and_wait"
    r"|insert_job|append_rows"
    r"|copy_expert|copy_from|copy_to|copy_records_to_table|copy_to_table|bulk_load|bulk_dump"
    r"|executemany|executescript|execute_values|execute_batch|exec_driver_sql|execute_string"
    r"|execute_sql|execute_query|execute_async|run_query|runQuery|sqlQuery|bulk_insert_mappings"
    r"|bulk_save_objects|bulk_create|copy_into\w*|insert_many|insert_one|bulk_write"
    r"|get_pandas_df\w*|get_records|fetchdf|fetch_df|fetch_pandas_all|fetch_pandas_batches|fetch_dataframe"
    r"|load_file_to_\w+|load_string|load_bytes|load_file_obj|insert_dataframe|query_df|insert_df"
    r"|ReadFrom\w+|WriteTo\w+|ReadAllFrom\w+|ReadAll|WriteStringsToPubSub"
    r"|get_historical_features|get_online_features|materialize_incremental"
    r"|urlretrieve|load_dataset|TFRecordDataset|savetxt|loadtxt|genfromtxt"
)
# Without a path these return a text.
_WITH_PATH = re.compile(r"to_(?:csv|json|xml|html|markdown|latex|string|avro)")
_PATH_ARGUMENTS = ("path", "path_or_buf", "path_or_buffer", "buf", "filename", "path_root")

# Names that read or write data when they are called on a Spark reader, writer or session.
_SPARK_CHAIN = re.compile(r"\.(?:read|write)(?:Stream)?(?P<settings>(?:\.\w+){0,50})$|\.writeTo\b")
_SPARK_END = re.compile(
    r"load|save|table|jdbc|csv|parquet|json|orc|text|avro|delta|xml|excel|start|toTable|insertInto"
    r"|saveAsTable|save_as_table|append|overwrite|overwritePartitions|create|createOrReplace|replace|synapsesql"
)
_SESSION = re.compile(r"(?:^|[._])(?:spark\w*|sqlcontext|sqlctx|hivecontext|ss|hc)$", re.IGNORECASE)

# `execute` and `query` are methods of many objects. With these names, the object is a database.
_DATABASE = re.compile(
    r"(?:^|[^a-z])(?:cur|cursor|conn|connection|engine|session|db|database|hook|client|bq|pg|con"
    r"|redshift|snowflake|athena|trino|presto|duckdb|sqlite|cluster|warehouse)(?:$|[^a-z])",
    re.IGNORECASE,
)
_ON_DATABASE = re.compile(
    r"execute|query|raw_sql|sql|table|run_sql|fetch|fetchrow|fetchval|scalars?"
)

# Functions of libraries by the start of their full name.
_OF_LIBRARIES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (prefix, re.compile(names))
    for prefix, names in (
        ("pandas.", r"read_(?!clipboard)\w+|HDFStore|ExcelFile|ExcelWriter"),
        ("polars.", r"(?:read|scan)_\w+"),
        ("dask.", r"read_\w+|to_\w*(?:parquet|csv|json|sql|textfiles|hdf|zarr)"),
        ("geopandas.", r"read_\w+|to_file"),
        ("modin.", r"read_\w+"),
        ("cudf.", r"read_\w+"),
        ("ibis.", r"read_\w+|table|sql|create_table|insert|to_\w+(?<!pandas)|raw_sql|create_view"),
        ("sqlframe.", r"sql|table|load|save"),
        ("xarray.", r"open_\w+|load_\w+"),
        ("awswrangler.", r"(?:read|to|copy|upload|download|select|unload|put|load)_?\w*"),
        ("pyarrow.", r"(?:read|write)_\w+|dataset|Parquet(?:File|Writer|Dataset)|open_csv"),
        ("fastparquet.", r"write|ParquetFile"),
        ("deltalake.", r"DeltaTable|write_deltalake"),
        ("pyiceberg.", r"load_table|append|overwrite|scan|upsert"),
        ("duckdb.", r"sql|query|execute|table|view|read_\w+|from_\w+|to_\w+|write_\w+|insert_into"),
        ("joblib.", r"load|dump"),
        ("pickle.", r"load|dump"),
        ("cloudpickle.", r"load|dump"),
        ("dill.", r"load|dump"),
        ("json.", r"load|dump"),
        ("csv.", r"reader|writer|DictReader|DictWriter"),
        ("torch.", r"load|save"),
        ("numpy.", r"load|save|savez\w*|fromfile|memmap"),
        ("tensorflow.", r"load_model|save_model|save|load|TextLineDataset"),
        ("keras.", r"load_model|save_model|save|load"),
        ("transformers.", r"from_pretrained|save_pretrained"),
        ("xgboost.", r"load_model|save_model|DMatrix"),
        ("lightgbm.", r"save_model|Booster"),
        ("mlflow.", r"(?:log|load|save)_model|log_artifacts?|download_artifacts|log_table"
                    r"|load_table|register_model|log_input|search_runs"),
        ("feast.", r"materialize|push|write_to_\w+|apply_materialization"),
        ("dlt.", r"run|read|read_stream|apply_changes"),
        ("psycopg", r"copy|execute"),
        ("asyncpg.", r"execute|fetch|fetchrow|fetchval"),
        ("sqlalchemy", r"execute|scalars?"),
        ("sqlite3.", r"execute"),
        ("pyodbc.", r"execute"),
        ("pymysql.", r"execute"),
        ("mysql.", r"execute"),
        ("oracledb.", r"execute"),
        ("cx_Oracle.", r"execute"),
        ("teradatasql.", r"execute"),
        ("snowflake.", r"execute|sql|table|save_as_table"),
        ("databricks.", r"execute"),
        ("trino.", r"execute"),
        ("pyhive.", r"execute"),
        ("clickhouse_connect.", r"query|command|insert"),
        ("clickhouse_driver.", r"execute"),
        ("google.cloud.bigquery", r"query|list_rows|create_table|load_table\w*|result_to_\w+"),
        ("google.cloud.storage", r"compose|rewrite|copy_blob"),
        ("google.cloud.pubsub", r"publish|pull|subscribe"),
        ("google.cloud.spanner", r"execute_sql|insert|insert_or_update|read"),
        ("google.cloud.bigtable", r"read_rows?|mutate_rows|commit"),
        ("google.cloud.firestore", r"stream|set|add"),
        ("boto3.", r"scan|query|get_item|update_item|upload_part|copy|start_job_run|put"),
        ("kafka.", r"KafkaConsumer|subscribe|send"),
        ("confluent_kafka.", r"subscribe|produce"),
        ("aiokafka.", r"AIOKafkaConsumer|subscribe|send|send_and_wait"),
        ("pymongo.", r"find|aggregate|update_many|update_one|replace_one|delete_\w+"),
        ("elasticsearch", r"index|bulk|search|scan|streaming_bulk|parallel_bulk"),
        ("gspread", r"get_all_records|get_all_values|append_rows?|update|set_with_dataframe"),
        ("urllib.request.", r"urlopen|urlretrieve"),
        ("urllib3.", r"request"),
        ("smart_open.", r"open"),
        ("fsspec.", r"open|open_files"),
        ("s3fs.", r"open|put|get"),
        ("gcsfs.", r"open|put|get"),
        ("kagglehub.", r"\w*download"),
        ("yfinance.", r"download"),
        ("pyspark.ml.", r"load|save"),
        ("pyspark.pandas.", r"read_\w+|sql"),
        ("apache_beam.", r"Read|Write|ReadAll\w*"),
    )
)  # fmt: skip
_HTTP = r"(?:requests|httpx)(?:\.(?:[Ss]ession|Client|AsyncClient))?"
_FETCHES = re.compile(rf"{_HTTP}\.(?:get|request|stream)")
_SENDS = re.compile(rf"{_HTTP}\.(?:post|put)")  # data only if the answer is used

# Parts of a base for which `write`, `load` and similar names do not access data.
_NO_DATA = re.compile(
    r"(?:^|\.)(?:logger|logging|log|stdout|stderr|sys|console|argparse|parser|config|settings|yaml"
    r"|toml|dotenv|importlib|pkgutil|locale|mock\w*|response|resp|io_manager|unittest|warnings)$",
    re.IGNORECASE,
)


def _is_io(site: _Site) -> bool:
    if site.library.startswith("unittest.") or _NO_DATA.search(site.base):
        return False
    if _ALWAYS.fullmatch(site.name):
        return True
    if _WITH_PATH.fullmatch(site.name):
        return bool(site.base) and (bool(site.node.args) or site.has(*_PATH_ARGUMENTS))
    if _is_spark(site) or _is_operator(site):
        return True
    if _ON_DATABASE.fullmatch(site.name) and site.base and _DATABASE.search(site.base):
        return bool(site.node.args or site.node.keywords)
    if any(site.library.startswith(p) and n.fullmatch(site.name) for p, n in _OF_LIBRARIES):
        return True
    if _FETCHES.fullmatch(site.library):
        return True
    return _SENDS.fullmatch(site.library) is not None and not site.is_statement


def _writes_file(site: _Site) -> bool:
    """Whether a call opens a file for writing."""
    if site.name != "open":
        return False
    at = 1 if not site.base or site.library.endswith(".open") else 0
    modes = [
        *site.node.args[at : at + 1],
        *(k.value for k in site.node.keywords if k.arg == "mode"),
    ]
    texts = [mode.value for mode in modes if isinstance(mode, ast.Constant)]
    return any(isinstance(text, str) and set(text) & set("wax") for text in texts)


def _is_spark(site: _Site) -> bool:
    chain = _SPARK_CHAIN.search(site.base)
    if chain is not None and _SPARK_END.fullmatch(site.name):
        return not any(_SPARK_END.fullmatch(part) for part in (chain["settings"] or "").split("."))
    return site.name in ("sql", "table") and _SESSION.search(site.base) is not None


def _is_operator(site: _Site) -> bool:
    """Whether a call creates an Airflow task, also with `Operator.partial(…).expand(…)`."""
    kind = site.base.rpartition(".")[2] if site.name == "partial" else site.name
    if not site.has("task_id") or not kind[:1].isupper():
        return False
    return site.has("sql") or not is_control(kind)


_WRITES = re.compile(
    r"save|write|to_|toTable|insert|put|upload|dump|sink|copy|load_table_from|load_file_to|bulk|append"
    r"|send|produce|publish|WriteTo|Write|getSink|log_|register|overwrite|create|materialize|push",
)
_READS = re.compile(
    r"read|scan|load|textFile|wholeText|binary|get|download|query|fetch|table|ReadFrom|Read|open"
    r"|from_|urlopen|urlretrieve|search|find|pull|subscribe|stream|reader|Dict|jdbc|csv|json",
    re.IGNORECASE,
)


def _access(name: str) -> Access:
    if _WRITES.match(name):
        return "writes"
    return "reads" if _READS.match(name) else "reads or writes"


def enclosing_functions(tree: ast.Module) -> dict[ast.Call, list[ast.AST]]:
    """Return for each call the functions around it, the innermost first."""
    functions: dict[ast.Call, list[ast.AST]] = {}
    pending: list[tuple[ast.AST, list[ast.AST]]] = [(tree, [])]
    while pending:
        node, around = pending.pop()
        if isinstance(node, ast.Call):
            functions[node] = around
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            around = [node, *around]
        pending += [(child, around) for child in ast.iter_child_nodes(node)]
    return functions
