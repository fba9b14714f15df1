"""Rules that the lineage itself must satisfy, for CI."""

from downriver.govern.checks.config import CheckConfig, parse_checks, read_checks_file
from downriver.govern.checks.rules import RULES
from downriver.govern.checks.runner import check_lineage

__all__ = ["RULES", "CheckConfig", "check_lineage", "parse_checks", "read_checks_file"]
