"""The statements inside procedural code: T-SQL, PL/pgSQL, PL/SQL, Snowflake and BigQuery scripting.

Control flow is taken off word by word: what is left after `BEGIN`, `IF … THEN`, `LOOP` and the like
is a statement, and so is a query in a condition. Which branch runs does not matter for lineage.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from sqlglot.tokens import Token, TokenType

from downriver.capture.sql.tokens import closing, is_string, word

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    Step = Callable[[Sequence[Token], int], "Generator[Piece, None, int]"]

_TRANSACTIONS = frozenset(
    {"TRAN", "TRANSACTION", "WORK", "ISOLATION", "READ", "DEFERRED", "IMMEDIATE", "EXCLUSIVE"}
)
_AFTER_END = frozenset({"IF", "LOOP", "WHILE", "FOR", "CASE", "REPEAT", "TRY", "CATCH"})
_VERBS = frozenset(
    {
        "SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "WITH", "TRUNCATE", "CREATE", "DROP",
        "ALTER", "EXEC", "EXECUTE", "CALL", "SET", "RETURN", "PRINT", "DECLARE", "THROW", "RAISERROR",
        "COPY", "REPLACE",
    }
)  # fmt: skip
_BODY_BEGINS = frozenset({"THEN", "DO", "LOOP", "BEGIN"})
_ROUTINES = frozenset(
    {
        "PROCEDURE",
        "PROC",
        "FUNCTION",
        "TRIGGER",
        "PACKAGE",
        "TASK",
        "PIPE",
        "RULE",
        "EVENT",
        "ALERT",
    }
)
_SQL_LANGUAGES = frozenset({"", "SQL", "PLPGSQL", "PLSQL", "SQLSCRIPT", "TSQL", "NZPLSQL"})
_BODY_WORDS = _VERBS | {"BEGIN", "IF", "WHILE", "FOR", "LET", "--", "PERFORM", "RAISE", "<<"}


class Role(Enum):
    """What a piece of procedural code is to lineage."""

    STATEMENT = "statement"
    CONDITION = "condition"  # an expression: the queries in it are read
    VALUE = "value"  # something that is set to a value: the queries in it are read
    SCRIPT = "script"  # a string that is a script: the last token
    DYNAMIC = "dynamic"  # a statement that exists only when it runs
    CALL = "call"  # a procedure that may do anything
    FOREIGN = "foreign"  # code in another language


class Piece(NamedTuple):
    """Tokens that are to be read by themselves, the routine they are in, and names of variables."""

    role: Role
    tokens: Sequence[Token]
    routine: str = ""
    variables: tuple[str, ...] = ()


def list_pieces(tokens: Sequence[Token], routine: str = "") -> Iterator[Piece]:
    """Yield what is left of a chunk between semicolons once its control flow is taken off."""
    at = 0
    while at < len(tokens):
        step = _step_at(tokens, at)
        if step is None:
            yield Piece(Role.STATEMENT, tokens[at:], routine)
            return
        pieces = step(tokens, at)
        while True:
            try:
                piece = next(pieces)
            except StopIteration as end:
                at = end.value
                break
            routine = piece.routine or routine
            yield piece._replace(routine=routine)


def _step_at(tokens: Sequence[Token], at: int) -> Step | None:
    here = word(tokens[at])
    if here in ("CREATE", "ALTER"):
        return _routine if _creates_routine(tokens, at) else None
    if here.startswith("$") and here.endswith("$"):  # a dollar quote where the dialect has none
        return _skip
    if _word(tokens, at + 1) == ":" and _word(tokens, at + 2) in _CONTROL:
        return _label
    return _CONTROL.get(here)


def _word(tokens: Sequence[Token], at: int) -> str:
    return word(tokens[at]) if at < len(tokens) else ""


def _find(tokens: Sequence[Token], at: int, words: frozenset[str] | set[str]) -> int:
    """Return where one of some words stands outside brackets, or the end."""
    for here in _outside_brackets(tokens, at):
        if word(tokens[here]) in words:
            return here
    return len(tokens)


def _outside_brackets(tokens: Sequence[Token], at: int) -> Iterator[int]:
    depth = 0
    for here in range(at, len(tokens)):
        kind = tokens[here].token_type
        if kind == TokenType.R_PAREN:
            depth = max(0, depth - 1)
        if depth == 0:
            yield here
        if kind == TokenType.L_PAREN:
            depth += 1


def _is_verb(tokens: Sequence[Token], at: int) -> bool:
    """Whether a statement begins here: `UPDATE t` does, `UPDATE(c)` and `REPLACE(a, b)` do not."""
    return word(tokens[at]) in _VERBS and _word(tokens, at + 1) != "("


def _is_query(tokens: Sequence[Token], at: int) -> bool:
    while at < len(tokens) and tokens[at].token_type == TokenType.L_PAREN:
        at += 1
    return _word(tokens, at) in ("SELECT", "WITH")


# Blocks and branches


def _skip(tokens: Sequence[Token], at: int) -> Generator[Piece, None, int]:
    yield from ()
    return at + 1


def _label(tokens: Sequence[Token], at: int) -> Generator[Piece, None, int]:
    yield from ()
    return at + 2


def _marked_label(tokens: Sequence[Token], at: int) -> Generator[Piece, None, int]:
    yield from ()
    while at < len(tokens) and word(tokens[at]) not in (">>", ">"):
        at += 1
    while at < len(tokens) and word(tokens[at]) in (">>", ">"):
        at += 1
    return at


def _begin(tokens: Sequence[Token], at: int) -> Generator[Piece, None, int]:
    yield from ()
    if _word(tokens, at + 1) in _TRANSACTIONS:
        return len(tokens)
    at += 1
    while _word(tokens, at) in ("TRY", "CATCH", "NOT", "ATOMIC"):
        at += 1
    return at


def _end(tokens: Sequence[Token], at: int) -> Generator[Piece, None, int]:
    yield from ()
    at += 1
    while _word(tokens, at) in _AFTER_END:
        at += 1
    # What follows is a label or `$$ LANGUAGE …`, unless a statement or a block begins.
    return at if _word(tokens, at) in _VERBS | _CONTROL.keys() else len(tokens)


def _condition(tokens: Sequence[Token], at: int) -> Generator[Piece, None, int]:
    end = at + 1
    for end in _outside_brackets(tokens, at + 1):
        said = word(tokens[end])
        if said in _BODY_BEGINS or said == "END" or _is_verb(tokens, end):
            break
    else:
        end = len(tokens)
    condition = tokens[at + 1 : end]
    if condition:
        yield Piece(Role.CONDITION, condition)
    return end


def _branch(tokens: Sequence[Token], at: int) -> Generator[Piece, None, int]:
    yield from ()
    return _find(tokens, at, {"THEN"}) + 1


def _for(tokens: Sequence[Token], at: int) -> Generator[Piece, None, int]:
    end = _find(tokens, at, {"LOOP", "DO"})
    query = _find(tokens[:end], at, {"IN", "AS"})
    yield Piece(Role.VALUE, (), variables=_names(tokens[at + 1 : query]))
    rows = tokens[query + 1 : end]
    if rows and _is_query(rows, 0):
        yield Piece(Role.STATEMENT, rows)
    elif _word(rows, 0) == "EXECUTE":
        yield from _execute(rows, 0)
    return end + 1


def _declare(tokens: Sequence[Token], at: int) -> Generator[Piece, None, int]:
    end = _find(tokens, at, {"BEGIN"})
    if end > at + 1:
        yield Piece(Role.VALUE, tokens[at:end], variables=_names(tokens[at + 1 : end]))
    return end


def _names(tokens: Sequence[Token]) -> tuple[str, ...]:
    """Return the names at the beginning of a declaration: `a, b INT` declares two."""
    names: list[str] = []
    for at in range(0, len(tokens), 2):
        names.append(str(tokens[at].text).casefold())
        if _word(tokens, at + 1) != ",":
            break
    return tuple(names)


def _return(tokens: Sequence[Token], at: int) -> Generator[Piece, None, int]:
    at += 1
    while _word(tokens, at) in ("QUERY", "NEXT"):
        at += 1
    if _word(tokens, at) == "EXECUTE":
        return at
    if _is_query(tokens, at):
        yield Piece(Role.STATEMENT, tokens[at:])
    elif at < len(tokens):
        yield Piece(Role.VALUE, tokens[at:])
    return len(tokens)


def _value(tokens: Sequence[Token], at: int) -> Generator[Piece, None, int]:
    yield Piece(Role.VALUE, tokens[at:], variables=_names(tokens[at + 1 :]))
    return len(tokens)


def _perform(tokens: Sequence[Token], at: int) -> Generator[Piece, None, int]:
    first = tokens[at]
    select = Token(TokenType.SELECT, "SELECT", first.line, first.col, first.start, first.end)
    yield Piece(Role.STATEMENT, [select, *tokens[at + 1 :]])
    return len(tokens)


# Code that runs other code


def _call(tokens: Sequence[Token], at: int) -> Generator[Piece, None, int]:
    yield Piece(Role.CALL, tokens[at:])
    return len(tokens)


def _execute(tokens: Sequence[Token], at: int) -> Generator[Piece, None, int]:
    """`EXECUTE` of a constant string is that string; of anything else it is unknown."""
    first = at + 1
    names_procedure = True
    if _word(tokens, first) == "IMMEDIATE":
        first += 1
        names_procedure = False
    if _word(tokens, first) in ("SP_EXECUTESQL", "SYS") or _ends_in_executesql(tokens, first):
        first = _after_name(tokens, first)
        names_procedure = False
    while first < len(tokens) and tokens[first].token_type == TokenType.L_PAREN:
        first += 1
        names_procedure = False
    constant = first < len(tokens) and is_string(tokens[first])
    if constant and _word(tokens, first + 1) in ("", ")", ",", "INTO", "USING", "WITH"):
        yield Piece(Role.SCRIPT, tokens[at : first + 1])
    elif constant or not names_procedure or _word(tokens, first) == "FORMAT":
        yield Piece(Role.DYNAMIC, tokens[at:])
    elif _word(tokens, first) == "SP_RENAME":
        yield Piece(Role.STATEMENT, tokens[at:])
    else:
        yield Piece(Role.CALL, tokens[at:])
    return len(tokens)


def _after_name(tokens: Sequence[Token], at: int) -> int:
    at += 1
    while _word(tokens, at) == ".":
        at += 2
    return at


def _ends_in_executesql(tokens: Sequence[Token], at: int) -> bool:
    end = _after_name(tokens, at)
    return at < end <= len(tokens) and str(tokens[end - 1].text).upper() == "SP_EXECUTESQL"


def _prepare(tokens: Sequence[Token], at: int) -> Generator[Piece, None, int]:
    text = _find(tokens, at, {"AS", "FROM"}) + 1
    if _is_query(tokens, text) or _word(tokens, text) in _VERBS:
        return text
    if text < len(tokens) and is_string(tokens[text]):
        yield Piece(Role.SCRIPT, tokens[at : text + 1])
    else:
        yield Piece(Role.DYNAMIC, tokens[at:])
    return len(tokens)


def _do(tokens: Sequence[Token], at: int) -> Generator[Piece, None, int]:
    """Postgres runs a string with `DO`; elsewhere it opens the body of a loop."""
    for here in range(at + 1, min(at + 4, len(tokens))):
        if is_string(tokens[here]):
            yield Piece(Role.SCRIPT, tokens[at : here + 1], "DO")
            return len(tokens)
    return at + 1


def _open(tokens: Sequence[Token], at: int) -> Generator[Piece, None, int]:
    yield from ()
    return _find(tokens, at, {"FOR"}) + 1


# Routines


def _creates_routine(tokens: Sequence[Token], at: int) -> bool:
    for here in range(at + 1, min(at + 8, len(tokens))):
        if word(tokens[here]) in ("TABLE", "VIEW", "(", ".", "MODEL"):
            return False
        if word(tokens[here]) in _ROUTINES:
            return True
    return False


def _routine(tokens: Sequence[Token], at: int) -> Generator[Piece, None, int]:
    """`CREATE PROCEDURE` and its kin: yield a body that is quoted, or go on where it begins."""
    kind = at
    while word(tokens[kind]) not in _ROUTINES:
        kind += 1
    name, after = _routine_name(tokens, kind + 1)
    parameters = tuple(_parameters(tokens, after))
    yield Piece(Role.VALUE, (), name, parameters)
    header_end = _find(tokens, after, {"BEGIN"})
    language = _language(tokens[after:header_end])
    body = _quoted_body(tokens, after, header_end)
    if body is not None and (language not in _SQL_LANGUAGES or not _looks_like_sql(tokens[body])):
        yield Piece(Role.FOREIGN, tokens[at:], name)
        return len(tokens)
    if body is not None:
        yield Piece(Role.SCRIPT, tokens[at : body + 1], name)
        return len(tokens)
    begin = _body_begin(tokens, after)
    if _is_bracketed_value(tokens, begin):
        yield Piece(Role.VALUE, tokens[begin:], name)
        return len(tokens)
    return begin


def _routine_name(tokens: Sequence[Token], at: int) -> tuple[str, int]:
    while _word(tokens, at) in ("IF", "NOT", "EXISTS", "BODY"):
        at += 1
    parts: list[str] = []
    while at < len(tokens):
        parts.append(str(tokens[at].text))
        at += 1
        if _word(tokens, at) != ".":
            break
        at += 1
    return ".".join(parts), at


def _parameters(tokens: Sequence[Token], at: int) -> Iterator[str]:
    """Yield the names of a routine's parameters: `(IN day DATE, n INT)` has two."""
    if _word(tokens, at) != "(":
        return
    begins = True
    for here in range(at + 1, closing(tokens, at)):
        if begins and _word(tokens, here) not in ("IN", "OUT", "INOUT", "VARIADIC"):
            yield str(tokens[here].text).casefold()
            begins = False
        begins = begins or _word(tokens, here) == ","


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
        if is_string(token) and _word(tokens, here - 1) == "AS":
            return here
    return None


