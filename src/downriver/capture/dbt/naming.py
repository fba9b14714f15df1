"""What datasets and jobs are called: as OpenLineage's own dbt integration calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from downriver.model.ids import DatasetId, JobId

if TYPE_CHECKING:
    from downriver.capture.dbt.nodes import Node

# The scheme of a namespace where it is not the adapter's own name.
_SCHEMES = {
    "sqlserver": "mssql", "synapse": "mssql", "fabric": "fabric-warehouse", "athena": "awsathena",
    "alloydb": "postgres",
}  # fmt: skip
# sqlglot's name of a dialect where it is not the adapter's.
_DIALECTS = {
    "sqlserver": "tsql", "synapse": "tsql", "fabric": "tsql", "alloydb": "postgres",
    "glue": "spark", "starburst": "trino", "impala": "hive", "materialize": "postgres",
    "risingwave": "postgres", "maxcompute": "hive", "greenplum": "postgres",
}  # fmt: skip
_KNOWN_DIALECTS = frozenset(
    {
        "athena", "bigquery", "clickhouse", "databricks", "doris", "dremio", "drill", "duckdb",
        "exasol", "fabric", "hive", "mysql", "oracle", "postgres", "presto", "redshift",
        "singlestore", "snowflake", "spark", "sqlite", "starrocks", "teradata", "trino", "tsql",
    }
)  # fmt: skip


class Naming(msgspec.Struct, frozen=True, kw_only=True):
    """The names of one project."""

    project: str
    adapter: str
    namespace: str
    job_namespace: str

    @property
    def dialect(self) -> str | None:
        """The SQL dialect of the adapter, None to guess."""
        name = _DIALECTS.get(self.adapter, self.adapter)
        return name if name in _KNOWN_DIALECTS else None

    def dataset(self, node: Node) -> DatasetId:
        """Return the table of a model, seed, snapshot or source."""
        return DatasetId(self.namespace, node.relation)

    def job(self, node: Node, suffix: str = "") -> JobId:
        """Return what builds or tests a node."""
        own = node.id.partition(".")[2]
        parts = [part for part in (node.database, node.schema, own) if part]
        ending = suffix or (".snapshot" if node.kind == "snapshot" else "")
        return JobId(self.job_namespace, ".".join(parts) + ending)

    def alias(self, node: Node) -> DatasetId | None:
        """Return the name OpenLineage's integration gives a source whose table is called else."""
        if node.kind != "source" or node.table == node.name:
            return None
        parts = [part for part in (node.database, node.schema, node.name) if part]
        return DatasetId(self.namespace, ".".join(parts))

    def consumer(self, folder: str, name: str) -> DatasetId:
        """Return what is no table: an exposure, a metric, a semantic model."""
        return DatasetId(f"dbt://{self.project}", f"{folder}/{name}")

    def consumer_job(self, key: str) -> JobId:
        """Return the job behind an exposure, metric, semantic model or test, by its unique id."""
        return JobId(self.job_namespace, key)


def default_namespace(adapter: str, project: str) -> str:
    """Return a namespace for a connection the manifest does not tell: the adapter's, and ours."""
    if adapter == "bigquery":
        return "bigquery"
    return f"{_SCHEMES.get(adapter, adapter) or 'dbt'}://{project}"
