"""OpenLineage events as producers write them, each from one call."""

from __future__ import annotations

import json
from typing import Any

from downriver.openlineage import Event, parse_event

DATABASE = "postgres://db:5432"
JOBS = "etl"
NOON = "2026-01-01T12:00:00Z"

Json = dict[str, Any]


def dataset(name: str, facets: Json | None = None, **more: Any) -> Json:
    """Return a dataset; `more` overrides or adds keys, such as `outputFacets`."""
    return {"namespace": DATABASE, "name": name, **({"facets": facets} if facets else {}), **more}


def job(name: str, facets: Json | None = None) -> Json:
    return {"namespace": JOBS, "name": name, **({"facets": facets} if facets else {})}


def run_event(
    job_name: str = "load",
    run: str = "run-1",
    state: str | None = "COMPLETE",
    at: str = NOON,
    *,
    inputs: list[Json] | None = None,
    outputs: list[Json] | None = None,
    job_facets: Json | None = None,
    run_facets: Json | None = None,
) -> Json:
    """Return a RunEvent, with only the keys that are given."""
    event: Json = {
        "eventTime": at,
        "run": {"runId": run, **({"facets": run_facets} if run_facets else {})},
        "job": job(job_name, job_facets),
    }
    given = {"eventType": state, "inputs": inputs, "outputs": outputs}
    return event | {key: value for key, value in given.items() if value is not None}


def job_event(job_name: str, at: str = NOON, facets: Json | None = None, **more: Any) -> Json:
    """Return a JobEvent: a declared job without a run."""
    return {"eventTime": at, "job": job(job_name, facets), **more}


def dataset_event(name: str, facets: Json | None = None, at: str = NOON) -> Json:
    """Return a DatasetEvent: a declared dataset."""
    return {"eventTime": at, "dataset": dataset(name, facets)}


def encode(event: Json) -> bytes:
    return json.dumps(event, ensure_ascii=False).encode()


def parsed(event: Json) -> Event:
    """Return the event as the server parses it."""
    return parse_event(encode(event))


def schema(*names: str, **types: str) -> Json:
    """Return a schema facet from names, or names with types."""
    fields: list[Json] = [{"name": name} for name in names]
    return {"fields": fields + [{"name": name, "type": kind} for name, kind in types.items()]}


def source(name: str, field: str | None = None, *transformations: Json, **more: Any) -> Json:
    """Return an input field of a columnLineage or lineage facet."""
    entry: Json = {"namespace": DATABASE, "name": name, **more}
    if field is not None:
        entry["field"] = field
    if transformations:
        entry["transformations"] = list(transformations)
    return entry


def column_lineage(fields: dict[str, list[Json]], wide: list[Json] | None = None) -> Json:
    """Return a columnLineage facet. `wide` are the input fields that affect the whole dataset."""
    facet: Json = {"fields": {name: {"inputFields": given} for name, given in fields.items()}}
    return facet | ({"dataset": wide} if wide is not None else {})
