"""Splits tokens into statements: at semicolons, at GO, and at keywords for T-SQL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot.tokens import Token, TokenType

from downriver.capture.sql.text.tokens import bracket_depths, word, words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_DELIMITER = re.compile(r"^[ \t]*DELIMITER[ \t]+(\S+)[ \t]*$", re.IGNORECASE | re.MULTILINE)
_MAX_DELIMITERS = 5
VIEW_ATTRIBUTES = frozenset({"SCHEMABINDING", "ENCRYPTION", "VIEW_METADATA"})  # T-SQL's
_ATTRIBUTES = VIEW_ATTRIBUTES | {"EXECUTE", "EXEC", "RECOMPILE", "NATIVE_COMPILATION", "INLINE"}

_FILLS = frozenset({"SELECT", "VALUES", "DEFAULT", "EXEC", "EXECUTE"})
_AFTER_NOTHING = frozenset(
    {
        "AS", "(", ",", ".", "=", "<", ">", "+", "-", "/", "%", "UNION", "ALL", "EXCEPT",
        "INTERSECT", "MINUS", "DISTINCT", "THEN", "FOR", "ON", "AND", "OR", "NOT", "IN", "BY",
        "SELECT", "FROM", "JOIN", "WHERE", "HAVING", "CASE", "WHEN", "LIKE", "BETWEEN", "IS", "TO",
        "INTO", "BULK", "AFTER", "BEFORE", "OF", "INSTEAD", "KEY", "DO", "USING", "INSERT",
        "CREATE", "ALTER", "DROP", "GRANT", "EXEC", "EXECUTE", "RETURN", "RETURNS", "PRINT",
    }
)  # fmt: skip
_OBJECTS = frozenset(
    {
        "TABLE", "VIEW", "PROCEDURE", "PROC", "FUNCTION", "INDEX", "TRIGGER", "SCHEMA", "DATABASE",
        "TYPE", "SEQUENCE", "SYNONYM", "USER", "ROLE", "STATISTICS", "EXTERNAL", "MATERIALIZED",
    }
)  # fmt: skip
# Words that may also be column names: they begin a statement only at the start of a line.
_SOFT = frozenset(
    {
        "PRINT", "USE", "OPEN", "FETCH", "CLOSE", "DEALLOCATE", "WAITFOR", "BULK", "THROW",
        "RAISERROR", "COMMIT", "ROLLBACK", "GRANT", "REVOKE", "SAVE", "RETURN", "TRUNCATE", "CALL",
        "RECEIVE",
    }
)  # fmt: skip
_FOLLOWS_A_COLUMN = frozenset({",", ")", ".", "=", "FROM", "AS", "<", ">", "IS", "IN"})


def replace_delimiters(sql: str) -> str:
    """Replace the delimiters that DELIMITER defines in a MySQL script by semicolons."""
    delimiters = dict.fromkeys(_DELIMITER.findall(sql))
    for delimiter in [*delimiters][:_MAX_DELIMITERS]:
        if delimiter != ";":
            at_line_end = re.compile(re.escape(delimiter) + r"(?=[ \t]*$)", re.MULTILINE)
            sql = at_line_end.sub(";".ljust(len(delimiter)), sql)
    return _DELIMITER.sub(lambda found: " " * len(found.group()), sql)


def split_statements(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield the tokens between semicolons, and between GO lines."""
    chunk: list[Token] = []
    for at, token in enumerate(tokens):
        is_go = len(token.text) == 2 and _is_go(tokens, at)
        if is_go or token.token_type == TokenType.SEMICOLON:
            if chunk:
                yield chunk
            chunk = []
        else:
            chunk.append(token)
    if chunk:
        yield chunk


def _is_go(tokens: Sequence[Token], at: int) -> bool:
    if word(tokens[at]) != "GO":
        return False
    line = tokens[at].line
    alone_before = at == 0 or tokens[at - 1].line < line
    return alone_before and (at + 1 == len(tokens) or tokens[at + 1].line > line)


