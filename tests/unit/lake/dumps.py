"""The facts of a lake in the format of `Reader.dump()`, for a row by row comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from downriver.model.ids import DatasetId, JobId, short_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, Row


def dump(facts: Mapping[str, DataFrame]) -> dict[str, list[tuple[Any, ...]]]:
    """Return every table of facts with nodes by their ids, sorted."""
    return {name: sorted(_row(name, row) for row in facts[f].collect()) for name, f in _FROM}


_FROM = (
    ("nodes", "nodes"),
    ("columns", "columns"),
    ("edges", "edges"),
    ("runs", "runs"),
    ("bodies", "bodies"),
    ("facets", "facets"),
    ("claims", "claims"),
    ("derives", "derivations"),
)


def _row(table: str, r: Row) -> tuple[Any, ...]:
    match table:
        case "nodes":
            return (_node(r.kind, r.namespace, r.name), short_name(r.name), *_span(r))
        case "columns":
            return (_node(r.kind, r.namespace, r.name), r.field)
        case "edges":
            return (r.kind, *_ends(r), _job(r.via_namespace, r.via_name), *_span(r))
        case "runs":
            state = (r.state, r.state_at, r.started_at or 0)
            return (_job(r.job_namespace, r.job_name), r.run, *state, *_span(r)[:-1])
        case "bodies":
            return (bytes(r.digest),)
        case "facets":
            node = _node(r.kind, r.namespace, r.name)
            return (r.role, node, r.run or "", r.facet, bytes(r.digest), *_span(r))
        case "claims":
            job, dataset = _job(r.job_namespace, r.job_name), _node(0, r.namespace, r.name)
            return (job, dataset, r.facet, bytes(r.digest), *_span(r))
    source = (_node(0, r.source_namespace, r.source_name), r.source_field)
    target = (_node(0, r.target_namespace, r.target_name), r.target_field)
    how = (int(r.direct), r.subtype, r.description, int(r.masking), r.confidence)
    return (_job(r.job_namespace, r.job_name), bytes(r.digest), *source, *target, *how)


_FROM_JOB, _TO_JOB = {2, 4, 7, 8}, {1, 7, 8}


def _ends(r: Row) -> tuple[str, str]:
    return (
        _node(int(r.kind in _FROM_JOB), r.source_namespace, r.source_name),
        _node(int(r.kind in _TO_JOB), r.target_namespace, r.target_name),
    )


def _node(kind: int, namespace: str, name: str) -> str:
    return str((JobId if kind else DatasetId)(namespace, name))


def _job(namespace: str | None, name: str | None) -> str:
    return "" if name is None else str(JobId(namespace or "", name))


def _span(r: Row) -> tuple[Any, ...]:
    first, last = bytes(r.first_event), bytes(r.last_event)
    return (r.first_at, first, r.last_at, last, int(r.observed))
