"""Which column that is gone lives on under a new name, how sure that is, and why."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from downriver.events.facets import Column

_WORDS = re.compile(r"[a-z]+|[0-9]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SIMILAR = 0.6


class Rename(NamedTuple):
    """One column under two names, with how sure that is, from 0 to 1."""

    old: str
    new: str
    certainty: float
    why: list[str]


class Sides(NamedTuple):
    """Two schemas, and what is known of the sources of their columns."""

    before: Sequence[Column]
    now: Sequence[Column]
    sources_before: Mapping[str, frozenset[str]]
    sources_now: Mapping[str, frozenset[str]]


def find_renames(
    gone: Sequence[str], new: Sequence[str], sides: Sides, least: float
) -> list[Rename]:
    """Pair columns, the surest pair first; a column is in one pair at most."""
    pairs = [_compare(old, other, sides) for old in gone for other in new]
    found: list[Rename] = []
    for pair in sorted(pairs, key=lambda p: (-p.certainty, p.old, p.new)):
        taken = {name for rename in found for name in (rename.old, rename.new)}
        if pair.certainty >= least and not {pair.old, pair.new} & taken:
            found.append(pair)
    return found


def _compare(old: str, new: str, sides: Sides) -> Rename:
    """Add up what speaks for one column having become the other.

    Where lineage says what both are made of, that weighs most. A name, a type or a place alone
    is never enough.
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
    return Rename(old, new, round(max(0.0, min(score, 1.0)), 2), why)


def _by_sources(old: str, new: str, sides: Sides) -> tuple[float, str]:
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


def _by_type(old: str, new: str, sides: Sides) -> tuple[float, str]:
    before, now = _find(sides.before, old), _find(sides.now, new)
    if before is None or now is None or not before.type or not now.type:
        return 0.0, ""
    if before.type.casefold() == now.type.casefold():
        return 0.15, f"both are {now.type}"
    return -0.3, ""


def _by_place(old: str, new: str, sides: Sides) -> tuple[float, str]:
    """Look at the neighbours, not the number: a column added above moves all below it."""
    if _neighbours(sides.before, old) & _neighbours(sides.now, new):
        return 0.2, "it stands between the same columns"
    return 0.0, ""


def _neighbours(columns: Sequence[Column], name: str) -> set[tuple[str, str]]:
    names = ["", *(column.path for column in columns), ""]
    if name not in names:
        return set()
    at = names.index(name)
    return {("after", names[at - 1]), ("before", names[at + 1])}


def _by_description(old: str, new: str, sides: Sides) -> tuple[float, str]:
    before, now = _find(sides.before, old), _find(sides.now, new)
    if before is None or now is None or not before.description:
        return 0.0, ""
    return (
        (0.2, "the description is the same") if before.description == now.description else (0, "")
    )


def _find(columns: Sequence[Column], name: str) -> Column | None:
    return next((column for column in columns if column.path == name), None)
