"""What the scanner reads in the edited files of two commits, and in the files that use them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from downriver.capture.scan import ScanCatalog, ScanResult, scan_text
from downriver.impact.changes.code_diff import is_same_layout
from downriver.impact.changes.commit_code import SCANNED
from downriver.impact.changes.commits import FilePair
from downriver.model.unread import Unread, UnreadReason

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from downriver.impact.changes.commit_code import CommitCode


class EditedCode(NamedTuple):
    """Edited code: queries to compare as SQL, dbt macros, and what the scanner read of the rest."""

    queries: list[FilePair]
    macros: list[FilePair]
    base: ScanResult
    head: ScanResult
    unread: list[Unread]


def list_edited(pairs: Sequence[FilePair]) -> list[FilePair]:
    """Return the files without SQL in which only comments and white space differ."""
    return [
        pair
        for pair in pairs
        if not pair.is_type(".sql")
        or pair.base is None
        or pair.head is None
        or not is_same_layout(pair.base, pair.head)
    ]


def read_edited_files(pairs: Sequence[FilePair], names: ScanCatalog) -> EditedCode:
    """Read edited files without those around them."""
    base, head = ScanResult(files=0), ScanResult(files=0)
    for pair in pairs:
        if pair.is_type(*SCANNED):
            for text, side in ((pair.base, base), (pair.head, head)):
                if text is not None:
                    _add(side, scan_text(pair.path, text, names))
    return EditedCode(_queries(pairs), [], base, head, [])


def _add(result: ScanResult, more: ScanResult) -> None:
    result.jobs += more.jobs
    result.unread += more.unread


# What only dbt knows when it runs: the warehouse, its flags, results of queries.
_AT_RUN_TIME = re.compile(
    r"\b(?:target|adapter|flags|graph|run_query|execute|load_result|statement|env_var)\b"
)
_TAG = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_CALL = re.compile(r"\b(\w+)(\.\w+)?\s*\(")
_MACRO = re.compile(r"\{%-?\s*macro\s+(\w+).*?endmacro\s*-?%\}", re.DOTALL)
# Functions of dbt and Jinja whose arguments the scanner reads.
_READ_CALLS = frozenset(
    {"ref", "source", "config", "var", "is_incremental", "this", "range", "set"}
)


def find_opaque_edits(
    pairs: Sequence[FilePair], rendered: Collection[str], sides: Sequence[CommitCode]
) -> Iterator[Unread]:
    """Yield edits of templates whose effect does not show in the SQL that can be rendered.

    `rendered` are the files whose rendered SQL differs.
    """
    known = _READ_CALLS.union(*(side.macro_names for side in sides))
    macro_files = {path for side in sides for path in side.macro_files}
    for pair in pairs:
        if not pair.is_type(".sql") or pair.base is None or pair.head is None:
            continue
        if pair.path in macro_files:
            found = _opaque_macro(pair) if not rendered else ""
        else:
            found = _opaque_call(pair, known) if pair.path not in rendered else ""
        if found:
            yield Unread(path=pair.path, line=0, reason=UnreadReason.DYNAMIC_CODE, detail=found)


def _opaque_call(pair: FilePair, known: Collection[str]) -> str:
    """Return the call of an unknown macro that the edit changes."""
    before = set(_TAG.findall(pair.base or ""))
    for tag in _TAG.findall(pair.head or ""):
        if tag in before:
            continue
        for name, of_package in _CALL.findall(tag):
            if of_package or name not in known:
                called = f"{name}{of_package}"
                return f"the edit changes a call of {called}, whose result is unknown"
    return ""


def _opaque_macro(pair: FilePair) -> str:
    """Return the edited macro whose result depends on where dbt runs."""
    before = {m[1]: m[0] for m in _MACRO.finditer(pair.base or "")}
    for match in _MACRO.finditer(pair.head or ""):
        if before.get(match[1]) == match[0]:
            continue
        of_adapter = "__" in match[1] and not match[1].startswith("default__")
        if of_adapter or _AT_RUN_TIME.search(match[0]):
            return f"the result of macro {match[1]} depends on the warehouse or on flags of dbt"
    return ""


def list_used(pairs: Sequence[FilePair], sides: Sequence[CommitCode]) -> set[str]:
    """Return unedited files whose code means something else after the edits."""
    return {path for side in sides for path in side.using(pairs)}


def read_commits(pairs: Sequence[FilePair], base: CommitCode, head: CommitCode) -> EditedCode:
    """Read edited files, and unedited ones that use them, among all files of their commits."""
    sides = [base, head]
    used = list_used(pairs, sides)
    scanned = {pair.path for pair in pairs if pair.is_type(*SCANNED)}
    scanned |= {path for path in used if path.endswith(SCANNED)}
    rendered = [pair for side in sides for pair in pairs if side.uses_macros(pair)]
    paths = {pair.path for pair in rendered} | {path for path in used if path.endswith(".sql")}
    queries = [pair for pair in _queries(pairs) if pair.path not in paths]
    rendered_queries = list(_rendered(paths, sides))
    queries += rendered_queries
    macros = {path for side in sides for path in side.macro_files}
    opaque = find_opaque_edits(pairs, {pair.path for pair in rendered_queries}, sides)
    return EditedCode(
        [pair for pair in queries if pair.path not in macros],
        [pair for pair in pairs if pair.path in macros],
        base.scan(scanned),
        head.scan(scanned),
        [*_left_out(pairs, head), *opaque],
    )


def _left_out(pairs: Sequence[FilePair], head: CommitCode) -> Iterator[Unread]:
    """Yield edited code in folders that a scan leaves out, such as build/ or ignored ones."""
    for pair in pairs:
        if pair.head is not None and pair.is_type(".py", ".ipynb") and not head.has(pair.path):
            reason = UnreadReason.SKIPPED_FOLDER
            yield Unread(path=pair.path, line=0, reason=reason, detail="in a folder not scanned")


def _queries(pairs: Sequence[FilePair]) -> list[FilePair]:
    return [pair for pair in pairs if pair.is_type(".sql")]


def _rendered(paths: set[str], sides: list[CommitCode]) -> Iterator[FilePair]:
    """Yield models as they are with the macros of their own commit."""
    texts = [{job.path: job.sql for job in side.scan(paths).jobs} for side in sides]
    for path in sorted(paths):
        before, after = (found.get(path) for found in texts)
        if before != after:
            yield FilePair(path, before, after)
