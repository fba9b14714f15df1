"""`CREATE PROCEDURE`, `FUNCTION`, `TRIGGER`: where the body is, and in which language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot.tokens import Token, TokenType

from downriver.capture.sql.procedures.pieces import (
    VERBS,
    CodePiece,
    PieceRole,
    find_word,
    is_query,
    outside_brackets,
    word_at,
)
from downriver.capture.sql.text.tokens import find_closing, is_string, word

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

_ROUTINES = frozenset(
    {
        "PROCEDURE", "PROC", "FUNCTION", "TRIGGER", "PACKAGE", "TASK", "PIPE", "RULE", "EVENT",
        "ALERT",
    }
)  # fmt: skip
_SQL_LANGUAGES = frozenset({"", "SQL", "PLPGSQL", "PLSQL", "SQLSCRIPT", "TSQL", "NZPLSQL"})
_EXECUTE = ("EXECUTE", "EXEC")  # WITH EXECUTE AS OWNER
_BODY_WORDS = VERBS | {"BEGIN", "IF", "WHILE", "FOR", "LET", "--", "PERFORM", "RAISE", "<<"}


def creates_routine(tokens: Sequence[Token], at: int) -> bool:
    """Return whether CREATE or ALTER here defines something with a body."""
    for here in range(at + 1, min(at + 8, len(tokens))):
        if word(tokens[here]) in _ROUTINES:
            return True
        is_function = word(tokens[here]) == "TABLE" and word_at(tokens, here + 1) == "FUNCTION"
        if word(tokens[here]) in ("TABLE", "VIEW", "(", ".", "MODEL") and not is_function:
            return False
    return False


def routine(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Yield a quoted body of `CREATE PROCEDURE` and similar, or continue where the body begins."""
    kind = at
    while word(tokens[kind]) not in _ROUTINES:
        kind += 1
    name, after = _routine_name(tokens, kind + 1)
    parameters = tuple(_parameters(tokens, after))
    yield CodePiece(PieceRole.VALUE, (), name, parameters)
    if word(tokens[kind]) == "TRIGGER":
        table = find_word(tokens, after, {"ON"}) + 1
        yield CodePiece(PieceRole.TRIGGER, tokens[table:], name)
    header_end = find_word(tokens, after, {"BEGIN"})
    language = _language(tokens[after:header_end])
    body = _quoted_body(tokens, after, header_end)
    if body is not None and (language not in _SQL_LANGUAGES or not _looks_like_sql(tokens[body])):
        yield CodePiece(PieceRole.FOREIGN, tokens[at:], name)
        return len(tokens)
    if body is not None:
        yield CodePiece(PieceRole.SCRIPT, tokens[at : body + 1], name)
        return len(tokens)
    begin = _body_begin(tokens, after)
    if _is_bracketed_value(tokens, begin):
        yield CodePiece(PieceRole.VALUE, tokens[begin:], name)
        return len(tokens)
    return begin


def _routine_name(tokens: Sequence[Token], at: int) -> tuple[str, int]:
    while word_at(tokens, at) in ("IF", "NOT", "EXISTS", "BODY"):
        at += 1
    parts: list[str] = []
    while at < len(tokens):
        parts.append(str(tokens[at].text))
        at += 1
        if word_at(tokens, at) != ".":
            break
        at += 1
    return ".".join(parts), at


def _parameters(tokens: Sequence[Token], at: int) -> Iterator[str]:
    """Yield the parameter names of a routine: `(IN day DATE, n INT)` has two."""
    if word_at(tokens, at) != "(":
        return
    begins = True
    for here in range(at + 1, find_closing(tokens, at)):
        if begins and word_at(tokens, here) not in ("IN", "OUT", "INOUT", "VARIADIC"):
            yield str(tokens[here].text).casefold()
            begins = False
        begins = begins or word_at(tokens, here) == ","


def _language(tokens: Sequence[Token]) -> str:
    for here in range(len(tokens) - 1):
        if word(tokens[here]) == "LANGUAGE":
            return str(tokens[here + 1].text).upper()
    return ""


def _quoted_body(tokens: Sequence[Token], at: int, end: int) -> int | None:
    for here in range(at, end):
        token = tokens[here]
        if token.token_type in (TokenType.HEREDOC_STRING, TokenType.RAW_STRING):
            return here
        after_as = here > 1 and word_at(tokens, here - 1) == "AS"
        if is_string(token) and after_as and word_at(tokens, here - 2) not in _EXECUTE:
            return here
    return None


def _looks_like_sql(token: Token) -> bool:
    text = str(token.text).lstrip()
    while text.startswith("--") and "\n" in text:
        text = text.split("\n", 1)[1].lstrip()
    first = text.split(None, 1)[0].upper().rstrip(";(") if text else ""
    return first in _BODY_WORDS or text.startswith(("(", "/*", "<<", "--"))


def _body_begin(tokens: Sequence[Token], at: int) -> int:
    for here in outside_brackets(tokens, at):
        keyword = word(tokens[here])
        if keyword in ("BEGIN", "DECLARE", "RETURN"):
            return here
        if keyword in ("AS", "IS") and word_at(tokens, here - 1) not in _EXECUTE:
            return here + 1
        if (
            keyword == "ROW"
            and word_at(tokens, here - 1) == "EACH"
            and not _is_when(tokens, here + 1)
        ):
            return here + 1
        if keyword in VERBS and tokens[here - 1].token_type == TokenType.R_PAREN:
            return here
    return len(tokens)


def _is_when(tokens: Sequence[Token], at: int) -> bool:
    return word_at(tokens, at) in ("WHEN", "AS", "BEGIN")


def _is_bracketed_value(tokens: Sequence[Token], at: int) -> bool:
    """Return whether the body is an expression: `AS (x * 2)`."""
    if at >= len(tokens) or tokens[at].token_type != TokenType.L_PAREN:
        return False
    return not is_query(tokens, at) or find_closing(tokens, at) < len(tokens) - 1


def rule_action(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Continue at the action of a Postgres rule: `ON INSERT TO t DO ALSO …`."""
    table = find_word(tokens, at, {"TO"}) + 1
    yield CodePiece(PieceRole.TRIGGER, tokens[table:])
    at = find_word(tokens, at, {"DO"}) + 1
    return at + 1 if word_at(tokens, at) in ("ALSO", "INSTEAD") else at
