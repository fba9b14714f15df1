"""The column lineage of a Spark action, computed from its plan and from what its leaves read."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.capture.frame_origins import ROWS
from downriver.capture.spark.actions import DatasetLocation
from downriver.capture.spark.plan.operators import PlanWalker
from downriver.capture.spark.plan.tree import parse_tree
from downriver.capture.sql import parse_sql_lineage
from downriver.columns import (
    NOTHING,
    Certainty,
    Column,
    DependencyKind,
    Deps,
    Relation,
    direct,
    merge_all,
    source,
)
from downriver.model.ids import DatasetId

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from downriver.capture.frame_origins import Origins
    from downriver.capture.spark.actions import PlanLeaf, SparkAction
    from downriver.capture.spark.io.paths import JdbcName
    from downriver.capture.spark.plan.tree import PlanNode
    from downriver.capture.sql.result import ColumnEdge, SqlBlindSpot

    # Returns the origins of rows without a plan, by the id of their first column.
    FindOrigins = Callable[[int], Origins | None]

_DIALECTS = {"mssql": "tsql", "mariadb": "mysql"}
_SUPPORTED_DIALECTS = frozenset(
    {"postgres", "mysql", "tsql", "oracle", "redshift", "snowflake", "sqlite"}
)
_CERTAINTY = {
    "exact": Certainty.EXACT,
    "inferred": Certainty.INFERRED,
    "ambiguous": Certainty.AMBIGUOUS,
}


def column_key(column: int) -> str:
    """Return the key of a column among origins whose names may repeat."""
    return f"#{column}"


class LeafRelations:
    """The relations of a plan's leaves. `locations` collects tables read by queries over JDBC."""

    def __init__(self, leaves: Sequence[PlanLeaf], find_origins: FindOrigins) -> None:
        # A checkpoint keeps the ids of its plan, and a union may contain both.
        self._leaves = {(leaf.first_id, leaf.rdd is not None): leaf for leaf in leaves}
        self._find_origins = find_origins
        self._rdds = [leaf for leaf in leaves if leaf.rdd is not None]
        self.locations: dict[DatasetLocation, None] = {}
        self.spots: list[SqlBlindSpot] = []
        self.opaque: dict[str, None] = {}
        self.unknown: dict[str, None] = {}
        self.schemas: dict[DatasetId, list[PlanNode]] = {}

    def relation(self, node: PlanNode) -> Relation:
        """Return the columns of a leaf; each is its own source."""
        # A Hive table has its columns in two fields.
        output = node.trees("output") or [*node.trees("dataCols"), *node.trees("partitionCols")]
        if not output:
            return Relation([])
        leaf = self._leaves.get((output[0].id, node.kind == "LogicalRDD"))
        if leaf is None or leaf.rdd is not None:
            return self._without_plan(output, leaf)
        if leaf.database is not None:
            return self._queried(output, leaf.query, leaf.database)
        return self._read(output, leaf.locations)

    def _read(self, output: Sequence[PlanNode], locations: Sequence[DatasetLocation]) -> Relation:
        """Return the columns of a dataset; each is its own source."""
        stored = {each.id: each for each in output if not _is_file_metadata(each)}
        if len(locations) == 1:
            self.schemas[locations[0].dataset] = list(stored.values())
        tables = [(location.dataset.namespace, location.dataset.name) for location in locations]
        return Relation(
            [
                Column(
                    each.name,
                    merge_all(source(table, each.name) for table in tables)
                    if each.id in stored
                    else NOTHING,
                    number=each.id,
                )
                for each in output
            ]
        )

    def _without_plan(self, output: Sequence[PlanNode], leaf: PlanLeaf | None) -> Relation:
        """Return rows whose origins are not in the plan, but may be known from elsewhere."""
        origins = self._find_origins(output[0].id)
        if origins is not None:
            return _named(output, [attribute.id for attribute in output], origins)
        return _named(output, [], {}) if leaf is None else self._through_rdd(output, leaf)

    def _through_rdd(self, output: Sequence[PlanNode], leaf: PlanLeaf) -> Relation:
        """Return rows of an RDD: any column may use any column that was read before it."""
        for other in self._rdds:  # the same RDD, under other column ids
            known = self._find_origins(other.first_id) if other.rdd == leaf.rdd else None
            if known is not None:
                return _named(output, other.columns, known)
        scanned = merge_all(
            source((location.dataset.namespace, location.dataset.name), field)
            for location, fields in leaf.scanned.items()
            for field in fields or ("*",)
        )
        used = direct(scanned, DependencyKind.TRANSFORMATION)
        if used:
            self.opaque["an RDD"] = None
        if leaf.unknown:
            self.unknown[leaf.unknown] = None
        return Relation([Column(each.name, used, number=each.id) for each in output])

    def _queried(self, output: Sequence[PlanNode], query: str, database: JdbcName) -> Relation:
        """Return the columns of a query over JDBC, from the lineage of its SQL."""
        dialect = _DIALECTS.get(database.scheme, database.scheme)
        found = parse_sql_lineage(
            query, dialect=dialect if dialect in _SUPPORTED_DIALECTS else None
        )
        self.spots += found.blind_spots
        for table in found.inputs:
            spelled = _as_written(table, query)
            self.locations[DatasetLocation(database.table(spelled), None, "jdbc")] = None
        columns: dict[str, Deps] = {}
        for edge in found.column_edges:
            deps = _deps(edge, database, query)
            columns.setdefault(edge.target.column.casefold(), {}).update(deps)
        rows = merge_all(_deps(edge, database, query) for edge in found.dataset_edges)
        return Relation(
            [
                Column(each.name, columns.get(each.name.casefold(), NOTHING), number=each.id)
                for each in output
            ],
            rows,
        )


