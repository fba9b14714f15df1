"""Finds the statements inside procedural code: T-SQL, PL/pgSQL, PL/SQL, Snowflake, BigQuery.

Control flow is removed token by token: what remains after `BEGIN`, `IF … THEN`, `LOOP` and so on
is a statement. Lineage does not depend on which branch runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.capture.sql.procedures import blocks, dynamic_sql, routines
from downriver.capture.sql.procedures.pieces import (
    VERBS,
    CodePiece,
    ControlStep,
    PieceRole,
    word_at,
)
from downriver.capture.sql.text.tokens import word

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from sqlglot.tokens import Token

_AFTER_END = frozenset({"IF", "LOOP", "WHILE", "FOR", "CASE", "REPEAT", "TRY", "CATCH"})


def list_pieces(tokens: Sequence[Token], routine: str = "") -> Iterator[CodePiece]:
    """Yield what is left of a chunk between semicolons once its control flow is taken off."""
    at = 0
    while at < len(tokens):
        step = _step_at(tokens, at)
        if step is None:
            yield CodePiece(PieceRole.STATEMENT, tokens[at:], routine)
            return
        pieces = step(tokens, at)
        while True:
            try:
                piece = next(pieces)
            except StopIteration as end:
                at = end.value
                break
            routine = piece.routine or routine
            yield piece._replace(routine=routine)


def _step_at(tokens: Sequence[Token], at: int) -> ControlStep | None:
    here = word(tokens[at])
    if here in ("CREATE", "ALTER"):
        return routines.routine if routines.creates_routine(tokens, at) else None
    if here.startswith("$") and here.endswith("$"):  # a dollar quote where the dialect has none
        return blocks.skip
    if word_at(tokens, at + 1) == ":" and word_at(tokens, at + 2) in _CONTROL:
        return blocks.label
    return _CONTROL.get(here)


def _end(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    yield from ()
    at += 1
    while word_at(tokens, at) in _AFTER_END:
        at += 1
    # What follows is a label or `$$ LANGUAGE …`, unless a statement or a block begins.
    return at if word_at(tokens, at) in VERBS | _CONTROL.keys() else len(tokens)


_CONTROL: dict[str, ControlStep] = {
    "BEGIN": blocks.begin,
    "END": _end,
    "THEN": blocks.skip,
    "ELSE": blocks.skip,
    "LOOP": blocks.skip,
    "REPEAT": blocks.skip,
    "TRY": blocks.skip,
    "CATCH": blocks.skip,
    "DO": dynamic_sql.do,
    "IF": blocks.condition,
    "ELSEIF": blocks.condition,
    "ELSIF": blocks.condition,
    "WHILE": blocks.condition,
    "UNTIL": blocks.condition,
    "CASE": blocks.branch,
    "WHEN": blocks.branch,
    "EXCEPTION": blocks.branch,
    "FOR": blocks.loop,
    "FOREACH": blocks.loop,
    "DECLARE": blocks.declare,
    "RETURN": blocks.returned,
    "SET": blocks.value,
    "LET": blocks.value,
    "OPEN": blocks.open_cursor,
    "PERFORM": blocks.perform,
    "CALL": dynamic_sql.call,
    "EXEC": dynamic_sql.execute,
    "EXECUTE": dynamic_sql.execute,
    "PREPARE": dynamic_sql.prepare,
    "PROCEDURE": routines.routine,
    "FUNCTION": routines.routine,
    "ON": routines.rule_action,
    "<<": blocks.marked_label,
}
