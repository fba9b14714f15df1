"""Versions of a dataset: which run wrote each, which runs read it, and which one to return to."""

from __future__ import annotations

import msgspec


class VersionedDataset(msgspec.Struct, kw_only=True, frozen=True):
    """A dataset and the version of it that a run wrote. The version is null if it is unknown."""

    dataset: str
    version: str | None
    labels: list[str] = []


class VersionReader(msgspec.Struct, kw_only=True):
    """A run that read a version, and the versions that it wrote from it."""

    job: str
    run: str
    at: str
    state: str
    outputs: list[VersionedDataset]


class DatasetVersion(msgspec.Struct, kw_only=True):
    """One version of a dataset.

    `suspect` lists the reasons not to return to it. `written_by` is
    null for a version that is only known because a run read it. `columns_changed` are columns with
    other values than in the previous version, if both have fingerprints.
    """

    version: str
    at: str
    written_by: str | None
    run: str | None
    state: str | None
    operation: str
    user: str
    rows: int | None
    labels: list[str]
    columns_added: list[str]
    columns_removed: list[str]
    columns_retyped: list[str]
    columns_changed: list[str]
    read_by: list[VersionReader]
    suspect: list[str]


class DatasetVersions(msgspec.Struct, kw_only=True):
    """The versions of a dataset, the newest first.

    `rollback_to` is the newest good version before `before`.
    """

    dataset: str
    before: str | None
    versions: list[DatasetVersion]
    rollback_to: str | None
    omitted_count: int
