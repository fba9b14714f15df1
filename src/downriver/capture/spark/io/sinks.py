"""The commands that write: their target, and the plan of the rows they write."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from downriver.capture.spark.actions import DatasetLocation, Sink
from downriver.capture.spark.io.kafka_topics import scala_options, written_topic
from downriver.capture.spark.io.paths import name_jdbc
from downriver.capture.spark.io.sources import NO_DATA, qualified_name
from downriver.capture.spark.java import (
    Java,
    class_name,
    decode_uri,
    element_texts,
    elements,
    option_value,
    simple_name,
)
from downriver.openlineage.naming import dataset_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.capture.spark.io.sources import DatasetLocator


_ICEBERG_MAINTENANCE = "default_rewrite_catalog"
# How each save mode changes a table.
_LIFECYCLES = {
    "Append": "",
    "Overwrite": "OVERWRITE",
    "ErrorIfExists": "CREATE",
    "Ignore": "CREATE",
}


class WriteCommand(NamedTuple):
    """A command: its target, if it writes, and the plan of the rows it writes.

    `reads` are the plans of a command that consists of plans and clauses, such as MERGE. The last
    one is the table that it changes. `unknown` is the name of the writer if the target is not
    known. Only the sources of the plans in `inputs` are then used.
    """

    sink: Sink | None
    query: Java | None
    reads: tuple[Java, ...] = ()
    unknown: str = ""
    inputs: tuple[Java, ...] = ()
    sources: tuple[DatasetLocation, ...] = ()  # datasets that are read without a plan


def find_write(command: Java, kind: str, locator: DatasetLocator) -> WriteCommand:
    """Return the write of a command. An unknown command may write anywhere."""
    reader = _COMMANDS.get(kind)
    if reader is not None:
        return reader(command, locator)
    if kind in _WITHOUT_ROWS or kind.startswith(_WITHOUT_ROWS_PREFIXES):
        return WriteCommand(None, None)
    plans = (*elements(command.children()), *elements(command.innerChildren()))
    return WriteCommand(None, None, unknown=f"the command {kind}", inputs=plans)


def _files(command: Java, locator: DatasetLocator) -> WriteCommand:
    written = locator.text.file_write(command)
    if written.has_table:
        place = locator.table(command.catalogTable().get())
    else:
        form = written.format.removesuffix("FileFormat").lower()
        place = DatasetLocation(dataset_at(written.path), None, form)
    lifecycle = "OVERWRITE" if written.mode == "Overwrite" else ""
    return WriteCommand(Sink(place, written.columns, lifecycle), command.query())


def _directory(command: Java, locator: DatasetLocator) -> WriteCommand:
    location = option_value(command.storage().locationUri())
    place = DatasetLocation(dataset_at(decode_uri(location) if location is not None else ""))
    return WriteCommand(Sink(place, None, "OVERWRITE", wraps=True), command.query())


def _create_table(command: Java, locator: DatasetLocator) -> WriteCommand:
    place = locator.table(command.table())
    lifecycle = _LIFECYCLES[str(command.mode())]
    return WriteCommand(Sink(place, _names(command), lifecycle, wraps=True), command.query())


def _save_table(command: Java, locator: DatasetLocator) -> WriteCommand:
    place = locator.table(command.tableDesc())
    lifecycle = _LIFECYCLES[str(command.mode())]
    return WriteCommand(Sink(place, None, lifecycle, wraps=True), command.query())


def _create_hive_table(command: Java, locator: DatasetLocator) -> WriteCommand:
    place = locator.table(command.tableDesc())
    return WriteCommand(Sink(place, _names(command), "CREATE", wraps=True), command.query())


def _insert_hive(command: Java, locator: DatasetLocator) -> WriteCommand:
    lifecycle = "OVERWRITE" if command.overwrite() else ""
    return WriteCommand(
        Sink(locator.table(command.table()), _names(command), lifecycle), command.query()
    )


def _save(command: Java, locator: DatasetLocator) -> WriteCommand:
    """Return a write to a V1 source that is not a file format: JDBC, Kafka, or Delta by path."""
    options = command.options()
    url = option_value(options.get("url"))
    table = option_value(options.get("dbtable"))
    path = option_value(options.get("path"))
    lifecycle = "OVERWRITE" if str(command.mode()) == "Overwrite" else ""
    if url is not None and table is not None:
        place = DatasetLocation(name_jdbc(str(url)).table(str(table)), None, "jdbc")
        return WriteCommand(Sink(place, None, lifecycle), command.query())
    if path is not None:
        source = simple_name(command.dataSource())
        place = DatasetLocation(
            dataset_at(str(path)), None, source.removesuffix("DataSource").lower()
        )
        return WriteCommand(Sink(place, None, lifecycle), command.query())
    source = class_name(command.dataSource())
    if source.endswith(".KafkaSourceProvider"):
        topic = written_topic(scala_options(options))
        if topic is not None:
            return WriteCommand(Sink(topic), command.query())
        source = "kafka: a column of the rows names the topics"
    return WriteCommand(None, command.query(), unknown=f"the data source {source}")


def _insert_relation(command: Java, locator: DatasetLocator) -> WriteCommand:
    leaf = locator.leaf(command.logicalRelation())
    if not leaf.locations:
        unknown = f"an insert into {leaf.unknown or 'a query'}"
        return WriteCommand(None, command.query(), unknown=unknown)
    lifecycle = "OVERWRITE" if command.overwrite() else ""
    return WriteCommand(Sink(leaf.locations[0], None, lifecycle), command.query())


def _v2_write(command: Java, locator: DatasetLocator) -> WriteCommand:
    target = command.table()
    if simple_name(target) != "DataSourceV2Relation":
        unknown = f"a write to {simple_name(target)}"
        return WriteCommand(None, command.query(), unknown=unknown)
    lifecycle = "" if simple_name(command) == "AppendData" else "OVERWRITE"
    if "Staged" in simple_name(target.table()):
        return WriteCommand(None, None)  # Spark also reports the CREATE TABLE around it
    catalog = option_value(target.catalog())
    if catalog is not None and str(catalog.name()) == _ICEBERG_MAINTENANCE:
        return WriteCommand(None, None)  # files are rewritten, rows do not change
    place = locator.v2_table(target)
    if place is None:
        table = target.table()
        unknown = "" if simple_name(table) in NO_DATA else f"the data source {table.name()}"
        return WriteCommand(None, command.query(), unknown=unknown)
    columns = [text.partition("#")[0] for text in element_texts(target.output())]
    return WriteCommand(Sink(place, columns, lifecycle), command.query())


def _create_resolved(command: Java, locator: DatasetLocator) -> WriteCommand:
    """Return CREATE TABLE AS SELECT through a V2 catalog (the session catalog can be one)."""
    provider = str(option_value(command.tableSpec().provider()) or "")
    place = locator.catalog_table(command.name(), provider)
    lifecycle = "CREATE" if simple_name(command) == "CreateTableAsSelect" else "OVERWRITE"
    return WriteCommand(Sink(place, None, lifecycle), command.query())


def _change(command: Java, locator: DatasetLocator) -> WriteCommand:
    """Return Delta's MERGE, UPDATE or DELETE. Their clauses are not plans."""
    target = command.target()
    leaves = locator.leaves(target)
    if not leaves or not leaves[0].locations:
        return WriteCommand(None, None, unknown=f"the command {simple_name(command)}")
    columns = [text.partition("#")[0] for text in element_texts(target.output())]
    reads = (command.source(), target) if simple_name(command) == "MergeIntoCommand" else (target,)
    return WriteCommand(Sink(leaves[0].locations[0], columns), command, reads)


