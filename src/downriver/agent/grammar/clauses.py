"""One clause, read by the first pattern that fits.

A pattern is a function from a clause to what it says, None when it does not fit. One that sees two
meanings raises `UnclearError` instead of choosing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from downriver.agent.grammar.active import (
    builds_from,
    changes_into,
    comes_from,
    draws,
    feeds,
    into,
    moves_into,
    trains_on,
)
from downriver.agent.grammar.both_ends import from_and_to, reads_and_writes
from downriver.agent.grammar.mentions import parse_mention
from downriver.agent.grammar.passive import is_made_from, is_made_into, is_used_by, made_into
from downriver.agent.grammar.words import is_marked

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.agent.grammar.clause import Clause

PATTERNS: tuple[Callable[[str], Clause | None], ...] = (
    reads_and_writes,
    from_and_to,
    is_made_into,
    is_used_by,
    is_made_from,
    comes_from,
    trains_on,
    builds_from,
    feeds,
    changes_into,
    moves_into,
    made_into,
    draws,
    into,
)


def parse_clause(text: str) -> list[Clause]:
    """Return what a clause says; nothing when no pattern fits."""
    text = re.sub(r"\s+", " ", text).strip(" ,;.")
    for pattern in PATTERNS:
        found = pattern(text)
        if found is not None and not _left_out(text, found):
            return [found]
    return []


_BESIDE = re.compile(r"\b(?:on|by|per|over|for|where|using|via|at)\s+\S+", re.IGNORECASE)


def _left_out(text: str, clause: Clause) -> list[str]:
    """Return the names in a clause that have no place in what was read: then it was misread."""
    told = " ".join((clause.how, *(m.text for m in (*clause.sources, *clause.targets))))
    via = clause.via.text if clause.via else ""
    names = [word.strip(",;.()") for word in _BESIDE.sub("", text).split()]
    return [n for n in names if is_marked(n) and n not in told + via and not _is_actor(n)]


def _is_actor(name: str) -> bool:
    mention = parse_mention(name)
    return mention is not None and mention.actor
