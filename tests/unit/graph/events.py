"""OpenLineage events in one line each."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

DATASETS = "db"
JOBS = "etl"

Json = dict[str, Any]


def moment(day: int) -> str:
    """Noon of a day, counted from 1 January 2026."""
    return (dt.datetime(2026, 1, 1, 12) + dt.timedelta(days=day - 1)).isoformat() + "Z"


def dataset(name: str, namespace: str = DATASETS, /, **facets: Json) -> Json:
    return {"namespace": namespace, "name": name, "facets": facets}


def _datasets(named: Any) -> list[Json]:
    return [dataset(one) if isinstance(one, str) else one for one in named]


def run_event(
    job: str,
    inputs: Any = (),
    outputs: Any = (),
    /,
    *,
    day: int = 1,
    run: str = "run-1",
    namespace: str = JOBS,
    **facets: Json,
) -> bytes:
    """A COMPLETE event; inputs and outputs are names or `dataset(…)`, facets are the job's."""
    return render(
        {
            "eventTime": moment(day),
            "eventType": "COMPLETE",
            "run": {"runId": run},
            "job": {"namespace": namespace, "name": job, "facets": facets},
            "inputs": _datasets(inputs),
            "outputs": _datasets(outputs),
        }
    )


def dataset_event(
    name: str, namespace: str = DATASETS, /, *, day: int = 1, **facets: Json
) -> bytes:
    return render({"eventTime": moment(day), "dataset": dataset(name, namespace, **facets)})


def render(event: Json) -> bytes:
    return json.dumps(event).encode()


def schema(*fields: str) -> Json:
    return {"fields": [{"name": field} for field in fields]}


def nested_schema(parent: str, *fields: str) -> Json:
    return {"fields": [{"name": parent, "fields": [{"name": field} for field in fields]}]}


def source(column: str, kind: str = "DIRECT", subtype: str = "", **more: Any) -> Json:
    """An input field such as `orders.amount`, and how it is used."""
    name, _, field = column.rpartition(".")
    how = {"type": kind, "subtype": subtype, **more}
    return {"namespace": DATASETS, "name": name, "field": field, "transformations": [how]}


def copied(column: str) -> Json:
    return source(column, "DIRECT", "IDENTITY")


def filtered_by(column: str) -> Json:
    return source(column, "INDIRECT", "FILTER")


def column_lineage(*whole: Json, **fields: list[Json]) -> Json:
    """A columnLineage facet: what each field comes from, and what the dataset as a whole does."""
    by_field = {field: {"inputFields": sources} for field, sources in fields.items()}
    return {"fields": by_field, "dataset": list(whole)}


def copy_of(*names: str) -> Json:
    """The columnLineage of `SELECT *`: every field, whatever it is called, is copied."""
    sources = [copied(f"{name}.*") for name in names]
    return {"fields": {"*": {"inputFields": sources}}}


def feeds(target: str, *inputs: str) -> Json:
    """One entry of a job's lineage facet: these datasets, and no others, feed the target."""
    sources = [{"namespace": DATASETS, "name": name, "type": "DATASET"} for name in inputs]
    return {"namespace": DATASETS, "name": target, "type": "DATASET", "inputs": sources}


def lineage_of(*entries: Json) -> Json:
    return {"entries": list(entries)}


def symlinks(*names: str) -> Json:
    identifiers = [{"namespace": DATASETS, "name": name, "type": "TABLE"} for name in names]
    return {"identifiers": identifiers}


def renamed_from(name: str) -> Json:
    previous = {"namespace": DATASETS, "name": name}
    return {"lifecycleStateChange": "RENAME", "previousIdentifier": previous}
