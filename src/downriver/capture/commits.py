"""Commits of versioned tables (Delta Lake, Iceberg, files) as runs that write versions."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, NamedTuple

from downriver.model.ids import JobId
from downriver.openlineage.events import dataset, run_event
from downriver.openlineage.facets.custom import BLIND_SPOTS, BlindSpotEntry, render_blind_spots
from downriver.openlineage.facets.dataset import (
    COMMIT,
    DATASET_TYPE,
    OUTPUT_STATISTICS,
    SCHEMA,
    SYMLINKS,
    VERSION,
    CommitFacet,
    SchemaField,
    render_commit,
    render_dataset_type,
    render_output_statistics,
    render_schema,
    render_symlinks,
    render_version,
)
from downriver.openlineage.facets.job import JOB_TYPE, render_job_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import msgspec

    from downriver.model.ids import DatasetId, RunId
    from downriver.openlineage.facets.base import Facets
    from downriver.openlineage.wire import Event


class TableCommit(NamedTuple):
    """One entry of the log of a table; times in µs since the epoch."""

    version: str
    at: int
    operation: str
    fields: tuple[SchemaField, ...] | None = None  # None: the schema of this version is not known
    rows: int | None = None  # written or changed by the commit
    size: int | None = None
    user: str = ""
    engine: str = ""
    job: str = ""  # the name of the job, if the log has it
    parameters: tuple[tuple[str, str], ...] = ()
    metrics: tuple[tuple[str, float], ...] = ()
    labels: tuple[str, ...] = ()
    restores: str = ""
    fingerprints: tuple[tuple[str, str], ...] = ()  # of the columns


class TableLog(NamedTuple):
    """The commits of a table, the oldest first, and the names of the table."""

    integration: str
    table: DatasetId
    title: str  # a short name, used in names of jobs
    commits: tuple[TableCommit, ...]
    aliases: tuple[DatasetId, ...] = ()
    unread: tuple[str, ...] = ()  # what could not be read, and why
    described: str = "the log"


# Operations that rewrite files or metadata of the table and add no rows from elsewhere.
_REWRITES = frozenset(
    {
        "OPTIMIZE", "VACUUM START", "VACUUM END", "REORG", "REPLACE", "RESTORE", "DELETE",
        "SET TBLPROPERTIES", "ADD CONSTRAINT", "DROP CONSTRAINT", "ADD COLUMN", "CHANGE COLUMN",
        "RENAME COLUMN", "DROP COLUMNS", "UPGRADE PROTOCOL", "UPDATE",
    }
)  # fmt: skip


def render_table_log(log: TableLog, find_run: Callable[[int], RunId | None]) -> list[Event]:
    """Return one event for each commit.

    `find_run` returns the run of a known job that wrote the table at a time. The commit is then
    attached to it. Other commits are runs of jobs that are named after the table and the operation.
    """
    return [_commit_event(log, commit, find_run(commit.at)) for commit in log.commits]


def _commit_event(log: TableLog, commit: TableCommit, known: RunId | None) -> Event:
    output = dataset(
        log.table,
        _table_facets(log, commit),
        output_facets={COMMIT: _commit_facet(commit), **_statistics(commit)},
    )
    if known is not None:
        return run_event(known.job, known.run, "OTHER", commit.at, outputs=[output])
    operation = commit.operation.upper()
    rewrites = operation in _REWRITES
    name = commit.job or f"{log.title}.{operation.lower().replace(' ', '_')}"
    facets: Facets = {JOB_TYPE: render_job_type(log.integration, "COMMIT")}
    if not rewrites:
        facets[BLIND_SPOTS] = render_blind_spots([_unknown_inputs(log)])
    run = uuid.uuid5(uuid.NAMESPACE_URL, f"{log.table}@{commit.version}@{commit.at}")
    return run_event(
        JobId(log.integration.lower(), name),
        str(run),
        "COMPLETE",
        commit.at,
        inputs=[dataset(log.table)] if rewrites else [],
        outputs=[output],
        facets=facets,
    )


def _unknown_inputs(log: TableLog) -> BlindSpotEntry:
    message = f"{log.described} of {log.title} does not contain the sources of a commit"
    return BlindSpotEntry("unknown_inputs", message)


def _table_facets(log: TableLog, commit: TableCommit) -> Facets:
    facets: Facets = {
        VERSION: render_version(commit.version),
        DATASET_TYPE: render_dataset_type("TABLE"),
    }
    if commit.fields is not None:
        facets[SCHEMA] = render_schema(commit.fields)
    if log.aliases:
        facets[SYMLINKS] = render_symlinks(log.aliases)
    return facets


def _commit_facet(commit: TableCommit) -> msgspec.Raw:
    return render_commit(
        CommitFacet(
            version=commit.version,
            operation=commit.operation,
            user=commit.user,
            engine=commit.engine,
            parameters=dict(commit.parameters),
            metrics=dict(commit.metrics),
            labels=list(commit.labels),
            restores=commit.restores,
            fingerprints=dict(commit.fingerprints),
        )
    )


def _statistics(commit: TableCommit) -> Facets:
    if commit.rows is None and commit.size is None:
        return {}
    return {OUTPUT_STATISTICS: render_output_statistics(rows=commit.rows, size=commit.size)}


def numbers(metrics: Iterable[tuple[str, object]]) -> tuple[tuple[str, float], ...]:
    """Return the metrics of a commit that are numbers."""
    values = []
    for name, value in metrics:
        try:
            values.append((name, float(str(value))))
        except ValueError:
            continue
    return tuple(values)


def first_of(metrics: Sequence[tuple[str, float]], *names: str) -> int | None:
    """Return the first of several metrics that a commit has."""
    values = dict(metrics)
    return next((int(values[name]) for name in names if name in values), None)
