"""Typed ids of datasets, jobs, columns and runs."""

from __future__ import annotations

import hashlib
from enum import IntEnum
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
    """A process that reads and writes datasets: a dbt model, a DAG task, a Spark job."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"job:{self.namespace}:{self.name}"


class ColumnId(msgspec.Struct, frozen=True, order=True, gc=False):
    """One field of a dataset; nested fields are joined by dots. `*` is every field."""

    dataset: DatasetId
    field: str

    def __str__(self) -> str:
        return f"column:{self.dataset.namespace}:{self.dataset.name}:{self.field}"


class RunId(msgspec.Struct, frozen=True, order=True, gc=False):
    """One execution of a job. The id includes the job, because run ids may repeat."""

    job: JobId
    run: str

    def __str__(self) -> str:
        return f"run:{self.job.namespace}:{self.job.name}:{self.run}"


NodeId: TypeAlias = DatasetId | JobId
EntityId: TypeAlias = DatasetId | JobId | ColumnId

# Datasets in these namespaces are not data. They hold registrations without a dataset or job:
# the owner of a namespace, the URL of a source, the meaning of a tag.
NAMESPACE_RECORDS = "downriver:namespaces"
SOURCE_RECORDS = "downriver:sources"
TAG_RECORDS = "downriver:tags"
REDACTION_RECORDS = "downriver:redactions"
EDGE_RECORDS = "downriver:edges"
RUN_RECORDS = "downriver:runs"
_RECORDS = frozenset(
    {NAMESPACE_RECORDS, SOURCE_RECORDS, TAG_RECORDS, REDACTION_RECORDS, EDGE_RECORDS, RUN_RECORDS}
)


class NodeKind(IntEnum):
    """The kind of a node. The numbers are stored: append, never renumber."""

    DATASET = 0
    JOB = 1
    RECORD = 2  # no part of the graph


def node_kind(node: NodeId) -> NodeKind:
    """Return the kind of a node."""
    if isinstance(node, JobId):
        return NodeKind.JOB
    return NodeKind.RECORD if node.namespace in _RECORDS else NodeKind.DATASET


EVERY_FIELD = "*"
DEFAULT_NAMESPACE = "default"  # of names that are given without a namespace


@lru_cache(16_384)  # most events repeat known names
def short_name(name: str) -> str:
    """Return the last part of a dotted or slashed name, case-folded."""
    return name.rstrip("/").replace("/", ".").rpartition(".")[2].casefold()


LONGEST_NAME = 1000


def bounded(text: str) -> str:
    """Return a name that every store can index; a long one is cut and gets a hash.

    Some producers use a whole query as the name of a dataset. The log keeps the name as sent.
    """
    if len(text) <= LONGEST_NAME // 4:
        return text
    encoded = text.encode()
    if len(encoded) <= LONGEST_NAME:
        return text
    kept = encoded[: LONGEST_NAME - 40].decode(errors="ignore")
    return f"{kept}…{hashlib.sha256(encoded).hexdigest()[:32]}"
