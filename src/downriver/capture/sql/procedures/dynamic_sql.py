"""Code that runs other code: called procedures and executed strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot.tokens import Token, TokenType

from downriver.capture.sql.procedures.pieces import (
    VERBS,
    CodePiece,
    PieceRole,
    find_word,
    is_query,
    word_at,
)
from downriver.capture.sql.text.tokens import is_string

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence


def call(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Yield the call of a procedure."""
    yield CodePiece(PieceRole.CALL, tokens[at:])
    return len(tokens)


def execute(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """`EXECUTE` of a constant string is that string; of anything else it is unknown."""
    first = at + 1
    names_procedure = True
    if word_at(tokens, first) == "IMMEDIATE":
        first += 1
        names_procedure = False
    if word_at(tokens, first) in ("SP_EXECUTESQL", "SYS") or _ends_in_executesql(tokens, first):
        first = _after_name(tokens, first)
        names_procedure = False
    while first < len(tokens) and tokens[first].token_type == TokenType.L_PAREN:
        first += 1
        names_procedure = False
    constant = first < len(tokens) and is_string(tokens[first])
    if constant and word_at(tokens, first + 1) in ("", ")", ",", "INTO", "USING", "WITH"):
        yield CodePiece(PieceRole.SCRIPT, tokens[at : first + 1])
    elif constant or not names_procedure or word_at(tokens, first) == "FORMAT":
        yield CodePiece(PieceRole.DYNAMIC, tokens[at:])
    elif word_at(tokens, first) == "SP_RENAME":
        yield CodePiece(PieceRole.STATEMENT, tokens[at:])
    else:
        yield CodePiece(PieceRole.CALL, tokens[at:])
    return len(tokens)


def _after_name(tokens: Sequence[Token], at: int) -> int:
    at += 1
    while word_at(tokens, at) == ".":
        at += 2
    return at


def _ends_in_executesql(tokens: Sequence[Token], at: int) -> bool:
    end = _after_name(tokens, at)
    return at < end <= len(tokens) and str(tokens[end - 1].text).upper() == "SP_EXECUTESQL"


def prepare(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Yield the statement that PREPARE gives a name."""
    text = find_word(tokens, at, {"AS", "FROM"}) + 1
    if at + 1 < len(tokens):
        yield CodePiece(PieceRole.VALUE, (), str(tokens[at + 1].text))
    if is_query(tokens, text) or word_at(tokens, text) in VERBS:
        return text
    if text < len(tokens) and is_string(tokens[text]):
        yield CodePiece(PieceRole.SCRIPT, tokens[at : text + 1])
    else:
        yield CodePiece(PieceRole.DYNAMIC, tokens[at:])
    return len(tokens)


def do(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Postgres runs a string with `DO`; elsewhere it opens the body of a loop."""
    for here in range(at + 1, min(at + 4, len(tokens))):
        if is_string(tokens[here]):
            yield CodePiece(PieceRole.SCRIPT, tokens[at : here + 1], "DO")
            return len(tokens)
    return at + 1
