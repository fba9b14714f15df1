"""Compares a model's table before and after a change: rows, columns and values."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from downriver.impact.simulate.column_types import parse_type
from downriver.impact.verify.databases import StatementError
from downriver.model.trust.verification import ColumnComparison, ColumnSummary, RowComparison

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from downriver.impact.verify.databases import RelationColumn, ScratchDatabase

_ORDERED = frozenset({"number", "text", "date", "timestamp", "time"})
_LONGEST = 60  # characters of a value that is shown
_Columns = dict[str, "RelationColumn"]  # by case-folded name


class TableComparison(msgspec.Struct, kw_only=True):
    """How two tables differ. `rows` is None if their values were not compared."""

    base_rows: int
    head_rows: int
    base: _Columns
    head: _Columns
    rows: RowComparison | None = None
    differing: dict[str, int] = {}  # rows with another value, by case-folded column
    not_compared: str = ""

    def differences(self) -> set[str]:
        """Return the columns that differ, also by their type, and those of one side only."""
        retyped = {
            name
            for name in self.base.keys() & self.head.keys()
            if self.base[name].type != self.head[name].type
        }
        valued = {name for name, count in self.differing.items() if count}
        return retyped | valued | (self.base.keys() ^ self.head.keys())


class _Pair(NamedTuple):
    """The two tables, as SQL."""

    base: str
    head: str


class TableComparer:
    """Compares tables of the scratch schema."""

    def __init__(self, database: ScratchDatabase) -> None:
        self._database = database

    def count(self, table: str) -> int:
        """Return the number of rows of a table."""
        sql = f"SELECT count(*) FROM {self._database.scratch(table)}"  # noqa: S608
        return int(self._database.query(sql)[0][0])

    def compare(self, base: str, head: str, keys: Iterable[Sequence[str]]) -> TableComparison:
        """Compare two tables by the first key that is unique in both, else as multisets."""
        pair = _Pair(self._database.scratch(base), self._database.scratch(head))
        found = TableComparison(
            base_rows=self.count(base),
            head_rows=self.count(head),
            base=self._columns(pair.base),
            head=self._columns(pair.head),
        )
        most = self._database.options.rows
        if max(found.base_rows, found.head_rows) > most:
            found.not_compared = f"more than {most:,} rows (--verify-rows)"
            return found
        shared = [name for name in found.base if name in found.head]
        try:
            if not shared:
                found.not_compared = "no column in common"
                return found
            key = self._find_key(pair, found, keys)
            if key:
                self._compare_by_key(pair, found, key, [n for n in shared if n not in key])
            else:
                self._compare_as_multisets(pair, found, shared)
        except StatementError as exc:
            found.not_compared = exc.message
        return found

    def _columns(self, relation: str) -> _Columns:
        return {c.name.casefold(): c for c in self._database.columns(relation)}

    def _find_key(
        self, pair: _Pair, found: TableComparison, keys: Iterable[Sequence[str]]
    ) -> list[str]:
        """Return the first key, case-folded, that is unique and not null on both sides."""
        for given in keys:
            key = [name.casefold() for name in given]
            if not key or not all(
                name in found.base and name in found.head
                and found.base[name].type == found.head[name].type
                for name in key
            ):  # fmt: skip
                continue
            sides = (
                (pair.base, found.base, found.base_rows),
                (pair.head, found.head, found.head_rows),
            )
            if all(self._distinct(table, columns, key) == rows for table, columns, rows in sides):
                return key
        return []

    def _distinct(self, table: str, columns: _Columns, key: list[str]) -> int:
        names = [self._database.quote(columns[name].name) for name in key]
        present = " AND ".join(f"{name} IS NOT NULL" for name in names)
        sql = f"SELECT count(*) FROM (SELECT DISTINCT {', '.join(names)} FROM {table} WHERE {present}) AS k"  # noqa: S608, E501
        return int(self._database.query(sql)[0][0])

    def _compare_by_key(
        self, pair: _Pair, found: TableComparison, key: list[str], others: list[str]
    ) -> None:
        quote = self._database.quote
        on = " AND ".join(
            f"b.{quote(found.base[name].name)} = h.{quote(found.head[name].name)}" for name in key
        )
        first = f"b.{quote(found.base[key[0]].name)}", f"h.{quote(found.head[key[0]].name)}"
        tests = [
            f"{self._value(found.base[n], found.head[n], 'b')} IS DISTINCT FROM "
            f"{self._value(found.head[n], found.base[n], 'h')}"
            for n in others
        ]
        both = f"{first[0]} IS NOT NULL AND {first[1]} IS NOT NULL"
        counted = [f"{first[0]} IS NULL", f"{first[1]} IS NULL"]
        counted.append(f"{both} AND ({' OR '.join(tests)})" if tests else "false")
        counted += [f"{both} AND {test}" for test in tests]
        counts = ", ".join(f"count(CASE WHEN {test} THEN 1 END)" for test in counted)
        sql = f"SELECT {counts} FROM {pair.base} AS b FULL JOIN {pair.head} AS h ON {on}"  # noqa: S608
        added, removed, changed, *differing = self._database.query(sql)[0]
        names = [found.base[name].name for name in key]
        found.rows = RowComparison(key=names, added=added, removed=removed, changed=changed)
        found.differing = dict(zip(others, differing, strict=True))

    def _compare_as_multisets(self, pair: _Pair, found: TableComparison, shared: list[str]) -> None:
        removed, added = self._except(pair, found, shared)
        found.rows = RowComparison(added=added, removed=removed)
        for name in shared:
            differing = max(self._except(pair, found, [name])) if removed or added else 0
            found.differing[name] = differing

    def _except(self, pair: _Pair, found: TableComparison, names: list[str]) -> tuple[int, int]:
        """Return how many rows of some columns only the base has, and only the head."""
        base = ", ".join(self._value(found.base[n], found.head[n], "t") for n in names)
        head = ", ".join(self._value(found.head[n], found.base[n], "t") for n in names)
        before, after = (
            f"SELECT {values} FROM {table} AS t"  # noqa: S608
            for values, table in ((base, pair.base), (head, pair.head))
        )
        counts = (
            self._database.query(f"SELECT count(*) FROM ({one} EXCEPT ALL {other}) AS d")[0][0]  # noqa: S608
            for one, other in ((before, after), (after, before))
        )
        removed, added = (int(count) for count in counts)
        return removed, added

    def _value(self, column: RelationColumn, other: RelationColumn, alias: str) -> str:
        """Return a column as SQL in a form that can be compared with that of the other side."""
        name = f"{alias}.{self._database.quote(column.name)}"
        family, other_family = parse_type(column.type).family, parse_type(other.type).family
        is_comparable = column.type == other.type and column.type not in ("json", "xml", "point")
        if is_comparable or (family == other_family == "number"):
            return name
        return f"CAST({name} AS VARCHAR)"

    # Columns

    def describe(
        self,
        base: str,
        head: str,
        found: TableComparison,
        names: Iterable[str],
        predicted: set[str],
    ) -> list[ColumnComparison]:
        """Return some columns, by case-folded names, with a summary of their values."""
        chosen = [name for name in {**found.base, **found.head} if name in set(names)]
        before = self._summaries(base, {n: found.base[n] for n in chosen if n in found.base})
        after = self._summaries(head, {n: found.head[n] for n in chosen if n in found.head})
        return [
            ColumnComparison(
                name=(found.head.get(name) or found.base[name]).name,
                predicted=name in predicted,
                base=before.get(name),
                head=after.get(name),
                differing=found.differing.get(name),
            )
            for name in chosen
        ]

    def _summaries(self, table: str, columns: _Columns) -> dict[str, ColumnSummary]:
        parts: list[str] = []
        for column in columns.values():
            name = self._database.quote(column.name)
            parts.append(f"count(*) - count({name})")
            is_ordered = parse_type(column.type).family in _ORDERED
            value = f"CAST({{}}({name}) AS VARCHAR)" if is_ordered else "NULL"
            parts += [value.format("min"), value.format("max")]
        summaries = {n: ColumnSummary(type=column.type) for n, column in columns.items()}
        if not parts:
            return summaries
        try:
            sql = f"SELECT {', '.join(parts)} FROM {self._database.scratch(table)}"  # noqa: S608
            values = self._database.query(sql)[0]
        except StatementError:
            return summaries  # a type that the database cannot order: its name is shown
        for at, (name, column) in enumerate(columns.items()):
            nulls, low, high = values[3 * at : 3 * at + 3]
            summaries[name] = ColumnSummary(
                type=column.type, nulls=nulls, low=_shorten(low), high=_shorten(high)
            )
        return summaries


def _shorten(value: str | None) -> str | None:
    return value if value is None or len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…"