def _row_changes(command: Java, locator: DatasetLocator) -> WriteCommand:
    """Return MERGE, UPDATE or DELETE of a V2 table, which replace files or write changed rows."""
    target = command.originalTable()
    place = locator.v2_table(target) if simple_name(target) == "DataSourceV2Relation" else None
    if place is None:
        unknown = f"the command {simple_name(command)}"
        return WriteCommand(None, None, unknown=unknown, inputs=(command.query(),))
    columns = [text.partition("#")[0] for text in element_texts(target.output())]
    return WriteCommand(Sink(place, columns), command, (command.query(), target))


def _delete(command: Java, locator: DatasetLocator) -> WriteCommand:
    """Return DELETE of a V2 table by a condition."""
    target = command.table()
    leaves = locator.leaves(target)
    if not leaves or not leaves[0].locations:
        return WriteCommand(None, None, unknown="the command DeleteFromTable")
    columns = [text.partition("#")[0] for text in element_texts(target.output())]
    return WriteCommand(Sink(leaves[0].locations[0], columns), command, (target,))


def _create_delta(command: Java, locator: DatasetLocator) -> WriteCommand:
    """Return Delta's CREATE TABLE. Another command reports the rows, except for CLONE."""
    query = option_value(command.query())
    if query is None or simple_name(query) != "CloneTableCommand":
        return WriteCommand(None, None)
    place = locator.table(command.table())
    source = query.sourceTable()
    table = option_value(source.catalogTable())
    read = (
        DatasetLocation(dataset_at(str(source.dataPath().toString())), None, "delta")
        if table is None
        else locator.table(table)
    )
    return WriteCommand(Sink(place, None, "CREATE"), None, sources=(read,))


