"""The column lineage of a Spark action, computed from its plan and the datasets of its leaves."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.capture.frame_origins import ROWS
from downriver.capture.spark.actions import DatasetLocation
from downriver.capture.spark.plan.known_origins import NOTHING_KNOWN
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
from downriver.openlineage.facets.custom import BlindSpotEntry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.capture.frame_origins import Origins
    from downriver.capture.spark.actions import PlanLeaf, SparkAction
    from downriver.capture.spark.io.paths import JdbcName
    from downriver.capture.spark.plan.known_origins import KnownOrigins
    from downriver.capture.spark.plan.tree import PlanNode
    from downriver.capture.sql.result import ColumnEdge, SqlBlindSpot

_DIALECTS = {"mssql": "tsql", "mariadb": "mysql"}
_SUPPORTED_DIALECTS = frozenset(
    {"postgres", "mysql", "tsql", "oracle", "redshift", "snowflake", "sqlite"}
)
_CERTAINTY = {
    "exact": Certainty.EXACT,
    "inferred": Certainty.INFERRED,
    "ambiguous": Certainty.AMBIGUOUS,
}


_RDDS = frozenset({"ExternalRDD", "LogicalRDD"})
_MOST_NAMED = 5
_FILE_METADATA = "_metadata"  # Spark's column for the path, size and time of a row's file


def column_key(column: int) -> str:
    """Return the key of a column among origins whose names may repeat."""
    return f"#{column}"


class LeafRelations:
    """The relations of a plan's leaves. `locations` collects tables read by queries over JDBC."""

    def __init__(self, leaves: Sequence[PlanLeaf], known: KnownOrigins) -> None:
        # A checkpoint keeps the ids of its plan, and a union may contain both.
        self._leaves = {(leaf.first_id, leaf.rdd is not None): leaf for leaf in leaves}
        self._known = known
        self._rdds = [leaf for leaf in leaves if leaf.rdd is not None]
        self.locations: dict[DatasetLocation, None] = {}
        self.spots: list[SqlBlindSpot] = []
        self.opaque: dict[str, None] = {}
        self.unknown: dict[str, None] = {}
        self.schemas: dict[DatasetId, list[PlanNode]] = {}
        self.has_foreign_rows = False  # rows that the driver read from an unknown place

    def relation(self, node: PlanNode) -> Relation:
        """Return the columns of a leaf; each is its own source."""
        # A Hive table has its columns in two fields.
        output = node.trees("output") or [*node.trees("dataCols"), *node.trees("partitionCols")]
        if (objects := node.tree("outputObjAttr")) is not None:
            output = [objects]
        if not output:
            return Relation([])
        leaf = self._leaves.get((output[0].id, node.kind in _RDDS))
        if leaf is None or leaf.rdd is not None:
            return self._without_plan(output, leaf)
        if leaf.database is not None:
            return self._queried(output, leaf.query, leaf.database)
        return self._read(output, leaf.locations)

    def _read(self, output: Sequence[PlanNode], locations: Sequence[DatasetLocation]) -> Relation:
        """Return the columns of a dataset; each is its own source."""
        if len(locations) == 1:
            stored = [each for each in output if not _is_file_metadata(each)]
            self.schemas[locations[0].dataset] = stored
        tables = [(location.dataset.namespace, location.dataset.name) for location in locations]
        return Relation(
            [
                Column(
                    each.name,
                    merge_all(source(table, _stored_name(each)) for table in tables),
                    number=each.id,
                )
                for each in output
            ]
        )

    def file_name(self, node: PlanNode) -> Deps:
        """Return the names of a leaf's files, as a column of its dataset."""
        output = node.trees("output")
        leaf = self._leaves.get((output[0].id, False)) if output else None
        places = () if leaf is None else leaf.locations
        tables = [(place.dataset.namespace, place.dataset.name) for place in places]
        named = merge_all(source(table, _FILE_METADATA) for table in tables)
        return direct(named, DependencyKind.TRANSFORMATION)

    def _without_plan(self, output: Sequence[PlanNode], leaf: PlanLeaf | None) -> Relation:
        """Return rows without a plan. Their origins may be known from the driver."""
        origins = self._known.rows(output[0].id)
        is_rdd = leaf is not None and not self._known.is_written(output[0].id)
        if is_rdd if origins is None else not origins:
            self.has_foreign_rows = True
        if origins is not None:
            return _make_relation(output, [attribute.id for attribute in output], origins)
        return _make_relation(output, [], {}) if leaf is None else self._through_rdd(output, leaf)

    def _through_rdd(self, output: Sequence[PlanNode], leaf: PlanLeaf) -> Relation:
        """Return rows of an RDD: any column may use any column that was read before it."""
        for other in self._rdds:  # the same RDD, under other column ids
            origins = self._known.rows(other.first_id) if other.rdd == leaf.rdd else None
            if origins is not None:
                return _make_relation(output, other.columns, origins)
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
        lineage = parse_sql_lineage(
            query, dialect=dialect if dialect in _SUPPORTED_DIALECTS else None
        )
        self.spots += lineage.blind_spots
        for table in lineage.inputs:
            spelled = _as_written(table, query)
            self.locations[DatasetLocation(database.table(spelled), None, "jdbc")] = None
        columns: dict[str, Deps] = {}
        for edge in lineage.column_edges:
            deps = _deps(edge, database, query)
            columns.setdefault(edge.target.column.casefold(), {}).update(deps)
        rows = merge_all(_deps(edge, database, query) for edge in lineage.dataset_edges)
        return Relation(
            [
                Column(each.name, columns.get(each.name.casefold(), NOTHING), number=each.id)
                for each in output
            ],
            rows,
        )


