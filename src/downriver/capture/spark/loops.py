"""Recursive WITH: inside the loop its own rows are a stand-in, replaced once the loop is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.capture.spark.relations import Column, Relation, joined
from downriver.capture.sql.deps import Deps, Kind, Sure, at_least, steering

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.capture.spark.plan import Node

_LOOP = "\x00loop"


def open_loop(loop: int, output: Sequence[Node]) -> Relation:
    """Return the rows of the loop as the loop itself sees them."""
    return Relation(
        [
            Column(attribute.id, attribute.name, {_stand_in(loop, at): Sure.EXACT})
            for at, attribute in enumerate(output)
        ]
    )


def close_loop(loop: int, anchor: Relation, recursion: Relation, ids: Sequence[int]) -> Relation:
    """Return the rows of the loop: what it starts from, and what each turn adds."""
    found = [column.deps for column in anchor.columns]
    turns = [column.deps for column in recursion.columns]
    while True:
        more = [
            joined([known, _replaced(turn, loop, found)])
            for known, turn in zip(found, turns, strict=False)
        ]
        if more == found:
            break
        found = more
    columns = [
        column._replace(id=ids[at] if at < len(ids) else column.id, deps=deps, fields=None)
        for at, (column, deps) in enumerate(zip(anchor.columns, found, strict=False))
    ]
    return Relation(columns, joined([anchor.rows, _replaced(recursion.rows, loop, found)]))


def _stand_in(loop: int, at: int) -> tuple[tuple[str, ...], str, int, bool]:
    return (_LOOP, str(loop)), str(at), Kind.IDENTITY, False


def _replaced(deps: Deps, loop: int, known: Sequence[Deps]) -> Deps:
    """Return dependencies on the loop's own columns as dependencies on what those depend on."""
    table = (_LOOP, str(loop))
    kept = {key: sure for key, sure in deps.items() if key[0] != table}
    parts = [kept]
    for source, column, kind, masked in deps:
        if source == table and int(column) < len(known):
            inner = known[int(column)]
            used = at_least(inner, kind, masked=masked)
            parts.append(steering(inner, kind) if kind >= Kind.JOIN else used)
    return joined(parts)
