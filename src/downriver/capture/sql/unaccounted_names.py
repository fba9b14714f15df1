"""Checks that every table and column that a statement names is in its lineage, or a blind spot.

The names come from the statement's tokens, not from its tree. This detects names that the parser or
the walker leaves out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from downriver.capture.sql.result import SqlBlindSpot
from downriver.capture.sql.text.mentions import list_ctes, list_tables
from downriver.capture.sql.text.tokens import find_closing, word
from downriver.capture.sql.text.variables import is_variable
from downriver.columns import Star

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from sqlglot.dialects.dialect import Dialect

    from downriver.capture.sql.listener import StatementReading
    from downriver.capture.sql.result import StatementLineage
    from downriver.columns import TableName

# Statements that name tables and move no data.
_NOT_ACCOUNTED = frozenset(
    {
        "ANALYZE", "ATTACH", "BACKUP", "CLOSE", "CLUSTER", "COMMENT", "COMMIT", "DBCC",
        "DEALLOCATE", "DENY", "DESC", "DESCRIBE", "DETACH", "DISCARD", "EXPLAIN", "FETCH", "GET",
        "GRANT", "HELP", "INSTALL", "INVALIDATE", "LIST", "LOCK", "MSCK", "OPTIMIZE", "PRAGMA",
        "PRINT", "PUT", "RAISERROR", "REFRESH", "REINDEX", "REMOVE", "REPAIR", "RESTORE", "REVOKE",
        "ROLLBACK", "SHOW", "SUMMARIZE", "UNCACHE", "UNLOCK", "USE", "VACUUM", "IMPORT", "SECURITY",
    }
)  # fmt: skip
# Objects that CREATE, ALTER and DROP name before anything else, and that hold no rows.
_WITHOUT_ROWS = frozenset(
    {
        "ASSEMBLY", "CERTIFICATE", "COLLECTION", "CONNECTION", "CREDENTIAL", "DATABASE", "DOMAIN",
        "EXTENSION", "FOREIGN", "INDEX", "KEY", "LOGIN", "POLICY", "PUBLICATION", "ROLE", "SCHEMA",
        "SEQUENCE", "SERVER", "SHARE", "STAGE", "STATISTICS", "SUBSCRIPTION", "TYPE", "USER",
        "WAREHOUSE", "CATALOG", "FUNCTION", "PROCEDURE", "PROC", "TRIGGER", "PACKAGE", "AGGREGATE",
        "INTEGRATION", "FORMAT", "TAG", "CAST", "OPERATOR", "LANGUAGE", "SYNONYM", "RESOURCE",
        "MACRO",
    }
)  # fmt: skip
_NAMES = frozenset({TokenType.VAR, TokenType.IDENTIFIER})
_ENDS_VALUE = frozenset(
    {
        TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN, TokenType.R_BRACKET,
        TokenType.NUMBER, TokenType.STRING, TokenType.END, TokenType.ALIAS,
    }
)  # fmt: skip
_BEFORE_OTHER_NAME = frozenset(
    {TokenType.PARAMETER, TokenType.DCOLON, TokenType.COLON, TokenType.HASH, TokenType.PLACEHOLDER}
)
_AFTER_OTHER_NAME = frozenset(
    {TokenType.L_PAREN, TokenType.DOT, TokenType.FARROW, TokenType.COLON_EQ}
)
_OPERATORS = frozenset(
    {
        TokenType.COMMA, TokenType.EQ, TokenType.NEQ, TokenType.GT, TokenType.LT, TokenType.GTE,
        TokenType.LTE, TokenType.PLUS, TokenType.DASH, TokenType.SLASH, TokenType.DPIPE,
    }
)  # fmt: skip
_BEFORE_VALUE = _OPERATORS | {TokenType.SELECT, TokenType.WHERE, TokenType.DOT}
_AFTER_VALUE = _OPERATORS | {TokenType.FROM, TokenType.R_PAREN}
_QUERIES = frozenset({"SELECT", "FROM", "SEL"})
_BEFORE_OPTIONS = frozenset({"WITH", "OPTION", "OPTIONS", "PROPERTIES", "TBLPROPERTIES"})
_OF_SEQUENCE = frozenset({"nextval", "currval"})
_OF_CURSOR = frozenset({"sql", "rowcount", "found", "notfound", "isopen", "sqlerrm", "sqlcode"})
_NO_COLUMNS = (exp.Alter, exp.Drop, exp.TruncateTable, exp.Copy, exp.LoadData, exp.Declare)


class ScriptAccount:
    """Compares the names in each part of a script with its lineage."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._part: Sequence[Token] = ()
        self._lineage: StatementLineage | None = None
        self._lines_before = 0
        self._tables: set[str] = set()  # of the current part, in every spelling
        self._named: list[TableName] = []  # in the FROM clauses of the current statement
        # The columns that the current statement names, in lower case: those that a table or query
        # of its FROM clauses has, and those that none has.
        self.columns: set[str] = set()
        self.unresolved: set[str] = set()

    def table(self, name: TableName) -> None:
        """Add a table, CTE or array that a FROM clause names."""
        self._named.append(name)

    def statement(
        self,
        reading: StatementReading,
        lineage: StatementLineage,
        variables: AbstractSet[str],
    ) -> None:
        """Add the result of reading a statement; check its columns, and the part before it."""
        statement = reading.statement
        if statement.part is not self._part:
            self.close(variables)
            self._part = statement.part
        self._lineage, self._lines_before = lineage, statement.lines_before
        self._tables.update(table_keys(self._named))
        self._tables.update(table_keys([*statement.inputs, *statement.outputs, *reading.inputs]))
        for write in reading.writes:
            self._tables.update(table_keys([write.table]))
            self._tables.update(table_keys(i.table for i in write.columns if isinstance(i, Star)))
        if reading.effect is not None:
            self._tables.update(table_keys(reading.effect.inputs))
            if statement.tree is not None and statement.tokens:
                self._check_columns(reading, lineage, variables)
        self.discard()

    def discard(self) -> None:
        """Discard the names recorded for the current statement."""
        self.columns = set()
        self.unresolved = set()
        self._named = []

    def close(self, variables: AbstractSet[str]) -> None:
        """Check the tables of the part that ends."""
        if self._lineage is not None and self._part:
            lost = find_lost_tables(self._part, self._dialect, self._tables, variables)
            self._lineage.blind_spots += [shift(spot, self._lines_before) for spot in lost]
        self._tables = set()
        self._lineage = None

    def _check_columns(
        self,
        reading: StatementReading,
        lineage: StatementLineage,
        variables: AbstractSet[str],
    ) -> None:
        statement = reading.statement
        tree = statement.tree
        if tree is None or isinstance(tree, _NO_COLUMNS) or lineage.blind_spots:
            return
        known = self.columns
        written = {name.casefold() for name in lineage.columns}
        known.update(written - self.unresolved, variables, self._tables)
        known.update(e.source.column.casefold() for e in lineage.column_edges)
        known.update(e.source.column.casefold() for e in lineage.dataset_edges)
        read = ReadStatement(tree, known, written)
        lost = find_lost_columns(statement.tokens, read, self._dialect)
        lineage.blind_spots += [shift(spot, statement.lines_before) for spot in lost]


