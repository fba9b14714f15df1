"""The OpenAPI description, generated from the routes and their msgspec types."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from downriver import __version__
from downriver.http.errors import ErrorBody

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.http.endpoint import Endpoint

_QUERY = {
    "decision": ("Only verdicts with this decision: APPROVED, CAUTION or BLOCKED.", "string"),
    "entity": ("A dataset, job or column: a name or an id.", "string"),
    "version": ("A version of the dataset.", "string"),
    "trigger": ("Only actions of the trigger with this name.", "string"),
    "nodeId": (
        "`dataset:NAMESPACE:NAME`, `job:NAMESPACE:NAME` or, for columns, "
        "`datasetField:NAMESPACE:NAME:FIELD`.",
        "string",
    ),
    "withDownstream": ("Also return the columns that derive from these.", "boolean"),
    "runId": ("The id of a run.", "string"),
    "source": ("The entity where paths start.", "string"),
    "target": ("The entity where paths end.", "string"),
    "direction": ("upstream, downstream or both.", "string"),
    "depth": ("The maximum number of jobs to cross.", "integer"),
    "as_of": ("Use the graph as of this ISO 8601 time.", "string"),
    "at": ("Report as of this ISO 8601 time. The default is now.", "string"),
    "rule": ("Run only this rule. May be repeated.", "string"),
    "skip": ("Leave out this rule. May be repeated.", "string"),
    "tag": ("A tag, such as pii.", "string"),
    "old": ("The number of the earlier version. Default: the one before.", "integer"),
    "new": ("The number of the later version. Default: the current one.", "integer"),
    "of": ("Only findings of this dataset or job.", "string"),
    "status": ("open (the default), resolved or all.", "string"),
    "kind": ("Only this kind: of a finding, or dataset, job, column, tag or owner.", "string"),
    "type": ("Only this asset type.", "string"),
    "namespace": ("Only this namespace; `*` stands for any text.", "string"),
    "actor": ("Only actions of this key, token or `local`.", "string"),
    "action": ("Only this: write, refused, create key, revoke key, rebuild, restore.", "string"),
    "owner": ("Only entities with this owner.", "string"),
    "group": ("none, namespace or schema.", "string"),
    "severity": ("The lowest severity: info, warning or critical.", "string"),
    "since": (
        "Only what happened since this ISO 8601 time, or since a period ago (24h).",
        "string",
    ),
    "format": (
        "The format: mermaid, dot, svg, json, csv, openlineage, cypher, datahub or atlas. "
        "Of the audit log: jsonl or csv.",
        "string",
    ),
    "focus": (
        "A column of the dataset. Only the lineage of this column is exported.",
        "string",
    ),
    "from": ("The earlier moment: an ISO 8601 time, or a period ago (7d).", "string"),
    "to": ("The later moment. Default: now.", "string"),
    "diff": ("Mark what was added or removed since this ISO 8601 time.", "string"),
    "text": ("Words that the name must contain.", "string"),
    "cursor": ("The cursor of the previous page.", "string"),
    "dataset": ("A dataset: a name or an id.", "string"),
    "column": ("A column of the dataset.", "string"),
    "field": ("The column where personal data enters: TABLE.COLUMN.", "string"),
    "dialect": ("postgres (the default), snowflake or databricks.", "string"),
    "examples": ("The maximum length of each list. Default: 10.", "integer"),
    "limit": ("The maximum number of results.", "integer"),
    "include": ("Parts of each node, separated by commas: columns, runs.", "string"),
    "state": (
        "Only runs in this state: START, RUNNING, COMPLETE, ABORT, FAIL; of triggers, only actions "
        "in this state: waiting, running, done, failed.",
        "string",
    ),
    "before": ("Only runs before this ISO 8601 time, or `next_before` of a page.", "string"),
    "job": ("A job: a name or an id.", "string"),
    "head": (
        "The last known number of events; the answer is delayed until the number differs.",
        "integer",
    ),
    "wait": ("The maximum time to wait, in seconds, at most 25.", "integer"),
    "q": ("A selector: `+orders+2`, `@orders`, `stg_*`, `tag:pii`, `owner:ana` …", "string"),
    "ids": ("The id of a dataset or job. May be repeated.", "string"),
    "points": ("The number of moments, at most 200.", "integer"),
    "offset": ("The number of results to skip at the beginning.", "integer"),
    "lastRunStates": (
        "Only jobs whose last run is NEW, RUNNING, COMPLETED, FAILED or ABORTED. May be repeated.",
        "string",
    ),
    "filter": ("Only DATASET or only JOB.", "string"),
    "sort": ("NAME or UPDATE_AT.", "string"),
    "after": ("Only what happened since this ISO 8601 time or date.", "string"),
    "sortDirection": ("desc (the default) or asc.", "string"),
    "period": ("DAY (24 hours) or WEEK (7 days).", "string"),
    "timezone": ("The time zone of the days, such as Europe/Berlin.", "string"),
    "certified": ("Also measure the integrity of certified paths.", "boolean"),
    "readers": ("List jobs that only read instead of counting them.", "boolean"),
    "statements": ("Show jobs that report one statement separately from their task.", "boolean"),
}
_REQUIRED = ("entity", "q", "field", "nodeId", "runId", "source", "target", "dataset", "column")
_MEANINGS = {
    200: "OK", 201: "Stored", 204: "All events stored", 400: "The request is invalid",
    404: "No entity has this name", 409: "The name is ambiguous",
    413: "The body is too large", 422: "The asset cannot be registered",
    503: "The server is overloaded; try again",
}  # fmt: skip


def render_openapi(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of these routes."""
    listed = list(endpoints)
    types = {kind for e in listed for kind in (*_statuses(e).values(), e.body) if _is_named(kind)}
    _, components = msgspec.json.schema_components(
        types, ref_template="#/components/schemas/{name}"
    )
    paths: dict[str, Any] = {}
    for endpoint in listed:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Downriver", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": endpoint.handler.__name__,
        "summary": (endpoint.handler.__doc__ or "").strip().splitlines()[0],
        "responses": {str(s): _response(s, kind) for s, kind in _statuses(endpoint).items()},
    }
    parameters = [
        _parameter(name, required=name in _REQUIRED and name not in endpoint.optional)
        for name in endpoint.query
    ]
    parameters += [_in_path(name) for name in re.findall(r"{(\w+)}", endpoint.path)]
    if parameters:
        operation["parameters"] = parameters
    if endpoint.body is not None:
        schema = _body(endpoint.body)
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schema}},
        }
    if endpoint.role is not None:
        operation["security"] = [{"key": []}, {}]
    return operation


