"""The current version of a schema or claim, and the version before it.

Only the first and last time of each version are known. Two versions may be in use at the same time:
two jobs that write a table differently, or a reader that names only the columns it reads. A column
of any version in use is not dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from downriver.model.facts import EventRef, Span

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.store.catalog.history import FacetVersion


class VersionChange(NamedTuple):
    """The change from the baseline to now; `alive` are the versions seen since it began."""

    before: FacetVersion
    now: FacetVersion
    alive: list[FacetVersion]
    between: list[FacetVersion]  # those that came after `before`, the first first, `now` included


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
    """Return versions, each body once; a dataset with two names has the same body twice."""
    found: dict[bytes, FacetVersion] = {}
    for version in versions:
        known = found.get(version.digest)
        merged = version if known is None else version._replace(span=known.span.merge(version.span))
        found[version.digest] = merged
    return list(found.values())


def began_at_event(turn: VersionChange, holds: Iterable[bool]) -> EventRef:
    """Return the event since which a condition holds; `holds` has its value for each version."""
    since: Span = turn.now.span
    for version, held in reversed(list(zip(turn.between, holds, strict=True))):
        if not held:
            break
        since = version.span
    return since.first
