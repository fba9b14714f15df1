"""Change -> effects -> verdict: what breaks, decided by policy, and the patch."""

from downriver.impact.changes.code_edits import is_same_file
from downriver.impact.changes.commit_code import CommitCode
from downriver.impact.changes.commits import (
    ChangedFiles,
    Commit,
    CommitTrees,
    FilePair,
    decode_text,
    find_author,
    list_changed_files,
    list_commits,
    open_trees,
    relate_commits,
)
from downriver.impact.changes.edited_code import (
    list_edited,
    list_used,
    read_commits,
    read_edited_files,
)
from downriver.impact.changes.file_edits import FileEdits, find_edits, list_tables
from downriver.impact.changes.migrations.ddl import NO_CHANGES, parse_ddl, read_ddl
from downriver.impact.changes.migrations.table_definitions import LocatedChange
from downriver.impact.changes.request import changes_from_request, parse_changes, read_changes_file
from downriver.impact.changes.unified_diff import apply_diff
from downriver.impact.fix.source_files import (
    SourceFiles,
    SourceFolder,
    UploadedFiles,
    find_yaml_mentions,
)
from downriver.impact.fix.suggested_fix import Fix, write_fix
from downriver.impact.policy.explanation import PolicyRule, explain_policy
from downriver.impact.policy.proposal import propose_policy
from downriver.impact.policy.rules import (
    POLICY_FILE,
    Policy,
    parse_policy,
    read_policy,
    with_waiver,
)
from downriver.impact.policy.verdict import decide
from downriver.impact.propagate import propagate_changes, with_unread
from downriver.impact.report.impact_answer import answer_impact
from downriver.impact.report.markdown import render_markdown
from downriver.impact.simulate.catalog import CatalogCache, SimulationCatalog
from downriver.impact.simulate.delta import ResolvedChange
from downriver.impact.simulate.script.job_script import ScriptCache

__all__ = [
    "NO_CHANGES",
    "POLICY_FILE",
    "CatalogCache",
    "ChangedFiles",
    "Commit",
    "CommitCode",
    "CommitTrees",
    "FileEdits",
    "FilePair",
    "Fix",
    "LocatedChange",
    "Policy",
    "PolicyRule",
    "ResolvedChange",
    "ScriptCache",
    "SimulationCatalog",
    "SourceFiles",
    "SourceFolder",
    "UploadedFiles",
    "answer_impact",
    "apply_diff",
    "changes_from_request",
    "decide",
    "decode_text",
    "explain_policy",
    "find_author",
    "find_edits",
    "find_yaml_mentions",
    "is_same_file",
    "list_changed_files",
    "list_commits",
    "list_edited",
    "list_tables",
    "list_used",
    "open_trees",
    "parse_changes",
    "parse_ddl",
    "parse_policy",
    "propagate_changes",
    "propose_policy",
    "read_changes_file",
    "read_commits",
    "read_ddl",
    "read_edited_files",
    "read_policy",
    "relate_commits",
    "render_markdown",
    "with_unread",
    "with_waiver",
    "write_fix",
]
