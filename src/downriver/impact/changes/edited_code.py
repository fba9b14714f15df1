"""What the scanner reads in the edited files of two commits, and in the files that use them."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from downriver.capture.code.dbt_build import strip_config_calls
from downriver.capture.scan import ScanCatalog, ScanResult, scan_text
from downriver.impact.changes.code_diff import is_same_layout
from downriver.impact.changes.commit_code import OTHER_LANGUAGES, SCANNED, check_language
from downriver.impact.changes.commits import FilePair
from downriver.impact.changes.dbt.files import compare_dbt_files
from downriver.impact.changes.dbt.names import find_broken_references
from downriver.impact.changes.dbt.settings import NO_SETTINGS, compare_settings
from downriver.impact.changes.edited_spots import find_edited_spots
from downriver.impact.changes.opaque_edits import find_opaque_edits
from downriver.impact.changes.schema_files import find_schema_edits
from downriver.impact.changes.sqlmesh_headers import find_edited_headers
from downriver.model.unread import Unread, UnreadReason

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from downriver.capture.code import CodeJob
    from downriver.impact.changes.commit_code import CommitCode
    from downriver.impact.changes.dbt.names import BrokenReference
    from downriver.impact.changes.dbt.settings import SettingEdits
    from downriver.model.ids import DatasetId


class EditedCode(NamedTuple):
    """Edited code: queries to compare as SQL, dbt macros, and what the scanner read of the rest."""

    queries: list[FilePair]
    macros: list[FilePair]
    base: ScanResult
    head: ScanResult
    unread: list[Unread]
    settings: SettingEdits = NO_SETTINGS
    broken: Sequence[BrokenReference] = ()
    definitions: Sequence[DatasetId] = ()
    options_only: frozenset[str] = frozenset()  # models with an edit only in the `config` call
    job_names: Mapping[str, set[str]] = MappingProxyType({})  # of dbt models, by path

    @property
    def paths(self) -> set[str]:
        """The unedited files whose meaning edited settings or removed names change."""
        return self.settings.paths | {broken.path for broken in self.broken}


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
    """Read edited files on their own, without the other files of their commits."""
    base, head = ScanResult(files=0), ScanResult(files=0)
    for pair in pairs:
        if pair.is_type(*SCANNED):
            for text, side in ((pair.base, base), (pair.head, head)):
                if text is not None and pair.is_type(*OTHER_LANGUAGES):
                    side.unread += check_language(pair.path, text)
                elif text is not None:
                    _add(side, scan_text(pair.path, text, names))
    return EditedCode(_queries(pairs), [], base, head, [])


def _add(result: ScanResult, more: ScanResult) -> None:
    result.jobs += more.jobs
    result.unread += more.unread


def list_used(pairs: Sequence[FilePair], sides: Sequence[CommitCode]) -> set[str]:
    """Return unedited files whose code means something else after the edits."""
    return {path for side in sides for path in side.using(pairs)}


def read_commits(pairs: Sequence[FilePair], base: CommitCode, head: CommitCode) -> EditedCode:
    """Read edited files, and unedited ones that use them, among all files of their commits."""
    sides = [base, head]
    used = list_used(pairs, sides)
    scanned = {pair.path for pair in pairs if pair.is_type(*SCANNED)}
    scanned |= {path for path in used if path.endswith(SCANNED)}
    edited = {pair.path for pair in pairs}
    scanned |= {p for side in sides for p in {*used, *edited} if side.is_read_whole(p)}
    rendered = [pair for side in sides for pair in pairs if side.uses_macros(pair)]
    paths = {pair.path for pair in rendered} | {path for path in used if path.endswith(".sql")}
    options_only = frozenset(pair.path for pair in _queries(pairs) if has_same_query(pair))
    paths -= options_only | scanned
    queries = [
        pair for pair in _queries(pairs) if pair.path not in {*paths, *options_only, *scanned}
    ]
    rendered_models = _render(paths, sides)
    queries += rendered_models.pairs
    macros = {path for side in sides for path in side.macro_files}
    settings = compare_settings(pairs, base, head)
    files = compare_dbt_files(pairs, base, head)
    opaque = find_opaque_edits(pairs, sides)
    before, after = base.scan(scanned), head.scan(scanned)
    return EditedCode(
        [pair for pair in queries if pair.path not in macros],
        [pair for pair in pairs if pair.path in macros],
        before,
        after,
        [
            *_excluded_code(pairs, head),
            *find_edited_spots(pairs, before, after),
            *find_edited_headers(pairs),
            *find_schema_edits(pairs, base),
            *opaque,
            *(unread for unread in rendered_models.unread if unread.path in used),
            *rendered_models.hooks,
            *settings.unread,
            *files.unread,
        ],
        settings,
        find_broken_references(pairs, base, head),
        files.definitions,
        options_only,
        {
            path: head.job_names(path) | base.job_names(path)
            for path in {*edited, *used, *settings.paths}
        },
    )


def has_same_query(pair: FilePair) -> bool:
    """Return whether only the `config` call of a model is edited.

    Options are compared separately.
    """
    if pair.base is None or pair.head is None:
        return False
    return is_same_layout(*(strip_config_calls(text) for text in (pair.base, pair.head)))


def _excluded_code(pairs: Sequence[FilePair], head: CommitCode) -> Iterator[Unread]:
    """Yield edited code in folders that a scan leaves out, such as build/ or ignored ones."""
    for pair in pairs:
        if pair.head is not None and pair.is_type(".py", ".ipynb") and not head.has(pair.path):
            reason = UnreadReason.SKIPPED_FOLDER
            yield Unread(path=pair.path, line=0, reason=reason, detail="in a folder not scanned")


def _queries(pairs: Sequence[FilePair]) -> list[FilePair]:
    return [pair for pair in pairs if pair.is_type(".sql")]


class _RenderedModels(NamedTuple):
    """Models whose rendered SQL differs, models with an unknown part, and hooks that differ."""

    pairs: list[FilePair]
    unread: list[Unread]
    hooks: list[Unread]


def _render(paths: set[str], sides: list[CommitCode]) -> _RenderedModels:
    """Compare models as they are with the macros and variables of their own commit."""
    jobs = [_jobs_by_path(side.scan(paths)) for side in sides]
    found = _RenderedModels([], [], [])
    for path in sorted(paths):
        both = [side.get(path, []) for side in jobs]
        before, after = (next(iter(found_jobs), None) for found_jobs in both)
        texts = _compared_texts(before, after)
        if [job.sql for job in both[0][1:]] != [job.sql for job in both[1][1:]]:
            detail = "code that it uses is edited, and changes a hook"
            reason = UnreadReason.DYNAMIC_CODE
            found.hooks.append(Unread(path=path, line=1, reason=reason, detail=detail))
        if texts[0] != texts[1]:
            found.pairs.append(FilePair(path, *texts))
        spot = next((s for s in (after.spots if after else ()) if s.kind == "template"), None)
        if spot is not None and texts[0] == texts[1]:
            detail = f"it uses edited code, and a part of it could not be rendered: {spot.message}"
            reason = UnreadReason.DYNAMIC_CODE
            found.unread.append(Unread(path=path, line=spot.line, reason=reason, detail=detail))
    return found


def _compared_texts(before: CodeJob | None, after: CodeJob | None) -> list[str | None]:
    """Return the SQL of a model on both sides.

    When it is the same, a branch that other run-time values select may still differ.
    """
    if before is not None and after is not None and before.sql == after.sql:
        for old, new in zip(before.other_sql, after.other_sql, strict=False):
            if old != new:
                return [old, new]
    return [None if job is None else job.sql for job in (before, after)]


def _jobs_by_path(result: ScanResult) -> dict[str, list[CodeJob]]:
    """Return the jobs of each file: a model, and then its hooks that read what it writes."""
    found: dict[str, list[CodeJob]] = {}
    for job in result.jobs:
        found.setdefault(job.path, []).append(job)
    return found
