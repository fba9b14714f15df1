"""The commands that write: their target, and the plan of the rows they write."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from downriver.capture.spark.actions import DatasetLocation, Sink
from downriver.capture.spark.io.paths import name_jdbc
from downriver.capture.spark.java import (
    Java,
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
    one is the table that it changes.
    """

    sink: Sink | None
    query: Java | None
    reads: tuple[Java, ...] = ()


def find_write(plan: Java, kind: str, locator: DatasetLocator) -> WriteCommand | None:
    """Return what a command writes; None for a plan that only reads."""
    reader = _COMMANDS.get(kind)
    return None if reader is None else reader(plan, locator)


def _files(command: Java, locator: DatasetLocator) -> WriteCommand:
    table = option_value(command.catalogTable())
    path = dataset_at(str(command.outputPath().toString()))
    form = simple_name(command.fileFormat()).removesuffix("FileFormat").lower()
    place = DatasetLocation(path, None, form) if table is None else locator.table(table)
    lifecycle = "OVERWRITE" if str(command.mode()) == "Overwrite" else ""
    return WriteCommand(
        Sink(place, element_texts(command.outputColumnNames()), lifecycle), command.query()
    )


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


def _save(command: Java, locator: DatasetLocator) -> WriteCommand | None:
    """Return a write to a V1 source that is not a file format: JDBC, or Delta by path."""
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
    return None


def _insert_relation(command: Java, locator: DatasetLocator) -> WriteCommand | None:
    leaf = locator.leaf(command.logicalRelation())
    if not leaf.locations:
        return None
    lifecycle = "OVERWRITE" if command.overwrite() else ""
    return WriteCommand(Sink(leaf.locations[0], None, lifecycle), command.query())


def _v2_write(command: Java, locator: DatasetLocator) -> WriteCommand | None:
    target = command.table()
    if simple_name(target) != "DataSourceV2Relation":
        return None
    lifecycle = "" if simple_name(command) == "AppendData" else "OVERWRITE"
    if "Staged" in simple_name(target.table()):
        return WriteCommand(None, None)  # Spark also reports the CREATE TABLE around it
    place = locator.v2_table(target)
    if place is None:
        return WriteCommand(None, command.query())
    columns = [text.partition("#")[0] for text in element_texts(target.output())]
    return WriteCommand(Sink(place, columns, lifecycle), command.query())


def _create_resolved(command: Java, locator: DatasetLocator) -> WriteCommand:
    """Return CREATE TABLE AS SELECT through a V2 catalog (the session catalog can be one)."""
    provider = str(option_value(command.tableSpec().provider()) or "")
    place = locator.catalog_table(command.name().identifier(), provider)
    lifecycle = "CREATE" if simple_name(command) == "CreateTableAsSelect" else "OVERWRITE"
    return WriteCommand(Sink(place, None, lifecycle), command.query())


def _change(command: Java, locator: DatasetLocator) -> WriteCommand | None:
    """Return Delta's MERGE, UPDATE or DELETE. Their clauses are not plans."""
    target = command.target()
    leaves = locator.leaves(target)
    if not leaves or not leaves[0].locations:
        return None
    columns = [text.partition("#")[0] for text in element_texts(target.output())]
    reads = (command.source(), target) if simple_name(command) == "MergeIntoCommand" else (target,)
    return WriteCommand(Sink(leaves[0].locations[0], columns), command, reads)


def _view(command: Java, locator: DatasetLocator) -> WriteCommand | None:
    if str(command.viewType().toString()) != "PersistedView":
        return None
    plan = command.plan()
    columns = [str(pair._1()) for pair in elements(command.userSpecifiedColumns())]
    place = DatasetLocation(locator.table_name(command.name()), None, "view", "spark_catalog")
    return WriteCommand(Sink(place, columns or None, "CREATE"), plan)


def _drop(command: Java, locator: DatasetLocator) -> WriteCommand:
    return WriteCommand(
        Sink(DatasetLocation(locator.table_name(command.tableName())), None, "DROP"), None
    )


def _drop_resolved(command: Java, locator: DatasetLocator) -> WriteCommand:
    """Return DROP TABLE through a V2 catalog (the session catalog can be one)."""
    identifier = command.child().identifier()
    name = ".".join([*map(str, identifier.namespace()), str(identifier.name())])
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


_COMMANDS: dict[str, Callable[[Java, DatasetLocator], WriteCommand | None]] = {
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
    "CreateViewCommand": _view,
    "DropTableCommand": _drop,
    "DropTable": _drop_resolved,
    "TruncateTableCommand": _truncate,
    "AlterTableRenameCommand": _rename,
}