def _view(command: Java, locator: DatasetLocator) -> WriteCommand:
    if str(command.viewType().toString()) != "PersistedView":
        return WriteCommand(None, None)
    plan = command.plan()
    columns = [str(pair._1()) for pair in elements(command.userSpecifiedColumns())]
    place = DatasetLocation(locator.table_name(command.name()), None, "view", "spark_catalog")
    return WriteCommand(Sink(place, columns or None, "CREATE"), plan)


def _alter_view(command: Java, locator: DatasetLocator) -> WriteCommand:
    place = DatasetLocation(locator.table_name(command.name()), None, "view", "spark_catalog")
    return WriteCommand(Sink(place, None, "ALTER"), command.query())


def _load(command: Java, locator: DatasetLocator) -> WriteCommand:
    """Return LOAD DATA: it moves files into a table, so no plan shows their columns."""
    place = locator.named_table(command.table())
    lifecycle = "OVERWRITE" if command.isOverwrite() else ""
    source = DatasetLocation(dataset_at(str(command.path())))
    return WriteCommand(Sink(place, None, lifecycle), None, sources=(source,))


def _drop(command: Java, locator: DatasetLocator) -> WriteCommand:
    return WriteCommand(
        Sink(DatasetLocation(locator.table_name(command.tableName())), None, "DROP"), None
    )


def _drop_resolved(command: Java, locator: DatasetLocator) -> WriteCommand:
    """Return DROP TABLE through a V2 catalog (the session catalog can be one)."""
    child = command.child()
    name = qualified_name(child.catalog(), child.identifier())
    return WriteCommand(Sink(DatasetLocation(locator.dataset_named(name)), None, "DROP"), None)


def _truncate(command: Java, locator: DatasetLocator) -> WriteCommand:
    return WriteCommand(
        Sink(DatasetLocation(locator.table_name(command.tableName())), None, "TRUNCATE"), None
    )


def _rename(command: Java, locator: DatasetLocator) -> WriteCommand:
    old, new = locator.table_name(command.oldName()), locator.table_name(command.newName())
    return WriteCommand(Sink(DatasetLocation(new), None, "RENAME", old), None)


def _names(command: Java) -> list[str]:
    return element_texts(command.outputColumnNames())


_COMMANDS: dict[str, Callable[[Java, DatasetLocator], WriteCommand]] = {
    "InsertIntoHadoopFsRelationCommand": _files,
    "InsertIntoDataSourceDirCommand": _directory,
    "InsertIntoHiveDirCommand": _directory,
    "CreateDataSourceTableAsSelectCommand": _create_table,
    "SaveAsV1TableCommand": _save_table,
    "CreateHiveTableAsSelectCommand": _create_hive_table,
    "InsertIntoHiveTable": _insert_hive,
    "SaveIntoDataSourceCommand": _save,
    "InsertIntoDataSourceCommand": _insert_relation,
    "AppendData": _v2_write,
    "OverwriteByExpression": _v2_write,
    "OverwritePartitionsDynamic": _v2_write,
    "CreateTableAsSelect": _create_resolved,
    "ReplaceTableAsSelect": _create_resolved,
    "MergeIntoCommand": _change,
    "UpdateCommand": _change,
    "DeleteCommand": _change,
    "ReplaceData": _row_changes,
    "WriteDelta": _row_changes,
    "DeleteFromTable": _delete,
    "CreateDeltaTableCommand": _create_delta,
    "CreateViewCommand": _view,
    "AlterViewAsCommand": _alter_view,
    "LoadDataCommand": _load,
    "DropTableCommand": _drop,
    "DropTable": _drop_resolved,
    "TruncateTableCommand": _truncate,
    "AlterTableRenameCommand": _rename,
}
# Commands that change no rows: they describe, set, cache, or change metadata of a catalog.
_WITHOUT_ROWS_PREFIXES = (
    "AddColumns", "AddFile", "AddJar", "AddArchive", "Alter", "Analyze", "Cache", "Comment",
    "CreateCatalog", "CreateDatabase", "CreateFunction", "CreateNamespace", "CreateTempView",
    "CreateUserDefinedFunction", "CreateVariable", "Describe", "DropColumns", "DropDatabase",
    "DropFunction", "DropNamespace", "DropTempView", "DropVariable", "Explain", "List", "Refresh",
    "Rename", "Reset", "Set", "Show", "Uncache", "Unset", "Use",
)  # fmt: skip
_WITHOUT_ROWS = frozenset(
    {
        "ClearCacheCommand", "CreateDataSourceTableCommand", "CreateTable", "CreateTableCommand",
        "CreateTableLikeCommand", "CreateTempViewUsing", "DescDeltaDetailCommand",
        "NoopCommand", "OptimizeTableCommand", "RecoverPartitions",
        "RepairTableCommand", "ReplaceColumns", "ReplaceTable", "StreamingExplainCommand",
        "VacuumTableCommand",
    }
)  # fmt: skip
