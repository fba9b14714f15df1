"""Jobs read from code: inputs, outputs, column lineage and references to columns."""

from downriver.capture.code.job import (
    CodeEdge,
    CodeJob,
    ColumnReference,
    DatasetNote,
    DerivationStep,
    DocumentedColumn,
    OutputShape,
    add_sql,
    set_query,
)
from downriver.capture.code.references import TableNames, find_references
from downriver.capture.code.render import (
    render_dataset_facets,
    render_dataset_note,
    render_job,
    render_run,
)
from downriver.capture.code.revision import SourceRevision, find_revision

__all__ = [
    "CodeEdge",
    "CodeJob",
    "ColumnReference",
    "DatasetNote",
    "DerivationStep",
    "DocumentedColumn",
    "OutputShape",
    "SourceRevision",
    "TableNames",
    "add_sql",
    "find_references",
    "find_revision",
    "render_dataset_facets",
    "render_dataset_note",
    "render_job",
    "render_run",
    "set_query",
]
