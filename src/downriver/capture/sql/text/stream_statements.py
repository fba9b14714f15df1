"""Rewrites SQL over streams (RisingWave, ksqlDB, Flink) into statements that sqlglot parses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot.tokens import Token, TokenType

from downriver.capture.sql.text.tokens import bracket_depths, copy_token, find_closing, name_at

if TYPE_CHECKING:
    from downriver.capture.sql.text.rewrite import RewriteContext

_OBJECTS = frozenset({"SINK", "SOURCE", "STREAM"})
_ENDS_QUERY = frozenset({"WITH", "FORMAT", "EMIT"})  # options after the query of a sink
_WINDOWS = frozenset({"TUMBLING", "HOPPING", "SESSION"})
_WINDOW_FUNCTIONS = frozenset({"TUMBLE", "HOP", "CUMULATE", "SESSION"})
_WINDOW_COLUMNS = ("window_start", "window_end", "window_time")


def _object_is_table(
    tokens: list[Token], words: list[str], place: RewriteContext
) -> list[Token] | None:
    """Read CREATE SINK, SOURCE and STREAM as CREATE TABLE; a sink INTO a table as INSERT."""
    kind = next((at for at in range(1, min(6, len(words))) if words[at] in _OBJECTS), None)
    if words[0] != "CREATE" or kind is None or {"TABLE", "VIEW"}.intersection(words[:kind]):
        return None
    start = kind + 1
    while words[start : start + 1] and words[start] in ("IF", "NOT", "EXISTS"):
        start += 1
    _, end = name_at(tokens, start, place.dialect)
    name, at = tokens[start:end], end
    first = tokens[0]
    into: list[Token] = []
    if words[at : at + 1] == ["INTO"]:
        _, after = name_at(tokens, at + 1, place.dialect)
        into, at = tokens[at + 1 : after], after
    columns: list[Token] = []
    if words[at : at + 1] == ["("]:
        after = find_closing(tokens, at) + 1
        columns, at = tokens[at:after], after
    at = _after_options(tokens, words, at)
    header = [copy_token(first, TokenType.TABLE, "TABLE"), *name]
    query = _query(tokens, words, at)
    if into:
        target = [copy_token(first, TokenType.INSERT, "INSERT")]
        return [*target, copy_token(first, TokenType.INTO, "INTO"), *into, *columns, *query]
    if not query:
        return [first, *header, *columns]
    return [first, *header, copy_token(first, TokenType.ALIAS, "AS"), *query]


def _after_options(tokens: list[Token], words: list[str], at: int) -> int:
    """Return the position after `WITH (…)`."""
    if words[at : at + 2] == ["WITH", "("]:
        return find_closing(tokens, at + 1) + 1
    return at


def _query(tokens: list[Token], words: list[str], at: int) -> list[Token]:
    """Return the query of an object: after AS, or all rows of the table after FROM."""
    if at >= len(tokens) or words[at] not in ("AS", "FROM"):
        return []
    levels = bracket_depths(tokens)
    end = at + 1
    while end < len(tokens) and (levels[end] or not _is_option(words, end)):
        end += 1
    if words[at] == "AS":
        return tokens[at + 1 : end]
    select = copy_token(tokens[at], TokenType.SELECT, "SELECT")
    return [select, copy_token(tokens[at], TokenType.STAR, "*"), *tokens[at:end]]


def _is_option(words: list[str], at: int) -> bool:
    if words[at] == "WITH":
        return words[at + 1 : at + 2] == ["("]
    return words[at] in _ENDS_QUERY


def _windowed_query(
    tokens: list[Token], words: list[str], place: RewriteContext
) -> list[Token] | None:
    """Remove ksqlDB's `EMIT CHANGES`, `WINDOW TUMBLING (…)` and `WITHIN 1 HOUR` from a query."""
    if not {"EMIT", "WITHIN"}.intersection(words) and not _WINDOWS.intersection(words):
        return None
    levels = bracket_depths(tokens)
    rewritten: list[Token] = []
    at = 0
    while at < len(tokens):
        following = words[at + 1] if at + 1 < len(words) else ""
        if words[at] == "EMIT" and following in ("CHANGES", "FINAL"):
            at += 2
        elif words[at] == "WINDOW" and following in _WINDOWS:
            at = find_closing(tokens, at + 2) + 1
        elif words[at] == "WITHIN" and "ON" in words[at:] and following != "GROUP":
            at = words.index("ON", at)
        elif words[at] == "PARTITION BY" and levels[at] == 0:
            rewritten.append(copy_token(tokens[at], TokenType.ORDER_BY, "ORDER BY"))
            at += 1
        else:
            rewritten.append(tokens[at])
            at += 1
    return rewritten