def _statuses(endpoint: Endpoint) -> dict[int, type[Any] | None]:
    """Return all statuses. Routes that use the store are refused while the server is overloaded."""
    uses_store = endpoint.role is not None
    return {**endpoint.statuses, **({503: ErrorBody} if uses_store else {})}


_IN_PATH = {
    "id": "The id of a run, asset, dataset or job, or the name of an asset or key.",
    "namespace": "A namespace, percent-encoded.",
    "dataset": "The name of a dataset, percent-encoded.",
    "job": "The name of a job, percent-encoded.",
    "source": "The name of a source, percent-encoded.",
    "field": "A column of the dataset.",
    "tag": "A tag. Letter case is ignored.",
    "version": "The id of a version.",
    "digest": "The SHA-256 of an event in hexadecimal, as in the evidence of an edge.",
}


def _in_path(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": _IN_PATH[name],
        "schema": {"type": "string"},
    }


def _is_named(kind: type[Any] | None) -> bool:
    return kind not in (None, dict, list)


def _body(kind: type[Any]) -> dict[str, Any]:
    if _is_named(kind):
        return {"$ref": f"#/components/schemas/{kind.__name__}"}
    return {"type": "array" if kind is list else "object"}


def _parameter(name: str, *, required: bool) -> dict[str, Any]:
    meaning, kind = _QUERY[name]
    return {
        "name": name,
        "in": "query",
        "required": required,
        "description": meaning,
        "schema": {"type": kind},
    }


def _response(status: int, kind: type[Any] | None) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": _MEANINGS[status]}
    if kind is not None:
        answer["content"] = {"application/json": {"schema": _body(kind)}}
    return answer
