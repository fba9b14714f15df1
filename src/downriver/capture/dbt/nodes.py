"""The nodes of a manifest in one shape for all manifest versions, and their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from downriver.capture.code import DocumentedColumn
from downriver.capture.code.dbt_resources import (
    entries,
    find_dialect,
    list_declared_sources,
    list_meta,
    list_tags,
    mapping,
    owner_names,
    text,
    texts,
)
from downriver.model.ids import DatasetId, JobId

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.capture.dbt.artifacts import Artifacts

_STORED = frozenset({"model", "seed", "snapshot", "source"})


class DbtNode(msgspec.Struct, kw_only=True):
    """One node of a dbt project: a model, seed, snapshot, source, test or analysis."""

    id: str
    kind: str
    name: str
    package: str = ""
    database: str = ""
    schema: str = ""
    table: str = ""
    materialized: str = ""
    language: str = "sql"
    raw: str = ""
    compiled: str = ""
    path: str = ""
    description: str = ""
    tags: list[str] = []
    owners: list[str] = []
    columns: list[DocumentedColumn] = []
    column_tags: dict[str, list[str]] = {}
    depends_on: list[str] = []
    declared_sources: list[str] = []
    macros: list[str] = []
    config: dict[str, Any] = {}
    contract: bool = False
    source_name: str = ""
    version: str = ""
    is_latest: bool = False
    test: dict[str, Any] = {}
    column_name: str = ""
    attached_to: str = ""
    stores_failures: bool = False

    @property
    def is_stored(self) -> bool:
        """Whether the node is a table or view in the database."""
        return self.kind in _STORED and self.materialized != "ephemeral"

    @property
    def relation(self) -> str:
        """The full name of its table in the database."""
        return ".".join(part for part in (self.database, self.schema, self.table) if part)


def list_nodes(artifacts: Artifacts) -> Iterator[DbtNode]:
    """Yield the nodes and sources of a manifest."""
    groups = {
        text(group.get("name")): owner_names(group.get("owner"))
        for group in artifacts.resources("groups").values()
    }
    for key, raw in {**artifacts.resources("nodes"), **artifacts.resources("sources")}.items():
        yield _node(key, raw, groups)


def _node(key: str, raw: dict[str, Any], groups: dict[str, list[str]]) -> DbtNode:
    config, depends = mapping(raw.get("config")), mapping(raw.get("depends_on"))
    kind = text(raw.get("resource_type")) or key.partition(".")[0]
    columns = [c for c in mapping(raw.get("columns")).values() if isinstance(c, dict)]
    version = raw.get("version")
    return DbtNode(
        id=key,
        kind=kind,
        name=text(raw.get("name")),
        package=text(raw.get("package_name")),
        database=text(raw.get("database")),
        schema=text(raw.get("schema")),
        table=text(raw.get("identifier")) or text(raw.get("alias")) or text(raw.get("name")),
        materialized=text(config.get("materialized")),
        language=text(raw.get("language")) or "sql",
        raw=text(raw.get("raw_code")) or text(raw.get("raw_sql")),
        compiled=text(raw.get("compiled_code")) or text(raw.get("compiled_sql")),
        path=text(raw.get("original_file_path")) or text(raw.get("path")),
        description=text(raw.get("description")) or text(raw.get("source_description")),
        tags=list_tags(raw),
        owners=owner_names(list_meta(raw).get("owner")) or groups.get(_group(raw, config), []),
        columns=[_column(column) for column in columns],
        column_tags={text(c.get("name")): tags for c in columns if (tags := list_tags(c))},
        depends_on=texts(depends.get("nodes")),
        declared_sources=list_declared_sources(raw),
        macros=texts(depends.get("macros")),
        config=config,
        contract=bool(mapping(config.get("contract")).get("enforced")),
        source_name=text(raw.get("source_name")),
        version="" if version is None else str(version),
        is_latest=version is not None and version == raw.get("latest_version"),
        test=mapping(raw.get("test_metadata")),
        column_name=text(raw.get("column_name")),
        attached_to=text(raw.get("attached_node")),
        stores_failures=kind == "test" and _stores_failures(raw, config),
    )


def _stores_failures(raw: dict[str, Any], config: dict[str, Any]) -> bool:
    """Return whether a test writes its failing rows to a table.

    dbt names the table of such a test only, also if the option `--store-failures` asked for it.
    """
    return bool(raw.get("relation_name")) or config.get("store_failures") is True


def _column(raw: dict[str, Any]) -> DocumentedColumn:
    return DocumentedColumn(
        text(raw.get("name")), text(raw.get("data_type")), text(raw.get("description"))
    )


def _group(raw: dict[str, Any], config: dict[str, Any]) -> str:
    return text(raw.get("group")) or text(config.get("group"))


def catalog_columns(artifacts: Artifacts, node: DbtNode) -> list[DocumentedColumn]:
    """Return the columns of a node in catalog.json, in their order."""
    kind = "sources" if node.kind == "source" else "nodes"
    entry = mapping(mapping(artifacts.catalog.get(kind)).get(node.id))
    described = {column.name.casefold(): column.description for column in node.columns}
    columns = entries(list(mapping(entry.get("columns")).values()))
    columns.sort(key=_index)
    return [
        DocumentedColumn(
            name,
            text(column.get("type")),
            described.get(name.casefold(), "") or text(column.get("comment")),
        )
        for column in columns
        if (name := text(column.get("name")))
    ]


def _index(column: dict[str, Any]) -> int:
    index = column.get("index")
    return index if isinstance(index, int) else 0


# Schemes of namespaces that differ from the name of the adapter.
_SCHEMES = {
    "sqlserver": "mssql", "synapse": "mssql", "fabric": "fabric-warehouse", "athena": "awsathena",
    "alloydb": "postgres",
}  # fmt: skip


class DbtNaming(msgspec.Struct, frozen=True, kw_only=True):
    """The names of one project's datasets and jobs, equal to those of OpenLineage's dbt client."""

    project: str
    adapter: str
    namespace: str
    job_namespace: str

    @property
    def dialect(self) -> str | None:
        """The SQL dialect of the adapter; None when it must be guessed."""
        return find_dialect(self.adapter)

    def dataset(self, node: DbtNode) -> DatasetId:
        """Return the dataset of a model, seed, snapshot or source."""
        return DatasetId(self.namespace, node.relation)

    def job(self, node: DbtNode, suffix: str = "") -> JobId:
        """Return the job that builds a node, or tests it when a suffix is given."""
        own = node.id.partition(".")[2]
        parts = [part for part in (node.database, node.schema, own) if part]
        ending = suffix or (".snapshot" if node.kind == "snapshot" else "")
        return JobId(self.job_namespace, ".".join(parts) + ending)

    def alias(self, node: DbtNode) -> DatasetId | None:
        """Return the name OpenLineage's client gives a source whose table has another name."""
        if node.kind != "source" or node.table == node.name:
            return None
        parts = [part for part in (node.database, node.schema, node.name) if part]
        return DatasetId(self.namespace, ".".join(parts))

    def consumer(self, folder: str, name: str) -> DatasetId:
        """Return the dataset of an exposure, a metric or a semantic model."""
        return DatasetId(f"dbt://{self.project}", f"{folder}/{name}")

    def consumer_job(self, key: str) -> JobId:
        """Return the job of an exposure, metric, semantic model or test, by its unique id."""
        return JobId(self.job_namespace, key)


def default_namespace(adapter: str, project: str) -> str:
    """Return the namespace of an adapter and project, because a manifest has no database URL."""
    if adapter == "bigquery":
        return "bigquery"
    return f"{_SCHEMES.get(adapter, adapter) or 'dbt'}://{project}"
