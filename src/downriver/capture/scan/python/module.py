"""One Python file, from its text to its jobs."""

from __future__ import annotations

import ast
import re
import warnings
from typing import TYPE_CHECKING

from downriver.capture.scan.python.interpreter import Interpreter
from downriver.capture.scan.python.recorder import Recorder, Surroundings

if TYPE_CHECKING:
    from downriver.capture.code import CodeJob


# Code without any of these words touches no data we could follow.
_CONCERNS_DATA = re.compile(
    r"spark|pandas|airflow|feast|delta|sql|select\s|insert\s|execute|cursor", re.IGNORECASE
)


def read_module(path: str, source: str, around: Surroundings) -> list[CodeJob]:
    """Return the jobs of a Python file; raises SyntaxError when it is not Python.

    A file without DAGs and feature views is one job, a script. What does nothing with data is no
    job.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an odd escape in their text is none of our business
        tree = ast.parse(source, filename=path)
    if _CONCERNS_DATA.search(source) is None:
        return []
    recorder = Recorder(path, source, around)
    Interpreter(recorder).run(tree)
    for job in recorder.jobs:
        queries = recorder.queries.get(job.id, [])
        if job.id in recorder.framed:
            job.sql, job.raw = "", None  # the query is not all the job does
        elif len(queries) == 1 and not queries[0].elsewhere:
            job.line = around.line_of(queries[0].line)  # lines of the query count from here
    if _uses_spark(tree):
        recorder.script.integration = "SPARK"
    described = ast.get_docstring(tree)
    if described and not recorder.script.description:
        recorder.script.description = described.splitlines()[0]
    return [job for job in recorder.jobs if _does_something(job)]


def _does_something(job: CodeJob) -> bool:
    return bool(job.inputs or job.outputs or job.spots or job.parent or job.kind == "DAG")


def _uses_spark(tree: ast.Module) -> bool:
    """Whether a script imports PySpark, or uses the session notebooks are given."""
    return any(
        (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pyspark"))
        or (isinstance(node, ast.Import) and any(a.name.startswith("pyspark") for a in node.names))
        or (isinstance(node, ast.Name) and node.id == "spark")
        for node in ast.walk(tree)
    )
