"""A small warehouse in a store, registered table by table and query by query."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from downriver.model.verdicts import Effect, Impact
    from downriver.service import Lineage

NAMESPACE = "db"
_URL = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/"


def facet(**content: Any) -> dict[str, Any]:
    return {"_producer": "https://test", "_schemaURL": "https://test", **content}


class Estate:
    """Registers tables and jobs in a store."""

    def __init__(self, lineage: Lineage) -> None:
        self.lineage = lineage

    def table(
        self,
        name: str,
        columns: dict[str, str] | None = None,
        *,
        tags: dict[str, str] | None = None,
        owners: list[str] | None = None,
        column_tags: dict[str, str] | None = None,
    ) -> None:
        facets: dict[str, Any] = {}
        if columns:
            facets["schema"] = facet(fields=[{"name": c, "type": t} for c, t in columns.items()])
        if tags or column_tags:
            listed = [{"key": k, "value": v} for k, v in (tags or {}).items()]
            listed += [
                {"key": k, "value": "true", "field": c} for c, k in (column_tags or {}).items()
            ]
            facets["tags"] = facet(tags=listed)
        if owners:
            facets["ownership"] = facet(owners=[{"name": owner} for owner in owners])
        event = {
            "eventTime": "2026-01-01T00:00:00Z",
            "producer": "https://test",
            "schemaURL": f"{_URL}DatasetEvent",
            "dataset": {"namespace": NAMESPACE, "name": name, "facets": facets},
        }
        self.lineage.ingest([json.dumps(event).encode()])

    def sql(self, job: str, sql: str, *, dialect: str = "duckdb", path: str = "") -> None:
        self.lineage.capture.sql(
            sql, dialect=dialect, namespace=NAMESPACE, job=job, path=path or f"{job}.sql"
        )

    def job(
        self,
        name: str,
        inputs: list[str],
        outputs: list[str],
        *,
        columns: dict[str, list[str]] | None = None,
        facets: dict[str, Any] | None = None,
        lineage: dict[str, Any] | None = None,
        at: str = "2026-01-01T00:00:00Z",
    ) -> None:
        """Register a run. `columns` says from which `table.column` each output column derives.

        `lineage` is the columnLineage facet of each output, where `columns` does not suffice.
        """
        outs = []
        for output in outputs:
            told: dict[str, Any] = {} if lineage is None else {"columnLineage": lineage}
            if columns:
                told["columnLineage"] = facet(
                    fields={
                        target: {
                            "inputFields": [
                                {
                                    "namespace": NAMESPACE,
                                    "name": source.rpartition(".")[0],
                                    "field": source.rpartition(".")[2],
                                    "transformations": [{"type": "DIRECT", "subtype": "IDENTITY"}],
                                }
                                for source in sources
                            ]
                        }
                        for target, sources in columns.items()
                    }
                )
            outs.append({"namespace": NAMESPACE, "name": output, "facets": told})
        event = {
            "eventTime": at,
            "eventType": "COMPLETE",
            "producer": "https://test",
            "schemaURL": f"{_URL}RunEvent",
            "run": {"runId": f"run of {name}"},
            "job": {"namespace": "jobs", "name": name, "facets": facets or {}},
            "inputs": [{"namespace": NAMESPACE, "name": name} for name in inputs],
            "outputs": outs,
        }
        self.lineage.ingest([json.dumps(event).encode()])


def effect_on(impact: Impact, name: str) -> Effect:
    found = [effect for effect in impact.effects if effect.name == name]
    assert found, f"{name} is not among {[effect.name for effect in impact.effects]}"
    return found[0]


def hurt(impact: Impact) -> dict[str, str]:
    return {effect.name: effect.outcome.value for effect in impact.effects}
