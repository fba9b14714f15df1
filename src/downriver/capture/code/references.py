"""Finds the lines of a SQL text that name columns, each with its clause.

Lineage has the columns and tables that a text uses. This module finds their lines. It reads the
text before a template is rendered, so that a line number is the line in the file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from downriver.capture.code.job import Clause, ColumnReference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from downriver.capture.sql import ColumnRef, SqlLineage
    from downriver.model.ids import DatasetId

_LONGEST_LINE = 200
_TOKEN = re.compile(
    r"""
    (?P<skip>\{\#.*?(?:\#\}|\Z)|--[^\n]*|/\*.*?(?:\*/|\Z)|'(?:[^'\\]|\\.|'')*')
    |(?P<tag>\{\{.*?(?:\}\}|\Z)|\{%.*?(?:%\}|\Z))
    |(?P<name>"[^"\n]+"|`[^`\n]+`|\[[A-Za-z_][^\]\n]{0,128}\]|[^\W\d][\w$]*)
    |(?P<mark>[^\s\w])
    """,
    re.DOTALL | re.VERBOSE,
)
_WORD = re.compile(r"[^\W\d]\w*")
_TABLE_TAG = re.compile(r"\{\{-?\s*(?:(?P<this>this)\b|(?:ref|source)\s*\((?P<names>[^()]*)\))")
_VERSION = re.compile(r"\bv(?:ersion)?\s*=\s*['\"]?(\w+)")
_SILENT_TAG = re.compile(r"\{[{%]-?\s*(?:config|snapshot|set|if|elif|else|end\w+|for)\b")
_CLAUSES: Mapping[str, Clause] = {
    "select": "select", "returning": "select",
    "from": "read", "join": "read", "apply": "read",
    "into": "write", "insert": "write", "table": "write",
    "update": "write", "set": "write", "on": "join", "using": "join",
    "where": "filter", "having": "filter", "qualify": "filter", "filter": "filter",
    "group": "group", "partition": "group", "order": "order", "sort": "order",
    "cluster": "order", "distribute": "order", "values": "select", "limit": "other",
    "when": "select", "union": "other", "except": "other", "intersect": "other",
}  # fmt: skip
_NO_ALIAS = frozenset({
    "and", "anti", "as", "asof", "cross", "except", "fetch", "final", "for", "full", "group",
    "having", "inner", "intersect", "join", "lateral", "left", "limit", "natural", "offset", "on",
    "or", "order", "outer", "pivot", "qualify", "right", "sample", "select", "semi", "set",
    "tablesample", "union", "unpivot", "using", "values", "when", "where", "window",
})  # fmt: skip
_BEFORE_TABLES = frozenset({"from", "join", "using", "update", "into"})
_SET_OPERATIONS = frozenset({"union", "except", "intersect", "minus"})
_BEGINS_QUERY = frozenset({"select", "with", "from"})
_OUTSIDE: tuple[Clause, int, str] = ("other", 0, "")


class TableNames(NamedTuple):
    """The dataset ids of table names in a lineage, and the tables of template functions.

    `called` maps the argument of `ref('model')` or `source('raw', 'orders')` (as `raw.orders`), in
    lower case, to its table where the table has another name. `this` is the table of `{{ this }}`.
    """

    dataset_for: Callable[[str], DatasetId]
    called: Mapping[str, str] = {}
    this: str = ""


class _Token(NamedTuple):
    """A token. `query` is the number of its query; each part of a UNION is a query of its own."""

    kind: str
    text: str
    line: int
    query: int
    clause: Clause
    opener: str = ""  # the keyword that begins the clause


def find_references(
    text: str, lineage: SqlLineage, names: TableNames, *, first_line: int = 1
) -> list[ColumnReference]:
    """Return the references in a text to the columns its lineage uses, in order."""
    places = _Finder(text, lineage, names).find()
    return [
        ColumnReference(
            dataset=names.dataset_for(place.table),
            field=place.field,
            line=place.line + first_line - 1,
            clause=place.clause,
            text=place.text,
        )
        for place in dict.fromkeys(places)
    ]


class _Place(NamedTuple):
    table: str
    field: str
    line: int
    clause: Clause
    text: str


class _Finder:
    """Searches one text."""

    def __init__(self, text: str, lineage: SqlLineage, names: TableNames) -> None:
        self._lines = text.splitlines()
        self._tokens = list(_tokens(text))
        self._names = names
        self._tables = _by_last_part([*lineage.inputs, *lineage.outputs])
        edges = [*lineage.column_edges, *lineage.dataset_edges]
        self._fields = _tables_by_field([edge.source for edge in edges])
        self._targets = _tables_by_field([edge.target for edge in edges])
        self._ctes = self._find_ctes()
        self._aliases: dict[str, str] = {}
        self._read_by: dict[int, list[str | None]] = {}  # by query; None is a CTE or a subquery
        self._find_tables()

    def find(self) -> Iterator[_Place]:
        for at, token in enumerate(self._tokens):
            if token.kind == "name" and token.clause != "read":
                yield from self._named(at, token)
            elif token.kind == "tag":
                yield from self._in_tag(token)
            elif token.text == "*" and self._is_star(at):
                for table in self._star_tables(at):
                    yield self._place(table, "*", token)

    def _named(self, at: int, token: _Token) -> Iterator[_Place]:
        field = _bare(token.text).casefold()
        if field not in self._fields and field not in self._targets:
            return
        if token.clause == "write" and (token.opener != "set" or self._text(at + 1) == "="):
            yield from self._written(field, token)
            return
        if token.clause == "write":  # the expression after SET column =
            token = token._replace(clause="select")
        tables = self._fields.get(field)
        if not tables or self._text(at + 1) in ("(", ".") or self._text(at - 1).lower() == "as":
            return
        if self._text(at - 1) == ".":
            tables = self._meant_by(_bare(self._text(at - 2)), tables)
        else:
            tables = self._of_query(token.query, tables)
        for table in tables:
            yield self._place(table, tables[table], token)

    def _written(self, field: str, token: _Token) -> Iterator[_Place]:
        """Yield the references to a column that a statement writes."""
        for table, spelled in self._targets.get(field, {}).items():
            yield self._place(table, spelled, token)

    def _in_tag(self, token: _Token) -> Iterator[_Place]:
        """Yield the columns passed to a macro as strings: `surrogate_key(['order_id'])`."""
        if _TABLE_TAG.match(token.text) or _SILENT_TAG.match(token.text):
            return
        for word in _WORD.finditer(token.text):
            line = token.line + token.text.count("\n", 0, word.start())
            for table, field in self._fields.get(word.group().casefold(), {}).items():
                yield self._place(table, field, token._replace(line=line))

    def _meant_by(self, qualifier: str, tables: dict[str, str]) -> dict[str, str]:
        """Keep the tables that a qualifier may mean. A CTE may mean every table that it reads."""
        table = self._aliases.get(qualifier.casefold())
        return {table: tables[table]} if table in tables else tables

    def _of_query(self, query: int, tables: dict[str, str]) -> dict[str, str]:
        """Keep the tables a query reads, if it reads no CTE and no subquery."""
        read = self._read_by.get(query, [None])
        if None in read:
            return tables
        return {table: field for table, field in tables.items() if table in read}

    def _is_star(self, at: int) -> bool:
        before = self._text(at - 1).lower()
        return before in ("select", ",", ".", "distinct", "all")

    def _star_tables(self, at: int) -> list[str]:
        if self._text(at - 1) == ".":
            table = self._aliases.get(_bare(self._text(at - 2)).casefold())
            return [table] if table else []
        read = self._read_by.get(self._tokens[at].query, [])
        return [table for table in read if table is not None]

    # Tables and their aliases

    def _find_ctes(self) -> dict[str, int]:
        """Return the index of the last token of each CTE. Inside a CTE its name means a table."""
        ctes: dict[str, int] = {}
        for at, token in enumerate(self._tokens):
            if token.text != "(" or self._text(at + 1).lower() not in ("select", "with"):
                continue
            if self._text(at - 1).lower() == "as" and self._kind(at - 2) == "name":
                ctes[_bare(self._text(at - 2)).casefold()] = self._closing(at)
        return ctes

    def _closing(self, at: int) -> int:
        depth = 0
        for index in range(at, len(self._tokens)):
            depth += {"(": 1, ")": -1}.get(self._tokens[index].text, 0)
            if depth == 0:
                return index
        return len(self._tokens)

    def _find_tables(self) -> None:
        for at, token in enumerate(self._tokens):
            word = token.text.lower() if token.kind == "name" else ""
            if word not in _BEFORE_TABLES or (word == "using" and self._text(at + 1) == "("):
                continue
            table, after = self._table_at(at + 1)
            if word in ("from", "join", "using"):
                self._read_by.setdefault(token.query, []).append(table)
            if table is not None:
                self._aliases.setdefault(table.rpartition(".")[2].casefold(), table)
                self._alias_at(after, table)
        for name in self._ctes:
            self._aliases.pop(name, None)

    def _alias_at(self, at: int, table: str) -> None:
        if self._text(at).lower() == "as":
            at += 1
        if self._kind(at) == "name" and self._text(at).lower() not in _NO_ALIAS:
            self._aliases[_bare(self._text(at)).casefold()] = table

    def _table_at(self, at: int) -> tuple[str | None, int]:
        """Return the table named at a token, and the index after its name."""
        if self._kind(at) == "tag":
            return self._table_of_tag(self._text(at)), at + 1
        start, parts = at, list[str]()
        while self._kind(at) == "name":
            parts.append(_bare(self._text(at)))
            at += 1
            if self._text(at) != ".":
                break
            at += 1
        is_cte = len(parts) == 1 and self._ctes.get(parts[0].casefold(), start) < start
        return (self._known(".".join(parts)) if parts and not is_cte else None), at

    def _table_of_tag(self, tag: str) -> str | None:
        match = _TABLE_TAG.match(tag)
        if match is None:
            return None
        if match["this"]:
            return self._known(self._names.this) or self._names.this or None
        parts = re.findall(r"['\"]([^'\"]+)['\"]", re.sub(_VERSION, "", match["names"]))
        version = _VERSION.search(match["names"])
        name = ".".join(parts) + (f"_v{version[1]}" if version else "")
        last = name if "source" in tag else name.rpartition(".")[2]
        table = self._names.called.get(name.casefold()) or self._names.called.get(last.casefold())
        return self._known(table or name) or table

    def _known(self, name: str) -> str | None:
        wanted = name.casefold()
        fitting = [
            table
            for table in self._tables.get(wanted.rpartition(".")[2], ())
            if f".{table.casefold()}".endswith(f".{wanted}")
        ]
        return fitting[0] if len(fitting) == 1 else None

    def _place(self, table: str, field: str, token: _Token) -> _Place:
        line = self._lines[token.line - 1].strip() if token.line <= len(self._lines) else ""
        return _Place(table, field, token.line, token.clause, line[:_LONGEST_LINE])

    def _text(self, at: int) -> str:
        return self._tokens[at].text if 0 <= at < len(self._tokens) else ""

    def _kind(self, at: int) -> str:
        return self._tokens[at].kind if 0 <= at < len(self._tokens) else ""


def _tokens(text: str) -> Iterator[_Token]:
    """Yield names, tags and punctuation, each with its clause and the number of its query."""
    line, last, queries = 1, 0, 0
    open_: list[tuple[Clause, int, str]] = []
    clause, query, opener = _OUTSIDE
    before = ""
    for match in _TOKEN.finditer(text):
        start = match.start()
        line += text.count("\n", last, start)
        last = start
        kind, word = match.lastgroup or "", match.group()
        if kind == "skip":
            continue
        if kind == "name":
            lower = word.lower()
            if lower in _CLAUSES:
                clause, opener = _CLAUSES[lower], lower
            if lower in _SET_OPERATIONS or (before == "(" and lower in _BEGINS_QUERY):
                queries += 1
                query = queries
        elif word == ";":
            queries += 1
            query = queries
        elif word == ")" and open_:
            clause, query, opener = open_.pop()
        yield _Token(kind, word, line, query, clause, opener)
        if word == "(":
            open_.append((clause, query, opener))
        before = word


def _bare(name: str) -> str:
    return name[1:-1] if name[:1] in ('"', "`", "[") else name


def _by_last_part(tables: list[str]) -> dict[str, list[str]]:
    by_name: dict[str, list[str]] = {}
    for table in dict.fromkeys(tables):
        by_name.setdefault(table.casefold().rpartition(".")[2], []).append(table)
    return by_name


def _tables_by_field(columns: list[ColumnRef]) -> dict[str, dict[str, str]]:
    """Return the tables that have a column, by its name in lower case, with their spelling."""
    by_field: dict[str, dict[str, str]] = {}
    for column in columns:
        if column.column != "*" and column.table:
            by_field.setdefault(column.column.casefold(), {})[column.table] = column.column
    return by_field
