"""What comes out of the leaves of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.capture.frames import ROWS
from downriver.capture.spark.harvest import Place
from downriver.capture.spark.relations import Column, Relation, joined
from downriver.capture.sql import parse_sql_lineage
from downriver.capture.sql.deps import NOTHING, Deps, Kind, Sure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from downriver.capture.frames import Origins
    from downriver.capture.spark.harvest import Leaf
    from downriver.capture.spark.naming import JdbcName
    from downriver.capture.spark.plan import Node
    from downriver.capture.sql.result import ColumnEdge, SqlBlindSpot
    from downriver.model.ids import DatasetId

    # Where rows without a plan are known to come from, by the id of their first column.
    Carried = Callable[[int], Origins | None]

_DIALECTS = {"mssql": "tsql", "mariadb": "mysql"}
_SPOKEN = frozenset({"postgres", "mysql", "tsql", "oracle", "redshift", "snowflake", "sqlite"})
_SURENESS = {"exact": Sure.EXACT, "inferred": Sure.INFERRED, "ambiguous": Sure.AMBIGUOUS}


def by_id(column: int) -> str:
    """Return what a column goes by among origins where names may repeat."""
    return f"#{column}"


class Sources:
    """The leaves of one plan. `places` grows by the tables of queries sent to other databases."""

    def __init__(self, leaves: Sequence[Leaf], carried: Carried) -> None:
        # A checkpoint goes by the ids of what it was made from, and a union may hold both.
        self._leaves = {(leaf.first_id, leaf.rdd is not None): leaf for leaf in leaves}
        self._carried = carried
        self._rdds = [leaf for leaf in leaves if leaf.rdd is not None]
        self.places: dict[Place, None] = {}
        self.spots: list[SqlBlindSpot] = []
        self.opaque: dict[str, None] = {}
        self.schemas: dict[DatasetId, list[Node]] = {}

    def relation(self, node: Node) -> Relation:
        """Return the columns of a leaf, each its own source."""
        # A table of Hive has its columns in two fields.
        output = node.trees("output") or [*node.trees("dataCols"), *node.trees("partitionCols")]
        if not output:
            return Relation([])
        leaf = self._leaves.get((output[0].id, node.kind == "LogicalRDD"))
        if leaf is None or leaf.rdd is not None:
            return self._without_plan(output, leaf)
        if leaf.database is not None:
            return self._queried(output, leaf.query, leaf.database)
        return self._read(output, leaf.places)

    def _read(self, output: Sequence[Node], places: Sequence[Place]) -> Relation:
        """Return the columns of a dataset, each its own source."""
        stored = {each.id: each for each in output if not _is_about_the_file(each)}
        if len(places) == 1:
            self.schemas[places[0].dataset] = list(stored.values())
        tables = [(place.dataset.namespace, place.dataset.name) for place in places]
        return Relation(
            [
                Column(
                    each.id,
                    each.name,
                    {(table, each.name, Kind.IDENTITY, False): Sure.EXACT for table in tables}
                    if each.id in stored
                    else NOTHING,
                )
                for each in output
            ]
        )

    def _without_plan(self, output: Sequence[Node], leaf: Leaf | None) -> Relation:
        """Return rows whose making is not in the plan, but may be known."""
        carried = self._carried(output[0].id)
        if carried is not None:
            return _named(output, [attribute.id for attribute in output], carried)
        return _named(output, [], {}) if leaf is None else self._through_rdd(output, leaf)

    def _through_rdd(self, output: Sequence[Node], leaf: Leaf) -> Relation:
        """Return rows that were no plan for a while: any column may come from any that was read."""
        for other in self._rdds:  # another use of the same rows, under other ids
            known = self._carried(other.first_id) if other.rdd == leaf.rdd else None
            if known is not None:
                return _named(output, other.columns, known)
        used: Deps = {
            ((place.dataset.namespace, place.dataset.name), field, Kind.TRANSFORMATION, False): (
                Sure.EXACT
            )
            for place, fields in leaf.scanned.items()
            for field in fields or ("*",)
        }
        if used:
            self.opaque["an RDD"] = None
        return Relation([Column(each.id, each.name, used) for each in output])

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


def _named(output: Sequence[Node], ids: Sequence[int], deps: Origins) -> Relation:
    """Return columns of known origins: under their own names, or the ids that they had."""
    columns = []
    for at, each in enumerate(output):
        known = deps.get(by_id(ids[at])) if at < len(ids) else None
        columns.append(Column(each.id, each.name, known or deps.get(each.name, NOTHING)))
    return Relation(columns, deps.get(ROWS, NOTHING))


def _is_about_the_file(attribute: Node) -> bool:
    """Tell whether a column is not in the data: Spark adds names, sizes and times of files."""
    match attribute.fields.get("dataType"):
        case {"fields": [{"name": "file_path"}, *_]}:
            return attribute.name.endswith("_metadata")
    return False


def _deps(edge: ColumnEdge, database: JdbcName) -> Deps:
    dataset = database.table(edge.source.table)
    key = ((dataset.namespace, dataset.name), edge.source.column, Kind[edge.subtype], edge.masking)
    return {key: _SURENESS[edge.resolution]}
