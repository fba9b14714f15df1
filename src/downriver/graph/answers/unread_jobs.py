"""The blind spot of answers about a project in which whole jobs could not be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from downriver.graph.index.isolated_jobs import projects_of
from downriver.model.answers import BlindSpot

if TYPE_CHECKING:
    from downriver.graph.index.vectors import Ints
    from downriver.graph.snapshot import GraphSnapshot
    from downriver.store import CatalogReader

_JOBS_SHOWN = 3


def unread_job_spots(
    index: GraphSnapshot, reader: CatalogReader, nodes: Ints, *, entity: str, as_of: int
) -> list[BlindSpot]:
    """Return a blind spot if the projects of these nodes have jobs that touch no known dataset.

    The datasets of such a job are known only at run time, so it may use any of these datasets.
    """
    isolated = [
        job for job in index.isolated_jobs.list(index.nodes, reader) if job.first_at <= as_of
    ]
    if not isolated:
        return []
    projects = set(projects_of(_near(index, nodes), reader).values())
    unread = [
        str(job.id) for job in isolated if any(project.has(job.project) for project in projects)
    ]
    if not unread:
        return []
    count = "1 job" if len(unread) == 1 else f"{len(unread)} jobs"
    more = ", …" if len(unread) > _JOBS_SHOWN else ""
    message = (
        f"{count} of the same project could not be read and may use any dataset: "
        f"{', '.join(unread[:_JOBS_SHOWN])}{more}; "
        "trace a job to see its file and line"
    )
    return [BlindSpot(kind="unread_jobs", entity=entity, message=message)]


def _near(index: GraphSnapshot, nodes: Ints) -> list[int]:
    """Return the jobs that touch these nodes; without any, the nodes themselves."""
    names, _ = index.nodes.identities.every_name(nodes)
    ends = index.nodes.flow.ends
    edges = np.concatenate([ends.leaving.of(names), ends.entering.of(names)])
    jobs = np.unique(index.nodes.jobs(edges))
    near: list[int] = (jobs[jobs > 0] if jobs.any() else nodes).tolist()
    return near
