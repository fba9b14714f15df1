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
_LONGEST = 60  # characters of a displayed value
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
        """Return the columns that differ in values or type, and those that only one side has."""
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
        comparison = TableComparison(
            base_rows=self.count(base),
            head_rows=self.count(head),
            base=self._columns(pair.base),
            head=self._columns(pair.head),
        )
        most = self._database.options.rows
        if max(comparison.base_rows, comparison.head_rows) > most:
            comparison.not_compared = f"more than {most:,} rows (--verify-rows)"
            return comparison
        shared = [name for name in comparison.base if name in comparison.head]
        try:
            if not shared:
                comparison.not_compared = "no column in common"
                return comparison
            key = self._find_key(pair, comparison, keys)
            if key:
                self._compare_by_key(pair, comparison, key, [n for n in shared if n not in key])
            else:
                self._compare_as_multisets(pair, comparison, shared)
        except StatementError as exc:
            comparison.not_compared = exc.message
        return comparison

    def _columns(self, relation: str) -> _Columns:
        return {c.name.casefold(): c for c in self._database.columns(relation)}

    def _find_key(
        self, pair: _Pair, comparison: TableComparison, keys: Iterable[Sequence[str]]
    ) -> list[str]:
        """Return the first key, case-folded, that is unique and not null on both sides."""
        for given in keys:
            key = [name.casefold() for name in given]
            if not key or not all(
                name in comparison.base and name in comparison.head
                and comparison.base[name].type == comparison.head[name].type
                for name in key
            ):  # fmt: skip
                continue
            sides = (
                (pair.base, comparison.base, comparison.base_rows),
                (pair.head, comparison.head, comparison.head_rows),
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
        self, pair: _Pair, comparison: TableComparison, key: list[str], others: list[str]
    ) -> None:
        quote = self._database.quote
        on = " AND ".join(
            f"b.{quote(comparison.base[name].name)} = h.{quote(comparison.head[name].name)}"
            for name in key
        )
        first = (
            f"b.{quote(comparison.base[key[0]].name)}",
            f"h.{quote(comparison.head[key[0]].name)}",
        )
        tests = [
            f"{self._value(comparison.base[n], comparison.head[n], 'b')} IS DISTINCT FROM "
            f"{self._value(comparison.head[n], comparison.base[n], 'h')}"
            for n in others
        ]
        both = f"{first[0]} IS NOT NULL AND {first[1]} IS NOT NULL"
        counted = [f"{first[0]} IS NULL", f"{first[1]} IS NULL"]
        counted.append(f"{both} AND ({' OR '.join(tests)})" if tests else "false")
        counted += [f"{both} AND {test}" for test in tests]
        counts = ", ".join(f"count(CASE WHEN {test} THEN 1 END)" for test in counted)
        sql = f"SELECT {counts} FROM {pair.base} AS b FULL JOIN {pair.head} AS h ON {on}"  # noqa: S608
        added, removed, changed, *differing = self._database.query(sql)[0]
        names = [comparison.base[name].name for name in key]
        comparison.rows = RowComparison(key=names, added=added, removed=removed, changed=changed)
        comparison.differing = dict(zip(others, differing, strict=True))

    def _compare_as_multisets(
        self, pair: _Pair, comparison: TableComparison, shared: list[str]
    ) -> None:
        removed, added = self._except(pair, comparison, shared)
        comparison.rows = RowComparison(added=added, removed=removed)
        for name in shared:
            differing = max(self._except(pair, comparison, [name])) if removed or added else 0
            comparison.differing[name] = differing

    def _except(
        self, pair: _Pair, comparison: TableComparison, names: list[str]
    ) -> tuple[int, int]:
        """Return how many rows exist only in the base and only in the head, over some columns."""
        base = ", ".join(self._value(comparison.base[n], comparison.head[n], "t") for n in names)
        head = ", ".join(self._value(comparison.head[n], comparison.base[n], "t") for n in names)
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
        """Return a column as SQL in a form that compares equal on both sides."""
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
        comparison: TableComparison,
        names: Iterable[str],
        predicted: set[str],
    ) -> list[ColumnComparison]:
        """Return some columns, by case-folded names, with a summary of their values."""
        chosen = [name for name in {**comparison.base, **comparison.head} if name in set(names)]
        before = self._summaries(
            base, {n: comparison.base[n] for n in chosen if n in comparison.base}
        )
        after = self._summaries(
            head, {n: comparison.head[n] for n in chosen if n in comparison.head}
        )
        return [
            ColumnComparison(
                name=(comparison.head.get(name) or comparison.base[name]).name,
                predicted=name in predicted,
                base=before.get(name),
                head=after.get(name),
                differing=comparison.differing.get(name),
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
            return summaries  # the database cannot order this type: only its name is displayed
        for at, (name, column) in enumerate(columns.items()):
            nulls, low, high = values[3 * at : 3 * at + 3]
            summaries[name] = ColumnSummary(
                type=column.type, nulls=nulls, low=_shorten(low), high=_shorten(high)
            )
        return summaries


def _shorten(value: str | None) -> str | None:
    return value if value is None or len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…"
