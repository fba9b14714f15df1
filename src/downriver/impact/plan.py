"""Expand, migrate, contract: how a name that many use is changed without a break."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.model.changes import ColumnRename

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.model.changes import Change
    from downriver.model.verdicts import Impact


def write_plan(changes: Sequence[Change], impact: Impact) -> list[str]:
    """Return the steps for each rename, consumers in the order in which they depend."""
    steps: list[str] = []
    for change in changes:
        if isinstance(change, ColumnRename) and impact.effects:
            steps += _steps(change, impact)
    return steps


def _steps(change: ColumnRename, impact: Impact) -> Iterator[str]:
    table, old, new = change.dataset, change.column, change.to
    yield f"expand: add {table}.{new}, fill it from {old}, and let every writer fill both"
    by_hops: dict[int, list[str]] = {}
    for effect in impact.breaking:
        owners = f" ({', '.join(effect.owners)})" if effect.owners else ""
        by_hops.setdefault(effect.hops, []).append(f"{effect.name}{owners}")
    for hops in sorted(by_hops):
        yield f"migrate: {', '.join(by_hops[hops])}"
    yield f"check: `downriver impact {table}.{old} --drop` must list no one"
    yield f"contract: drop {table}.{old}"
