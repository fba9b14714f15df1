"""Joins the tokens of names that sqlglot splits: `##t` of T-SQL, `&schema..t` of SQL*Plus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot.tokens import Token, TokenType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot.dialects.dialect import Dialect

_AMPERSANDS = (TokenType.AMP, TokenType.DAMP)
_WITH_SUBSTITUTION = frozenset({"Oracle", "Dialect"})


def join_name_tokens(tokens: list[Token], dialect: Dialect) -> list[Token]:
    """Return the tokens with one token for each part of a name."""
    kinds = {token.token_type for token in tokens}
    if TokenType.HASH in kinds:
        tokens = _join_hashes(tokens)
    if type(dialect).__name__ in _WITH_SUBSTITUTION and not kinds.isdisjoint(_AMPERSANDS):
        tokens = _join_substitutions(tokens)
    return tokens


def _join_hashes(tokens: list[Token]) -> list[Token]:
    """Read `##t`, a global temporary table, as one name. sqlglot reads names with one `#`."""
    joined: list[Token] = []
    at = 0
    while at < len(tokens):
        is_hash = tokens[at].token_type == TokenType.HASH
        if (
            is_hash
            and _touches(tokens, at, at + 1)
            and tokens[at + 1].token_type == TokenType.HASH
            and _touches(tokens, at + 1, at + 2)
            and _is_word(tokens[at + 2])
        ):
            name = f"##{tokens[at + 2].text}".lower()
            joined.append(_join_tokens(name, tokens[at], tokens[at + 2]))
            at += 3
        else:
            joined.append(tokens[at])
            at += 1
    return joined


def _join_substitutions(tokens: list[Token]) -> list[Token]:
    """Read `&schema..orders` and `stage_&suffix` as names, `&x` alone as a placeholder."""
    joined: list[Token] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.token_type not in _AMPERSANDS or not _touches(tokens, at, at + 1):
            joined.append(token)
            at += 1
            continue
        first, text, end = token, f"&{tokens[at + 1].text}", at + 1
        if joined and at and _touches(tokens, at - 1, at) and _is_word(joined[-1]):
            first = joined.pop()
            text = f"{first.text}{text}"
        elif not (_is_dot(tokens, end + 1) or (joined and _is_dot(joined, len(joined) - 1))):
            joined.append(_join_tokens("?", first, tokens[end], TokenType.PLACEHOLDER))
            at = end + 1
            continue
        if _is_dot(tokens, end + 1):  # ends the name of the variable
            end += 1
            if _touches(tokens, end, end + 1) and _is_word(tokens[end + 1]):
                end += 1
                text += str(tokens[end].text)
        joined.append(_join_tokens(text.upper(), first, tokens[end]))
        at = end + 1
    return joined


def _join_tokens(
    text: str, first: Token, last: Token, kind: TokenType = TokenType.IDENTIFIER
) -> Token:
    return Token(kind, text, last.line, last.col, first.start, last.end)


def _is_dot(tokens: Sequence[Token], at: int) -> bool:
    return at < len(tokens) and tokens[at].token_type == TokenType.DOT


def _is_word(token: Token) -> bool:
    return str(token.text).replace("_", "a").isalnum()


def _touches(tokens: Sequence[Token], left: int, right: int) -> bool:
    return right < len(tokens) and tokens[left].end + 1 == tokens[right].start