def _window_function(
    tokens: list[Token], words: list[str], place: RewriteContext
) -> list[Token] | None:
    """Read Flink's `TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), …))` as a query that adds columns."""
    if not _WINDOW_FUNCTIONS.intersection(words):
        return None
    rewritten: list[Token] = []
    at = 0
    while at < len(tokens):
        call = at + 2 if words[at : at + 2] == ["TABLE", "("] else at
        query = _window_query(tokens, words, call, place) if _is_call(words, at, call) else None
        if query is None:
            rewritten.append(tokens[at])
            at += 1
            continue
        rewritten += query
        at = find_closing(tokens, at + 1) + 1
    return rewritten


def _is_call(words: list[str], at: int, call: int) -> bool:
    is_source = at > 0 and words[at - 1] in ("FROM", "JOIN", ",")
    return is_source and words[call : call + 1] != [] and words[call] in _WINDOW_FUNCTIONS


def _window_query(
    tokens: list[Token], words: list[str], call: int, place: RewriteContext
) -> list[Token] | None:
    if words[call + 1 : call + 2] != ["("]:
        return None
    start = call + 2
    while start < len(words) and words[start] in ("DATA", "=>", "TABLE"):
        start += 1
    name, end = name_at(tokens, start, place.dialect)
    close = find_closing(tokens, call + 1)
    if not name or end >= close:
        return None
    near = tokens[call]
    query = [copy_token(near, TokenType.L_PAREN, "("), copy_token(near, TokenType.SELECT, "SELECT")]
    query.append(copy_token(near, TokenType.STAR, "*"))
    time = _time_column(tokens, words, end, close)
    for column in _WINDOW_COLUMNS if time else ():
        query += [copy_token(near, TokenType.COMMA, ","), *time]
        query += [
            copy_token(near, TokenType.ALIAS, "AS"),
            copy_token(near, TokenType.VAR, column),
        ]
    query += [copy_token(near, TokenType.FROM, "FROM"), *tokens[start:end]]
    return [*query, copy_token(near, TokenType.R_PAREN, ")")]


def _time_column(tokens: list[Token], words: list[str], at: int, end: int) -> list[Token]:
    """Return the column of DESCRIPTOR(…), or the second argument."""
    for here in range(at, end):
        if words[here] == "DESCRIPTOR":
            return tokens[here + 2 : find_closing(tokens, here + 1)]
    is_name = at + 1 < end and tokens[at + 1].token_type in (TokenType.VAR, TokenType.IDENTIFIER)
    return [tokens[at + 1]] if words[at] == "," and is_name else []


def _without_watermarks(
    tokens: list[Token], words: list[str], place: RewriteContext
) -> list[Token] | None:
    """Remove what only Flink has from a list of columns.

    These are `WATERMARK FOR ts AS …`, and `METADATA FROM 'x' VIRTUAL` after the type of a column.
    """
    is_table = words[0] == "CREATE" and "TABLE" in words[1:4]
    if not is_table or not {"WATERMARK", "METADATA"}.intersection(words) or "(" not in words:
        return None
    start = words.index("(")
    end = find_closing(tokens, start)
    levels = bracket_depths(tokens)
    rewritten = tokens[: start + 1]
    at = start + 1
    while at < end:
        if words[at : at + 2] == ["WATERMARK", "FOR"] and levels[at] == 1:
            at = next((n for n in range(at, end) if words[n] == "," and levels[n] == 1), end) + 1
        elif words[at] == "METADATA" and levels[at] == 1 and words[at - 1] not in ("(", ","):
            at += 3 if words[at + 1] == "FROM" else 1
            at += words[at] == "VIRTUAL"
        else:
            rewritten.append(tokens[at])
            at += 1
    if rewritten[-1].token_type == TokenType.COMMA:  # the removed part was the last one
        rewritten.pop()
    return [*rewritten, *tokens[end:]]


STREAM_RULES = (_without_watermarks, _object_is_table, _windowed_query, _window_function)
