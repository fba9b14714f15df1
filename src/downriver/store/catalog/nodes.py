"""Datasets, jobs and columns: by id, by name, and by their neighbours."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from downriver.errors import EntityNotFoundError
from downriver.model.facts import EdgeKind
from downriver.model.ids import EVERY_FIELD, NodeId, bounded, node_kind, short_name
from downriver.store.catalog.encoding import SPAN, read_node, read_span, rows_by_id, unpack_fields
from downriver.store.catalog.tables import EDGE_KEY, NODE_KEY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from downriver.model.facts import Span
    from downriver.store.port import SqlQueries


class NodeRecord(NamedTuple):
    """A dataset or job, and when events named it first and last, in µs since the epoch."""

    id: NodeId
    first_at: int
    last_at: int


class NodeQueries:
    """Finds datasets and jobs, by id, by name or by their neighbours."""

    def __init__(self, queries: SqlQueries) -> None:
        self._queries = queries

    def by_ids(self, ids: Iterable[int]) -> dict[int, NodeId]:
        """Return datasets and jobs by their ids."""
        rows = rows_by_id(
            self._queries, "SELECT id, kind, namespace, name FROM nodes WHERE id IN", ids
        )
        return {number: read_node(kind, namespace, name) for number, kind, namespace, name in rows}

    def records(self, ids: Iterable[int]) -> dict[int, NodeRecord]:
        """Return datasets and jobs by their ids, with the times when they were seen."""
        sql = "SELECT id, kind, namespace, name, first_at, last_at FROM nodes WHERE id IN"
        return {
            number: NodeRecord(read_node(kind, namespace, name), first_at, last_at)
            for number, kind, namespace, name, first_at, last_at in rows_by_id(
                self._queries, sql, ids
            )
        }

    def find(self, node: NodeId) -> int | None:
        """Return the id of exactly this node."""
        rows = self._queries.rows(
            "SELECT id FROM nodes WHERE kind = ? AND namespace = ? AND name = ?",
            (int(node_kind(node)), _as_stored(node.namespace), _as_stored(node.name)),
        )
        return rows[0][0] if rows else None

    def get(self, node: NodeId) -> int:
        """Return the id of exactly this node, which must exist."""
        number = self.find(node)
        if number is None:
            raise EntityNotFoundError(str(node))
        return number

    def find_each(self, nodes: Iterable[NodeId]) -> dict[NodeId, int]:
        """Return the ids of those of the nodes that exist, in one query."""
        keys = {
            (int(node_kind(node)), _as_stored(node.namespace), _as_stored(node.name)): node
            for node in nodes
        }
        ids = self._queries.find_ids(NODE_KEY, list(keys)) if keys else {}
        return {keys[key]: number for key, number in ids.items()}

    def span(self, node: int) -> Span:
        """Return when a node was first and last seen."""
        return self.spans([node])[node]

    def spans(self, nodes: Iterable[int]) -> dict[int, Span]:
        """Return when each node was first and last seen."""
        rows = rows_by_id(self._queries, f"SELECT id, {SPAN} FROM nodes WHERE id IN", nodes)
        return {row[0]: read_span(row[1:]) for row in rows}

    def children_of(self, job: int) -> list[NodeId]:
        """Return the jobs that a job runs."""
        return self._neighbours(
            "SELECT target FROM edges WHERE kind = ? AND source = ?", EdgeKind.PARENT, job
        )

    def find_parents(self, pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the pairs of jobs in which the first job runs the second."""
        keys = [(int(EdgeKind.PARENT), parent, child, 0) for parent, child in pairs]
        ids = self._queries.find_ids(EDGE_KEY, keys) if keys else {}
        return [(parent, child) for _, parent, child, _ in ids]

    def outputs_of(self, job: int) -> list[NodeId]:
        """Return the datasets a job writes."""
        return self._neighbours(
            "SELECT target FROM edges WHERE kind = ? AND source = ?", EdgeKind.WRITES, job
        )

    def _neighbours(self, sql: str, kind: EdgeKind, node: int) -> list[NodeId]:
        ids = [row[0] for row in self._queries.rows(sql, (int(kind), node))]
        return sorted(self.by_ids(ids).values(), key=str)

    def named(self, name: str) -> dict[int, NodeId]:
        """Return every node whose name ends in the last part of `name`, whatever the case."""
        rows = self._queries.rows(
            "SELECT id, kind, namespace, name FROM nodes WHERE short = ? AND kind < 2",
            (short_name(_as_stored(name)),),
        )
        return {row[0]: read_node(*row[1:]) for row in rows}

    def namesakes(self, datasets: Iterable[int]) -> list[tuple[int, int]]:
        """Return pairs of one of these datasets and another whose name has the same last part."""
        # No condition on the kind in SQL: with it, SQLite selects a slower index.
        rows = rows_by_id(
            self._queries,
            "SELECT a.id, b.id, a.kind + b.kind FROM nodes a JOIN nodes b ON b.short = a.short"
            " WHERE b.id <> a.id AND a.id IN",
            datasets,
        )
        return [(one, other) for one, other, jobs in rows if not jobs]

    def matching(self, field: Literal["name", "namespace"], pattern: str) -> dict[int, NodeId]:
        """Return the nodes whose name or namespace may match a pattern with `*` and `?`.

        This ignores letter case and character sets such as `[ab]`, so some of the nodes may not
        match.
        """
        literal = pattern.lower()
        before, _, after = literal.partition("[")
        if "]" in after:
            literal = f"{before}?{after.rpartition(']')[2]}"
        words = [_LIKE.sub(r"!\g<0>", word) for word in re.split(r"[*?]+", literal) if word]
        condition = " AND ".join([f"lower({field}) LIKE ? ESCAPE '!'"] * len(words)) or "1 = 1"
        sql = "SELECT id, kind, namespace, name FROM nodes WHERE kind < 2"
        rows = self._queries.rows(
            f"{sql} AND {condition} ORDER BY id", [f"%{word}%" for word in words]
        )
        return {row[0]: read_node(*row[1:]) for row in rows}

    def list_names(self, limit: int) -> list[str]:
        """Return the names of the nodes seen last, for near matches."""
        sql = "SELECT name FROM nodes WHERE kind < 2 ORDER BY last_at DESC LIMIT ?"
        rows = self._queries.rows(sql, (limit,))
        return [row[0] for row in rows]


