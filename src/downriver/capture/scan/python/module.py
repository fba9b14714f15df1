"""One Python file or notebook, from its text to its jobs."""

from __future__ import annotations

import ast
import re
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from downriver.capture.scan.python.interpreter.interpreter import Interpreter
from downriver.capture.scan.python.recorder import FileContext, JobRecorder

if TYPE_CHECKING:
    from downriver.capture.code import CodeJob

# Code without any of these words touches no data we could follow.
_CONCERNS_DATA = re.compile(
    r"spark|pandas|airflow|feast|delta|sql|select\s|insert\s|execute|cursor", re.IGNORECASE
)


def read_module(path: str, source: str, around: FileContext) -> list[CodeJob]:
    """Return the jobs of a Python file; raises SyntaxError when it is not Python.

    A file without DAGs and feature views is one job, a script. What does nothing with data is no
    job.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an odd escape in their text is none of our business
        tree = ast.parse(source, filename=path)
    if _CONCERNS_DATA.search(source) is None:
        return []
    recorder = JobRecorder(path, source, around)
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


_MAGIC = re.compile(r"\s*[%!?]")
_SQL_MAGIC = re.compile(r"\s*%{1,2}(?:sql|sparksql)\b(?P<rest>.*)", re.DOTALL)
_DATABRICKS = "# Databricks notebook source"


class Notebook(NamedTuple):
    """A notebook's code as one text, and the line of the file that each of its lines is on."""

    source: str
    lines: list[int]

    def line_of(self, line: int) -> int:
        """Return the line of the file."""
        return self.lines[line - 1] if 0 < line <= len(self.lines) else line


def read_notebook(text: str) -> Notebook:
    """Return the code of an `.ipynb` file; raises ValueError when it is none."""
    try:
        content = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as exc:
        raise ValueError(f"is no notebook: {exc}") from exc
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list):
        raise ValueError("is no notebook: it has no cells")
    source: list[str] = []
    lines: list[int] = []
    at = 0
    for cell in cells:
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            written = _source_lines(cell.get("source"))
            places = []
            for line in written:
                at, number = _place(text, line, at)
                places.append(number)
            source += as_code(written)
            lines += places
    return Notebook("\n".join(source) + "\n", lines)


def _source_lines(source: Any) -> list[str]:
    text = "".join(source) if isinstance(source, list) else source
    return text.splitlines() if isinstance(text, str) else []


def _place(text: str, line: str, start: int) -> tuple[int, int]:
    """Return where in the file a line of a cell is found, and that line's number."""
    for encoded in (_encoded(line), line):
        at = text.find(encoded, start) if encoded else -1
        if at >= 0:
            return at + len(encoded), text.count("\n", 0, at) + 1
    return start, text.count("\n", 0, start) + 1


def _encoded(line: str) -> str:
    return msgspec.json.encode(line).decode()[1:-1]


def as_code(cell: list[str]) -> list[str]:
    """Return a cell as Python of as many lines: SQL magics run, other magics are left out."""
    if cell and (found := _SQL_MAGIC.match(cell[0])) is not None:
        query = [found["rest"], *cell[1:]]
        return _sql_call(query)
    if cell and cell[0].startswith("%%"):
        return ["" for _ in cell]
    return ["" if _MAGIC.match(line) else line for line in cell]


def _sql_call(query: list[str]) -> list[str]:
    safe = [line.replace("'''", '"""') for line in query]
    return (
        [f"spark.sql(r'''{safe[0]}", *safe[1:-1], f"{safe[-1]}''')"]
        if len(safe) > 1
        else [f"spark.sql(r'''{safe[0]}''')"]
    )


def convert_databricks(text: str) -> str:
    """Return a Databricks notebook kept as Python, its SQL cells made into code."""
    if not text.startswith(_DATABRICKS):
        return text
    made: list[str] = []
    magic: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("# MAGIC "):
            magic.append(line.removeprefix("# MAGIC "))
            continue
        if magic:
            is_sql = _SQL_MAGIC.match(magic[0]) is not None
            made += as_code(magic) if is_sql else ["" for _ in magic]
            magic = []
        made.append(line)
    return "\n".join(made)
