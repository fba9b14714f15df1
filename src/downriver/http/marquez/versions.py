"""Ids of versions. They follow from the content of a version: each server gives the same ones."""

from __future__ import annotations

import uuid
from functools import lru_cache
from typing import TYPE_CHECKING

from downriver.openlineage.facets.base import facet_digest

if TYPE_CHECKING:
    from downriver.http.marquez.records import MarquezName
    from downriver.model.ids import NodeId

_IDS = uuid.UUID("6f0c6f6e-7f0e-5d0a-9a53-6c3a1d1c4b52")


@lru_cache(65_536)
def node_uuid(node: NodeId) -> str:
    """Return the id of a dataset or job."""
    return str(uuid.uuid5(_IDS, str(node)))


@lru_cache(65_536)
def dataset_version(dataset: MarquezName, schema: bytes | None) -> str:
    """Return the id of the version of a dataset that has this schema facet."""
    content = b"" if schema is None else facet_digest(schema)
    return str(uuid.uuid5(_IDS, f"{dataset.namespace}:{dataset.name}#{content.hex()}"))


@lru_cache(16_384)
def job_version(
    job: MarquezName,
    inputs: tuple[MarquezName, ...],
    outputs: tuple[MarquezName, ...],
    location: str,
) -> str:
    """Return the id of the version of a job with these inputs and outputs, and its code there."""
    datasets = (
        f"{side}{dataset.namespace}:{dataset.name}"
        for side, listed in (("<", inputs), (">", outputs))
        for dataset in listed
    )
    return str(uuid.uuid5(_IDS, "#".join((job.namespace, job.name, *datasets, location))))
