"""Table names in a statement's tokens: found by the keywords before them, without a parser."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlglot.tokens import Token, TokenType

from downriver.capture.sql.text.tokens import (
    find_closing,
    is_string,
    name_at,
    name_end,
    word,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlglot.dialects.dialect import Dialect

    from downriver.columns import TableName

_SKIPPED = frozenset(
    {
        "TABLE", "IF", "NOT", "EXISTS", "ONLY", "LATERAL", "INTO", "OVERWRITE", "IGNORE",
        "LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "VIEW", "STRICT",
    }
)  # fmt: skip
_NOT_NAMES = frozenset(
    {
        "SELECT", "VALUES", "SET", "WHERE", "ON", "GROUP", "ORDER", "LIMIT", "UNNEST", "FROM",
        "USING", "WITH", "FUNCTION", "OF", "AS", "DIRECTORY", "LOCAL", "OUTFILE", "DUMPFILE", "BY",
        "STATISTICS", "CURRENT", "UNPIVOT", "WHEN", "DEFAULT", "ALL", "FIRST", "TOP", "OR", "ROW",
        "CASCADE", "RESTRICT", "NO", "THEN", "UNION", "JOIN", "AND", "STDIN", "STDOUT", "GRANTS",
        "IN", "IS",
    }
)  # fmt: skip
_QUERY_WORDS = frozenset({"SELECT", "DELETE", "INSERT", "UPDATE", "MERGE", "WITH", "VALUES", "SEL"})
_ENDS_FROM = frozenset(
    {
        "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "INTERSECT", "EXCEPT", "MINUS",
        "QUALIFY", "WINDOW", "SET", "VALUES", "SELECT", "WHEN", "FETCH", "OFFSET", "RETURNING",
        "CONNECT", "START", "INSERT", "SETTINGS", "FORMAT", "OPTION", "CLUSTER", "DISTRIBUTE",
        "SORT", "PREWHERE", "MODEL", "ARRAY", "VIEW", "OUTPUT", "CASCADE", "PARTITION", "EMIT",
        "ORDER BY", "GROUP BY", "CLUSTER BY", "DISTRIBUTE BY", "SORT BY", "CONNECT BY",
        "START WITH",
    }
)  # fmt: skip
_OF_PERIOD = frozenset({"SYSTEM_TIME", "SYSTEM_VERSION", "VERSION", "TIMESTAMP", "PORTION"})
_WITH_FROM = frozenset({"TRIM", "EXTRACT", "SUBSTRING", "SUBSTR", "OVERLAY", "POSITION"})
_BEFORE_OTHER_TABLE = frozenset({"ON", "RETURNS", "IS", "OF", "FOR", "FOREIGN"})
_BEFORE_EVENT = frozenset(
    {"ON", "AFTER", "BEFORE", "OR", "OF", "FOR", "INSTEAD", "GRANT", ",", "DO", "KEY", "REVOKE"}
)
_BEGINS_STATEMENT = frozenset(
    {"", ";", "BEGIN", "ELSE", "THEN", "LOOP", "DO", "AS", ")", "END", "TRANSACTION", "("}
)
_LISTS = frozenset({"DROP", "TRUNCATE", "LOCK"})
_CHANGES_VERB = frozenset(
    {"INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "ALTER", "DROP", "TRUNCATE", "COPY"}
)


class TableMention(NamedTuple):
    """A name in the position of a table: its tokens, and whether the table is written.

    `key` is the name as it is written, in lower case and without quotes.
    """

    key: str
    at: int
    end: int
    is_written: bool


class ScannedTables(NamedTuple):
    """The tables named in a statement."""

    inputs: tuple[TableName, ...]
    outputs: tuple[TableName, ...]


def list_tables(tokens: Sequence[Token], dialect: Dialect) -> list[TableMention]:
    """Return the names in the positions of tables, CTEs included, in the order of the text."""
    return _MentionScan(tokens, dialect).run()


def scan_tables(tokens: Sequence[Token], dialect: Dialect) -> ScannedTables:
    """Return the tables that a statement reads and writes, without CTEs and aliases."""
    mentions = list_tables(tokens, dialect)
    names = {mention: _name(mention, tokens, dialect) for mention in mentions}
    ctes = list_ctes(tokens)
    aliases = {alias: name for m, name in names.items() if (alias := _alias_at(tokens, m.end))}
    inputs: dict[TableName, None] = {}
    outputs: dict[TableName, None] = {}
    for mention, name in names.items():
        if mention.is_written:
            outputs[aliases.get(mention.key, name)] = None
        elif mention.key not in ctes:
            inputs[name] = None
    return ScannedTables(tuple(name for name in inputs if name not in outputs), tuple(outputs))


def _name(mention: TableMention, tokens: Sequence[Token], dialect: Dialect) -> TableName:
    """Return the parts of a name, as the dialect compares them."""
    at, end = mention.at, mention.end
    if is_string(tokens[at]):
        return (str(tokens[at].text),)
    if any(token.token_type == TokenType.DASH for token in tokens[at:end]):
        return tuple("".join(str(token.text) for token in tokens[at:end]).split("."))
    name: TableName = ()
    while at < end:
        parts, at = name_at(tokens, at, dialect)
        name += parts
        at += 1  # database..table
    return name


def list_ctes(tokens: Sequence[Token]) -> set[str]:
    """Return the names before `AS (`, in lower case: those of a WITH clause, of windows too."""
    ctes: set[str] = set()
    for at in range(1, len(tokens) - 1):
        if tokens[at].token_type != TokenType.ALIAS:
            continue
        after = at + 1
        while after < len(tokens) and word(tokens[after]) in ("NOT", "MATERIALIZED"):
            after += 1
        if after == len(tokens) or tokens[after].token_type != TokenType.L_PAREN:
            continue
        name = at - 1
        if tokens[name].token_type == TokenType.R_PAREN:  # c (a, b) AS (…)
            name = _opening(tokens, name) - 1
        if name >= 0:
            ctes.add(str(tokens[name].text).casefold())
    return ctes


def _opening(tokens: Sequence[Token], at: int) -> int:
    depth = 0
    for here in range(at, -1, -1):
        kind = tokens[here].token_type
        depth += (kind == TokenType.R_PAREN) - (kind == TokenType.L_PAREN)
        if depth == 0:
            return here
    return 0


def _alias_at(tokens: Sequence[Token], at: int) -> str:
    if at < len(tokens) and word(tokens[at]) == "AS":
        at += 1
    if at < len(tokens) and tokens[at].token_type in (TokenType.VAR, TokenType.IDENTIFIER):
        return str(tokens[at].text).casefold()
    return ""


class _Level:
    """One level of brackets: the word before it, and whether a FROM list is open in it."""

    __slots__ = ("has_query", "lists_tables", "opener", "writes")

    def __init__(self, opener: str) -> None:
        self.opener = opener
        self.has_query = False
        self.lists_tables = False
        self.writes = False


class _MentionScan:
    def __init__(self, tokens: Sequence[Token], dialect: Dialect) -> None:
        self._tokens = tokens
        self._dialect = dialect
        self._dialect_name = type(dialect).__name__.lower()
        self._words = words_of(tokens)
        self._levels = [_Level("")]
        self._verb = ""
        self._found: dict[int, TableMention] = {}

    def run(self) -> list[TableMention]:
        words = self._words
        for at, here in enumerate(words):
            if here in _INTERESTING and not (at and words[at - 1] == "."):
                self._visit(at, here)
        return [self._found[at] for at in sorted(self._found)]

    def _visit(self, at: int, here: str) -> None:
        level = self._levels[-1]
        if here == "(":
            self._levels.append(_Level(self._words[at - 1] if at else ""))
        elif here == ")":
            if len(self._levels) > 1:
                self._levels.pop()
        elif here == ",":
            if level.lists_tables:
                self._add(at, writes=level.writes)
        else:
            rule = _RULES.get(here)
            if rule is not None:
                rule(self, at)
            if here in _ENDS_FROM:
                self._end_list(at, here, level)
            level.has_query = level.has_query or here in _QUERY_WORDS
            if here in _CHANGES_VERB and not self._before(at, _BEFORE_EVENT):
                self._verb = here

    def _end_list(self, at: int, here: str, level: _Level) -> None:
        # `PARTITION (p)` after a table's name does not end the list.
        level.lists_tables = level.lists_tables and here == "PARTITION" and self._next(at) == "("

    def _before(self, at: int, words: frozenset[str]) -> bool:
        return at > 0 and self._words[at - 1] in words

    def _next(self, at: int) -> str:
        return self._words[at + 1] if at + 1 < len(self._words) else ""

    def _begins(self, at: int) -> bool:
        """Return whether a statement may begin here."""
        return at == 0 or self._words[at - 1] in _BEGINS_STATEMENT or self._on_new_line(at)

    def _on_new_line(self, at: int) -> bool:
        return bool(self._tokens[at].line > self._tokens[at - 1].line)

    # One rule for each keyword

    def _from(self, at: int) -> None:
        level = self._levels[-1]
        if self._before(at, _DISTINCT) and at > 1 and self._words[at - 2] in ("IS", "NOT"):
            return
        if len(self._levels) > 1 and not level.has_query:
            begins = self._words[at - 1] == "("
            if not begins or level.opener in _WITH_FROM:
                return  # EXTRACT(day FROM ts)
        writes = self._words[at - 1] == "DELETE" or (
            self._verb == "DELETE" and self._words[at - 1] == ")" and self._words[at - 4] == "TOP"
        )
        level.lists_tables = True
        level.writes = False
        self._add(at, writes=writes)

    def _join(self, at: int) -> None:
        if self._before(at, _ARRAY):  # ClickHouse: ARRAY JOIN xs AS x, ys AS y
            self._levels[-1].lists_tables = False
            return
        self._add(at)

    def _into(self, at: int) -> None:
        if self._next(at) == "NAME" and self._words[at + 3 : at + 4] == ["VALUE"]:
            return  # DuckDB: UNPIVOT t ON a, b INTO NAME x VALUE y
        if self._dialect_name == "oracle" and self._verb not in ("INSERT", "MERGE"):
            return  # SELECT … INTO a variable
        self._add(at, writes=True)

    def _using(self, at: int) -> None:
        if self._verb in ("MERGE", "DELETE"):
            level = self._levels[-1]
            level.lists_tables, level.writes = self._verb == "DELETE", False
            self._add(at)

    def _update(self, at: int) -> None:
        if not self._before(at, _BEFORE_EVENT) and self._next(at) not in ("SET", "("):
            level = self._levels[-1]
            level.lists_tables, level.writes = self._dialect_name in _MANY_UPDATED, True
            self._add(at, writes=True)

    def _insert(self, at: int) -> None:
        if not self._before(at, _BEFORE_EVENT) and self._next(at) != "(":
            self._add(at, writes=True)

    def _delete(self, at: int) -> None:
        if not self._before(at, _BEFORE_EVENT | {"THEN"}) and self._next(at) not in ("", ")", ","):
            self._add(at, writes=True)

    def _merge(self, at: int) -> None:
        if self._begins(at):
            self._add(at, writes=True)

    def _copy(self, at: int) -> None:
        if self._begins(at) and self._next(at) not in ("(", "INTO"):
            _, end = self._name_after(at)
            if end < len(self._words) and self._words[end] == "(":
                end = find_closing(self._tokens, end) + 1
            self._add(at, writes=self._words[end : end + 1] == ["FROM"])

    def _table(self, at: int) -> None:
        if self._next(at) in ("(", "OF", "FUNCTION") or self._before(at, _BEFORE_OTHER_TABLE):
            return
        if self._before(at, frozenset({"(", ","})):  # TUMBLE(TABLE orders, …)
            self._add(at)
            return
        level = self._levels[-1]
        level.lists_tables, level.writes = self._verb in _LISTS, True
        self._add(at, writes=bool(self._verb))

    def _view(self, at: int) -> None:
        if self._words[max(0, at - 2) : at] == ["REFRESH", "MATERIALIZED"]:
            return  # the statement that creates the view contains its lineage
        if not self._before(at, frozenset({"LATERAL", "ON"})):
            self._add(at, writes=True)

    def _truncate(self, at: int) -> None:
        if self._begins(at) and self._next(at) != "(":
            level = self._levels[-1]
            level.lists_tables = level.writes = True
            self._add(at, writes=True)

    def _clone(self, at: int) -> None:
        if self._verb == "CREATE":
            self._add(at)

    def _for(self, at: int) -> None:
        if self._next(at) not in _OF_PERIOD:
            self._levels[-1].lists_tables = False

    # Names

    def _add(self, at: int, *, writes: bool = False) -> None:
        start, end = self._name_after(at)
        if end == start:
            return
        if self._tokens[start].token_type == TokenType.PARAMETER:
            return  # @variable, @stage
        is_call = end < len(self._words) and self._words[end] == "("
        if self._words[end : end + 1] == [":"] and self._dialect_name == "duckdb":
            self._add(end, writes=writes)  # FROM alias: orders
        elif is_call and not (writes and self._words[start] != "IDENTIFIER"):
            return  # FROM f(a) calls a function
        elif self._words[start] == "ROWS" and self._words[end : end + 1] == ["FROM"]:
            return  # ROWS FROM (f(a), g(b))
        else:
            key = "".join(str(token.text) for token in self._tokens[start:end])
            mention = TableMention(key.casefold().replace("..", "."), start, end, writes)
            self._found.setdefault(start, mention)

    def _name_after(self, at: int) -> tuple[int, int]:
        at += 1
        words = self._words
        while at < len(words) and (words[at] in _SKIPPED or self._is_adjective(at)):
            at += 1
        if at >= len(words) or words[at] in _NOT_NAMES:
            return at, at
        if is_string(self._tokens[at]):
            return at, at + 1
        end = name_end(self._tokens, at)
        while end > at and end + 1 < len(words) and words[end] == ".":  # database..table
            end = name_end(self._tokens, end + 1)
        # BigQuery: my-project.data.orders
        while self._dialect_name == "bigquery" and self._is_dash(end):
            end = name_end(self._tokens, end + 1)
        return at, end

    def _is_adjective(self, at: int) -> bool:
        """Return whether a word before a name qualifies it: `INTO TEMP x`, `FROM STREAM x`."""
        if at + 1 >= len(self._words) or self._tokens[at + 1].token_type not in _PLAIN_NAMES:
            return False
        return self._words[at] in _ADJECTIVES.get(self._words[at - 1], ())

    def _is_dash(self, at: int) -> bool:
        if at + 1 >= len(self._tokens) or self._tokens[at].token_type != TokenType.DASH:
            return False
        dash = self._tokens[at]
        return bool(
            self._tokens[at - 1].end + 1 == dash.start
            and dash.end + 1 == self._tokens[at + 1].start
        )


_PLAIN_NAMES = frozenset({TokenType.VAR, TokenType.IDENTIFIER})
_ADJECTIVES = {"INTO": ("TEMP", "TEMPORARY", "UNLOGGED"), "FROM": ("STREAM",)}
_DISTINCT = frozenset({"DISTINCT"})
_ARRAY = frozenset({"ARRAY"})
_MANY_UPDATED = frozenset({"mysql", "singlestore", "doris", "starrocks"})  # UPDATE a, b SET …
_RULES: dict[str, Callable[[_MentionScan, int], None]] = {
    "FROM": _MentionScan._from,
    "JOIN": _MentionScan._join,
    "INTO": _MentionScan._into,
    "USING": _MentionScan._using,
    "UPDATE": _MentionScan._update,
    "INSERT": _MentionScan._insert,
    "DELETE": _MentionScan._delete,
    "MERGE": _MentionScan._merge,
    "COPY": _MentionScan._copy,
    "TABLE": _MentionScan._table,
    "VIEW": _MentionScan._view,
    "TRUNCATE": _MentionScan._truncate,
    "CLONE": _MentionScan._clone,
    "FOR": _MentionScan._for,
}
_INTERESTING = frozenset({*_RULES, "(", ")", ","}) | _QUERY_WORDS | _ENDS_FROM | _CHANGES_VERB