def _make_relation(output: Sequence[PlanNode], ids: Sequence[int], deps: Origins) -> Relation:
    """Return columns with known origins, found by column id or else by name."""
    columns = []
    for at, each in enumerate(output):
        known = deps.get(column_key(ids[at])) if at < len(ids) else None
        origins = known or deps.get(each.name, NOTHING)
        columns.append(Column(each.name, origins, number=each.id))
    return Relation(columns, deps.get(ROWS, NOTHING))


def _stored_name(attribute: PlanNode) -> str:
    return _FILE_METADATA if _is_file_metadata(attribute) else attribute.name


def _is_file_metadata(attribute: PlanNode) -> bool:
    """Return whether a column is Spark's file metadata (path, size, time), not data."""
    match attribute.fields.get("dataType"):
        case {"fields": [{"name": "file_path"}, *_]}:
            return attribute.name.endswith(_FILE_METADATA)
    return False


def _as_written(name: str, query: str) -> str:
    """Return a name in the letter case of the query, if the table is read by its name."""
    parts = []
    for part in name.split("."):
        match = re.search(rf"(?<!\w){re.escape(part)}(?!\w)", query, re.IGNORECASE)
        parts.append(match[0] if match else part)
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


class PlanLineage(msgspec.Struct):
    """The inputs of an action, and how its output depends on them."""

    inputs: list[DatasetLocation]
    columns: list[PlanOutputColumn] = []
    rows: Deps = {}
    spots: list[BlindSpotEntry] = []
    plan_hash: str = ""
    schemas: dict[DatasetId, list[tuple[str, Any]]] = {}  # of inputs: column names and Spark types
    is_written: bool = False  # every value is a constant in the code of the job

    def tables(self) -> set[tuple[str, ...]]:
        """Return every table that a column or the rows depend on."""
        parts = [self.rows, *(column.deps for column in self.columns)]
        return {key[0] for deps in parts for key in deps}


def read_lineage(action: SparkAction, known: KnownOrigins = NOTHING_KNOWN) -> PlanLineage:
    """Return the lineage of an action; of a plan that is too large, only its inputs."""
    inputs = {location: None for leaf in action.leaves for location in leaf.locations}
    spots = [
        _unknown_source(leaf.unknown) for leaf in action.leaves if leaf.unknown and leaf.rdd is None
    ]
    if action.unknown_write:
        spots.append(
            BlindSpotEntry(
                "unknown_write",
                f"{action.unknown_write} may write data, but its output is unknown: "
                "register the output by hand",
            )
        )
    if action.without_columns:
        spots.append(
            BlindSpotEntry(
                "unknown_columns", "rows are copied without a plan, so no columns are known"
            )
        )
    if action.too_large:
        spots.append(
            BlindSpotEntry(
                "large_plan", f"the plan is too large for column lineage: {action.too_large}"
            )
        )
    if action.unread:
        spots.append(BlindSpotEntry("unread_plan", action.unread))
    if not action.plan:
        return PlanLineage(list(inputs), spots=spots)
    sources = LeafRelations(action.leaves, known)
    walker = PlanWalker(sources, action.details, action.tables, known)
    relation = walker.relation(parse_tree(msgspec.json.decode(action.plan)))
    for namespace, name in walker.views:
        view = DatasetLocation(DatasetId(namespace, name), None, "view", "spark_catalog")
        sources.locations[view] = None
    spots += [
        BlindSpotEntry(
            "unknown_operator",
            f"the operator {kind} of the plan is unknown: "
            "each output column may use every input column",
        )
        for kind in walker.unknown
    ]
    spots += [BlindSpotEntry(spot.kind, spot.message) for spot in sources.spots]
    if walker.collected:
        spots.append(_collected_values(walker.collected))
    spots += map(_unknown_source, sources.unknown)
    spots += [
        BlindSpotEntry(
            "opaque_function", f"{name} is user code: each output column may use every input column"
        )
        for name in (*sources.opaque, *walker.opaque)
    ]
    columns = _columns(relation, action)
    read = inputs or sources.locations or relation.rows or any(each.deps for each in columns)
    return PlanLineage(
        inputs=list({**inputs, **sources.locations}),
        columns=columns,
        rows=relation.rows,
        spots=spots,
        schemas={
            dataset: [(each.name, each.fields.get("dataType")) for each in columns]
            for dataset, columns in sources.schemas.items()
        },
        is_written=not (read or spots or sources.has_foreign_rows),
        plan_hash=hashlib.sha256(_RUN_VALUES.sub("", action.plan).encode()).hexdigest(),
    )


def _collected_values(origins: Deps) -> BlindSpotEntry:
    columns = sorted({f"{table[1]}.{column}" for table, column, *_ in origins})
    listed = ", ".join(columns[:_MOST_NAMED]) + (", …" if len(columns) > _MOST_NAMED else "")
    return BlindSpotEntry(
        "driver_values",
        f"values in this query were probably collected from {listed}: no plan shows what the "
        "driver did with them",
    )


def _unknown_source(name: str) -> BlindSpotEntry:
    return BlindSpotEntry("unknown_source", f"reads from {name}, which is not a supported source")


def read_relation(action: SparkAction, known: KnownOrigins = NOTHING_KNOWN) -> Relation:
    """Return the output of an action's plan; empty when the plan is too large."""
    if not action.plan:
        return Relation([])
    leaves = LeafRelations(action.leaves, known)
    walker = PlanWalker(leaves, action.details, action.tables, known)
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
