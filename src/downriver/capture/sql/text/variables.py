"""Variables of scripts in names and values: `${db}`, `$(db)`, `{db}`, `&{db}`, `<% db %>`.

A client, a scheduler or a program replaces the variables before it sends the statement. Here, an
identifier of the same length replaces each of them before sqlglot tokenizes a text, because `$` and
`{` have other meanings in most dialects (PostgreSQL reads `${a}.${b}` as the beginning of a
string).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

if TYPE_CHECKING:
    from collections.abc import Sequence

_WRITTEN = re.compile(
    r"\$\{\s*[\w.:-]+\s*\}|\$\(\s*[\w.-]+\s*\)|&\{\w+\}|<%\s*[\w.]+\s*%>"
    r"|(?<![\w{$'\"])\{[A-Za-z_]\w*\}(?!\})|(?<![:\w'\")\]]):(?:'\w+'|\"\w+\")"
)
_WHOLE_NAME = re.compile(rf"{_WRITTEN.pattern}|&&?\w+|\$[A-Za-z_]\w*")  # also SQL*Plus and shells
_BEGINNINGS = ("{", "$(", "<%", ":'", ':"')
_BESIDE_NAMES = {TokenType.DOT, TokenType.USE}
_SIGNS = "${}()&<>%:.- \t'\""
_MARKS = {ord(sign): chr(0xE000 + at) for at, sign in enumerate(_SIGNS)}  # for private use
_UNMARKS = {0xE000 + at: sign for at, sign in enumerate(_SIGNS)}
_FIRST_MARKS = tuple(chr(mark) for mark in _UNMARKS)


def is_variable(name: str) -> bool:
    """Return whether a name consists of one variable: `${t}`, but not `t_${year}`."""
    return _WHOLE_NAME.fullmatch(name) is not None


def is_unnamed(node: object) -> bool:
    """Return whether a name is a placeholder without a name of its own: `?`, or a variable."""
    return isinstance(node, exp.Placeholder) and node.this is None


def mark_variables(sql: str) -> str:
    """Return a text of the same length whose variables are identifiers of any dialect."""
    if not any(sign in sql for sign in _BEGINNINGS):
        return sql
    return _WRITTEN.sub(lambda found: found.group().translate(_MARKS), sql)


def restore_variables(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens of a marked text: variables are parts of names, or placeholders."""
    restored: list[Token] = []
    for at, token in enumerate(tokens):
        text = str(token.text)
        if text.isascii() or not any(mark in text for mark in _FIRST_MARKS):
            restored.append(token)
            continue
        kind = token.token_type
        if kind == TokenType.VAR:
            near = {tokens[i].token_type for i in (at - 1, at + 1) if 0 <= i < len(tokens)}
            is_name = not near.isdisjoint(_BESIDE_NAMES)
            kind = TokenType.IDENTIFIER if is_name else TokenType.PLACEHOLDER
        shown = "?" if kind == TokenType.PLACEHOLDER else text.translate(_UNMARKS)
        restored.append(
            Token(kind, shown, token.line, token.col, token.start, token.end, token.comments)
        )
    return restored
