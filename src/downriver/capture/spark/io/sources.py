"""The datasets that a plan's leaves read. They come from the JVM, not from the JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.capture.spark.actions import DatasetLocation, PlanLeaf
from downriver.capture.spark.io.kafka_topics import batch_options, read_topics
from downriver.capture.spark.io.paths import is_glob, name_glob, name_jdbc, name_paths
from downriver.capture.spark.java import (
    Java,
    class_name,
    column_ids,
    decode_uri,
    element_texts,
    elements,
    option_value,
    simple_name,
)
from downriver.model.ids import DatasetId
from downriver.openlineage.naming import dataset_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from downriver.capture.spark.plan_text import PlanText, PlanTextReader

_NO_DATASET = frozenset(
    {
        "CommandResult",
        "CTERelationRef",
        "LocalRelation",
        "OneRowRelation",
        "Range",
        "UnionLoopRef",
    }
)
_V2_FILES = frozenset(
    {"ParquetTable", "CSVTable", "JsonTable", "OrcTable", "TextTable", "AvroTable"}
)
# Tables without stored data, or with data only for the session.
NO_DATA = frozenset({"NoopTable", "NoopTable$", "ConsoleTable", "ConsoleTable$", "MemoryTable"})
SESSION_CATALOG = "spark_catalog"
_INFERENCE_OPTION = "__globPaths__"
_MOST_RDDS = 100
_FILE_RDDS = frozenset({"BinaryFileRDD", "HadoopRDD", "NewHadoopRDD", "WholeTextFileRDD"})
_LOCAL_RDDS = frozenset({"EmptyRDD", "ParallelCollectionRDD"})
_MOST_CACHED = 10_000  # relations of one session
_EMPTY_LEAF = PlanLeaf(-1, [])  # reads no dataset


class DatasetLocator:
    """Locates the datasets in one session's plans."""

    def __init__(self, session: Java, text: PlanTextReader) -> None:
        self.text = text
        self._known: dict[str, PlanLeaf] = {}
        self._catalog = session.sessionState().catalog()
        self._parser = session.sessionState().sqlParser()
        self._warehouse = str(session.conf().get("spark.sql.warehouse.dir", ""))
        metastore = str(session.conf().get("spark.hadoop.hive.metastore.uris", ""))
        self.tables = metastore.partition(",")[0].replace("thrift:", "hive:") or self._warehouse

    def leaves(self, plan: Java) -> list[PlanLeaf]:
        """Return the leaves of a plan and of its subqueries."""
        plan_leaves = list(self._leaves(plan))
        for subquery in elements(plan.subqueriesAll()):
            plan_leaves.extend(self._leaves(subquery))
        return plan_leaves

    def leaves_of(self, text: PlanText, plan: Callable[[], Java]) -> list[PlanLeaf]:
        """Return the leaves of a plan that was read as text; `plan` returns it as an object."""
        if text.has_subqueries:
            return self.leaves(plan())
        leaves = []
        for at, (kind, line) in enumerate(text.leaves):
            leaf = _EMPTY_LEAF if kind in _NO_DATASET else self._known.get(line)
            if leaf is None:
                leaf = self._read(plan().collectLeaves().apply(at), kind, line)
            if leaf.columns:
                leaves.append(leaf)
        return leaves

    def table(self, table: Java) -> DatasetLocation:
        """Return a table of the session catalog."""
        identifier = table.identifier()
        location = option_value(table.storage().locationUri())
        if location is None:  # a table that is not created yet
            location = self._catalog.defaultTablePath(identifier)
        provider = str(option_value(table.provider()) or "")
        place = dataset_at(decode_uri(location))
        return DatasetLocation(place, self.table_name(identifier), provider, "spark_catalog")

    def table_name(self, identifier: Java) -> DatasetId:
        """Return the name of a table of the session catalog."""
        database = option_value(identifier.database()) or self._catalog.getCurrentDatabase()
        return self.dataset_named(f"{database}.{identifier.table()}")

    def named_table(self, identifier: Java) -> DatasetLocation:
        """Return a table of the session catalog by its identifier."""
        return self.table(self._catalog.getTableMetadata(identifier))

    def catalog_table(self, resolved: Java, provider: str) -> DatasetLocation:
        """Return a table that a command created in a catalog; by name if the command failed."""
        catalog, identifier = resolved.catalog(), resolved.identifier()
        name = qualified_name(catalog, identifier)
        place = None
        if str(catalog.name()) == SESSION_CATALOG:
            parsed = self._parser.parseTableIdentifier(name)
            if self._catalog.tableExists(parsed):
                return self.named_table(parsed)
        elif catalog.tableExists(identifier):
            place = self.located(catalog.loadTable(identifier), catalog, identifier)
        return place or DatasetLocation(self.dataset_named(name), None, provider)

    def dataset_named(self, name: str) -> DatasetId:
        """Return the dataset of a table if only its name is known."""
        return DatasetId(self.tables, name)

    def v2_table(self, relation: Java) -> DatasetLocation | None:
        """Return the table of a V2 relation; None for a source without a dataset."""
        table = relation.table()
        kind = simple_name(table)
        if kind in _V2_FILES:
            dataset = name_paths(element_texts(table.fileIndex().rootPaths()))[0]
            return DatasetLocation(dataset, None, kind.removesuffix("Table").lower())
        if kind == "JDBCTable":
            return jdbc_leaf(table.jdbcOptions().parameters()).locations[0]
        if kind in NO_DATA:
            return None
        if kind == "RowLevelOperationTable":  # MERGE, UPDATE and DELETE read the table through it
            table = table.table()
        catalog, identifier = option_value(relation.catalog()), option_value(relation.identifier())
        return self.located(table, catalog, identifier)

    def located(
        self, table: Java, catalog: Java | None, identifier: Java | None
    ) -> DatasetLocation | None:
        """Return a table of a V2 catalog: its location if it has one, else its name."""
        properties = table.properties()
        location = properties.get("location")
        provider = str(properties.get("provider") or "")
        name = None
        if catalog is not None and identifier is not None:
            name = self.dataset_named(qualified_name(catalog, identifier))
        if location is None:
            return None if name is None else DatasetLocation(name, None, provider)
        catalog_name = "" if catalog is None else str(catalog.name())
        # A table that is addressed by its path has no name.
        symlink = None if name is None or "/" in name.name else name
        return DatasetLocation(dataset_at(str(location)), symlink, provider, catalog_name)

    def _leaves(self, plan: Java) -> Iterator[PlanLeaf]:
        leaves = plan.collectLeaves()
        for at, text in enumerate(element_texts(leaves)):
            plan_leaf = self._known.get(text)
            if plan_leaf is None:
                leaf = leaves.apply(at)
                plan_leaf = self._read(leaf, simple_name(leaf), text)
            if plan_leaf.columns:
                yield plan_leaf

    def _read(self, leaf: Java, kind: str, text: str) -> PlanLeaf:
        plan_leaf = self._read_leaf(leaf, kind)
        # The text contains column ids, which are never reused, so equal text means the same
        # relation.
        if kind == "LogicalRelation" and len(self._known) < _MOST_CACHED:
            self._known[text] = plan_leaf
        return plan_leaf

    def _read_leaf(self, leaf: Java, kind: str) -> PlanLeaf:
        columns = [] if kind in _NO_DATASET else column_ids(leaf.output())
        if not columns:
            return _EMPTY_LEAF
        plan_leaf = self.leaf(leaf, kind)
        plan_leaf.first_id, plan_leaf.columns = columns[0], columns
        plan_leaf.locations = [place for place in plan_leaf.locations if not _is_delta_log(place)]
        return plan_leaf

    def leaf(self, leaf: Java, kind: str | None = None) -> PlanLeaf:
        """Return the datasets that a leaf of a plan reads."""
        kind = kind or simple_name(leaf)
        reader = _READERS.get(kind)
        return PlanLeaf(-1, [], unknown=kind) if reader is None else reader(self, leaf)

    def _relation(self, leaf: Java) -> PlanLeaf:
        table = option_value(leaf.catalogTable())
        relation = leaf.relation()
        kind = simple_name(relation)
        if kind == "HadoopFsRelation":
            rewriting = simple_name(relation.location()) == "TahoeBatchFileIndex"
            # Spark reads the head of CSV and JSON files as text, to infer their schema.
            inferring = table is None and bool(relation.options().contains(_INFERENCE_OPTION))
            places = _files(relation) if table is None else [self.table(table)]
            return PlanLeaf(-1, places, rewriting=rewriting or inferring)
        if table is not None:
            return PlanLeaf(-1, [self.table(table)])
        if kind == "JDBCRelation":
            return jdbc_leaf(relation.jdbcOptions().parameters())
        if kind == "KafkaRelation":
            return read_topics(batch_options(relation))
        return PlanLeaf(-1, [], unknown=class_name(relation))

    def _hive(self, leaf: Java) -> PlanLeaf:
        return PlanLeaf(-1, [self.table(leaf.tableMeta())])

    def _v2(self, leaf: Java) -> PlanLeaf:
        relation = leaf.relation() if simple_name(leaf) == "DataSourceV2ScanRelation" else leaf
        place = self.v2_table(relation)
        if place is None:
            return PlanLeaf(-1, [], unknown=str(relation.table().name()))
        return PlanLeaf(-1, [place])

    def _rdd(self, leaf: Java) -> PlanLeaf:
        """Return an RDD, such as a checkpoint, with the files that the RDDs before it read."""
        rdd = leaf.rdd()
        rdd_files = RddFiles()
        rdd_files.read(rdd)
        places = list(rdd_files.scanned)
        return PlanLeaf(
            -1, places, rdd=int(rdd.id()), scanned=rdd_files.scanned, unknown=rdd_files.unknown
        )


