"""What comes out of the leaves of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.capture.frames import ROWS
from downriver.capture.spark.harvest import Place
from downriver.capture.spark.relations import Column, Relation, joined
from downriver.capture.sql import parse_sql_lineage
from downriver.capture.sql.deps import NOTHING, Deps, Kind, Sure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from downriver.capture.frames import Origins
    from downriver.capture.spark.harvest import Leaf
    from downriver.capture.spark.naming import JdbcName
    from downriver.capture.spark.plan import Node
    from downriver.capture.sql.result import ColumnEdge, SqlBlindSpot

    # Where local data is known to come from, by the id of its first column.
    Carried = Callable[[int], Origins | None]

_DIALECTS = {"mssql": "tsql", "mariadb": "mysql"}
_SPOKEN = frozenset({"postgres", "mysql", "tsql", "oracle", "redshift", "snowflake", "sqlite"})
_SURENESS = {"exact": Sure.EXACT, "inferred": Sure.INFERRED, "ambiguous": Sure.AMBIGUOUS}


class Sources:
    """The leaves of one plan. `places` grows by the tables of queries sent to other databases."""

    def __init__(self, leaves: Sequence[Leaf], carried: Carried) -> None:
        self._leaves = {leaf.first_id: leaf for leaf in leaves}
        self._carried = carried
        self.places: dict[Place, None] = {}
        self.spots: list[SqlBlindSpot] = []

    def relation(self, node: Node) -> Relation:
        """Return the columns of a leaf, each its own source."""
        output = node.trees("output")
        if not output:
            return Relation([])
        carried = self._carried(output[0].id)
        if carried is not None:
            return _named(output, carried)
        leaf = self._leaves.get(output[0].id)
        if leaf is None:
            return _named(output, {})
        if leaf.database is not None:
            return self._queried(output, leaf.query, leaf.database)
        tables = [(place.dataset.namespace, place.dataset.name) for place in leaf.places]
        return Relation(
            [
                Column(
                    attribute.id,
                    attribute.name,
                    {(table, attribute.name, Kind.IDENTITY, False): Sure.EXACT for table in tables},
                )
                for attribute in output
            ]
        )

    def _queried(self, output: Sequence[Node], query: str, database: JdbcName) -> Relation:
        """Return the columns of a query sent to another database, as its text makes them."""
        dialect = _DIALECTS.get(database.scheme, database.scheme)
        found = parse_sql_lineage(query, dialect=dialect if dialect in _SPOKEN else None)
        self.spots += found.blind_spots
        for table in found.inputs:
            self.places[Place(database.table(table), None, "jdbc")] = None
        columns: dict[str, Deps] = {}
        for edge in found.column_edges:
            columns.setdefault(edge.target.column.casefold(), {}).update(_deps(edge, database))
        rows = joined(_deps(edge, database) for edge in found.dataset_edges)
        return Relation(
            [
                Column(
                    attribute.id, attribute.name, columns.get(attribute.name.casefold(), NOTHING)
                )
                for attribute in output
            ],
            rows,
        )


def _named(output: Sequence[Node], deps: Mapping[str, Deps]) -> Relation:
    return Relation(
        [Column(each.id, each.name, deps.get(each.name, NOTHING)) for each in output],
        deps.get(ROWS, NOTHING),
    )


def _deps(edge: ColumnEdge, database: JdbcName) -> Deps:
    dataset = database.table(edge.source.table)
    key = ((dataset.namespace, dataset.name), edge.source.column, Kind[edge.subtype], edge.masking)
    return {key: _SURENESS[edge.resolution]}