class ReadStatement(NamedTuple):
    """The tree of a statement, the names that its lineage covers, and the columns written."""

    tree: exp.Expression
    accounted: AbstractSet[str]
    written: AbstractSet[str]


def shift(spot: SqlBlindSpot, lines: int) -> SqlBlindSpot:
    """Return a blind spot of a script that is part of another."""
    return SqlBlindSpot(spot.kind, spot.message, spot.line + lines, spot.column)


def find_lost_tables(
    tokens: Sequence[Token],
    dialect: Dialect,
    accounted: AbstractSet[str],
    variables: AbstractSet[str],
) -> Iterator[SqlBlindSpot]:
    """Yield the table names that are neither in the lineage nor defined in the text."""
    if not tokens or word(tokens[0]) in _NOT_ACCOUNTED or _holds_no_rows(tokens):
        return
    defined: set[str] | None = None
    for mention in list_tables(tokens, dialect):
        key = mention.key
        first = key.partition(".")[0]
        if any(name in accounted for name in _spellings(key)) or first in variables:
            continue
        if is_variable(key.rpartition(".")[2]):
            continue  # it has a blind spot of its own
        if defined is None:
            defined = list_ctes(tokens) | _aliases(tokens)
        is_field = first != key and (first in defined or first in accounted)
        if key not in defined and not is_field:  # FROM orders o, o.items
            token = tokens[mention.at]
            text = "".join(str(t.text) for t in tokens[mention.at : mention.end])
            message = f"the table {text} is in the statement, but not in its lineage"
            yield SqlBlindSpot("unaccounted_table", message, token.line, column_of(token))


def find_lost_columns(
    tokens: Sequence[Token],
    statement: ReadStatement,
    dialect: Dialect,
) -> Iterator[SqlBlindSpot]:
    """Yield the column names that reading the tree did not resolve."""
    accounted = statement.accounted
    lost = [at for at in _column_positions(tokens) if _key(tokens[at]) not in accounted]
    if not lost:
        return
    defined = _aliases(tokens)
    in_tree = _TreeNames(statement.tree)
    others = {at for m in list_tables(tokens, dialect) for at in range(m.at, m.end)}
    others.update(at for span in _options(tokens) for at in span)
    for at in lost:
        if _key(tokens[at]) in defined or at in others or _is_attribute(tokens, at):
            continue
        # UPDATE t SET a.f = 1 writes the column a.
        is_field = at > 1 and tokens[at - 1].token_type == TokenType.DOT
        if is_field and _key(tokens[at - 2]) in statement.written:
            continue
        if in_tree.have_lost(tokens, at):
            message = f"the column {tokens[at].text} is in the statement, but not in its lineage"
            yield SqlBlindSpot(
                "unaccounted_column", message, tokens[at].line, column_of(tokens[at])
            )


