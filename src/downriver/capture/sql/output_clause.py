"""T-SQL's OUTPUT clause in the one form the parser reads.

It takes no schema before the table that OUTPUT … INTO fills, takes that table's columns for the
arguments of a function, and no WHERE after the clause of a DELETE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlglot.tokens import Token, TokenType

from downriver.capture.sql.tokens import closing, depths, name_at, word

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlglot.dialects.dialect import Dialect

_VERBS = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})
_ENDS = frozenset(
    {"INTO", "WHERE", "FROM", "SELECT", "VALUES", "WITH", "EXEC", "DEFAULT", "OPTION"}
)


class _Into(NamedTuple):
    """The table a clause fills: its name, the columns listed, and where both end."""

    name: list[Token]
    columns: list[Token]
    end: int


def plain_output(tokens: list[Token], words: list[str], dialect: Dialect) -> list[Token] | None:
    """Return a statement with its OUTPUT clause as `OUTPUT a AS x, b AS y INTO [dbo.t]`."""
    levels = depths(tokens)
    outside = [at for at in range(len(tokens)) if levels[at] == 0]
    verb = next((words[at] for at in outside if words[at] in _VERBS), "")
    start = next((at for at in outside if words[at] == "OUTPUT"), None)
    if not verb or start is None:
        return None
    end = next((at for at in outside if at > start and words[at] in _ENDS), len(tokens))
    into = _find_into(tokens, words, end, dialect)
    values = list(_split(tokens[start + 1 : end], words[start + 1 : end]))
    clause = [tokens[start], *_aliased(values, into.columns, tokens[start]), *into.name]
    rest = tokens[into.end :]
    if verb == "DELETE":
        return [*tokens[:start], *rest, *clause]
    return [*tokens[:start], *clause, *rest]


def _find_into(tokens: list[Token], words: list[str], at: int, dialect: Dialect) -> _Into:
    if at >= len(tokens) or words[at] != "INTO":
        return _Into([], [], at)
    name, end = name_at(tokens, at + 1, dialect)
    written = tokens[at + 1 : end]
    if len(name) > 1:
        written = [_like(tokens[at], TokenType.IDENTIFIER, ".".join(name))]
    columns: list[Token] = []
    if end < len(tokens) and words[end] == "(":
        close = closing(tokens, end)
        columns = [token for token in tokens[end + 1 : close] if word(token) != ","]
        end = close + 1
    return _Into([tokens[at], *written], columns, end)


def _split(tokens: Sequence[Token], words: Sequence[str]) -> Iterator[list[Token]]:
    """Yield the expressions of a list, without their aliases."""
    levels = depths(list(tokens))
    value: list[Token] = []
    named = False
    for token, said, level in zip(tokens, words, levels, strict=True):
        if level == 0 and said == ",":
            yield value
            value, named = [], False
        elif level == 0 and said == "AS":
            named = True
        elif not named:
            value.append(token)
    yield value


def _aliased(values: list[list[Token]], columns: list[Token], near: Token) -> Iterator[Token]:
    for at, value in enumerate(values):
        if at:
            yield _like(near, TokenType.COMMA, ",")
        yield from value
        if at < len(columns):
            yield _like(near, TokenType.ALIAS, "AS")
            yield columns[at]


def _like(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end)
