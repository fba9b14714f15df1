"""The tables that the dbt package `dbt_artifacts` writes after each run, as artifacts of dbt."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.capture.dbt.artifacts import Artifacts
from downriver.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    Row = Mapping[str, Any]
    Query = Callable[[str], Sequence[Row]]

_SCHEMA = re.compile(r"[\w$]+(?:\.[\w$]+)?")
_MANIFEST = "https://schemas.getdbt.com/dbt/manifest/v12.json"
_NODES = {"models": "model", "seeds": "seed", "snapshots": "snapshot", "tests": "test"}
_EXECUTIONS = ("model_executions", "seed_executions", "snapshot_executions", "test_executions")
_ADAPTERS = {"postgresql": "postgres"}
_TEXTS_AS_JSON = ("depends_on_nodes", "tags", "meta", "adapter_response", "owner", "all_results")


def read_artifact_tables(
    schema: str, tables: Iterable[str], query: Query, scheme: str
) -> Artifacts:
    """Return what the tables of a schema contain about the newest invocation of dbt.

    `tables` are those of the database, `query` returns the rows of a query by the names of its
    columns, and `scheme` is that of the database's URL.
    """
    if not _SCHEMA.fullmatch(schema):
        raise InvalidRequestError("--schema", f"{schema!r} is not the name of a schema")
    return _ArtifactTables(schema, tables, query, scheme).artifacts()


class _ArtifactTables:
    def __init__(self, schema: str, tables: Iterable[str], query: Query, scheme: str) -> None:
        self._query = query
        self._adapter = _ADAPTERS.get(scheme, scheme)
        self._schema = schema
        ending = f"{schema}.".casefold()
        folded = (table.casefold() for table in tables)
        self._tables = {t.rpartition(".")[2] for t in folded if f".{t}".find(f".{ending}") >= 0}
        if "models" not in self._tables:
            reason = f"{schema} has no table `models` of the package dbt_artifacts"
            raise InvalidRequestError("--schema", reason)
        self._invocation = self._newest_invocation()

    def artifacts(self) -> Artifacts:
        """Return the tables as a manifest and run results."""
        nodes = {
            str(row["node_id"]): _node(row, kind)
            for table, kind in _NODES.items()
            for row in self._rows(table)
        }
        executions = [row for table in _EXECUTIONS for row in self._rows(table)]
        ends = [_time(row.get("query_completed_at")) for row in executions]
        started = [_time(row.get("run_started_at")) for row in self._rows("models")]
        at = max(filter(None, [*ends, *started]), default="")
        metadata = {
            "dbt_schema_version": _MANIFEST,
            "generated_at": at,
            "invocation_id": self._invocation,
            "adapter_type": self._adapter,
            "project_name": next((n["package_name"] for n in nodes.values()), ""),
        }
        return Artifacts(
            manifest={
                "metadata": metadata,
                "nodes": nodes,
                "sources": {str(row["node_id"]): _source(row) for row in self._rows("sources")},
                "exposures": {str(r["node_id"]): _exposure(r) for r in self._rows("exposures")},
            },
            catalog={},
            run_results={"metadata": metadata, "results": list(map(_result, executions))},
            sources={},
        )

    def _newest_invocation(self) -> str:
        newest = (
            f"SELECT command_invocation_id AS id FROM {self._schema}.models "  # noqa: S608 (checked)
            "ORDER BY run_started_at DESC LIMIT 1"
        )
        rows = self._query(newest)
        if not rows:
            raise InvalidRequestError("--schema", f"{self._schema}.models is empty")
        invocation = str(rows[0]["id"])
        if not re.fullmatch(r"[\w-]+", invocation):  # it becomes part of queries
            raise InvalidRequestError("--schema", f"{invocation!r} is not the id of an invocation")
        return invocation

    def _rows(self, table: str) -> Iterator[Row]:
        if table not in self._tables:
            return
        query = (
            f"SELECT * FROM {self._schema}.{table} "  # noqa: S608 (names and id are checked)
            f"WHERE command_invocation_id = '{self._invocation}'"
        )
        for row in self._query(query):
            fields = {str(name).lower(): value for name, value in row.items()}
            for name in _TEXTS_AS_JSON:
                if isinstance(fields.get(name), str):
                    fields[name] = _decoded(fields[name])
            yield fields


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _node(row: Row, kind: str) -> dict[str, Any]:
    """Return a node: as dbt described it if the package stored that, else from its columns."""
    whole = row.get("all_results")
    node: dict[str, Any] = dict(whole) if isinstance(whole, dict) else {}
    stated = {
        "resource_type": kind,
        "name": row.get("name"),
        "alias": row.get("alias"),
        "database": row.get("database"),
        "schema": row.get("schema"),
        "package_name": row.get("package_name"),
        "original_file_path": row.get("path"),
        "tags": row.get("tags"),
        "meta": row.get("meta"),
        "depends_on": {"nodes": row.get("depends_on_nodes")},
        "config": {"materialized": row.get("materialization") or _MATERIALIZED.get(kind, "")},
    }
    return {**{name: value for name, value in stated.items() if value is not None}, **node}


_MATERIALIZED = {"seed": "seed", "snapshot": "snapshot", "test": "test"}


def _source(row: Row) -> dict[str, Any]:
    names = ("database", "schema", "source_name", "name", "identifier", "loader")
    return {"resource_type": "source", **{name: row.get(name) for name in names}}


def _exposure(row: Row) -> dict[str, Any]:
    owner = row.get("owner")
    names = ("name", "type", "maturity", "description", "url", "package_name", "tags")
    return {
        "resource_type": "exposure",
        **{name: row.get(name) for name in names},
        "original_file_path": row.get("path"),
        "owner": owner if isinstance(owner, dict) else {"name": owner},
        "depends_on": {"nodes": row.get("depends_on_nodes")},
    }


def _result(row: Row) -> dict[str, Any]:
    response = row.get("adapter_response")
    counted = {"rows_affected": row.get("rows_affected")}
    times = ("compile_started_at", "query_completed_at")
    started, completed = (_time(row.get(name)) for name in times)
    return {
        "unique_id": str(row["node_id"]),
        "status": row.get("status"),
        "execution_time": row.get("total_node_runtime"),
        "message": row.get("message"),
        "failures": row.get("failures"),
        "adapter_response": {**counted, **(response if isinstance(response, dict) else {})},
        "timing": [{"name": "execute", "started_at": started, "completed_at": completed}],
    }


def _time(value: object) -> str:
    """Return a time as dbt writes it. The package stores times in UTC."""
    if isinstance(value, dt.datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=dt.timezone.utc)
        return moment.astimezone(dt.timezone.utc).isoformat().replace("+00:00", "Z")
    if not isinstance(value, str) or not value:
        return ""
    text = value.replace(" ", "T", 1)
    return text if text.endswith("Z") or "+" in text else f"{text}Z"
