"""Clauses of T-SQL in the form that sqlglot parses: OUTPUT, and the XML namespaces of WITH."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlglot.tokens import Token, TokenType

from downriver.capture.sql.text.tokens import (
    CHANGES,
    bracket_depths,
    copy_token,
    find_closing,
    name_at,
    word,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlglot.dialects.dialect import Dialect

    from downriver.capture.sql.text.rewrite import RewriteContext

_ENDS = frozenset(
    {"INTO", "WHERE", "FROM", "SELECT", "VALUES", "WITH", "EXEC", "DEFAULT", "OPTION"}
)


class _Into(NamedTuple):
    """The target of an OUTPUT clause: its name, its columns, and where both end."""

    name: list[Token]
    columns: list[Token]
    end: int


def normalize_output_clause(
    tokens: list[Token], words: list[str], dialect: Dialect
) -> list[Token] | None:
    """Return a statement with its OUTPUT clause as `OUTPUT a AS x, b AS y INTO [dbo.t]`.

    sqlglot accepts no schema before the target, reads the columns of the target as arguments of a
    function, and accepts no WHERE after the clause of a DELETE.
    """
    levels = bracket_depths(tokens)
    outside = [at for at in range(len(tokens)) if levels[at] == 0]
    verb = next((words[at] for at in outside if words[at] in CHANGES), "")
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
        written = [copy_token(tokens[at], TokenType.IDENTIFIER, ".".join(name))]
    columns: list[Token] = []
    if end < len(tokens) and words[end] == "(":
        close = find_closing(tokens, end)
        columns = [token for token in tokens[end + 1 : close] if word(token) != ","]
        end = close + 1
    return _Into([tokens[at], *written], columns, end)


def _split(tokens: Sequence[Token], words: Sequence[str]) -> Iterator[list[Token]]:
    """Yield the expressions of a list, without their aliases."""
    levels = bracket_depths(list(tokens))
    value: list[Token] = []
    named = False
    for token, keyword, level in zip(tokens, words, levels, strict=True):
        if level == 0 and keyword == ",":
            yield value
            value, named = [], False
        elif level == 0 and keyword == "AS":
            named = True
        elif not named:
            value.append(token)
    yield value


def _aliased(values: list[list[Token]], columns: list[Token], near: Token) -> Iterator[Token]:
    for at, value in enumerate(values):
        if at:
            yield copy_token(near, TokenType.COMMA, ",")
        yield from value
        if at < len(columns):
            yield copy_token(near, TokenType.ALIAS, "AS")
            yield columns[at]


def without_namespaces(
    tokens: list[Token], words: list[str], place: RewriteContext
) -> list[Token] | None:
    """Remove `XMLNAMESPACES (…)` from a WITH clause. Queries may follow it."""
    if words[:3] != ["WITH", "XMLNAMESPACES", "("]:
        return None
    after = find_closing(tokens, 2) + 1
    if words[after : after + 1] == [","]:
        return [tokens[0], *tokens[after + 1 :]]
    return tokens[after:] or None
