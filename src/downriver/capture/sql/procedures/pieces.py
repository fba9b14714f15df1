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
    """How a piece of procedural code is read."""

    STATEMENT = "statement"
    CONDITION = "condition"  # an expression; queries inside are read
    VALUE = "value"  # a variable and its value; queries inside are read
    SCRIPT = "script"  # the last token is a string that holds a script
    DYNAMIC = "dynamic"  # a statement that is built at run time
    CALL = "call"  # a call of a procedure
    FOREIGN = "foreign"  # code in another language
    TRIGGER = "trigger"  # the table of a trigger, whose body follows


class CodePiece(NamedTuple):
    """Tokens that are read separately, with their routine and the variables they declare.

    `row` is the name of the row in a loop over a query.
    """

    role: PieceRole
    tokens: Sequence[Token]
    routine: str = ""
    variables: tuple[str, ...] = ()
    row: str = ""


# Removes control flow at a position: yields the remaining pieces, returns where to continue.
ControlStep: TypeAlias = Callable[[Sequence[Token], int], Generator[CodePiece, None, int]]


def word_at(tokens: Sequence[Token], at: int) -> str:
    """Return the keyword at a position, "" past the end."""
    return word(tokens[at]) if at < len(tokens) else ""


def find_word(tokens: Sequence[Token], at: int, words: frozenset[str] | set[str]) -> int:
    """Return the position of the first of some keywords outside brackets, or the end."""
    for here in outside_brackets(tokens, at):
        if word(tokens[here]) in words:
            return here
    return len(tokens)


def outside_brackets(tokens: Sequence[Token], at: int) -> Iterator[int]:
    """Yield the positions outside brackets."""
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
    """Return whether a statement begins here: `UPDATE t`, but not `UPDATE(c)`."""
    return word(tokens[at]) in VERBS and word_at(tokens, at + 1) != "("


def is_query(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a query begins here, with or without brackets."""
    while at < len(tokens) and tokens[at].token_type == TokenType.L_PAREN:
        at += 1
    return word_at(tokens, at) in ("SELECT", "WITH")
