"""Tokenizes SQL text, and answers questions about tokens without a parser."""

from __future__ import annotations

import re
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import TokenError
from sqlglot.tokens import Token, Tokenizer, TokenType

from downriver.capture.sql.result import SqlBlindSpot
from downriver.capture.sql.text.variables import mark_variables, restore_variables

if TYPE_CHECKING:
    from collections.abc import Sequence

_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END})
_QUOTED = frozenset(
    {
        TokenType.STRING,
        TokenType.RAW_STRING,
        TokenType.HEREDOC_STRING,
        TokenType.NATIONAL_STRING,
        TokenType.BYTE_STRING,
        TokenType.UNICODE_STRING,
    }
)
_NOT_KEYWORDS = _QUOTED | {TokenType.IDENTIFIER}
# The parser tries each word of this kind as a type and then as a function, so the work doubles
# with every level of nesting.
_MAX_NESTED_TYPES = 10
# `NOT NOT NOT …` and `- - - …` nest without brackets.
_PREFIXES = frozenset({TokenType.NOT, TokenType.DASH, TokenType.TILDE, TokenType.PLUS})

CHANGES = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})

_NESTS = _OPENING | _CLOSING | _PREFIXES | {
    TokenType.LT, TokenType.GT, TokenType.JOIN, TokenType.ON, TokenType.USING, TokenType.SELECT,
    TokenType.COMMA,
}  # fmt: skip


class _Bracket(Enum):
    PLAIN = 0
    OF_TYPE = 1  # STRUCT(…), DECIMAL(…)
    ANGLE = 2  # ARRAY<…>


# Tried in this order on text that the given dialect cannot tokenize.
_OTHER_DIALECTS = ("", "mysql", "snowflake", "databricks", "tsql")


@cache
def _tokenizer_class(dialect: type[Dialect]) -> type[Tokenizer]:
    """Return the dialect's tokenizer, changed to tokenize commands too.

    sqlglot returns the text after CALL, EXECUTE, BEGIN, LOOP and others as one string, which may
    contain statements.
    """
    base = dialect.tokenizer_class
    whole: type[Tokenizer] = type(base)(f"Whole{base.__name__}", (base,), {"COMMANDS": set()})
    return whole


def tokenize(sql: str, dialect: Dialect) -> list[Token]:
    """Return the tokens of a script; raise `TokenError` when the dialect cannot tokenize it."""
    marked = mark_variables(sql)
    tokens: list[Token] = _tokenizer_class(type(dialect))(dialect=dialect).tokenize(marked)  # type: ignore[arg-type]
    return tokens if marked is sql else restore_variables(tokens)


def tokenize_leniently(sql: str, dialect: Dialect) -> tuple[list[Token], SqlBlindSpot | None]:
    """Return the tokens of a script in the first dialect that can tokenize it, and the fault."""
    try:
        return tokenize(sql, dialect), None
    except TokenError as exc:
        problem = SqlBlindSpot("unreadable", str(exc).splitlines()[0], 1)
    for other in map(Dialect.get_or_raise, _OTHER_DIALECTS):
        try:
            return tokenize(sql, other), problem
        except TokenError:
            continue
    return _words(sql), problem


def _words(sql: str) -> list[Token]:
    """Return words and punctuation without a tokenizer, for text with an unterminated string."""
    tokens: list[Token] = []
    for line, text in enumerate(sql.splitlines(), 1):
        spaced = text.replace(".", " . ").replace("(", " ( ").replace(")", " ) ")
        spaced = spaced.replace(",", " , ").replace(";", " ; ")
        for word in spaced.split():
            bare = word.strip("\"'`[]")
            if bare:
                tokens.append(Token(_PUNCTUATION.get(bare, TokenType.VAR), bare, line))
    return tokens


_PUNCTUATION = {
    ".": TokenType.DOT,
    "(": TokenType.L_PAREN,
    ")": TokenType.R_PAREN,
    ",": TokenType.COMMA,
    ";": TokenType.SEMICOLON,
}


def word(token: Token) -> str:
    """Return a token's text in upper case, "" for a quoted name or a string."""
    if token.token_type in _NOT_KEYWORDS:
        return ""
    text: str = token.text
    return text.upper()


def words_of(tokens: Sequence[Token]) -> list[str]:
    """Return the `word` of each token."""
    return ["" if t.token_type in _NOT_KEYWORDS else t.text.upper() for t in tokens]


def copy_token(token: Token, kind: TokenType, text: str) -> Token:
    """Return a token of another kind in the same place."""
    return Token(kind, text, token.line, token.col, token.start, token.end, token.comments)


def is_string(token: Token) -> bool:
    """Return whether a token is a string literal of any kind."""
    return token.token_type in _QUOTED


def source_text(tokens: Sequence[Token], sql: str) -> str:
    """Return the text that tokens were read from."""
    return sql[tokens[0].start : tokens[-1].end + 1] if tokens else ""


def bracket_depths(tokens: Sequence[Token]) -> list[int]:
    """Return the bracket depth of each token; a bracket has the depth outside of it."""
    depths: list[int] = []
    depth = 0
    for token in tokens:
        if token.token_type in (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE):
            depth = max(0, depth - 1)
        depths.append(depth)
        if token.token_type in (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE):
            depth += 1
    return depths


