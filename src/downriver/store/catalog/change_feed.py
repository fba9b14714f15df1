"""The rows that the graph snapshot is built from and updated with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.store.catalog.encoding import unpack_fields, unpack_ids, unpack_kinds
from downriver.store.catalog.rows import rows_by_id
from downriver.store.catalog.tables import CHANGES_KEPT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.model.facts import ColumnTransformation
    from downriver.store.port import Row, SqlQueries

_MOST_TOUCHED = 100_000  # ids that are looked up one by one; with more, all rows are read


class ChangeFeed:
    """All edges, claims and columns, or those added or changed after a point."""

    def __init__(self, queries: SqlQueries) -> None:
        self._queries = queries

    def edges(self, changed_after: int) -> Iterator[Row]:
        """Yield (id, kind, source, target, via, first_at, last_at), changed after a log entry."""
        sql = "SELECT id, kind, source, target, via, first_at, last_at FROM edges"
        return self._touched("edges", sql, changed_after)

    def datasets(self, after: int) -> Iterator[Row]:
        """Yield (id, namespace, name) of the datasets whose id is above `after`, by id."""
        sql = "SELECT id, namespace, name FROM nodes WHERE kind = 0 AND id > ? ORDER BY id"
        return self._queries.scan(sql, (after,))

    def claims(self, changed_after: int) -> Iterator[Row]:
        """Yield (id, job, dataset, first_at, last_at), changed after a log entry."""
        sql = "SELECT id, job, dataset, first_at, last_at FROM claims"
        return self._touched("claims", sql, changed_after)

    def _touched(self, kind: str, sql: str, after: int) -> Iterator[Row]:
        """Yield the rows changed after a log entry, or all if they are many, ordered by id."""
        ids = self._touched_ids(kind, after)
        if ids is None:
            return self._queries.scan(f"{sql} ORDER BY id")
        return iter(sorted(rows_by_id(self._queries, f"{sql} WHERE id IN", ids)))

    def _touched_ids(self, kind: str, after: int) -> set[int] | None:
        if not after:
            return None
        ((projected,),) = self._queries.rows("SELECT projected FROM meta")
        if projected - after > CHANGES_KEPT:
            return None
        ids: set[int] = set()
        for (packed,) in self._queries.scan(f"SELECT {kind} FROM changes WHERE seq > ?", (after,)):
            ids.update(unpack_ids(bytes(packed)))
            if len(ids) > _MOST_TOUCHED:
                return None
        return ids

    def columns(self, id_after: int) -> Iterator[Row]:
        """Yield (id, dataset, field) of columns with a higher id."""
        sql = """
            SELECT first_id, dataset, fields FROM column_sets WHERE first_id > ? ORDER BY first_id
        """
        for first, dataset, stored in self._queries.scan(sql, (id_after,)):
            for column, field in enumerate(unpack_fields(bytes(stored)), first):
                yield column, dataset, field

    def derivations(
        self, claim_after: int
    ) -> Iterator[tuple[int, bytes, list[ColumnTransformation]]]:
        """Yield (claim, edges, kinds) of claims with a higher id; see `encoding`."""
        sql = "SELECT claim, edges, kinds FROM derivations WHERE claim > ? ORDER BY claim"
        for claim, edges, kinds in self._queries.scan(sql, (claim_after,)):
            yield claim, bytes(edges), unpack_kinds(bytes(kinds))
