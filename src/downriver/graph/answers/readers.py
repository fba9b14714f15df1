"""Readers: jobs that only read a dataset, such as Spark's `collect`, `toPandas` and `count`.

Their events mark them with the job type READ. Answers count them instead of listing them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from downriver.model.facts import EdgeKind
from downriver.openlineage.facets.job import READ_JOB_TYPE

if TYPE_CHECKING:
    from downriver.graph.index.node_graph import NodeGraph
    from downriver.graph.index.vectors import Ints
    from downriver.store import CatalogReader


class _JobType(msgspec.Struct):
    jobType: str = ""  # noqa: N815


def find_readers(graph: NodeGraph, reader: CatalogReader, jobs: Ints) -> set[int]:
    """Return those of the jobs that are marked as readers and write nothing."""
    facets = reader.facets.of_each(jobs.tolist(), ("jobType",))
    marked = {job for job, bodies in facets.items() if _is_read(bodies["jobType"])}
    # A job that is named after the dataset it writes may have the name of a reader: `app.count`.
    return {job for job in marked if not len(graph.flow.ends.leaving.of(_one(job)))}


def count_readers(graph: NodeGraph) -> list[tuple[int, int]]:
    """Return the datasets that jobs read, each with its number of jobs, the most read first."""
    reads = graph.flow.kind.values == int(EdgeKind.READS)
    datasets = graph.identities.canonicals(graph.flow.ends.source.values[reads])
    jobs = graph.flow.ends.target.values[reads]
    edges = np.unique(np.stack([datasets, jobs], axis=1), axis=0)
    nodes, counts = np.unique(edges[:, 0], return_counts=True)
    order = np.lexsort((nodes, -counts))
    return [(int(nodes[at]), int(counts[at])) for at in order]


def _is_read(body: bytes) -> bool:
    try:
        return msgspec.json.decode(body, type=_JobType).jobType == READ_JOB_TYPE
    except msgspec.DecodeError:
        return False


def _one(node: int) -> Ints:
    return np.array([node], np.int32)