def find_closing(tokens: Sequence[Token], at: int) -> int:
    """Return the position of the bracket that closes the one at `at`, or the end."""
    depth = 0
    for here in range(at, len(tokens)):
        kind = tokens[here].token_type
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        if depth == 0:
            return here
    return len(tokens)


def name_at(tokens: Sequence[Token], at: int, dialect: Dialect) -> tuple[tuple[str, ...], int]:
    """Return the dotted name at a position, as the dialect compares it, and where it ends."""
    parts: list[str] = []
    written: list[str] = []
    while at < len(tokens) and _may_be_name(tokens[at]):
        prefix = ""
        if tokens[at].token_type in (TokenType.PARAMETER, TokenType.HASH):
            prefix = str(tokens[at].text)
            at += 1
            if at == len(tokens) or not _may_be_name(tokens[at]):
                break
        parts.append(prefix + _folded(tokens[at], dialect))
        written += str(tokens[at].text).split(".")
        at += 1
        if at < len(tokens) and tokens[at].token_type == TokenType.DOT:
            at += 1
        else:
            break
    if type(dialect).__name__ == "BigQuery" and len(written) > 1:
        return tuple(written), at  # BigQuery compares qualified table names as written
    return tuple(part for part in parts if part), at


def name_end(tokens: Sequence[Token], at: int) -> int:
    """Return the position after the dotted name at a position."""
    while at < len(tokens) and _may_be_name(tokens[at]):
        if tokens[at].token_type in (TokenType.PARAMETER, TokenType.HASH):
            at += 1
            if at == len(tokens) or not _may_be_name(tokens[at]):
                break
        at += 1
        if at == len(tokens) or tokens[at].token_type != TokenType.DOT:
            break
        at += 1
    return at


def _may_be_name(token: Token) -> bool:
    kind = token.token_type
    if kind in (TokenType.IDENTIFIER, TokenType.VAR, TokenType.PARAMETER, TokenType.HASH):
        return True
    return kind not in _QUOTED and str(token.text).isidentifier()


def _folded(token: Token, dialect: Dialect) -> str:
    text = str(token.text)
    if token.token_type == TokenType.IDENTIFIER:
        return ".".join(
            str(dialect.normalize_identifier(exp.Identifier(this=part, quoted=True)).this)
            for part in text.split(".")
        )
    return str(dialect.normalize_identifier(exp.Identifier(this=text, quoted=False)).this)


def check_nesting(tokens: Sequence[Token], dialect: Dialect, limit: int) -> str | None:
    """Return why a statement is nested too deeply for a recursive parser, or None."""
    types = type(dialect).parser_class.TYPE_TOKENS
    brackets: list[_Bracket] = []
    nested_types = open_joins = prefixes = subscripts = 0
    before = TokenType.SENTINEL
    for token in tokens:
        kind = token.token_type
        if kind not in _NESTS:
            prefixes = 0
            before = kind
            continue
        prefixes = prefixes + 1 if kind in _PREFIXES else 0
        opened = _open_bracket(kind, after_type=before in types)
        if opened is not None:
            brackets.append(opened)
            # The parser reads all of `a[0][0][0]…` again for each bracket.
            subscripts += kind == TokenType.L_BRACKET and before == TokenType.R_BRACKET
            nested_types += opened is not _Bracket.PLAIN
        elif brackets and _closes(kind, brackets[-1]):
            nested_types -= brackets.pop() is not _Bracket.PLAIN
        elif kind == TokenType.JOIN:
            open_joins += before not in (TokenType.CROSS, TokenType.NATURAL)
        elif kind in (TokenType.ON, TokenType.USING, TokenType.SELECT):
            open_joins = 0
        elif kind == TokenType.COMMA:
            subscripts = 0
        if max(len(brackets), prefixes, open_joins, subscripts) > limit:
            return "the statement is nested too deeply"
        if nested_types > _MAX_NESTED_TYPES:
            return "types or structs are nested too deeply"
        before = kind
    return None


def _open_bracket(kind: TokenType, *, after_type: bool) -> _Bracket | None:
    if kind == TokenType.LT:
        return _Bracket.ANGLE if after_type else None
    if kind not in _OPENING:
        return None
    return _Bracket.OF_TYPE if after_type and kind == TokenType.L_PAREN else _Bracket.PLAIN


def _closes(kind: TokenType, bracket: _Bracket) -> bool:
    return kind == TokenType.GT if bracket is _Bracket.ANGLE else kind in _CLOSING


_QUERY = re.compile(
    # Match a comment in only one way: otherwise several comments in a row could match as one.
    r"\s*(?:--[^\n]*\n\s*|/\*(?:[^*]|\*(?!/))*\*/\s*)*"
    r"(?:select|with|insert|create|merge|update|delete)\b",
    re.IGNORECASE,
)
_EXACT = frozenset({TokenType.STRING, TokenType.IDENTIFIER})


def normalize_query(text: str) -> str:
    """Return a query without comments and layout, "" for text that is not a query."""
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
