"""Who is who: typed identities of everything lineage speaks about."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TypeAlias

import msgspec


class DatasetId(msgspec.Struct, frozen=True, order=True, gc=False):
    """A table, file, topic, model or dashboard, named as OpenLineage names it."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"dataset:{self.namespace}:{self.name}"


class JobId(msgspec.Struct, frozen=True, order=True, gc=False):
    """What reads and writes datasets: a dbt model, a DAG task, a Spark job, a function."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"job:{self.namespace}:{self.name}"


class ColumnId(msgspec.Struct, frozen=True, order=True, gc=False):
    """One field of a dataset; nested fields are joined by dots. `*` stands for all of them."""

    dataset: DatasetId
    field: str

    def __str__(self) -> str:
        return f"column:{self.dataset.namespace}:{self.dataset.name}:{self.field}"


class RunId(msgspec.Struct, frozen=True, order=True, gc=False):
    """One execution of a job. Scoped by job: tutorials send `run-001` from several jobs."""

    job: JobId
    run: str

    def __str__(self) -> str:
        return f"run:{self.job.namespace}:{self.job.name}:{self.run}"


NodeId: TypeAlias = DatasetId | JobId
EntityId: TypeAlias = DatasetId | JobId | ColumnId

EVERY_FIELD = "*"
DEFAULT_NAMESPACE = "default"  # of what people name without saying where it is


@lru_cache(16_384)  # every event names again what is known
def short_name(name: str) -> str:
    """Return the last part of a dotted or slashed name, case folded: what people type."""
    return name.rstrip("/").replace("/", ".").rpartition(".")[2].casefold()


LONGEST_NAME = 1000


def bounded(text: str) -> str:
    """Return a name no longer than every store can index: its beginning and a hash of the rest.

    Producers name datasets after whole queries. The log keeps what was sent.
    """
    if len(text) <= LONGEST_NAME // 4:
        return text
    encoded = text.encode()
    if len(encoded) <= LONGEST_NAME:
        return text
    kept = encoded[: LONGEST_NAME - 40].decode(errors="ignore")
    return f"{kept}…{hashlib.sha256(encoded).hexdigest()[:32]}"
