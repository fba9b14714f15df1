"""A connected warehouse as OpenLineage events of about 6 KB, the size that dbt and Spark send."""

from __future__ import annotations

import datetime as dt
import json
import random
import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

JOBS_NAMESPACE, TABLES_NAMESPACE = "airflow", "postgres://warehouse:5432"
ROOT = f"dataset:{TABLES_NAMESPACE}:sales.table_00000"

_START = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)
_PRODUCER = "https://github.com/OpenLineage/OpenLineage/tree/1.54.0/integration/dbt"
_SPEC = "https://openlineage.io/spec"
_COLUMNS = 12
_READ = 2  # tables that a job reads
_TASKS = 20  # jobs of a DAG
_NEAR = 60  # a job reads tables that were added shortly before its own, as layers of a warehouse do


class Warehouse:
    """Jobs that each write a table and read two others; all tables are connected."""

    def __init__(self, jobs: int, seed: int = 7) -> None:
        self._random = random.Random(seed)
        self._sources = [self._choose(number) for number in range(jobs)]

    def _choose(self, number: int) -> list[int]:
        # Table 0 is raw, and table n is written by job n - 1.
        nearest = range(max(0, number + 1 - _NEAR), number + 1)
        return sorted(self._random.sample(nearest, min(_READ, len(nearest))))

    def events(self, run: int = 0) -> Iterator[bytes]:
        """Yield one run of every job."""
        for number in range(len(self._sources)):
            yield self.event(number, run)

    def event(self, number: int, run: int = 0) -> bytes:
        """Return the end of a run of one job."""
        at = _START + dt.timedelta(days=run, seconds=number)
        identity = str(uuid.UUID(int=(run << 32) + number + 1))
        return json.dumps(_event(number, self._sources[number], identity, at)).encode()


def _event(number: int, sources: list[int], run: str, at: dt.datetime) -> dict[str, Any]:
    nominal = at.replace(hour=0, minute=0, second=0).isoformat()
    dag = number // _TASKS
    parent = {"namespace": JOBS_NAMESPACE, "name": f"dag_{dag:04d}"}
    parent_run = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{nominal} {dag}"))
    return {
        "eventTime": at.isoformat(),
        "eventType": "COMPLETE",
        "run": {
            "runId": run,
            "facets": {
                "nominalTime": _facet("NominalTimeRunFacet", nominalStartTime=nominal),
                "parent": _facet("ParentRunFacet", run={"runId": parent_run}, job=parent),
            },
        },
        "job": {
            "namespace": JOBS_NAMESPACE,
            "name": f"{parent['name']}.job_{number:05d}",
            "facets": {
                "jobType": _facet(
                    "JobTypeJobFacet", processingType="BATCH", integration="AIRFLOW", jobType="TASK"
                ),
                "sql": _facet("SQLJobFacet", query=f"SELECT * FROM table_{number:05d}" * 10),
            },
        },
        "inputs": [_dataset(source) for source in sources],
        "outputs": [_output(number + 1, sources)],
        "producer": _PRODUCER,
        "schemaURL": f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent",
    }


def _dataset(number: int) -> dict[str, Any]:
    fields = [
        {"name": f"column_{k:02d}", "type": "VARCHAR", "description": f"Column {k} of {number}"}
        for k in range(_COLUMNS)
    ]
    source = {"name": TABLES_NAMESPACE, "uri": TABLES_NAMESPACE}
    return {
        "namespace": TABLES_NAMESPACE,
        "name": f"sales.table_{number:05d}",
        "facets": {
            "schema": _facet("SchemaDatasetFacet", fields=fields),
            "dataSource": _facet("DatasourceDatasetFacet", **source),
        },
    }


def _output(number: int, sources: list[int]) -> dict[str, Any]:
    dataset = _dataset(number)
    fields = {
        f"column_{k:02d}": {
            "inputFields": [
                {
                    "namespace": TABLES_NAMESPACE,
                    "name": f"sales.table_{sources[k % len(sources)]:05d}",
                    "field": f"column_{k:02d}",
                }
            ]
        }
        for k in range(_COLUMNS)
    }
    dataset["facets"]["columnLineage"] = _facet("ColumnLineageDatasetFacet", fields=fields)
    dataset["outputFacets"] = {
        "outputStatistics": _facet("OutputStatisticsOutputDatasetFacet", rowCount=1000 + number)
    }
    return dataset


def _facet(schema: str, **content: Any) -> dict[str, Any]:
    return {
        "_producer": _PRODUCER,
        "_schemaURL": f"{_SPEC}/facets/1-0-0/{schema}.json",
        **content,
    }