def _named(output: Sequence[PlanNode], ids: Sequence[int], deps: Origins) -> Relation:
    """Return columns with known origins, found by column id or else by name."""
    columns = []
    for at, each in enumerate(output):
        known = deps.get(column_key(ids[at])) if at < len(ids) else None
        origins = known or deps.get(each.name, NOTHING)
        columns.append(Column(each.name, origins, number=each.id))
    return Relation(columns, deps.get(ROWS, NOTHING))


def _is_file_metadata(attribute: PlanNode) -> bool:
    """Return whether a column is Spark's file metadata (path, size, time), not data."""
    match attribute.fields.get("dataType"):
        case {"fields": [{"name": "file_path"}, *_]}:
            return attribute.name.endswith("_metadata")
    return False


def _as_written(name: str, query: str) -> str:
    """Return a name in the letter case of the query: a table read by its name keeps its case."""
    parts = []
    for part in name.split("."):
        found = re.search(rf"(?<!\w){re.escape(part)}(?!\w)", query, re.IGNORECASE)
        parts.append(found[0] if found else part)
    return ".".join(parts)


def _deps(edge: ColumnEdge, database: JdbcName, query: str) -> Deps:
    dataset = database.table(_as_written(edge.source.table, query))
    key = (
        (dataset.namespace, dataset.name),
        _as_written(edge.source.column, query),
        DependencyKind[edge.subtype],
        edge.masking,
    )
    return {key: _CERTAINTY[edge.resolution]}


# Values that differ between two runs of the same code.
_RUN_VALUES = re.compile(
    r'"id":\d+,"jvmId":"[^"]*"|"(?:createTime|dataframeId|seed|resultId)":-?\d+'
)


class PlanOutputColumn(msgspec.Struct):
    """An output column of an action: its name, dependencies, and expression as text."""

    name: str
    deps: Deps
    expression: str = ""


class PlanBlindSpot(msgspec.Struct, frozen=True):
    """A part of a plan whose lineage is unknown."""

    kind: str
    message: str


