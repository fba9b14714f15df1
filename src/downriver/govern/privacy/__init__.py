"""Personal data: the reach of a column with it, and policies that limit access to it."""

from downriver.govern.privacy.access_policies import SqlDialect, render_ranger, render_sql
from downriver.govern.privacy.report import report_privacy

__all__ = ["SqlDialect", "render_ranger", "render_sql", "report_privacy"]
