"""Datasets that were dropped although a job reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from downriver.model.governance import Evidence, Finding, FindingKind, Severity
from downriver.openlineage.facets.dataset import parse_lifecycle
from downriver.openlineage.wire import render_time

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.model.facts import Span
    from downriver.model.ids import DatasetId
    from downriver.store.catalog.history import FacetVersion


class DatasetEdges(NamedTuple):
    """The writes of a dataset, each with its first and last time, and the number of its readers."""

    writes: tuple[tuple[int, int], ...]
    readers: int


def find_drop(versions: Iterable[FacetVersion]) -> Span | None:
    """Return the times of the drop if it is the last known change of a dataset as a whole."""
    last = max(versions, key=lambda each: (each.span.last, each.digest), default=None)
    if last is None or parse_lifecycle(last.body).upper() != "DROP":
        return None
    return last.span


def is_drop(write: tuple[int, int], drop: Span) -> bool:
    """Return whether the event that drops a dataset is the only one that shows this write."""
    first_at, last_at = write
    return first_at >= drop.first.at and last_at <= drop.last.at


def find_dropped(
    dataset: DatasetId, versions: Iterable[FacetVersion], edges: DatasetEdges
) -> Finding | None:
    """Return a finding if a dataset that jobs read was dropped and not written since."""
    drop = find_drop(versions)
    if drop is None or not edges.readers or any(last > drop.last.at for _, last in edges.writes):
        return None
    at = render_time(drop.last.at)
    readers = "1 job reads" if edges.readers == 1 else f"{edges.readers} jobs read"
    return Finding(
        kind=FindingKind.DATASET_DROPPED,
        entity=str(dataset),
        severity=Severity.WARNING,
        message=f"the dataset was dropped, but {readers} it",
        first_seen=at,
        state=drop.last.digest.hex()[:16],
        evidence=[Evidence(event=drop.last.digest.hex(), at=at)],
    )
