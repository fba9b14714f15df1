"""One Python file or notebook, from its text to its jobs."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from downriver.capture.scan.python.interpreter.interpreter import Interpreter
from downriver.capture.scan.python.recorder import FileContext, JobRecorder
from downriver.capture.scan.python.unread_calls import is_test_file, report_unread_calls
from downriver.settings import SCAN_TESTS, read_text

if TYPE_CHECKING:
    from downriver.capture.code import CodeJob
    from downriver.capture.scan.python.source_files import PythonFile


def read_module(file: PythonFile, context: FileContext) -> list[CodeJob]:
    """Return the jobs of a Python file. Raises SyntaxError when it does not parse.

    A file without DAGs and feature views is one job, a script. A script that neither reads nor
    writes data is left out.
    """
    tree = file.tree
    if not file.calls and not file.concerns_data and not _imports_data_access(tree, context):
        return []
    recorder = JobRecorder(file.path, file.source, context)
    interpreter = Interpreter(recorder)
    interpreter.run(tree)
    if not is_test_file(file.path) or read_text(SCAN_TESTS):
        report_unread_calls(interpreter, file)
        recorder.report_unknown_rows()
    for job in recorder.jobs:
        queries = recorder.queries.get(job.id, [])
        if job.id in recorder.framed:
            job.sql, job.raw = "", None  # the job does more than run the query
        elif len(queries) == 1 and not queries[0].from_other_file:
            # The references of the job count lines from the start of the query.
            job.line = context.line_of(queries[0].line)
    if _uses_spark(tree):
        recorder.script.integration = "SPARK"
    described = ast.get_docstring(tree)
    if described and not recorder.script.description:
        recorder.script.description = described.splitlines()[0]
    return [job for job in recorder.jobs if _has_lineage(job)]


def _imports_data_access(tree: ast.Module, context: FileContext) -> bool:
    """Whether the module imports a file of the repository that may read or write data."""
    for node in ast.walk(tree):
        names: list[tuple[str, int]] = []
        if isinstance(node, ast.ImportFrom):
            names = [(node.module or "", node.level)]
            names += [(f"{node.module or ''}.{p.name}".strip("."), node.level) for p in node.names]
        elif isinstance(node, ast.Import):
            names = [(part.name, 0) for part in node.names]
        for name, level in names:
            file = context.find_module(name, level)
            if file is not None and file.concerns_data:
                return True
    return False


def _has_lineage(job: CodeJob) -> bool:
    return bool(job.inputs or job.outputs or job.spots or job.parent or job.kind == "DAG")


def _uses_spark(tree: ast.Module) -> bool:
    """Whether a script imports PySpark, or uses the `spark` session of a notebook."""
    return any(
        (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pyspark"))
        or (isinstance(node, ast.Import) and any(a.name.startswith("pyspark") for a in node.names))
        or (isinstance(node, ast.Name) and node.id == "spark")
        for node in ast.walk(tree)
    )


_MAGIC = re.compile(r"\s*[%!?]")
_SQL_MAGIC = re.compile(r"\s*%{1,2}(?:sql|sparksql)\b(?P<rest>.*)", re.DOTALL)
_DATABRICKS = "# Databricks notebook source"


class NotebookError(Exception):
    """A file that is not a notebook."""


class Notebook(NamedTuple):
    """A notebook's code as one text, and the line in the file of each of its lines."""

    source: str
    lines: list[int]

    def line_of(self, line: int) -> int:
        """Return the line in the file of a line of the code."""
        return self.lines[line - 1] if 0 < line <= len(self.lines) else line


def read_notebook(text: str) -> Notebook:
    """Return the code of an `.ipynb` file. Raises `NotebookError`."""
    try:
        content = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as exc:
        raise NotebookError(str(exc)) from exc
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list):
        raise NotebookError("the file has no cells")
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
    """Return the offset in the file after a line of a cell, and the number of the line."""
    for encoded in (_encoded(line), line):
        at = text.find(encoded, start) if encoded else -1
        if at >= 0:
            return at + len(encoded), text.count("\n", 0, at) + 1
    return start, text.count("\n", 0, start) + 1


def _encoded(line: str) -> str:
    return msgspec.json.encode(line).decode()[1:-1]


def as_code(cell: list[str]) -> list[str]:
    """Return a cell as Python with the same number of lines.

    SQL magics become calls of `spark.sql`, other magics empty lines.
    """
    if cell and (magic := _SQL_MAGIC.match(cell[0])) is not None:
        query = [magic["rest"], *cell[1:]]
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
    """Return a Databricks notebook in Python format with its SQL cells as Python code."""
    if not text.startswith(_DATABRICKS):
        return text
    lines: list[str] = []
    magic: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("# MAGIC "):
            magic.append(line.removeprefix("# MAGIC "))
            continue
        if magic:
            is_sql = _SQL_MAGIC.match(magic[0]) is not None
            lines += as_code(magic) if is_sql else ["" for _ in magic]
            magic = []
        lines.append(line)
    return "\n".join(lines)
