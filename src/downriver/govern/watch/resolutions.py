"""Why a finding is no longer one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.events.wire import parse_time
from downriver.govern.drift.series import DAY
from downriver.model.findings import FindingKind

if TYPE_CHECKING:
    from downriver.govern.drift import Limits
    from downriver.model.findings import Finding

_SETTLES = frozenset(
    {
        FindingKind.COLUMN_ADDED,
        FindingKind.COLUMN_DROPPED,
        FindingKind.COLUMN_RENAMED,
        FindingKind.COLUMN_RETYPED,
        FindingKind.EDGE_APPEARED,
        FindingKind.EDGE_VANISHED,
    }
)
_OVER = {
    FindingKind.ROW_COUNT_SHIFT: "the figures are ordinary again",
    FindingKind.NULL_RATE_SHIFT: "the figures are ordinary again",
    FindingKind.DISTRIBUTION_SHIFT: "the figures are ordinary again",
    FindingKind.QUALITY_FAILED: "the check passes again",
    FindingKind.RUN_FAILED: "a later run completed",
    FindingKind.RUN_LATE: "a run has begun",
}


def resolution(finding: Finding, now: int, limits: Limits) -> str:
    """Say why a finding that was open is none now."""
    age = now - parse_time(finding.first_seen, "first_seen")
    if finding.kind in _SETTLES:
        if age >= limits.settle_days * DAY:
            return f"it has held for {limits.settle_days:g} days and is normal now"
        return "it is as it was before"
    if age >= limits.lateness.give_up_days * DAY:
        return "nothing has been heard of it for long"
    return _OVER[finding.kind]
