"""The column lineage of a Spark action, computed from its plan and from what its leaves read."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.capture.frame_origins import ROWS
from downriver.capture.spark.actions import DatasetLocation
from downriver.capture.spark.plan.expressions import render_expression
from downriver.capture.spark.plan.operators import PlanWalker
from downriver.capture.spark.plan.relations import PlanColumn, PlanRelation, joined
from downriver.capture.spark.plan.tree import parse_tree
from downriver.capture.sql import parse_sql_lineage
from downriver.columns.dependencies import NOTHING, Certainty, DependencyKind, Deps
from downriver.model.ids import DatasetId

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from downriver.capture.frame_origins import Origins
    from downriver.capture.spark.actions import PlanLeaf, SparkAction
    from downriver.capture.spark.io.paths import JdbcName
    from downriver.capture.spark.plan.tree import PlanNode
    from downriver.capture.sql.result import ColumnEdge, SqlBlindSpot

    Carried = Callable[[int], Origins | None]

_DIALECTS = {"mssql": "tsql", "mariadb": "mysql"}
_SPOKEN = frozenset({"postgres", "mysql", "tsql", "oracle", "redshift", "snowflake", "sqlite"})
_SURENESS = {
    "exact": Certainty.EXACT,
    "inferred": Certainty.INFERRED,
    "ambiguous": Certainty.AMBIGUOUS,
}


def column_key(column: int) -> str:
    """Return what a column goes by among origins where names may repeat."""
    return f"#{column}"


class LeafRelations:
    """The leaves of one plan. `places` grows by the tables of queries sent to other databases."""

    def __init__(self, leaves: Sequence[PlanLeaf], carried: Carried) -> None:
        # A checkpoint goes by the ids of what it was made from, and a union may hold both.
        self._leaves = {(leaf.first_id, leaf.rdd is not None): leaf for leaf in leaves}
        self._carried = carried
        self._rdds = [leaf for leaf in leaves if leaf.rdd is not None]
        self.places: dict[DatasetLocation, None] = {}
        self.spots: list[SqlBlindSpot] = []
        self.opaque: dict[str, None] = {}
        self.schemas: dict[DatasetId, list[PlanNode]] = {}

    def relation(self, node: PlanNode) -> PlanRelation:
        """Return the columns of a leaf, each its own source."""
        # A table of Hive has its columns in two fields.
        output = node.trees("output") or [*node.trees("dataCols"), *node.trees("partitionCols")]
        if not output:
            return PlanRelation([])
        leaf = self._leaves.get((output[0].id, node.kind == "LogicalRDD"))
        if leaf is None or leaf.rdd is not None:
            return self._without_plan(output, leaf)
        if leaf.database is not None:
            return self._queried(output, leaf.query, leaf.database)
        return self._read(output, leaf.places)

    def _read(self, output: Sequence[PlanNode], places: Sequence[DatasetLocation]) -> PlanRelation:
        """Return the columns of a dataset, each its own source."""
        stored = {each.id: each for each in output if not _is_about_the_file(each)}
        if len(places) == 1:
            self.schemas[places[0].dataset] = list(stored.values())
        tables = [(place.dataset.namespace, place.dataset.name) for place in places]
        return PlanRelation(
            [
                PlanColumn(
                    each.id,
                    each.name,
                    {
                        (table, each.name, DependencyKind.IDENTITY, False): Certainty.EXACT
                        for table in tables
                    }
                    if each.id in stored
                    else NOTHING,
                )
                for each in output
            ]
        )

    def _without_plan(self, output: Sequence[PlanNode], leaf: PlanLeaf | None) -> PlanRelation:
        """Return rows whose making is not in the plan, but may be known."""
        carried = self._carried(output[0].id)
        if carried is not None:
            return _named(output, [attribute.id for attribute in output], carried)
        return _named(output, [], {}) if leaf is None else self._through_rdd(output, leaf)

    def _through_rdd(self, output: Sequence[PlanNode], leaf: PlanLeaf) -> PlanRelation:
        """Return rows that were no plan for a while: any column may come from any that was read."""
        for other in self._rdds:  # another use of the same rows, under other ids
            known = self._carried(other.first_id) if other.rdd == leaf.rdd else None
            if known is not None:
                return _named(output, other.columns, known)
        used: Deps = {
            (
                (place.dataset.namespace, place.dataset.name),
                field,
                DependencyKind.TRANSFORMATION,
                False,
            ): (Certainty.EXACT)
            for place, fields in leaf.scanned.items()
            for field in fields or ("*",)
        }
        if used:
            self.opaque["an RDD"] = None
        return PlanRelation([PlanColumn(each.id, each.name, used) for each in output])

    def _queried(self, output: Sequence[PlanNode], query: str, database: JdbcName) -> PlanRelation:
        """Return the columns of a query sent to another database, as its text makes them."""
        dialect = _DIALECTS.get(database.scheme, database.scheme)
        found = parse_sql_lineage(query, dialect=dialect if dialect in _SPOKEN else None)
        self.spots += found.blind_spots
        for table in found.inputs:
            self.places[DatasetLocation(database.table(table), None, "jdbc")] = None
        columns: dict[str, Deps] = {}
        for edge in found.column_edges:
            columns.setdefault(edge.target.column.casefold(), {}).update(_deps(edge, database))
        rows = joined(_deps(edge, database) for edge in found.dataset_edges)
        return PlanRelation(
            [
                PlanColumn(
                    attribute.id, attribute.name, columns.get(attribute.name.casefold(), NOTHING)
                )
                for attribute in output
            ],
            rows,
        )


def _named(output: Sequence[PlanNode], ids: Sequence[int], deps: Origins) -> PlanRelation:
    """Return columns of known origins: under their own names, or the ids that they had."""
    columns = []
    for at, each in enumerate(output):
        known = deps.get(column_key(ids[at])) if at < len(ids) else None
        columns.append(PlanColumn(each.id, each.name, known or deps.get(each.name, NOTHING)))
    return PlanRelation(columns, deps.get(ROWS, NOTHING))


def _is_about_the_file(attribute: PlanNode) -> bool:
    """Tell whether a column is not in the data: Spark adds names, sizes and times of files."""
    match attribute.fields.get("dataType"):
        case {"fields": [{"name": "file_path"}, *_]}:
            return attribute.name.endswith("_metadata")
    return False


def _deps(edge: ColumnEdge, database: JdbcName) -> Deps:
    dataset = database.table(edge.source.table)
    key = (
        (dataset.namespace, dataset.name),
        edge.source.column,
        DependencyKind[edge.subtype],
        edge.masking,
    )
    return {key: _SURENESS[edge.resolution]}


# What differs between two runs of the same code.
_OF_ONE_RUN = re.compile(
    r'"id":\d+,"jvmId":"[^"]*"|"(?:createTime|dataframeId|seed|resultId)":-?\d+'
)


class PlanOutputColumn(msgspec.Struct):
    """A column of what was written or returned: its name, its origins, and how it was made."""

    name: str
    deps: Deps
    expression: str = ""


class PlanBlindSpot(msgspec.Struct, frozen=True):
    """Something in a plan that could not be seen through."""

    kind: str
    message: str


class PlanLineage(msgspec.Struct):
    """What an action read, and how what came out depends on it."""

    inputs: list[DatasetLocation]
    columns: list[PlanOutputColumn] = []
    rows: Deps = {}
    spots: list[PlanBlindSpot] = []
    plan_hash: str = ""
    schemas: dict[DatasetId, list[tuple[str, Any]]] = {}  # of inputs: names and Spark's types

    def tables(self) -> set[tuple[str, ...]]:
        """Return every table that anything in it depends on."""
        parts = [self.rows, *(column.deps for column in self.columns)]
        return {key[0] for deps in parts for key in deps}


def read_lineage(harvest: SparkAction, carried: Carried) -> PlanLineage:
    """Return the lineage of an action; where its plan is too large, only what it reads."""
    inputs = {place: None for leaf in harvest.leaves for place in leaf.places}
    spots = [
        PlanBlindSpot("unknown_source", f"reads from {leaf.unknown}, which Downriver does not know")
        for leaf in harvest.leaves
        if leaf.unknown
    ]
    if harvest.too_large:
        spots.append(
            PlanBlindSpot("large_plan", f"the plan is too large to read: {harvest.too_large}")
        )
    if not harvest.plan:
        return PlanLineage(list(inputs), spots=spots)
    sources = LeafRelations(harvest.leaves, carried)
    flow = PlanWalker(sources.relation, harvest.asides)
    relation = flow.relation(parse_tree(msgspec.json.decode(harvest.plan)))
    spots += [PlanBlindSpot(spot.kind, spot.message) for spot in sources.spots]
    spots += [
        PlanBlindSpot("opaque_function", f"{name} is code: what comes out may use all that goes in")
        for name in (*sources.opaque, *flow.opaque)
    ]
    return PlanLineage(
        inputs=list({**inputs, **sources.places}),
        columns=_columns(relation, harvest),
        rows=relation.rows,
        spots=spots,
        schemas={
            dataset: [(each.name, each.fields.get("dataType")) for each in columns]
            for dataset, columns in sources.schemas.items()
        },
        plan_hash=hashlib.sha256(_OF_ONE_RUN.sub("", harvest.plan).encode()).hexdigest(),
    )


def read_relation(harvest: SparkAction, carried: Carried) -> PlanRelation:
    """Return what comes out of an action's plan; nothing where the plan is too large."""
    if not harvest.plan:
        return PlanRelation([])
    flow = PlanWalker(LeafRelations(harvest.leaves, carried).relation, harvest.asides)
    return flow.relation(parse_tree(msgspec.json.decode(harvest.plan)))


def _columns(relation: PlanRelation, harvest: SparkAction) -> list[PlanOutputColumn]:
    names = harvest.sink.columns if harvest.sink is not None else None
    if names is None or len(names) != len(relation.columns):
        names = [column.name for column in relation.columns]
    return [
        PlanOutputColumn(
            name,
            column.deps,
            "" if column.made_by is None else render_expression(column.made_by),
        )
        for name, column in zip(names, relation.columns, strict=True)
    ]
