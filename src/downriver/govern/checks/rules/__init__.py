"""The rules, in the order in which they are reported. Each rule has its own file.

A rule is a function from the facts to its violations. The first line of its docstring is the
message that the user reads.
"""

from downriver.govern.checks.rules.canonical_conflicts import check_canonical_conflicts
from downriver.govern.checks.rules.certified_upstream import check_certified_upstream
from downriver.govern.checks.rules.orphans import check_orphans
from downriver.govern.checks.rules.outputs_without_inputs import check_outputs_without_inputs
from downriver.govern.checks.rules.owners import check_owners
from downriver.govern.checks.rules.path_to_source import check_path_to_source
from downriver.govern.checks.rules.redundant_copies import check_redundant_copies
from downriver.govern.checks.rules.rule import CheckRule, RuleViolation
from downriver.govern.checks.rules.schema_contract import check_schema_contract
from downriver.govern.checks.rules.single_writer import check_single_writer
from downriver.govern.checks.rules.untagged_columns import check_untagged_columns
from downriver.govern.checks.rules.unused_columns import check_unused_columns
from downriver.model.trust.checks import CheckSeverity

__all__ = ["RULES", "CheckRule", "RuleViolation"]

RULES: tuple[CheckRule, ...] = (
    CheckRule("outputs-without-inputs", check_outputs_without_inputs, CheckSeverity.ERROR),
    CheckRule("path-to-source", check_path_to_source, CheckSeverity.ERROR),
    CheckRule("certified-upstream", check_certified_upstream, CheckSeverity.ERROR),
    CheckRule("canonical-conflicts", check_canonical_conflicts, CheckSeverity.ERROR),
    CheckRule("schema-contract", check_schema_contract, CheckSeverity.ERROR),
    CheckRule("orphans", check_orphans, CheckSeverity.WARNING),
    CheckRule("single-writer", check_single_writer, CheckSeverity.WARNING),
    CheckRule("owners", check_owners, CheckSeverity.WARNING),
    CheckRule("redundant-copies", check_redundant_copies, CheckSeverity.INFO),
    CheckRule("unused-columns", check_unused_columns, CheckSeverity.INFO),
    CheckRule("untagged-columns", check_untagged_columns, CheckSeverity.INFO),
)
