"""What every reader of code ends in: jobs with their data, columns and places in files."""

from downriver.capture.code.job import (
    CodeJob,
    Column,
    DatasetNote,
    Edge,
    Reference,
    Spot,
    Step,
    Written,
)
from downriver.capture.code.references import TableNames, find_references
from downriver.capture.code.render import (
    render_dataset_facets,
    render_dataset_note,
    render_job,
    render_run,
)
from downriver.capture.code.sql_job import add_sql, put_query

__all__ = [
    "CodeJob",
    "Column",
    "DatasetNote",
    "Edge",
    "Reference",
    "Spot",
    "Step",
    "TableNames",
    "Written",
    "add_sql",
    "find_references",
    "put_query",
    "render_dataset_facets",
    "render_dataset_note",
    "render_job",
    "render_run",
]
