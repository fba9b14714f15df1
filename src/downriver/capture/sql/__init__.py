"""Column lineage from SQL text: sqlglot parses it, a walker computes the lineage."""

from downriver.capture.sql.connector_tables import find_connector_tables
from downriver.capture.sql.limits import SqlLimits
from downriver.capture.sql.lineage import parse_sql_lineage, read_rendered, render_sql
from downriver.capture.sql.result import (
    ColumnEdge,
    ColumnRef,
    SqlBlindSpot,
    SqlLineage,
    StatementLineage,
)
from downriver.capture.sql.script_parser import INCLUDE
from downriver.capture.sql.templates.jinja import RenderedTemplate, Template
from downriver.capture.sql.text.client_commands import find_included_file
from downriver.capture.sql.text.tokens import normalize_query

__all__ = [
    "INCLUDE",
    "ColumnEdge",
    "ColumnRef",
    "RenderedTemplate",
    "SqlBlindSpot",
    "SqlLimits",
    "SqlLineage",
    "StatementLineage",
    "Template",
    "find_connector_tables",
    "find_included_file",
    "normalize_query",
    "parse_sql_lineage",
    "read_rendered",
    "render_sql",
]
