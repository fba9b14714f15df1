"""Change -> effects -> verdict: what breaks, decided by policy, and the patch."""

from downriver.impact.analysis import analyse
from downriver.impact.answer import answer_impact
from downriver.impact.code_files import Code, CodeFolder, CodeSent, described_files
from downriver.impact.ddl import parse_ddl
from downriver.impact.edits import Edits, find_edits
from downriver.impact.fix import Fix, write_fix
from downriver.impact.policy import Policy, parse_policy, read_policy
from downriver.impact.proposal import Proposed
from downriver.impact.repository import FilePair, Trees, list_changed_files, open_trees
from downriver.impact.requests import parse_changes, read_changes_file
from downriver.impact.sides import read_texts, read_trees
from downriver.impact.verdict import decide
from downriver.impact.words import request_changes
from downriver.impact.world import World

__all__ = [
    "Code",
    "CodeFolder",
    "CodeSent",
    "Edits",
    "FilePair",
    "Fix",
    "Policy",
    "Proposed",
    "Trees",
    "World",
    "analyse",
    "answer_impact",
    "decide",
    "described_files",
    "find_edits",
    "list_changed_files",
    "open_trees",
    "parse_changes",
    "parse_ddl",
    "parse_policy",
    "read_changes_file",
    "read_policy",
    "read_texts",
    "read_trees",
    "request_changes",
    "write_fix",
]
