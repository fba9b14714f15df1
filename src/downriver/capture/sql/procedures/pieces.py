"""Pieces of procedural code, and helpers to move through its tokens."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from sqlglot.tokens import Token, TokenType

from downriver.capture.sql.text.tokens import word

if TYPE_CHECKING:
    from collections.abc import Iterator

VERBS = frozenset(
    {
        "SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "WITH", "TRUNCATE", "CREATE", "DROP",
        "ALTER", "EXEC", "EXECUTE", "CALL", "SET", "RETURN", "PRINT", "DECLARE", "THROW",
        "RAISERROR", "COPY", "REPLACE",
    }
)  # fmt: skip


class PieceRole(Enum):
    """What a piece of procedural code is to lineage."""

    STATEMENT = "statement"
    CONDITION = "condition"  # an expression: the queries in it are read
    VALUE = "value"  # something that is set to a value: the queries in it are read
    SCRIPT = "script"  # a string that is a script: the last token
    DYNAMIC = "dynamic"  # a statement that exists only when it runs
    CALL = "call"  # a procedure that may do anything
    FOREIGN = "foreign"  # code in another language
    TRIGGER = "trigger"  # the name of the table whose changes what follows is run for


class CodePiece(NamedTuple):
    """Tokens that are to be read by themselves, the routine they are in, and names of variables.

    `row` is what a loop over a query calls its rows.
    """

    role: PieceRole
    tokens: Sequence[Token]
    routine: str = ""
    variables: tuple[str, ...] = ()
    row: str = ""


# Takes control flow off the words at a place: yields what is left of it, returns where to go on.
ControlStep: TypeAlias = Callable[[Sequence[Token], int], Generator[CodePiece, None, int]]


def word_at(tokens: Sequence[Token], at: int) -> str:
    """Return the word at a place, nothing past the end."""
    return word(tokens[at]) if at < len(tokens) else ""


def find_word(tokens: Sequence[Token], at: int, words: frozenset[str] | set[str]) -> int:
    """Return where one of some words stands outside brackets, or the end."""
    for here in outside_brackets(tokens, at):
        if word(tokens[here]) in words:
            return here
    return len(tokens)


def outside_brackets(tokens: Sequence[Token], at: int) -> Iterator[int]:
    """Yield the places that stand in no brackets."""
    depth = 0
    for here in range(at, len(tokens)):
        kind = tokens[here].token_type
        if kind == TokenType.R_PAREN:
            depth = max(0, depth - 1)
        if depth == 0:
            yield here
        if kind == TokenType.L_PAREN:
            depth += 1


def is_verb(tokens: Sequence[Token], at: int) -> bool:
    """Whether a statement begins here: `UPDATE t` does, `UPDATE(c)` and `REPLACE(a, b)` do not."""
    return word(tokens[at]) in VERBS and word_at(tokens, at + 1) != "("


def is_query(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a query begins here, in brackets or not."""
    while at < len(tokens) and tokens[at].token_type == TokenType.L_PAREN:
        at += 1
    return word_at(tokens, at) in ("SELECT", "WITH")
