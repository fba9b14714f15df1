"""Queries whose result goes into a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.capture.sql.parsed import Parsed
from downriver.capture.sql.tokens import closing, is_string, text_of, tokenize_somehow, word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot.dialects.dialect import Dialect
    from sqlglot.tokens import Token

    from downriver.capture.sql.parser import Parser


def find_export(tokens: list[Token], sql: str, parser: Parser, dialect: Dialect) -> Parsed | None:
    """Return `UNLOAD (query) TO 'file'` and `SELECT … INTO OUTFILE 'file' …`."""
    words = [word(token) for token in tokens]
    if words[0] == "UNLOAD" and words[1:2] == ["("]:
        end = closing(tokens, 1)
        query, target = tokens[2:end], _first_string(tokens[end:])
        text = sql
        if len(query) == 1 and is_string(query[0]):
            text = str(query[0].text)
            query, _ = tokenize_somehow(text, dialect)
        return _query_to(parser, query, text, target, "UNLOAD", text_of(tokens, sql))
    if words[0] in ("SELECT", "WITH") and "OUTFILE" in words:
        at = words.index("OUTFILE")
        after = words.index("FROM", at) if "FROM" in words[at:] else len(words)
        query = [*tokens[: at - 1], *tokens[after:]]
        target = _first_string(tokens[at:])
        return _query_to(parser, query, sql, target, "SELECT INTO OUTFILE", text_of(tokens, sql))
    return None


def _query_to(
    parser: Parser, query: list[Token], text: str, target: str | None, kind: str, sql: str
) -> Parsed | None:
    parsed = parser.parse(query, text) if query and target else None
    if not isinstance(parsed, Parsed) or not isinstance(parsed.tree, exp.Query):
        return None
    return parsed._replace(sql=sql, kind=kind, target=(target or "",))


def _first_string(tokens: Sequence[Token]) -> str | None:
    return next((str(token.text) for token in tokens if is_string(token)), None)
