"""The gate's history: recorded verdicts, and the blast radius per change."""

from __future__ import annotations

import hashlib
from statistics import median
from typing import TYPE_CHECKING

from downriver.model.verdicts import ChangeBlastRadius, Decision, RecordedVerdict
from downriver.openlineage.wire import render_time
from downriver.store.verdicts import VerdictFilter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.model.verdicts import Verdict
    from downriver.store import CatalogReader

_CHANGES_KEPT = 100  # of one verdict
_MOST_VERDICTS = 100_000
_DAY = 86_400_000_000


def summarise(verdict: Verdict, at: int, by: str = "") -> RecordedVerdict:
    """Return the record of a verdict."""
    impact, commits = verdict.impact, verdict.impact.commits
    waived = tuple(f"{f.rule}: {f.waived}" for f in verdict.findings if f.waived)
    text = "\n".join((str(at), verdict.decision.value, *impact.targets, *impact.changes))
    return RecordedVerdict(
        id=hashlib.sha256(text.encode()).hexdigest()[:16],
        at=render_time(at),
        decision=verdict.decision,
        risk=verdict.risk,
        reason=verdict.reason,
        decided_by=verdict.decided_by,
        changes=impact.changes[:_CHANGES_KEPT],
        targets=impact.targets[:_CHANGES_KEPT],
        affected=verdict.affected,
        breaking=len(impact.breaking),
        complete=impact.complete,
        by=by,
        waived=waived,
        base=commits.base if commits else "",
        head=commits.head if commits else "",
    )


def measure_change_radius(reader: CatalogReader, now: int, days: int) -> ChangeBlastRadius:
    """Return how many consumers a change affects, over the verdicts of the last days."""
    wanted = VerdictFilter(since=now - days * _DAY, limit=_MOST_VERDICTS)
    latest = _latest_of_each_change(reader.verdicts.find(wanted).verdicts)
    affected = [verdict.affected for verdict in latest]
    return ChangeBlastRadius(
        changes=len(latest),
        median=float(median(affected)) if affected else None,
        largest=max(affected, default=0),
        blocked=sum(verdict.decision is Decision.BLOCKED for verdict in latest),
        days=days,
    )


def _latest_of_each_change(verdicts: Iterable[RecordedVerdict]) -> list[RecordedVerdict]:
    """Return one verdict for each change. `verdicts` are sorted, the latest first.

    A pull request that is checked at every push is one change.
    """
    found: dict[tuple[object, ...], RecordedVerdict] = {}
    for verdict in verdicts:
        if verdict.changes:
            found.setdefault((*sorted(verdict.targets), "", *sorted(verdict.changes)), verdict)
    return list(found.values())
