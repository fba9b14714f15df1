"""Jobs that report one statement of a task, which answers show as the task.

Airflow's provider reports every query of a task as a job of its own (`dag.task.query.1`), beside
the task, whose events name the same tables. Such a job has the name of the task, and events state
that the task runs it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from downriver.model.ids import JobId

if TYPE_CHECKING:
    from collections.abc import Mapping

    from downriver.model.ids import NodeId
    from downriver.store import CatalogReader

_STATEMENT = re.compile(r"(.+)\.query\.\d+")
STATEMENT_NAMES = "*.query.*"  # a pattern that all such names match


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
