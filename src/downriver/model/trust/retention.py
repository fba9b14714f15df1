"""Removals from answers: datasets, jobs, edges and names of people."""

from __future__ import annotations

import msgspec

from downriver.model.answers import MappingStruct


class RetiredEntity(msgspec.Struct, kw_only=True, frozen=True):
    """A dataset or job that is removed from answers, when it was last seen, and why."""

    id: str
    kind: str
    last_seen: str
    reason: str


class Forgotten(MappingStruct, kw_only=True):
    """What `forget` removed from answers, or showed again with `restored`."""

    entities: list[RetiredEntity]
    restored: bool
    done: bool


class ForgottenEdge(MappingStruct, kw_only=True):
    """The edge that `forget` removed from answers or restored; without `done`, would."""

    source: str
    target: str
    restored: bool
    done: bool


class RedactedEntries(MappingStruct, kw_only=True):
    """How many log entries a redaction changed; without `done`, would change.

    `remaining` are entries that contain the name outside facets, for example as the name of a job.
    """

    entries: int
    remaining: list[int]
    done: bool


class RetiredEdge(msgspec.Struct, kw_only=True, frozen=True):
    """An edge between a job and a dataset that recent runs of the job do not confirm.

    `reason` explains why it stays, or why it is removed.
    """

    source: str
    target: str
    last_seen: str
    reason: str


class RetiredRuns(msgspec.Struct, kw_only=True, frozen=True):
    """Runs of a job before a time, and why they are removed from lists, or stay."""

    job: str
    before: str
    runs: int
    reason: str


class RestoredRuns(MappingStruct, kw_only=True):
    """The job whose pruned runs are listed again; without `done`, would be.

    `before` is null if no runs of the job were pruned.
    """

    job: str
    before: str | None
    runs: int
    done: bool


class Pruned(MappingStruct, kw_only=True):
    """What `prune` removed from answers; without `done`, what it would remove.

    `protected` are old datasets and jobs that stay, with the reason, `protected_edges` stale edges,
    and `protected_runs` runs.
    """

    before: str
    retired: list[RetiredEntity]
    protected: list[RetiredEntity]
    retired_edges: list[RetiredEdge]
    protected_edges: list[RetiredEdge]
    retired_runs: list[RetiredRuns]
    protected_runs: list[RetiredRuns]
    resolved_findings: int
    done: bool
