"""A query told without its layout: comments, spaces, and the case of words."""

from __future__ import annotations

import re

from sqlglot.errors import TokenError
from sqlglot.tokens import Tokenizer, TokenType

_QUERY = re.compile(
    r"\s*(?:--[^\n]*\n\s*|/\*.*?\*/\s*)*(?:select|with|insert|create|merge|update|delete)\b",
    re.IGNORECASE | re.DOTALL,
)
_EXACT = frozenset({TokenType.STRING, TokenType.IDENTIFIER})


def tell_query(text: str) -> str:
    """Return the words of a query, the same for queries that only look different; else nothing."""
    if _QUERY.match(text) is None:
        return ""
    try:
        tokens = Tokenizer().tokenize(text)
    except TokenError:
        return ""
    return " ".join(
        repr(token.text) if token.token_type in _EXACT else token.text.casefold()
        for token in tokens
        if token.token_type is not TokenType.SEMICOLON
    )
