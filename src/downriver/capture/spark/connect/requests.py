"""Reads requests of Spark Connect: the writes of a command, and the query of its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from downriver.capture.spark.actions import DatasetLocation
from downriver.capture.spark.connect.statements import may_write
from downriver.capture.spark.io.paths import name_jdbc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MODES = {1: "append", 2: "overwrite", 3: "create", 4: "create"}
_V2_LIFECYCLES = {1: "CREATE", 2: "OVERWRITE", 3: "OVERWRITE", 5: "OVERWRITE", 6: "OVERWRITE"}
_INSERT_INTO = 2
_NO_DATA = frozenset({"noop", "console", "memory"})
_DEFAULT_FORMAT = "parquet"
# Commands that run no query and write no data.
_NO_ROWS = frozenset(
    {
        "checkpoint_command", "create_dataframe_view", "create_resource_profile_command",
        "get_resources_command", "register_data_source", "register_function",
        "register_table_function", "remove_cached_remote_relation_command",
        "streaming_query_command", "streaming_query_listener_bus_command",
        "streaming_query_manager_command",
    }
)  # fmt: skip


class WriteRequest(NamedTuple):
    """A write: its target (a location, a path or a table), and the plan of its rows.

    `unknown` is the name of the writer if the target is not known.
    """

    plan: Any = None
    location: DatasetLocation | None = None
    path: str = ""
    table: str = ""
    format: str = ""
    lifecycle: str = ""
    unknown: str = ""
    has_columns: bool = True
    inserts: bool = False  # by position, into the columns of the table


class ReadRequest(NamedTuple):
    """A query whose rows go to the driver."""

    plan: Any


class StatementRequest(NamedTuple):
    """A statement of SQL that may write. `command` has its arguments."""

    query: str
    command: Any

    def plan(self, rows: str) -> Any:
        """Return the plan of a query that is a part of the statement."""
        from pyspark.sql.connect.proto import Plan, Relation
        from pyspark.sql.connect.proto.relations_pb2 import SQL

        part = SQL()
        if self.command.HasField("input"):
            part.CopyFrom(self.command.input.sql)
        part.query = rows
        return Plan(root=Relation(sql=part))


Request: TypeAlias = "WriteRequest | ReadRequest | StatementRequest"


# Calls of `spark.catalog` that leave every name as it is.
_NAMES_STAY = ("list_", "get_", "is_cached", "cache_", "uncache_", "clear_", "current_")


def changes_names(request: Any) -> bool:
    """Return whether a request may change the meaning of a name in a query."""
    if type(request).__name__ == "Plan":
        if request.WhichOneof("op_type") == "root":
            return _changes_catalog(request.root)
        request = request.command
    if type(request).__name__ != "Command":
        return False
    name = request.WhichOneof("command_type")
    return name in {"create_dataframe_view", "sql_command", "write_operation", "write_operation_v2"}


def _changes_catalog(relation: Any) -> bool:
    """Return whether a relation is a call such as `spark.catalog.dropTempView`."""
    if relation.WhichOneof("rel_type") != "catalog":
        return False
    call = str(relation.catalog.WhichOneof("cat_type"))
    return not call.startswith(_NAMES_STAY) and not call.endswith("_exists")


def read_requests(request: Any) -> Iterator[Request]:
    """Yield the reads and writes of a command or plan; nothing if it only describes or sets."""
    kind = type(request).__name__
    if kind == "Plan" and request.WhichOneof("op_type") == "root":
        yield ReadRequest(request)
        return
    command = request.command if kind == "Plan" else request
    name = str(command.WhichOneof("command_type") or "")
    reader = _COMMANDS.get(name)
    if reader is not None:
        yield from reader(command)
    elif name not in _NO_ROWS:
        yield WriteRequest(unknown=f"the command {name or 'of Spark Connect'}")


def _plan(relation: Any) -> Any:
    from pyspark.sql.connect.proto import Plan

    return Plan(root=relation)


def _write(command: Any) -> Iterator[Request]:
    write = command.write_operation
    plan = _plan(write.input)
    mode = _MODES.get(write.mode, "")
    source = write.source or _DEFAULT_FORMAT
    options = dict(write.options)
    if write.WhichOneof("save_type") == "table":
        method = write.table.save_method
        lifecycle = {"overwrite": "OVERWRITE", "create": "CREATE"}.get(mode, "")
        if method == _INSERT_INTO:
            lifecycle = "OVERWRITE" if mode == "overwrite" else ""
        elif not mode:
            lifecycle = "CREATE"
        yield WriteRequest(
            plan,
            table=write.table.table_name,
            lifecycle=lifecycle,
            inserts=method == _INSERT_INTO,
        )
        return
    lifecycle = "OVERWRITE" if mode == "overwrite" else ""
    path = write.path or options.get("path", "")
    yield _target(WriteRequest(plan, format=source, lifecycle=lifecycle), path, options)


def _target(write: WriteRequest, path: str, options: dict[str, str]) -> WriteRequest:
    """Return a write to a source with its target: files, or a table over JDBC."""
    if write.format.lower() in _NO_DATA:
        return write
    if "url" in options and "dbtable" in options:
        table = name_jdbc(options["url"]).table(options["dbtable"])
        return write._replace(location=DatasetLocation(table, None, "jdbc"))
    if path:
        return write._replace(path=path)
    return write._replace(unknown=f"the data source {write.format}")


def _write_v2(command: Any) -> Iterator[Request]:
    write = command.write_operation_v2
    lifecycle = _V2_LIFECYCLES.get(write.mode, "")
    yield WriteRequest(_plan(write.input), table=write.table_name, lifecycle=lifecycle)


def _merge(command: Any) -> Iterator[Request]:
    merge = command.merge_into_table_command
    plan = _plan(merge.source_table_plan)
    yield WriteRequest(plan, table=merge.target_table_name, has_columns=False)


def _stream(command: Any) -> Iterator[Request]:
    stream = command.write_stream_operation_start
    plan = _plan(stream.input)
    if stream.HasField("foreach_batch") or stream.HasField("foreach_writer"):
        yield WriteRequest(plan, unknown="the code of a stream (foreachBatch)")
    elif stream.WhichOneof("sink_destination") == "table_name":
        yield WriteRequest(plan, table=stream.table_name)
    else:
        options = dict(stream.options)
        path = stream.path or options.get("path", "")
        yield _target(WriteRequest(plan, format=stream.format or _DEFAULT_FORMAT), path, options)


def _saved_models(command: Any) -> Iterator[Request]:
    """Yield a saved model of Spark's ML library. Its training is a read, and is not followed."""
    ml = command.ml_command
    if ml.WhichOneof("command") == "write":
        yield WriteRequest(path=ml.write.path, has_columns=False)
    elif ml.WhichOneof("command") == "fit":
        yield ReadRequest(_plan(ml.fit.dataset))


def _sql(command: Any) -> Iterator[Request]:
    sql = command.sql_command
    query = str(sql.input.sql.query or sql.sql) if sql.HasField("input") else str(sql.sql)
    if may_write(query):
        yield StatementRequest(query, sql)


_COMMANDS: dict[str, Callable[[Any], Iterator[Request]]] = {
    "write_operation": _write,
    "write_operation_v2": _write_v2,
    "merge_into_table_command": _merge,
    "write_stream_operation_start": _stream,
    "ml_command": _saved_models,
    "sql_command": _sql,
}