class ColumnQueries:
    """Finds columns of datasets."""

    def __init__(self, queries: SqlQueries) -> None:
        self._queries = queries

    def by_ids(self, columns: Mapping[int, int]) -> dict[int, tuple[int, str]]:
        """Return (dataset id, field) of columns, given with the ids of their datasets."""
        names: dict[int, tuple[int, str]] = {}
        for first, dataset, fields in self._column_sets(set(columns.values())):
            for column, field in enumerate(fields, first):
                if column in columns:
                    names[column] = (dataset, field)
        return names

    def find(self, dataset: int, field: str) -> tuple[int, str] | None:
        """Return a column's id and name: the exact one, or the only one that differs in case."""
        rows = [
            (column, name)
            for first, _, names in self._column_sets([dataset])
            for column, name in enumerate(names, first)
        ]
        field = _as_stored(field)
        exact = [row for row in rows if row[1] == field]
        folded = exact or [row for row in rows if row[1].casefold() == field.casefold()]
        return folded[0] if len(folded) == 1 else None

    def list_names(self, dataset: int) -> list[str]:
        """Return the known columns of a dataset, from schemas and from column edges."""
        return self.names_of_each([dataset]).get(dataset, [])

    def names_of_each(self, datasets: Iterable[int]) -> dict[int, list[str]]:
        """Return the known columns of each dataset that has any, sorted."""
        names: dict[int, set[str]] = {}
        for _, dataset, fields in self._column_sets(datasets):
            names.setdefault(dataset, set()).update(fields)
        return {dataset: sorted(known - {EVERY_FIELD}) for dataset, known in names.items()}

    def search(self, words: Sequence[str], limit: int) -> list[tuple[int, str]]:
        """Return (dataset, column) of columns whose names contain all words, shortest first."""
        folded_words = [word.casefold() for word in words]
        literal = [word.encode() for word in folded_words if word.isascii() and '"' not in word]
        matches: set[tuple[int, str]] = set()
        sql = "SELECT dataset, fields FROM column_sets"
        for dataset, stored in self._queries.scan(sql):
            packed = bytes(stored).lower()
            if all(word in packed for word in literal):
                matches.update(
                    (dataset, field)
                    for field in unpack_fields(bytes(stored))
                    if all(word in field.casefold() for word in folded_words)
                    and field != EVERY_FIELD
                )
        return sorted(matches, key=lambda column: (len(column[1]), column[1], column[0]))[:limit]

    def _column_sets(self, datasets: Iterable[int]) -> Iterator[tuple[int, int, list[str]]]:
        sql = "SELECT first_id, dataset, fields FROM column_sets WHERE dataset IN"
        for first, dataset, stored in rows_by_id(self._queries, sql, datasets):
            yield first, dataset, unpack_fields(bytes(stored))


def _as_stored(name: str) -> str:
    """Return a name as the catalog holds it, with U+FFFD for characters that no store can hold."""
    return bounded(_UNSTORABLE.sub("\ufffd", name))


_LIKE = re.compile("[!%_]")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
