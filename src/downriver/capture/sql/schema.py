"""Which columns tables have, as far as anyone knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from downriver.capture.sql.deps import TableName

Schema: TypeAlias = Mapping[str, Sequence[str]] | Callable[[str], Sequence[str] | None]


class KnownColumns:
    """Known columns of tables; a shorter name matches a longer one by its last parts."""

    def __init__(self, given: Schema) -> None:
        self._columns: dict[tuple[str, ...], list[str]] = {}
        self._by_last: dict[str, list[tuple[str, ...]]] = {}
        self._ask = given if callable(given) else None
        for name, columns in given.items() if not callable(given) else ():
            self.add(tuple(name.split(".")), list(columns))

    def add(self, table: TableName, columns: list[str]) -> None:
        """Remember the columns of a table: what was said last counts."""
        key = _key(table)
        if key not in self._columns:
            self._by_last.setdefault(key[-1], []).append(key)
        self._columns[key] = columns

    def forget(self, table: TableName) -> None:
        """Forget a table that is gone."""
        key = _key(table)
        if self._columns.pop(key, None) is not None:
            self._by_last[key[-1]].remove(key)

    def columns_of(self, table: TableName) -> list[str] | None:
        """Return a table's columns in order, or None when they are unknown."""
        key = _key(table)
        if not key:
            return None
        exact = self._columns.get(key)
        if exact is not None:
            return exact
        fitting = [k for k in self._by_last.get(key[-1], ()) if _ends_alike(k, key)]
        if fitting:
            return self._columns[fitting[0]] if len(fitting) == 1 else None
        found = self._ask(".".join(table)) if self._ask is not None else None
        return None if found is None else list(found)


def _key(table: TableName) -> tuple[str, ...]:
    return tuple(part.casefold() for part in table)


def _ends_alike(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    shared = min(len(one), len(other))
    return one[-shared:] == other[-shared:]
