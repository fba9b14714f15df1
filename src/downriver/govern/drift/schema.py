"""Columns that were added, dropped, renamed or changed their type.

Only the first and last time of each version of a schema are known. Two versions may be in use at
the same time: two jobs that write a table differently, or a reader that names only the columns it
reads. A column of any version in use is not dropped.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, NamedTuple

from downriver.model.facts import EventRef, Span
from downriver.model.governance import Evidence, Finding, FindingKind, Severity
from downriver.openlineage.facets.column_lineage import parse_derivations
from downriver.openlineage.facets.dataset import schema_columns
from downriver.openlineage.wire import render_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from downriver.govern.drift.series import DriftLimits
    from downriver.model.ids import DatasetId
    from downriver.openlineage.facets.dataset import SchemaColumn
    from downriver.store.catalog.history import FacetVersion


class VersionChange(NamedTuple):
    """The change from the baseline to now; `alive` are the versions seen since it began."""

    before: FacetVersion
    now: FacetVersion
    alive: list[FacetVersion]
    between: list[FacetVersion]  # the versions after `before` in order, up to and including `now`


def find_version_change(versions: Iterable[FacetVersion], settled_at: int) -> VersionChange | None:
    """Return the change since the baseline, None when there is none.

    The baseline is the last seen of the versions known at `settled_at`, else the first version.
    """
    known = sorted(versions, key=lambda v: (v.span.first, v.digest))
    if len(known) < 2:
        return None
    now = max(known, key=lambda v: (v.span.last, v.digest))
    settled = [v for v in known if v.span.first.at <= settled_at]
    if now in settled or now == known[0]:
        return None
    before = max(settled, key=lambda v: (v.span.last, v.digest)) if settled else known[0]
    alive = [v for v in known if v.span.last >= now.span.first]
    between = [v for v in known if v.span.first > before.span.first]
    return VersionChange(before, now, alive, between)


def merge_bodies(versions: Iterable[FacetVersion]) -> list[FacetVersion]:
    """Return versions with each body once. A dataset with two names has the same body twice."""
    found: dict[bytes, FacetVersion] = {}
    for version in versions:
        known = found.get(version.digest)
        merged = version if known is None else version._replace(span=known.span.merge(version.span))
        found[version.digest] = merged
    return list(found.values())


def began_at_event(turn: VersionChange, holds: Iterable[bool]) -> EventRef:
    """Return the event since which a condition holds. `holds` is its value for each version."""
    since: Span = turn.now.span
    for version, held in reversed(list(zip(turn.between, holds, strict=True))):
        if not held:
            break
        since = version.span
    return since.first


_WORDS = re.compile(r"[a-z]+|[0-9]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SIMILAR = 0.6


class ColumnRenameGuess(NamedTuple):
    """Two names of what may be one column, with a confidence from 0 to 1."""

    old: str
    new: str
    certainty: float
    why: list[str]


class SchemaPair(NamedTuple):
    """Two schemas, and the known sources of their columns."""

    before: Sequence[SchemaColumn]
    now: Sequence[SchemaColumn]
    sources_before: Mapping[str, frozenset[str]]
    sources_now: Mapping[str, frozenset[str]]


def find_renames(
    dropped: Sequence[str], new: Sequence[str], sides: SchemaPair, least: float
) -> list[ColumnRenameGuess]:
    """Pair columns by confidence. A column is in at most one pair."""
    pairs = [_compare(old, other, sides) for old in dropped for other in new]
    guesses: list[ColumnRenameGuess] = []
    for pair in sorted(pairs, key=lambda p: (-p.certainty, p.old, p.new)):
        taken = {name for rename in guesses for name in (rename.old, rename.new)}
        if pair.certainty >= least and not {pair.old, pair.new} & taken:
            guesses.append(pair)
    return guesses


def _compare(old: str, new: str, sides: SchemaPair) -> ColumnRenameGuess:
    """Add up the evidence that one column was renamed to the other.

    Equal sources in the lineage have the most weight. A name, a type or a position alone is never
    enough.
    """
    score, why = 0.0, []
    for points, reason in (
        _by_sources(old, new, sides),
        _by_name(old, new),
        _by_type(old, new, sides),
        _by_place(old, new, sides),
        _by_description(old, new, sides),
    ):
        score += points
        if reason:
            why.append(reason)
    return ColumnRenameGuess(old, new, round(max(0.0, min(score, 1.0)), 2), why)


def _by_sources(old: str, new: str, sides: SchemaPair) -> tuple[float, str]:
    before, now = sides.sources_before.get(old), sides.sources_now.get(new)
    if not before or not now:
        return 0.0, ""
    if before == now:
        return 0.45, f"derives from the same columns ({', '.join(sorted(before))})"
    return (-0.3, "derives from other columns") if not before & now else (0.1, "")


def _by_name(old: str, new: str) -> tuple[float, str]:
    alike = max(
        difflib.SequenceMatcher(None, old.casefold(), new.casefold()).ratio(),
        _shared_words(old, new),
    )
    points = 0.4 * max(0.0, (alike - 0.3) / 0.7)
    return points, f"the names are {alike:.0%} alike" if alike >= _SIMILAR else ""


def _shared_words(old: str, new: str) -> float:
    ours, theirs = (set(_WORDS.findall(_HUMP.sub("_", name).lower())) for name in (old, new))
    if not ours or not theirs:
        return 0.0
    return len(ours & theirs) / min(len(ours), len(theirs)) * 0.9


def _by_type(old: str, new: str, sides: SchemaPair) -> tuple[float, str]:
    before, now = _find_column(sides.before, old), _find_column(sides.now, new)
    if before is None or now is None or not before.type or not now.type:
        return 0.0, ""
    if before.type.casefold() == now.type.casefold():
        return 0.15, f"both are {now.type}"
    return -0.3, ""


def _by_place(old: str, new: str, sides: SchemaPair) -> tuple[float, str]:
    """Compare the neighbours and not the positions: a new column shifts all columns after it."""
    if _neighbours(sides.before, old) & _neighbours(sides.now, new):
        return 0.2, "its neighbouring columns are the same"
    return 0.0, ""


def _neighbours(columns: Sequence[SchemaColumn], name: str) -> set[tuple[str, str]]:
    names = ["", *(column.path for column in columns), ""]
    if name not in names:
        return set()
    at = names.index(name)
    return {("after", names[at - 1]), ("before", names[at + 1])}


def _by_description(old: str, new: str, sides: SchemaPair) -> tuple[float, str]:
    before, now = _find_column(sides.before, old), _find_column(sides.now, new)
    if before is None or now is None or not before.description:
        return 0.0, ""
    return (
        (0.2, "the description is the same") if before.description == now.description else (0, "")
    )


def _find_column(columns: Sequence[SchemaColumn], name: str) -> SchemaColumn | None:
    return next((column for column in columns if column.path == name), None)


class SchemaHistory(NamedTuple):
    """Every schema of a dataset, and the column lineage of each version."""

    dataset: DatasetId
    versions: list[FacetVersion]
    claims: list[FacetVersion]


def find_schema_drift(
    schemas: SchemaHistory, limits: DriftLimits, settled_at: int
) -> list[Finding]:
    """Return how the columns of a dataset differ from the baseline."""
    turn = find_version_change(merge_bodies(schemas.versions), settled_at)
    return [] if turn is None else list(_SchemaDrift(schemas, turn).findings(limits))


class _SchemaDrift:
    """The columns before and now."""

    def __init__(self, schemas: SchemaHistory, turn: VersionChange) -> None:
        self._schemas = schemas
        self._turn = turn
        self._columns = {v.digest: schema_columns(v.body) for v in (turn.before, *turn.between)}
        self._before = self._columns[turn.before.digest]
        self._now = self._columns[turn.now.digest]
        self._types_before = {column.path: column.type for column in self._before}
        self._types_now = {column.path: column.type for column in self._now}
        alive = [schema_columns(v.body) for v in turn.alive]
        self._alive = {column.path for columns in alive for column in columns}
        self._alive_types = {(c.path, c.type.casefold()) for columns in alive for c in columns}

    def findings(self, limits: DriftLimits) -> Iterator[Finding]:
        dropped = [path for path in self._types_before if path not in self._alive]
        new = [path for path in self._types_now if path not in self._types_before]
        renames = find_renames(dropped, new, self._sides(), limits.rename_certainty)
        paired = {name for rename in renames for name in (rename.old, rename.new)}
        yield from (self._renamed_column(rename) for rename in renames)
        yield from (self._dropped(path) for path in dropped if path not in paired)
        yield from (self._added_column(path) for path in new if path not in paired)
        yield from (self._retyped(path) for path in self._types_now if self._is_retyped(path))

    def _sides(self) -> SchemaPair:
        first = self._turn.now.span.first
        old = [v for v in self._schemas.claims if v.span.first < first]
        # Column lineage in the same event as the new schema describes that schema.
        new = [v for v in self._schemas.claims if v.span.last >= first]
        return SchemaPair(
            self._before,
            self._now,
            _sources(self._schemas.dataset, old),
            _sources(self._schemas.dataset, new),
        )

    def _is_retyped(self, path: str) -> bool:
        before, now = self._types_before.get(path), self._types_now[path]
        if not before or not now or before.casefold() == now.casefold():
            return False
        return (path, before.casefold()) not in self._alive_types

    def _renamed_column(self, rename: ColumnRenameGuess) -> Finding:
        since = self._since(lambda c: _has(c, rename.new) and not _has(c, rename.old))
        return self._finding(
            FindingKind.COLUMN_RENAMED,
            rename.old,
            Severity.WARNING,
            f"column {rename.old} was probably renamed to {rename.new} "
            f"({rename.certainty:.0%} certain)",
            since,
            state=rename.new,
            expected=rename.old,
            actual=rename.new,
            confidence=rename.certainty,
            why=rename.why,
        )

    def _dropped(self, path: str) -> Finding:
        kind = self._types_before[path]
        return self._finding(
            FindingKind.COLUMN_DROPPED,
            path,
            Severity.WARNING,
            f"column {path}{_of_type(kind)} was dropped",
            self._since(lambda c: not _has(c, path)),
        )

    def _added_column(self, path: str) -> Finding:
        kind = self._types_now[path]
        return self._finding(
            FindingKind.COLUMN_ADDED,
            path,
            Severity.INFO,
            f"column {path}{_of_type(kind)} was added",
            self._since(lambda c: _has(c, path)),
        )

    def _retyped(self, path: str) -> Finding:
        before, now = self._types_before[path], self._types_now[path]
        return self._finding(
            FindingKind.COLUMN_RETYPED,
            path,
            Severity.WARNING,
            f"column {path} changed its type from {before} to {now}",
            self._since(lambda c: any(x.path == path and x.type == now for x in c)),
            state=now,
            expected=before,
            actual=now,
        )

    def _since(self, holds: Callable[[Sequence[SchemaColumn]], bool]) -> EventRef:
        return began_at_event(
            self._turn, [holds(self._columns[v.digest]) for v in self._turn.between]
        )

    def _finding(
        self,
        kind: FindingKind,
        column: str,
        severity: Severity,
        message: str,
        since: EventRef,
        *,
        state: str = "",
        expected: str | None = None,
        actual: str | None = None,
        confidence: float | None = None,
        why: list[str] | None = None,
    ) -> Finding:
        at = render_time(since.at)
        return Finding(
            kind=kind,
            entity=str(self._schemas.dataset),
            subject=column,
            severity=severity,
            message=message,
            first_seen=at,
            state=state,
            expected=expected,
            actual=actual,
            confidence=confidence,
            why=why or [],
            evidence=[Evidence(event=since.digest.hex(), at=at)],
        )


def _sources(dataset: DatasetId, claims: list[FacetVersion]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for claim in claims:
        for derived in parse_derivations(claim.facet, claim.body, dataset):
            if derived.direct:
                source = f"{derived.source.dataset.name}.{derived.source.field}"
                found.setdefault(derived.target.field, set()).add(source)
    return {column: frozenset(sources) for column, sources in found.items()}


def _has(columns: Sequence[SchemaColumn], path: str) -> bool:
    return any(column.path == path for column in columns)


def _of_type(kind: str) -> str:
    return f" ({kind})" if kind else ""
