"""Finds the statements inside procedural code: T-SQL, PL/pgSQL, PL/SQL, Snowflake, BigQuery.

Control flow is removed token by token. The tokens that remain after `BEGIN`, `IF … THEN`, `LOOP`
and so on are a statement. Lineage does not depend on which branch runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot.tokens import Token, TokenType

from downriver.capture.sql.procedures.pieces import (
    VERBS,
    CodePiece,
    ControlStep,
    PieceRole,
    find_word,
    is_query,
    is_verb,
    outside_brackets,
    word_at,
)
from downriver.capture.sql.procedures.routines import creates_routine, routine, rule_action
from downriver.capture.sql.text.tokens import find_closing, is_string, word

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

_AFTER_END = frozenset({"IF", "LOOP", "WHILE", "FOR", "CASE", "REPEAT", "TRY", "CATCH"})


def list_pieces(tokens: Sequence[Token], routine_name: str = "") -> Iterator[CodePiece]:
    """Yield the pieces of a chunk between semicolons, without control flow."""
    at = 0
    while at < len(tokens):
        step = _step_at(tokens, at)
        if step is None:
            yield CodePiece(PieceRole.STATEMENT, tokens[at:], routine_name)
            return
        pieces = step(tokens, at)
        while True:
            try:
                piece = next(pieces)
            except StopIteration as end:
                at = end.value
                break
            routine_name = piece.routine or routine_name
            yield piece._replace(routine=routine_name)


def _step_at(tokens: Sequence[Token], at: int) -> ControlStep | None:
    here = word(tokens[at])
    if here in ("CREATE", "ALTER", "REPLACE"):
        return routine if creates_routine(tokens, at) else None
    if here.startswith("$") and here.endswith("$"):  # `$$` in a dialect without dollar quotes
        return _skip
    if word_at(tokens, at + 1) == ":" and word_at(tokens, at + 2) in _CONTROL:
        return _label
    return _CONTROL.get(here)


def _end(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    yield from ()
    line = tokens[at].line
    at += 1
    # In T-SQL a block may end before `IF …` on another line, without a semicolon.
    while word_at(tokens, at) in _AFTER_END and tokens[at].line == line:
        at += 1
    # The rest is a label or `$$ LANGUAGE …`, unless a statement or a block begins.
    return at if word_at(tokens, at) in VERBS | _CONTROL.keys() else len(tokens)


# Blocks, branches, loops and variables

_TRANSACTIONS = frozenset(
    {"TRAN", "TRANSACTION", "WORK", "ISOLATION", "READ", "DEFERRED", "IMMEDIATE", "EXCLUSIVE"}
)
_BODY_BEGINS = frozenset({"THEN", "DO", "LOOP", "BEGIN"})


def _skip(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Skip a word such as THEN, before a statement."""
    yield from ()
    return at + 1