def table_keys(names: Iterable[TableName]) -> Iterator[str]:
    """Yield the spellings that refer to tables: the whole name, and its last parts."""
    for name in names:
        parts = ".".join(name).casefold().split(".")
        yield from (".".join(parts[at:]) for at in range(len(parts)))


def _spellings(key: str) -> Iterator[str]:
    yield key
    if "$" in key:  # orders$20240131, orders$partitions
        yield key.rpartition("$")[0]
    first, _, rest = key.partition(".")
    if first == "live" or "/" in rest:  # live.orders, delta.`/data/orders`
        yield rest


def column_of(token: Token) -> int:
    """Return the column in which a token begins, from 1; sqlglot counts where it ends."""
    return max(1, int(token.col - (token.end - token.start)))


def _holds_no_rows(tokens: Sequence[Token]) -> bool:
    if word(tokens[0]) not in ("CREATE", "ALTER", "DROP"):
        return False
    words = [word(token) for token in tokens[1:5]]
    return bool(_WITHOUT_ROWS.intersection(words)) and not {"TABLE", "VIEW"}.intersection(words)


def _key(token: Token) -> str:
    return str(token.text).casefold()


def _options(tokens: Sequence[Token]) -> Iterator[range]:
    """Yield the positions of `WITH (connector = 'kafka')` and other lists of options."""
    for at in range(len(tokens) - 1):
        opens = tokens[at + 1].token_type == TokenType.L_PAREN
        if opens and word(tokens[at]) in _BEFORE_OPTIONS:
            yield range(at, find_closing(tokens, at + 1))


def _is_attribute(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a name is an attribute of a cursor or sequence: SQL%ROWCOUNT, s.NEXTVAL."""
    key = _key(tokens[at])
    if at and tokens[at - 1].token_type == TokenType.DOT:
        return key in _OF_SEQUENCE
    return key in _OF_CURSOR


def _column_positions(tokens: Sequence[Token]) -> Iterator[int]:
    """Yield the positions of names that are neither aliases, functions nor parts before a dot."""
    start = 0
    if word(tokens[0]) == "CREATE":
        words = [word(token) for token in tokens]
        start = next((at for at, here in enumerate(words) if here in _QUERIES), len(words))
    last = len(tokens) - 1
    before = TokenType.SENTINEL
    for at in range(start, last + 1):
        kind = tokens[at].token_type
        if (
            kind in _NAMES
            and before not in _ENDS_VALUE
            and before not in _BEFORE_OTHER_NAME
            and (at == last or tokens[at + 1].token_type not in _AFTER_OTHER_NAME)
        ):
            yield at
        before = kind


def _aliases(tokens: Sequence[Token]) -> set[str]:
    """Return the names that follow AS, a name or a bracket: they are defined here."""
    return {
        _key(tokens[at])
        for at in range(1, len(tokens))
        if tokens[at].token_type in _NAMES and tokens[at - 1].token_type in _ENDS_VALUE
    }


class _TreeNames:
    """The names of a tree: those of columns, and those of anything else."""

    def __init__(self, tree: exp.Expression) -> None:
        self._columns: set[str] = set()
        self._others: set[str] = set()
        for node in tree.walk():
            if isinstance(node, exp.Identifier):
                names = self._columns if _is_read(node.parent) else self._others
                names.add(str(node.this).casefold())
            elif isinstance(node.this, str):
                self._others.add(node.this.casefold())

    def have_lost(self, tokens: Sequence[Token], at: int) -> bool:
        """Return whether a name is a column of the tree or is missing in the tree."""
        key = _key(tokens[at])
        if key in self._columns:
            return True
        before = tokens[at - 1].token_type if at else TokenType.SENTINEL
        after = tokens[at + 1].token_type if at + 1 < len(tokens) else TokenType.FROM
        # In other positions, a word that is not in the tree is a keyword.
        is_value = before in _BEFORE_VALUE and after in _AFTER_VALUE
        return key not in self._others and is_value


def _is_read(column: exp.Expression | None) -> bool:
    """Return whether a column is read, and is not an argument's name or a value."""
    if not isinstance(column, exp.Column):
        return False
    around = column.parent
    if isinstance(around, exp.EQ):  # read_csv('f', header = true), PARTITION (day = '…')
        is_name = isinstance(around.parent, (exp.Func, exp.Partition))
        return not (is_name and around.this is column)
    if isinstance(around, exp.Anonymous) and around.name.upper() == "OPENQUERY":
        return False  # the name of a server
    if isinstance(around, exp.In):  # PIVOT (sum(a) FOR b IN (q1, q2))
        return not (isinstance(around.parent, exp.Pivot) and around.this is not column)
    return not isinstance(around, exp.Partition) and "?+" not in column.name  # `(a|b)?+.+`
