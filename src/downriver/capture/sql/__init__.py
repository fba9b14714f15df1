"""Column lineage from SQL text: sqlglot parses, our own walker reads the tree."""

from downriver.capture.sql.result import ColumnEdge, ColumnRef, SqlLineage, StatementLineage
from downriver.capture.sql.script import parse_sql_lineage

__all__ = ["ColumnEdge", "ColumnRef", "SqlLineage", "StatementLineage", "parse_sql_lineage"]