def _label(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Skip `name:` before a loop."""
    yield from ()
    return at + 2


def _marked_label(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Skip `<<name>>` before a loop."""
    yield from ()
    while at < len(tokens) and word(tokens[at]) not in (">>", ">"):
        at += 1
    while at < len(tokens) and word(tokens[at]) in (">>", ">"):
        at += 1
    return at


def _begin(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Enter a block; `BEGIN TRANSACTION` is not a block."""
    yield from ()
    if word_at(tokens, at + 1) in _TRANSACTIONS:
        # A statement may follow without a semicolon.
        return next((n for n in range(at + 2, len(tokens)) if _is_change(tokens, n)), len(tokens))
    at += 1
    while word_at(tokens, at) in ("TRY", "CATCH", "NOT", "ATOMIC"):
        at += 1
    if word_at(tokens, at) == "STATEMENT" and word_at(tokens, at + 1) == "SET":  # Flink
        return at + 2
    if word_at(tokens, at) == "WITH" and word_at(tokens, at + 1) == "(":  # BEGIN ATOMIC WITH (…)
        at = find_closing(tokens, at + 1) + 1
    return at


def _is_change(tokens: Sequence[Token], at: int) -> bool:
    if word(tokens[at]) == "WITH":
        return word_at(tokens, at + 2) in ("AS", "(")
    return is_verb(tokens, at) and word(tokens[at]) != "SET"


def _condition(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Yield the condition of IF or WHILE."""
    end = at + 1
    for end in outside_brackets(tokens, at + 1):
        keyword = word(tokens[end])
        if keyword in _BODY_BEGINS or keyword == "END" or is_verb(tokens, end):
            break
    else:
        end = len(tokens)
    condition = tokens[at + 1 : end]
    if condition:
        yield CodePiece(PieceRole.CONDITION, condition)
    return end


def _branch(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Skip `WHEN … THEN` of a CASE that chooses between statements."""
    yield from ()
    return find_word(tokens, at, {"THEN"}) + 1


def _loop(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Yield the query of a FOR loop, and the name of its row."""
    end = find_word(tokens, at, {"LOOP", "DO"})
    query = find_word(tokens[:end], at, {"IN", "AS"})
    names = _names(tokens[at + 1 : query])
    yield CodePiece(PieceRole.VALUE, (), variables=names)
    rows = tokens[query + 1 : end]
    if rows and is_query(rows, 0):
        yield CodePiece(PieceRole.STATEMENT, rows, row=names[0] if len(names) == 1 else "")
    elif word_at(rows, 0) == "EXECUTE":
        yield from _execute(rows, 0)
    return end + 1


def _declare(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Yield the declarations of variables."""
    end = find_word(tokens, at, {"BEGIN"})
    if end > at + 1:
        yield CodePiece(PieceRole.VALUE, tokens[at:end], variables=_names(tokens[at + 1 : end]))
    return end


def _names(tokens: Sequence[Token]) -> tuple[str, ...]:
    """Return the names that a declaration begins with: `a, b INT` declares two."""
    names: list[str] = []
    for at in range(0, len(tokens), 2):
        names.append(str(tokens[at].text).casefold())
        if word_at(tokens, at + 1) != ",":
            break
    return tuple(names)


def _return(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Yield the query or value of RETURN."""
    at += 1
    while word_at(tokens, at) in ("QUERY", "NEXT"):
        at += 1
    if word_at(tokens, at) == "EXECUTE":
        return at
    if is_query(tokens, at):
        yield CodePiece(PieceRole.STATEMENT, tokens[at:])
    elif at < len(tokens):
        yield CodePiece(PieceRole.VALUE, tokens[at:])
    return len(tokens)


def _assignment(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Yield the value that a variable is set to."""
    yield CodePiece(PieceRole.VALUE, tokens[at:], variables=_names(tokens[at + 1 :]))
    return len(tokens)


def _perform(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Yield the query of PERFORM, whose result is discarded."""
    first = tokens[at]
    select = Token(TokenType.SELECT, "SELECT", first.line, first.col, first.start, first.end)
    yield CodePiece(PieceRole.STATEMENT, [select, *tokens[at + 1 :]])
    return len(tokens)


def _open_cursor(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Continue at the query of an opened cursor."""
    yield from ()
    return find_word(tokens, at, {"FOR"}) + 1


# Called procedures and executed strings


def _call(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Yield the call of a procedure."""
    yield CodePiece(PieceRole.CALL, tokens[at:])
    return len(tokens)


def _execute(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Yield the script in a constant string, a called procedure, or dynamic SQL."""
    first = at + 1
    if word_at(tokens, first) == "STATEMENT" and word_at(tokens, first + 1) == "SET":  # Flink
        return first + 2
    names_procedure = True
    if word_at(tokens, first) == "IMMEDIATE":
        first += 1
        names_procedure = False
    if word_at(tokens, first) in ("SP_EXECUTESQL", "SYS") or _ends_in_executesql(tokens, first):
        first = _after_name(tokens, first)
        names_procedure = False
    while first < len(tokens) and tokens[first].token_type == TokenType.L_PAREN:
        first += 1
        names_procedure = False
    constant = first < len(tokens) and is_string(tokens[first])
    if constant and word_at(tokens, first + 1) in ("", ")", ",", "INTO", "USING", "WITH"):
        yield CodePiece(PieceRole.SCRIPT, tokens[at : first + 1])
    elif constant or not names_procedure or word_at(tokens, first) == "FORMAT":
        yield CodePiece(PieceRole.DYNAMIC, tokens[at:])
    elif word_at(tokens, first) == "SP_RENAME":
        yield CodePiece(PieceRole.STATEMENT, tokens[at:])
    else:
        yield CodePiece(PieceRole.CALL, tokens[at:])
    return len(tokens)


def _after_name(tokens: Sequence[Token], at: int) -> int:
    at += 1
    while word_at(tokens, at) == ".":
        at += 2
    return at


def _ends_in_executesql(tokens: Sequence[Token], at: int) -> bool:
    end = _after_name(tokens, at)
    return at < end <= len(tokens) and str(tokens[end - 1].text).upper() == "SP_EXECUTESQL"


def _prepare(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Yield the statement of PREPARE."""
    text = find_word(tokens, at, {"AS", "FROM"}) + 1
    if at + 1 < len(tokens):
        yield CodePiece(PieceRole.VALUE, (), str(tokens[at + 1].text))
    if is_query(tokens, text) or word_at(tokens, text) in VERBS:
        return text
    if text < len(tokens) and is_string(tokens[text]):
        yield CodePiece(PieceRole.SCRIPT, tokens[at : text + 1])
    else:
        yield CodePiece(PieceRole.DYNAMIC, tokens[at:])
    return len(tokens)


def _do(tokens: Sequence[Token], at: int) -> Generator[CodePiece, None, int]:
    """Yield the script of Postgres' `DO`; elsewhere DO begins the body of a loop."""
    for here in range(at + 1, min(at + 4, len(tokens))):
        if is_string(tokens[here]):
            yield CodePiece(PieceRole.SCRIPT, tokens[at : here + 1], "DO")
            return len(tokens)
    return at + 1


_CONTROL: dict[str, ControlStep] = {
    "BEGIN": _begin,
    "END": _end,
    "THEN": _skip,
    "ELSE": _skip,
    "LOOP": _skip,
    "REPEAT": _skip,
    "TRY": _skip,
    "CATCH": _skip,
    "DO": _do,
    "IF": _condition,
    "ELSEIF": _condition,
    "ELSIF": _condition,
    "WHILE": _condition,
    "UNTIL": _condition,
    "CASE": _branch,
    "WHEN": _branch,
    "EXCEPTION": _branch,
    "FOR": _loop,
    "FOREACH": _loop,
    "DECLARE": _declare,
    "RETURN": _return,
    "SET": _assignment,
    "LET": _assignment,
    "OPEN": _open_cursor,
    "PERFORM": _perform,
    "CALL": _call,
    "EXEC": _execute,
    "EXECUTE": _execute,
    "PREPARE": _prepare,
    "PROCEDURE": routine,
    "FUNCTION": routine,
    "ON": rule_action,
    "<<": _marked_label,
}