def _looks_like_sql(token: Token) -> bool:
    text = str(token.text).lstrip()
    while text.startswith("--") and "\n" in text:
        text = text.split("\n", 1)[1].lstrip()
    first = text.split(None, 1)[0].upper().rstrip(";(") if text else ""
    return first in _BODY_WORDS or text.startswith(("(", "/*", "<<", "--"))


def _body_begin(tokens: Sequence[Token], at: int) -> int:
    for here in _outside_brackets(tokens, at):
        said = word(tokens[here])
        if said in ("BEGIN", "DECLARE", "RETURN"):
            return here
        if said in ("AS", "IS") and _word(tokens, here - 1) != "EXECUTE":
            return here + 1
        if said == "ROW" and _word(tokens, here - 1) == "EACH" and not _is_when(tokens, here + 1):
            return here + 1
        if said in _VERBS and tokens[here - 1].token_type == TokenType.R_PAREN:
            return here
    return len(tokens)


def _is_when(tokens: Sequence[Token], at: int) -> bool:
    return _word(tokens, at) in ("WHEN", "AS", "BEGIN")


def _is_bracketed_value(tokens: Sequence[Token], at: int) -> bool:
    """`AS (x * 2)`: a function that is an expression."""
    if at >= len(tokens) or tokens[at].token_type != TokenType.L_PAREN:
        return False
    return not _is_query(tokens, at) or closing(tokens, at) < len(tokens) - 1


def _rule_action(tokens: Sequence[Token], at: int) -> Generator[Piece, None, int]:
    """`ON INSERT TO t DO ALSO …`, what a Postgres rule does."""
    yield from ()
    at = _find(tokens, at, {"DO"}) + 1
    return at + 1 if _word(tokens, at) in ("ALSO", "INSTEAD") else at


_CONTROL: dict[str, Step] = {
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
    "FOR": _for,
    "FOREACH": _for,
    "DECLARE": _declare,
    "RETURN": _return,
    "SET": _value,
    "LET": _value,
    "OPEN": _open,
    "PERFORM": _perform,
    "CALL": _call,
    "EXEC": _execute,
    "EXECUTE": _execute,
    "PREPARE": _prepare,
    "PROCEDURE": _routine,
    "FUNCTION": _routine,
    "ON": _rule_action,
    "<<": _marked_label,
}
