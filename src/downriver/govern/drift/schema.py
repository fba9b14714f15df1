"""Columns that came, went, were renamed or changed their type."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from downriver.events.derivations import read_derivations
from downriver.events.facets import schema_columns
from downriver.events.wire import render_time
from downriver.govern.drift.renames import Rename, Sides, find_renames
from downriver.govern.drift.versions import Turn, began, find_turn, merge_bodies
from downriver.model.findings import Evidence, Finding, FindingKind, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from downriver.events.facets import Column
    from downriver.govern.drift.limits import Limits
    from downriver.model.facts import EventRef
    from downriver.model.ids import DatasetId
    from downriver.store.history import Version


class Schemas(NamedTuple):
    """Every schema a dataset had, and what was said of the sources of its columns."""

    dataset: DatasetId
    versions: list[Version]
    claims: list[Version]


def find_schema_drift(schemas: Schemas, limits: Limits, settled_at: int) -> list[Finding]:
    """Return how the columns of a dataset differ from what was normal."""
    turn = find_turn(merge_bodies(schemas.versions), settled_at)
    return [] if turn is None else list(_Columns(schemas, turn).findings(limits))


class _Columns:
    """The columns before and now."""

    def __init__(self, schemas: Schemas, turn: Turn) -> None:
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

    def findings(self, limits: Limits) -> Iterator[Finding]:
        gone = [path for path in self._types_before if path not in self._alive]
        new = [path for path in self._types_now if path not in self._types_before]
        renames = find_renames(gone, new, self._sides(), limits.rename_certainty)
        paired = {name for rename in renames for name in (rename.old, rename.new)}
        yield from (self._renamed(rename) for rename in renames)
        yield from (self._dropped(path) for path in gone if path not in paired)
        yield from (self._added(path) for path in new if path not in paired)
        yield from (self._retyped(path) for path in self._types_now if self._is_retyped(path))

    def _sides(self) -> Sides:
        first = self._turn.now.span.first
        old = [v for v in self._schemas.claims if v.span.first < first]
        # What is told in the same event as the new schema speaks of it.
        new = [v for v in self._schemas.claims if v.span.last >= first]
        return Sides(
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

    def _renamed(self, rename: Rename) -> Finding:
        since = self._since(lambda c: _has(c, rename.new) and not _has(c, rename.old))
        return self._finding(
            FindingKind.COLUMN_RENAMED,
            rename.old,
            Severity.WARNING,
            f"column {rename.old} seems to be {rename.new} now ({rename.certainty:.0%} sure)",
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
            f"column {path}{_of_type(kind)} is gone",
            self._since(lambda c: not _has(c, path)),
        )

    def _added(self, path: str) -> Finding:
        kind = self._types_now[path]
        return self._finding(
            FindingKind.COLUMN_ADDED,
            path,
            Severity.INFO,
            f"column {path}{_of_type(kind)} is new",
            self._since(lambda c: _has(c, path)),
        )

    def _retyped(self, path: str) -> Finding:
        before, now = self._types_before[path], self._types_now[path]
        return self._finding(
            FindingKind.COLUMN_RETYPED,
            path,
            Severity.WARNING,
            f"column {path} was {before} and is now {now}",
            self._since(lambda c: any(x.path == path and x.type == now for x in c)),
            state=now,
            expected=before,
            actual=now,
        )

    def _since(self, holds: Callable[[Sequence[Column]], bool]) -> EventRef:
        return began(self._turn, [holds(self._columns[v.digest]) for v in self._turn.between])

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


def _sources(dataset: DatasetId, claims: list[Version]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for claim in claims:
        for derived in read_derivations(claim.facet, claim.body, dataset):
            if derived.direct:
                source = f"{derived.source.dataset.name}.{derived.source.field}"
                found.setdefault(derived.target.field, set()).add(source)
    return {column: frozenset(sources) for column, sources in found.items()}


def _has(columns: Sequence[Column], path: str) -> bool:
    return any(column.path == path for column in columns)


def _of_type(kind: str) -> str:
    return f" ({kind})" if kind else ""
