"""Column lineage from SQL text: sqlglot parses, our own walker reads the tree."""

from downriver.capture.sql.jinja import Template
from downriver.capture.sql.limits import Limits
from downriver.capture.sql.lineage import parse_sql_lineage
from downriver.capture.sql.result import (
    ColumnEdge,
    ColumnRef,
    SqlBlindSpot,
    SqlLineage,
    StatementLineage,
)
from downriver.capture.sql.telling import tell_query

__all__ = [
    "ColumnEdge",
    "ColumnRef",
    "Limits",
    "SqlBlindSpot",
    "SqlLineage",
    "StatementLineage",
    "Template",
    "parse_sql_lineage",
    "tell_query",
]
