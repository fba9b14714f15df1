"""The relations of a dbt project, with one name for all spellings in code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from downriver.capture.code.dbt_resources import is_true, mapping
from downriver.capture.sql.query.names import DialectNames
from downriver.capture.sql.text.dialect import get_dialect

if TYPE_CHECKING:
    from collections.abc import Iterable

_PLAIN = re.compile(r"[A-Za-z_]\w*\Z")
# Dialects that compare quoted names by letter case, and fold the others.
_FOLDING = frozenset({"snowflake", "postgres", "oracle", "materialize", "risingwave"})
_BACKTICKS = frozenset({"bigquery", "spark", "databricks", "hive", "mysql", "clickhouse"})
_UNQUOTED_ADAPTERS = frozenset({"snowflake"})  # all others quote names by default
_PARTS = ("database", "schema", "identifier")


class Quoting(msgspec.Struct, frozen=True):
    """Which parts of a relation's name dbt writes in quotes."""

    database: bool = False
    schema: bool = False
    identifier: bool = False

    @classmethod
    def of_adapter(cls, adapter: str) -> Quoting:
        """Return the default of an adapter."""
        quoted = bool(adapter) and adapter not in _UNQUOTED_ADAPTERS
        return cls(quoted, quoted, quoted)

    def replaced(self, given: Any) -> Quoting:
        """Return the quoting with the parts that a `quoting` property sets."""
        values = {part: is_true(value) for part, value in mapping(given).items() if part in _PARTS}
        return msgspec.structs.replace(self, **values) if values else self


class RelationName(NamedTuple):
    """The name of a relation, and the same name as SQL, with quotes where it needs them."""

    name: str
    sql: str


class RelationNames:
    """Finds the relation of a name in SQL, by the rules of the project's dialect.

    `dialect` is None when it is not known. Names then match in any letter case. Projects of one
    repository share `spellings`, so that a source of several projects has one name.
    """

    def __init__(self, dialect: str | None, spellings: dict[str, str]) -> None:
        self._spellings = spellings
        self._names = DialectNames(get_dialect(dialect or ""))
        self._folds = dialect in _FOLDING
        self._mark = "`" if dialect in _BACKTICKS else '"'
        self._known: dict[str, str] = {}
        self._by_last: dict[str, str | None] = {}

    def add(self, parts: list[str], quoting: Quoting, *, is_model: bool) -> RelationName:
        """Add a relation with its database, schema and identifier, as far as they are known.

        A model is also found by its identifier alone.
        """
        quoted = [quoting.database, quoting.schema, quoting.identifier][-len(parts) :]
        key = self._key(parts, quoted)
        name = self._spellings.setdefault(f"{self._folds} {key}", ".".join(parts))
        self._known[key] = name
        if is_model:
            last = self._key(parts[-1:], quoted[-1:])
            self._by_last[last] = name if self._by_last.get(last, name) == name else None
        return RelationName(name, ".".join(map(self._as_sql, parts, quoted)))

    def find(self, table: str) -> str | None:
        """Return the relation of a name that the parser of the dialect returned."""
        key = table if self._folds else table.casefold()
        return self._known.get(key) or self._by_last.get(key.rpartition(".")[2])

    def _key(self, parts: Iterable[str], quoted: Iterable[bool]) -> str:
        if not self._folds:
            return ".".join(parts).casefold()
        return ".".join(
            part if is_quoted or not _PLAIN.match(part) else self._names.fold(part)
            for part, is_quoted in zip(parts, quoted, strict=True)
        )

    def _as_sql(self, part: str, is_quoted: bool) -> str:
        if _PLAIN.match(part) and not (
            is_quoted and self._folds and self._names.fold(part) != part
        ):
            return part
        return f"{self._mark}{part}{self._mark}"
