"""Runs of jobs, and events of the log, as answers show them."""

from __future__ import annotations

from typing import Any

import msgspec


class QualityCounts(msgspec.Struct, kw_only=True):
    """How many checks of a run's datasets passed and failed."""

    passed: int
    failed: int


class RunRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One execution of a job.

    `inputs` and `outputs` are the datasets that the job reads and writes. Counts are sums over
    them, as far as events contain them.
    """

    id: str
    job: str
    state: str
    inputs: list[str]
    outputs: list[str]
    started_at: str | None = None
    ended_at: str | None = None
    duration_seconds: float | None = None
    rows_read: int | None = None
    rows_written: int | None = None
    bytes_written: int | None = None
    error: str | None = None
    quality: QualityCounts | None = None
    parent: str | None = None


class Runs(msgspec.Struct, kw_only=True):
    """A page of runs, the latest first; `next_before` continues after the last of them."""

    runs: list[RunRecord]
    next_before: str | None


class RunFacets(msgspec.Struct, kw_only=True):
    """The facets that events attach to a run, or to a dataset as the run read or wrote it."""

    entity: str
    role: str
    facets: dict[str, Any]


class RunDetails(msgspec.Struct, kw_only=True):
    """A run with its facets as sent, and the digests of events that mention it."""

    run: RunRecord
    facets: list[RunFacets]
    events: list[str]


class StoredEvent(msgspec.Struct, kw_only=True):
    """An event of the log as it was sent."""

    digest: str
    received_at: str
    producer: str | None
    event: Any