def split_by_keyword(tokens: list[Token]) -> list[list[Token]]:
    """Split a chunk into statements without semicolons, as T-SQL allows."""
    words = words_of(tokens)
    levels = bracket_depths(tokens)
    parts: list[list[Token]] = []
    start = cases = 0
    seen: set[str] = set()  # keywords of the current statement, outside brackets
    for at in range(len(tokens)):
        if words[at] == "CASE":
            cases += 1
        closes_case = words[at] == "END" and cases > 0
        if closes_case:
            cases -= 1
        if at == start or levels[at] or cases or closes_case or words[at] not in _BEGINNERS:
            pass
        elif _begins(_Place(words, words[start], seen, at, tokens[at].line > tokens[at - 1].line)):
            parts.append(tokens[start:at])
            start = at
            seen = set()
        if at > start and not levels[at]:
            seen.add(words[at])
            if words[at] in ("INSERT", "WITH") and words[at - 1] == "AS":
                seen = {f"AS {words[at]}"}  # the body of a view or a procedure
    parts.append(tokens[start:])
    return [part for part in parts if part]


class _Place:
    """A word inside a statement, with the words around it."""

    def __init__(
        self, words: list[str], verb: str, seen: set[str], at: int, new_line: bool
    ) -> None:
        self.here = words[at]
        self.before = words[at - 1]
        self.after = words[at + 1] if at + 1 < len(words) else ""
        self.after_next = words[at + 2] if at + 2 < len(words) else ""
        self.verb = verb
        self.seen = seen
        self.new_line = new_line

    @property
    def awaits_query(self) -> bool:
        """Whether the statement needs a query that has not begun yet."""
        if self.verb == "INSERT" or (self.verb == "WITH" and "INSERT" in self.seen):
            return not _FILLS.intersection(self.seen)
        if self.verb in ("CREATE", "ALTER"):  # CREATE VIEW v AS WITH c AS (…) SELECT
            is_body = "AS WITH" in self.seen or "AS INSERT" in self.seen
            return is_body and not _FILLS.intersection(self.seen)
        return self.verb == "WITH" and not _VERBS.intersection(self.seen)


_VERBS = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE", "MERGE"})


def _begins(place: _Place) -> bool:
    rule = _RULES.get(place.here)
    if place.here in _SOFT:
        return place.new_line and place.after not in _FOLLOWS_A_COLUMN and not _is_offset(place)
    return rule is not None and place.before not in _AFTER_NOTHING and rule(place)


def _is_offset(place: _Place) -> bool:
    """Return whether FETCH belongs to `OFFSET 5 ROWS FETCH NEXT 5 ROWS ONLY`."""
    return place.here == "FETCH" and place.before in ("ROW", "ROWS")


def _query(place: _Place) -> bool:
    return not place.awaits_query


def _change(place: _Place) -> bool:
    return not place.awaits_query and place.after != "("


def _merge(place: _Place) -> bool:
    return not place.awaits_query and place.after != "JOIN"


def _with(place: _Place) -> bool:
    names_a_query = place.after != "(" and place.after_next in ("AS", "(")
    is_option = place.verb in ("CREATE", "ALTER") and place.after in _ATTRIBUTES
    return names_a_query and not place.awaits_query and not is_option


def _set(place: _Place) -> bool:
    if place.verb in ("UPDATE", "MERGE", "INSERT", "WITH"):
        return "SET" in place.seen and place.after == "@"
    return place.verb != "ALTER"


def _if(place: _Place) -> bool:
    return place.before not in _OBJECTS and place.before not in ("END", "ELSE")


def _execute(place: _Place) -> bool:
    return not place.awaits_query and place.after != "AS"


def _always(place: _Place) -> bool:
    return True


_RULES: dict[str, Callable[[_Place], bool]] = {
    "SELECT": _query,
    "INSERT": _query,
    "UPDATE": _change,
    "DELETE": _change,
    "MERGE": _merge,
    "WITH": _with,
    "SET": _set,
    "IF": _if,
    "EXEC": _execute,
    "EXECUTE": _execute,
    "DROP": lambda place: place.after in _OBJECTS,
    "CREATE": _always,
    "ALTER": lambda place: place.after in _OBJECTS,
    "DECLARE": _always,
    "WHILE": _always,
    "BEGIN": _always,
    "END": _always,
    "ELSE": _always,
}
_BEGINNERS = _RULES.keys() | _SOFT
