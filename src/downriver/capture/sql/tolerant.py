"""Tables of a statement no parser can read, from its tokens alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlglot.tokens import Token, TokenType

from downriver.capture.sql.tokens import name_at, word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot.dialects.dialect import Dialect

    from downriver.capture.sql.deps import TableName

_READ_AFTER = frozenset({"FROM", "JOIN", "USING"})
_WRITE_AFTER = frozenset({"INTO", "OVERWRITE", "UPDATE", "TABLE", "VIEW"})
_WRITERS = frozenset({"INSERT", "UPDATE", "MERGE", "CREATE", "REPLACE", "COPY", "DELETE"})
_NOISE = frozenset({"TABLE", "IF", "NOT", "EXISTS", "ONLY", "LATERAL", "AS"})
_NOT_NAMES = frozenset(
    {"SELECT", "VALUES", "SET", "WHERE", "ON", "GROUP", "ORDER", "LIMIT", "UNNEST", "FROM", "INTO"}
)


class Scanned(NamedTuple):
    """The tables named in a statement."""

    inputs: tuple[TableName, ...]
    outputs: tuple[TableName, ...]


def scan_tables(tokens: Sequence[Token], dialect: Dialect) -> Scanned:
    """Return what stands where tables stand; names of CTEs and aliases are not tables."""
    return _Scan(tokens, dialect).run()


class _Scan:
    def __init__(self, tokens: Sequence[Token], dialect: Dialect) -> None:
        self._tokens = tokens
        self._dialect = dialect
        self._words = [word(token) for token in tokens]
        self._ctes = {
            str(tokens[at - 1].text).casefold()
            for at in range(1, len(tokens) - 1)
            if self._words[at] == "AS" and self._words[at + 1] == "("
        }
        self._verb = next((w for w in self._words if w in _WRITERS), "")

    def run(self) -> Scanned:
        inputs: dict[TableName, None] = {}
        outputs: dict[TableName, None] = {}
        aliases: dict[str, TableName] = {}
        for at, here in enumerate(self._words):
            reads = here in _READ_AFTER and not (self._verb == "DELETE" and not outputs)
            writes = not reads and not outputs and self._writes(here)
            if not (reads or writes):
                continue
            name, after = self._name_after(at)
            if not name or (reads and self._is_cte(name)):
                continue
            (inputs if reads else outputs)[name] = None
            alias = self._alias_at(after)
            if alias:
                aliases[alias] = name
        written = tuple(aliases.get(".".join(name).casefold(), name) for name in outputs)
        return Scanned(tuple(name for name in inputs if name not in written), written)

    def _writes(self, here: str) -> bool:
        return bool(here in _WRITE_AFTER and self._verb) or (
            self._verb == "DELETE" and here == "FROM"
        )

    def _is_cte(self, name: TableName) -> bool:
        return len(name) == 1 and name[0].casefold() in self._ctes

    def _name_after(self, at: int) -> tuple[TableName, int]:
        at += 1
        while at < len(self._words) and self._words[at] in _NOISE:
            at += 1
        if at < len(self._words) and self._words[at] in _NOT_NAMES:
            return (), at
        name, after = name_at(self._tokens, at, self._dialect)
        is_call = after < len(self._words) and self._words[after] == "("
        # `INTO t (a, b)` names a table, `FROM f(a, b)` calls a function.
        return ((), after) if is_call and self._words[at - 1] in _READ_AFTER else (name, after)

    def _alias_at(self, at: int) -> str:
        if at < len(self._words) and self._words[at] == "AS":
            at += 1
        if at < len(self._words) and self._tokens[at].token_type in (
            TokenType.VAR,
            TokenType.IDENTIFIER,
        ):
            return str(self._tokens[at].text).casefold()
        return ""