class PlanLineage(msgspec.Struct):
    """The inputs of an action, and how its output depends on them."""

    inputs: list[DatasetLocation]
    columns: list[PlanOutputColumn] = []
    rows: Deps = {}
    spots: list[PlanBlindSpot] = []
    plan_hash: str = ""
    schemas: dict[DatasetId, list[tuple[str, Any]]] = {}  # of inputs: column names and Spark types

    def tables(self) -> set[tuple[str, ...]]:
        """Return every table that a column or the rows depend on."""
        parts = [self.rows, *(column.deps for column in self.columns)]
        return {key[0] for deps in parts for key in deps}


def read_lineage(action: SparkAction, find_origins: FindOrigins) -> PlanLineage:
    """Return the lineage of an action; of a plan that is too large, only its inputs."""
    inputs = {location: None for leaf in action.leaves for location in leaf.locations}
    spots = [
        _unknown_source(leaf.unknown) for leaf in action.leaves if leaf.unknown and leaf.rdd is None
    ]
    if action.unknown_write:
        spots.append(
            PlanBlindSpot(
                "unknown_write",
                f"{action.unknown_write} may write data, but its output is unknown: "
                "register the output by hand",
            )
        )
    if action.without_columns:
        spots.append(
            PlanBlindSpot(
                "unknown_columns", "rows are copied without a plan, so no columns are known"
            )
        )
    if action.too_large:
        spots.append(
            PlanBlindSpot(
                "large_plan", f"the plan is too large for column lineage: {action.too_large}"
            )
        )
    if not action.plan:
        return PlanLineage(list(inputs), spots=spots)
    sources = LeafRelations(action.leaves, find_origins)
    walker = PlanWalker(sources.relation, action.details, action.tables)
    relation = walker.relation(parse_tree(msgspec.json.decode(action.plan)))
    for namespace, name in walker.views:
        view = DatasetLocation(DatasetId(namespace, name), None, "view", "spark_catalog")
        sources.locations[view] = None
    spots += [
        PlanBlindSpot(
            "unknown_operator",
            f"the operator {kind} of the plan is unknown: "
            "each output column may use every input column",
        )
        for kind in walker.unknown
    ]
    spots += [PlanBlindSpot(spot.kind, spot.message) for spot in sources.spots]
    spots += map(_unknown_source, sources.unknown)
    spots += [
        PlanBlindSpot(
            "opaque_function", f"{name} is user code: each output column may use every input column"
        )
        for name in (*sources.opaque, *walker.opaque)
    ]
    return PlanLineage(
        inputs=list({**inputs, **sources.locations}),
        columns=_columns(relation, action),
        rows=relation.rows,
        spots=spots,
        schemas={
            dataset: [(each.name, each.fields.get("dataType")) for each in columns]
            for dataset, columns in sources.schemas.items()
        },
        plan_hash=hashlib.sha256(_RUN_VALUES.sub("", action.plan).encode()).hexdigest(),
    )


def _unknown_source(name: str) -> PlanBlindSpot:
    return PlanBlindSpot("unknown_source", f"reads from {name}, which is not a supported source")


def read_relation(action: SparkAction, find_origins: FindOrigins) -> Relation:
    """Return the output of an action's plan; empty when the plan is too large."""
    if not action.plan:
        return Relation([])
    leaves = LeafRelations(action.leaves, find_origins)
    walker = PlanWalker(leaves.relation, action.details, action.tables)
    return walker.relation(parse_tree(msgspec.json.decode(action.plan)))


def _columns(relation: Relation, action: SparkAction) -> list[PlanOutputColumn]:
    names = action.sink.columns if action.sink is not None else None
    if names is None or len(names) != len(relation.columns):
        names = [column.name for column in relation.columns]
    return [
        PlanOutputColumn(
            name,
            column.deps,
            "" if column.definition is None else column.definition.text(),
        )
        for name, column in zip(names, relation.columns, strict=True)
    ]
