"""Jobs with a special role in answers: readers, checks, loaders, and statements of a task.

Readers, such as Spark's `collect`, `toPandas` and `count`, only read a dataset. Their events have
the job type READ. Events of older versions and of OpenLineage's Spark jar are recognised by the
name of the job. Answers count readers instead of listing them.

Checks, such as dbt's tests, read a dataset and report a result. Loaders, such as dbt's seeds, load
a file that is part of their code, so no dataset is missing upstream of them.

Statements are reported by Airflow's provider: each query of a task is a job of its own
(`dag.task.query.1`), beside the task, whose events name the same tables. Such a job has the name of
the task, and events state that the task runs it. Answers show it as the task.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from downriver.model.facts import EdgeKind
from downriver.model.ids import JobId
from downriver.openlineage.facets.job import (
    JOB_TYPE,
    loads_own_file,
    only_checks,
    only_reads,
    parse_job_type,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from downriver.graph.index.node_graph import NodeGraph
    from downriver.graph.index.vectors import Ints
    from downriver.model.ids import NodeId
    from downriver.store import CatalogReader

_STATEMENT = re.compile(r"(.+)\.query\.\d+")
STATEMENT_NAMES = "*.query.*"  # a pattern that all such names match


def find_readers(graph: NodeGraph, reader: CatalogReader, jobs: Ints) -> set[int]:
    """Return those of the jobs that only read and write nothing."""
    numbers = jobs.tolist()
    facets = reader.facets.of_each(numbers, (JOB_TYPE,))
    readers = {
        job
        for job, node in reader.nodes.by_ids(numbers).items()
        if only_reads(parse_job_type(facets.get(job, {}).get(JOB_TYPE)), node.name)
    }
    # A job that is named after the dataset it writes may have the name of a reader: `app.count`.
    return {job for job in readers if not len(graph.flow.ends.leaving.of(_one(job)))}


def find_checks(reader: CatalogReader, jobs: Ints) -> set[int]:
    """Return those of the jobs that check data: by their type, or by the results they report."""
    numbers = jobs.tolist()
    facets = reader.facets.of_each(numbers, (JOB_TYPE,))
    by_type = {job for job, of in facets.items() if only_checks(parse_job_type(of.get(JOB_TYPE)))}
    return by_type | (reader.history.jobs_with_assertions() & set(numbers))


def find_loaders(reader: CatalogReader, jobs: Ints) -> set[int]:
    """Return those of the jobs that load a file which is part of their code."""
    facets = reader.facets.of_each(jobs.tolist(), (JOB_TYPE,))
    return {job for job, of in facets.items() if loads_own_file(parse_job_type(of.get(JOB_TYPE)))}


def find_tasks(nodes: Mapping[int, NodeId], reader: CatalogReader) -> dict[int, int]:
    """Return the task of each job among nodes that reports a statement of one, by number."""
    tasks: dict[int, JobId] = {}
    for number, node in nodes.items():
        name = _STATEMENT.fullmatch(node.name) if isinstance(node, JobId) else None
        if name is not None:
            tasks[number] = JobId(node.namespace, name[1])
    if not tasks:
        return {}
    task_ids = reader.nodes.find_each(set(tasks.values()))
    pairs = {(task_ids[task], number) for number, task in tasks.items() if task in task_ids}
    return {number: task for task, number in reader.nodes.find_parents(pairs)}


def find_statements(task: int, name: JobId, reader: CatalogReader) -> list[int]:
    """Return the jobs that report a statement of a task, by number."""
    statements = {
        child
        for child in reader.nodes.children_of(task)
        if child.namespace == name.namespace
        and (part := _STATEMENT.fullmatch(child.name)) is not None
        and part[1] == name.name
    }
    return sorted(reader.nodes.find_each(statements).values()) if statements else []


def count_readers(graph: NodeGraph) -> list[tuple[int, int]]:
    """Return the datasets that jobs read, each with its number of jobs, the most read first."""
    reads = graph.flow.kind.values == int(EdgeKind.READS)
    datasets = graph.identities.canonicals(graph.flow.ends.source.values[reads])
    jobs = graph.flow.ends.target.values[reads]
    edges = np.unique(np.stack([datasets, jobs], axis=1), axis=0)
    nodes, counts = np.unique(edges[:, 0], return_counts=True)
    order = np.lexsort((nodes, -counts))
    return [(int(nodes[at]), int(counts[at])) for at in order]


def _one(node: int) -> Ints:
    return np.array([node], np.int32)
