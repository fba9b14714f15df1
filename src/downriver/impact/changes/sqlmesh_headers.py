"""Edited headers of SQLMesh models. The query below a header is compared as SQL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from downriver.capture.scan.sqlmesh import is_sqlmesh, list_headers
from downriver.model.unread import Unread, UnreadReason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.impact.changes.commits import FilePair

# Documentation, schedules and checks: they change neither columns nor values. Names, dialects and
# the columns of keys are compared as parts of the job.
_HARMLESS = frozenset(
    {
        "name", "dialect", "description", "column_descriptions", "owner", "tags", "stamp", "cron",
        "cron_tz", "interval_unit", "start", "end", "audits", "grain", "grains", "references",
        "depends_on", "signals", "formatting", "session_properties", "allow_partials", "gateway",
    }
)  # fmt: skip
_REBUILT = frozenset({"", "view", "full"})  # kinds that keep no rows of an earlier run
_COMMENT = re.compile(r"/\*(?:(?!/\*).)*?\*/|--[^\n]*", re.DOTALL)


def find_edited_headers(pairs: Sequence[FilePair]) -> Iterator[Unread]:
    """Yield the edited properties of headers whose effect is unknown."""
    for pair in pairs:
        if not pair.is_type(".sql") or pair.base is None or pair.head is None:
            continue
        if not (is_sqlmesh(pair.base) and is_sqlmesh(pair.head)):
            continue
        before, after = (list(list_headers(text)) for text in (pair.base, pair.head))
        for old, new in zip(before, after, strict=False):
            yield from _differences(pair, _properties(old), _properties(new))


def _differences(pair: FilePair, old: dict[str, str], new: dict[str, str]) -> Iterator[Unread]:
    for name in sorted(old.keys() | new.keys()):
        values = old.get(name, ""), new.get(name, "")
        if name in _HARMLESS or values[0] == values[1]:
            continue
        if name == "kind" and {value.casefold() for value in values} <= _REBUILT:
            continue
        line = _line_of(pair.head or "", name)
        detail = f"{name}: {values[0] or 'not set'} -> {values[1] or 'not set'}"
        detail += ": the effect of this property is not known"
        yield Unread(path=pair.path, line=line, reason=UnreadReason.SETTING, detail=detail)


def _properties(header: str) -> dict[str, str]:
    """Return the properties of a header, with white space made equal."""
    text = _COMMENT.sub(" ", header)
    inside = text[text.find("(") + 1 : text.rfind(")")]
    found: dict[str, str] = {}
    depth, start = 0, 0
    for at, sign in enumerate(f"{inside},"):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            name, _, value = inside[start:at].strip().partition(" ")
            start = at + 1
            if name:
                found[name.casefold()] = " ".join(value.split())
    return found


def _line_of(text: str, name: str) -> int:
    found = re.search(rf"^[^\S\n]*{re.escape(name)}\b", text, re.MULTILINE | re.IGNORECASE)
    return text.count("\n", 0, found.end()) + 1 if found is not None else 1