def jdbc_leaf(parameters: Java) -> PlanLeaf:
    """Return the table or the query that a JDBC source reads."""
    url = name_jdbc(str(option_value(parameters.get("url")) or ""))
    table = str(option_value(parameters.get("dbtable")) or "").strip()
    query = str(option_value(parameters.get("query")) or "")
    if table.startswith("("):
        query = table[1 : table.rfind(")")]
    if query:
        return PlanLeaf(-1, [], query=query, database=url)
    return PlanLeaf(-1, [DatasetLocation(url.table(table), None, "jdbc")])


def _files(relation: Java) -> list[DatasetLocation]:
    paths = element_texts(relation.location().rootPaths())
    asked_for = str(option_value(relation.options().get("path")) or "")
    form = simple_name(relation.fileFormat()).removesuffix("FileFormat").lower()
    form = "delta" if form == "deltaparquet" else form
    if is_glob(asked_for):
        folders = element_texts(relation.location().leafDirToChildrenFiles().keySet())
        datasets = name_glob(asked_for, paths, folders)
    else:
        datasets = name_paths(paths)
    return [DatasetLocation(dataset, None, form) for dataset in datasets]


class RddFiles:
    """The files that an RDD and those before it read, each with the columns that were read.

    `unknown` is the name of an RDD that reads from an unknown place.
    """

    def __init__(self) -> None:
        self.scanned: dict[DatasetLocation, list[str]] = {}
        self.unknown = ""

    def read(self, rdd: Java) -> None:
        """Read an RDD and those before it."""
        waiting, seen = [(rdd, "")], 0
        while waiting:
            current, name = waiting.pop()
            seen += 1
            if seen > _MOST_RDDS:
                self.unknown = f"more than {_MOST_RDDS} RDDs"
                return
            name = str(current.name() or name)
            before = [(each.rdd(), name) for each in elements(current.dependencies())]
            if before:
                waiting += before
            else:
                self._read_first(current, simple_name(current), name)

    def _read_first(self, rdd: Java, kind: str, name: str) -> None:
        if kind == "FileScanRDD":
            fields = [str(field) for field in rdd.readSchema().fieldNames()]
            for dataset in _scanned_files(rdd):
                self._add(DatasetLocation(dataset), fields)
        elif kind in _FILE_RDDS and name:
            for dataset in name_paths([], name):
                self._add(DatasetLocation(dataset), [])
        elif kind not in _LOCAL_RDDS:
            self.unknown = f"an RDD of the class {kind}"

    def _add(self, place: DatasetLocation, fields: list[str]) -> None:
        if not _is_delta_log(place):
            known = self.scanned.setdefault(place, [])
            known += [field for field in fields if field not in known]


def _scanned_files(scan: Java) -> list[DatasetId]:
    for partition in elements(scan.filePartitions()):
        # All tasks read the same dataset, so the files of the first task are enough.
        return name_paths([str(file.filePath().toPath().toString()) for file in partition.files()])
    return []


def _is_delta_log(place: DatasetLocation) -> bool:
    """Return whether files are the transaction log of a Delta table."""
    return "/_delta_log" in place.dataset.name


def qualified_name(catalog: Java, identifier: Java) -> str:
    """Return the name of a table in a catalog, with the catalog unless it is the session's."""
    parts = [*map(str, identifier.namespace()), str(identifier.name())]
    owner = str(catalog.name())
    return ".".join(parts if owner == SESSION_CATALOG else [owner, *parts])


_READERS: dict[str, Callable[[DatasetLocator, Java], PlanLeaf]] = {
    "LogicalRelation": DatasetLocator._relation,
    "HiveTableRelation": DatasetLocator._hive,
    "DataSourceV2Relation": DatasetLocator._v2,
    "DataSourceV2ScanRelation": DatasetLocator._v2,
    "ExternalRDD": DatasetLocator._rdd,
    "LogicalRDD": DatasetLocator._rdd,
}
