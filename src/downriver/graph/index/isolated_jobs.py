"""Jobs whose code could not be read and that touch no known dataset.

No walk reaches such a job, but it may read or write any dataset of its project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from downriver.openlineage.facets.custom import parse_blind_spots
from downriver.openlineage.facets.job import SOURCE_CODE_LOCATION, parse_source_code_location

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.graph.index.node_graph import NodeGraph
    from downriver.model.ids import NodeId
    from downriver.store import CatalogReader


class Project(NamedTuple):
    """The project of a job: its repository, or its namespace if it has no repository."""

    repository: str
    namespace: str

    def has(self, other: Project) -> bool:
        """Return whether a job in another repository or namespace may belong to this project."""
        if self.repository and other.repository:
            return self.repository == other.repository
        return self.namespace == other.namespace


class IsolatedJob(NamedTuple):
    """A job with blind spots and without a dataset."""

    id: NodeId
    project: Project
    first_at: int


class IsolatedJobs:
    """The isolated jobs of one snapshot, read from the store once."""

    def __init__(self) -> None:
        self._jobs: list[IsolatedJob] | None = None
        self._with_blind_spots: frozenset[int] | None = None

    def list(self, graph: NodeGraph, reader: CatalogReader) -> list[IsolatedJob]:
        """Return the isolated jobs at the state of `reader`."""
        if self._jobs is None:
            self._jobs = sorted(_read(graph, reader))
        return self._jobs

    def with_blind_spots(self, reader: CatalogReader) -> frozenset[int]:
        """Return the nodes that have, or had, a blind spots facet, isolated or not."""
        if self._with_blind_spots is None:
            self._with_blind_spots = frozenset(reader.facets.with_blind_spots())
        return self._with_blind_spots


def projects_of(jobs: Iterable[int], reader: CatalogReader) -> dict[int, Project]:
    """Return the project of each job."""
    names = reader.nodes.by_ids(list(jobs))
    facets = reader.facets.of_each(names, (SOURCE_CODE_LOCATION,))
    return {
        job: Project(
            parse_source_code_location(facets.get(job, {})).repository or "", name.namespace
        )
        for job, name in names.items()
    }


def _read(graph: NodeGraph, reader: CatalogReader) -> list[IsolatedJob]:
    jobs = np.array(reader.facets.with_blind_spots(), np.int32)
    ends = graph.flow.ends
    touching = [rows.of_each(jobs)[1] for rows in (ends.leaving, ends.entering)]
    alone = np.delete(jobs, np.unique(np.concatenate(touching))).tolist()
    bodies = reader.facets.blind_spots(alone)
    unread = [job for job in alone if parse_blind_spots(bodies[job])]
    names = reader.nodes.by_ids(unread)
    projects = projects_of(unread, reader)
    spans = reader.nodes.spans(unread)
    return [IsolatedJob(names[job], projects[job], spans[job].first.at) for job in unread]
