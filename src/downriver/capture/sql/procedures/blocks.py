"""Blocks, branches, loops and variables of procedural code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot.tokens import Token, TokenType

from downriver.capture.sql.procedures.dynamic_sql import execute
from downriver.capture.sql.procedures.pieces import (
    CodePiece,
    PieceRole,
    find_word,
    is_query,
    is_verb,
    outside_brackets,
    word_at,
)
from downriver.capture.sql.text.tokens import word

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

_TRANSACTIONS = frozenset(
    {"TRAN", "TRANSACTION", "WORK", "ISOLATION", "READ", "DEFERRED", "IMMEDIATE", "EXCLUSIVE"}
)
_BODY_BEGINS = frozenset({"THEN", "DO", "LOOP", "BEGIN"})


def skip(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Pass over a word such as THEN: what follows it is a statement."""
    yield from ()
    return at + 1


def label(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Pass over `name:` before a loop."""
    yield from ()
    return at + 2


def marked_label(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Pass over `<<name>>` before a loop."""
    yield from ()
    while at < len(tokens) and word(tokens[at]) not in (">>", ">"):
        at += 1
    while at < len(tokens) and word(tokens[at]) in (">>", ">"):
        at += 1
    return at


def begin(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Open a block; what begins a transaction has nothing in it."""
    yield from ()
    if word_at(tokens, at + 1) in _TRANSACTIONS:
        return len(tokens)
    at += 1
    while word_at(tokens, at) in ("TRY", "CATCH", "NOT", "ATOMIC"):
        at += 1
    return at


def condition(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Yield what IF and WHILE look at."""
    end = at + 1
    for end in outside_brackets(tokens, at + 1):
        said = word(tokens[end])
        if said in _BODY_BEGINS or said == "END" or is_verb(tokens, end):
            break
    else:
        end = len(tokens)
    condition = tokens[at + 1 : end]
    if condition:
        yield CodePiece(PieceRole.CONDITION, condition)
    return end


def branch(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Pass over `WHEN … THEN`; a CASE among statements picks one of them."""
    yield from ()
    return find_word(tokens, at, {"THEN"}) + 1


def loop(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Yield the query that FOR goes through, and the names of its rows."""
    end = find_word(tokens, at, {"LOOP", "DO"})
    query = find_word(tokens[:end], at, {"IN", "AS"})
    names = _names(tokens[at + 1 : query])
    yield CodePiece(PieceRole.VALUE, (), variables=names)
    rows = tokens[query + 1 : end]
    if rows and is_query(rows, 0):
        yield CodePiece(PieceRole.STATEMENT, rows, row=names[0] if len(names) == 1 else "")
    elif word_at(rows, 0) == "EXECUTE":
        yield from execute(rows, 0)
    return end + 1


def declare(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Yield what variables are declared as."""
    end = find_word(tokens, at, {"BEGIN"})
    if end > at + 1:
        yield CodePiece(PieceRole.VALUE, tokens[at:end], variables=_names(tokens[at + 1 : end]))
    return end


def _names(tokens: Sequence[Token]) -> tuple[str, ...]:
    """Return the names at the beginning of a declaration: `a, b INT` declares two."""
    names: list[str] = []
    for at in range(0, len(tokens), 2):
        names.append(str(tokens[at].text).casefold())
        if word_at(tokens, at + 1) != ",":
            break
    return tuple(names)


def returned(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Yield what RETURN gives back."""
    at += 1
    while word_at(tokens, at) in ("QUERY", "NEXT"):
        at += 1
    if word_at(tokens, at) == "EXECUTE":
        return at
    if is_query(tokens, at):
        yield CodePiece(PieceRole.STATEMENT, tokens[at:])
    elif at < len(tokens):
        yield CodePiece(PieceRole.VALUE, tokens[at:])
    return len(tokens)


def value(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Yield what a variable is set to."""
    yield CodePiece(PieceRole.VALUE, tokens[at:], variables=_names(tokens[at + 1 :]))
    return len(tokens)


def perform(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Yield the query that PERFORM runs for what it does."""
    first = tokens[at]
    select = Token(TokenType.SELECT, "SELECT", first.line, first.col, first.start, first.end)
    yield CodePiece(PieceRole.STATEMENT, [select, *tokens[at + 1 :]])
    return len(tokens)


def open_cursor(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Go on at the query a cursor is opened for."""
    yield from ()
    return find_word(tokens, at, {"FOR"}) + 1
