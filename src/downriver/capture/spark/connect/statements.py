"""Statements of Spark SQL that write: their targets, and the queries of their rows."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import sqlglot
from sqlglot.errors import SqlglotError

from downriver.capture.sql import parse_sql_lineage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlglot.tokens import Token

# Statements that only read, or change nothing that has lineage.
_WITHOUT_ROWS = frozenset(
    {
        "ADD", "ANALYZE", "CACHE", "CLEAR", "COMMENT", "DECLARE", "DESC", "DESCRIBE", "EXPLAIN",
        "LIST", "REFRESH", "REPAIR", "RESET", "SELECT", "SET", "SHOW", "TABLE", "UNCACHE", "USE",
        "VALUES",
    }
)  # fmt: skip
_ROWS = frozenset({"SELECT", "WITH", "FROM", "VALUES"})
_CHANGES = frozenset({"DELETE", "INSERT", "MERGE", "UPDATE"})
_NAMES_ONLY = frozenset({"DROP", "TRUNCATE", "RENAME"})  # changes of a table, not of its rows
# Words before brackets that do not list columns.
_NO_COLUMNS = frozenset({"BUCKETS", "BY", "OPTIONS", "PARTITION", "TBLPROPERTIES"})


class StatementWrite(NamedTuple):
    """What a statement writes. `target` is a table, or a path with a slash.

    `rows` is the query of its rows; empty if there is none, as in MERGE. `columns` are those that
    the statement lists, `fixed` the partition columns with a value. `unknown` is a statement whose
    target is not known.
    """

    target: str = ""
    lifecycle: str = ""
    rows: str = ""
    columns: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    by_name: bool = False
    reads: tuple[str, ...] = ()
    previous: str = ""  # the name before a rename
    unknown: str = ""

    @property
    def is_name_only(self) -> bool:
        """Whether the statement changes a table as a whole: it drops, empties or renames it."""
        return self.lifecycle in _NAMES_ONLY


def may_write(query: str) -> bool:
    """Return whether a statement may write, or change the meaning of a name."""
    try:
        tokens = sqlglot.tokenize(query, read="spark")
    except SqlglotError:
        return True
    words = [token.text.upper() for token in tokens if token.text != "("]
    if words[:1] in (["FROM"], ["WITH"]):
        return not _CHANGES.isdisjoint(words)
    return bool(words) and words[0] not in _WITHOUT_ROWS


def read_statement(query: str) -> Iterator[StatementWrite]:
    """Yield the writes of a statement."""
    try:
        words = _Words(query, sqlglot.tokenize(query, read="spark"))
    except SqlglotError:
        yield StatementWrite(unknown="a statement that could not be read")
        return
    for statement in parse_sql_lineage(query, dialect="spark").statements:
        if statement.lifecycle == "RENAME":
            for table in statement.changed:
                yield StatementWrite(table, "RENAME", previous=words.renamed)
        elif statement.lifecycle in _NAMES_ONLY:
            for table in statement.changed:
                yield StatementWrite(table, str(statement.lifecycle))
        elif statement.outputs and (words.rows or not words.creates):
            for target in statement.outputs:
                yield StatementWrite(
                    target,
                    words.lifecycle,
                    words.rows,
                    words.columns,
                    words.fixed,
                    by_name=words.by_name,
                    reads=tuple(statement.inputs),
                )
        elif not statement.outputs and statement.blind_spots and not words.makes_function:
            yield StatementWrite(unknown=f"the statement {words.first} …")


class _Words:
    """The words of a statement that define how it writes."""

    def __init__(self, query: str, tokens: Sequence[Token]) -> None:
        self._query = query
        self._tokens = tokens
        self._texts = [token.text.upper() for token in tokens]
        self.first = self._texts[0] if tokens else ""
        self._verb = self._find_verb()
        self.creates = self._is_verb("CREATE") or self._is_verb("REPLACE")
        self._head = self._tokens[self._verb : self._find_rows()]

    def _find_verb(self) -> int:
        """Return the position of INSERT, CREATE or REPLACE; 0 if a statement has none of them."""
        found = [self._texts.index(verb) for verb in ("INSERT", "CREATE") if verb in self._texts]
        return min(found) if found and self.first in {"INSERT", "CREATE", "WITH"} else 0

    def _is_verb(self, verb: str) -> bool:
        return self._texts[self._verb : self._verb + 1] == [verb]

    def _find_rows(self) -> int:
        """Return the position of the query of the rows, with the brackets around it."""
        if not (self._is_verb("INSERT") or self.creates):
            return len(self._texts)
        start = self._verb
        for at in range(self._verb + 1, len(self._texts)):
            if self._texts[at] in _ROWS:
                start = at
                break
        else:
            return len(self._texts)
        while self._texts[start - 1] == "(":
            start -= 1
        return start

    @property
    def rows(self) -> str:
        """The query of the rows, with the WITH clause before the verb."""
        start = self._find_rows()
        if start >= len(self._tokens):
            return ""
        before = self._query[: self._tokens[self._verb].start]
        return f"{before}{self._query[self._tokens[start].start :]}".rstrip().rstrip(";")

    @property
    def makes_function(self) -> bool:
        """Whether the statement creates a function, which writes no rows."""
        return self.creates and "FUNCTION" in self._texts[1:5]

    @property
    def renamed(self) -> str:
        """The name of a table that is renamed."""
        if self._texts[:2] != ["ALTER", "TABLE"] or "RENAME" not in self._texts:
            return ""
        end = self._texts.index("RENAME")
        return self._query[self._tokens[2].start : self._tokens[end].start].strip()

    @property
    def lifecycle(self) -> str:
        """How the statement changes its target."""
        head = [token.text.upper() for token in self._head]
        if self.creates:
            return "OVERWRITE" if "REPLACE" in head else "CREATE"
        return "OVERWRITE" if "OVERWRITE" in head else ""

    @property
    def by_name(self) -> bool:
        """Whether the columns of an INSERT are matched by name."""
        head = [token.text.upper() for token in self._head]
        return ("BY", "NAME") in pairwise(head)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that an INSERT or a view lists, in brackets before the query."""
        texts = [token.text for token in self._head]
        if texts and texts[-1].upper() == "AS":
            texts.pop()
        if not texts or texts[-1] != ")" or "(" not in texts:
            return ()
        opening = len(texts) - 1 - texts[::-1].index("(")
        if texts[opening - 1].upper() in _NO_COLUMNS:
            return ()
        listed = texts[opening + 1 : -1]
        return tuple(listed[::2]) if all(text == "," for text in listed[1::2]) else ()

    @property
    def fixed(self) -> tuple[str, ...]:
        """The partition columns to which an INSERT gives a value."""
        head = [token.text for token in self._head]
        upper = [text.upper() for text in head]
        if "PARTITION" not in upper:
            return ()
        start = upper.index("PARTITION")
        end = head.index(")", start) if ")" in head[start:] else len(head)
        return tuple(head[at - 1] for at in range(start + 2, end) if head[at] in {"=", "=="})
