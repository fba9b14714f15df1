"""The datasets of a plan of Spark Connect, from the text of the plan and from the server."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from downriver.capture.spark.actions import DatasetLocation, PlanLeaf
from downriver.capture.spark.connect.explain import parse_explained
from downriver.capture.spark.connect.expression_text import split_columns
from downriver.capture.spark.io.paths import name_jdbc, name_paths
from downriver.capture.spark.io.sources import SESSION_CATALOG
from downriver.model.ids import DatasetId
from downriver.openlineage.naming import dataset_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from downriver.capture.spark.connect.client import ConnectServer
    from downriver.capture.spark.connect.plan_nodes import TextLeaf

_SCAN = re.compile(r"(?:FileScan|Scan|BatchScan) ")
_LOCATION = re.compile(r"Location: \w+ ?\(\d{1,9} paths\)\[")
_END_OF_PATHS = re.compile(r"\](?:, [A-Z]\w*: |\Z)")
_SUBQUERY_NUMBER = re.compile(r" SPARK_GEN_SUBQ_\d{1,9}\Z")
_SCHEME = re.compile(r"[A-Za-z][\w+.-]*:")
_WITHOUT_DATA = frozenset({"LocalRelation", "OneRowRelation", "Range", "CTERelationRef"})
_DEFAULT_DATABASE = "default"
_COLUMNS = "# columns"  # no row of DESCRIBE has this name
_LONGEST_KIND = 100
_ANY_SCHEMA = "value string"  # if there is a schema, Spark does not read the files to infer one
_WAREHOUSE = "spark.sql.warehouse.dir"
_METASTORE = "spark.hadoop.hive.metastore.uris"


class ConnectLocator:
    """Locates the datasets of one session."""

    def __init__(self, server: ConnectServer) -> None:
        self._server = server
        self._described: dict[str, dict[str, str]] = {}
        self._namespace: str | None = None

    @property
    def tables(self) -> str:
        """The namespace of the names of tables."""
        if self._namespace is None:
            metastore = self._server.setting(_METASTORE).partition(",")[0]
            self._namespace = metastore.replace("thrift:", "hive:") or self._server.setting(
                _WAREHOUSE
            )
        return self._namespace

    def path(self, path: str, source: str) -> DatasetLocation:
        """Return the dataset of a path. The server completes a path without a scheme."""
        if _SCHEME.match(path):
            return DatasetLocation(dataset_at(path), None, source)
        from pyspark.sql.connect.proto import Plan, Relation
        from pyspark.sql.connect.proto.relations_pb2 import Read

        files = Read.DataSource(format="text", schema=_ANY_SCHEMA, paths=[path])
        plan = Plan(root=Relation(read=Read(data_source=files)))
        for scan in _scans(parse_explained(self._server.explain(plan)).physical):
            return DatasetLocation(scan.places[0], None, source)
        return DatasetLocation(dataset_at(path), None, source)

    def table(self, name: str) -> DatasetLocation:
        """Return a table by its name; one that does not exist has no location."""
        details = self._describe(name)
        dataset = self.table_name(name)
        provider = details.get("Provider", "").lower()
        if details.get("Type") == "VIEW":
            return DatasetLocation(dataset, None, "view", SESSION_CATALOG)
        catalog, _, rest = name.replace("`", "").partition(".")
        if url := self._server.setting(f"spark.sql.catalog.{catalog}.url"):
            return DatasetLocation(name_jdbc(url).table(rest), None, "jdbc")
        if not details.get("Location"):
            return DatasetLocation(dataset, None, provider)
        own = details.get("Catalog") or SESSION_CATALOG
        return DatasetLocation(dataset_at(details["Location"]), dataset, provider, own)

    def table_name(self, name: str) -> DatasetId:
        """Return the name of a table, with its database."""
        parts = name.replace("`", "").removeprefix(f"{SESSION_CATALOG}.").split(".")
        if len(parts) == 1:
            parts.insert(0, self._describe(name).get("Database") or _DEFAULT_DATABASE)
        return DatasetId(self.tables, ".".join(parts))

    def columns(self, name: str) -> list[str]:
        """Return the columns of a table, in order; empty if it does not exist."""
        return [column for column in self._describe(name).get(_COLUMNS, "").split("\n") if column]

    def _describe(self, name: str) -> dict[str, str]:
        """Return the server's description of a table; empty if it does not exist."""
        from pyspark.errors import PySparkException

        found = self._described.get(name)
        if found is not None:
            return found
        try:
            rows = self._server.rows(f"DESCRIBE TABLE EXTENDED {_quoted(name)}")
        except PySparkException:  # no such table
            rows = []
        names = [str(row["col_name"]) for row in rows]
        end = next((at for at, each in enumerate(names) if not each or each[0] == "#"), len(names))
        details = {str(row["col_name"]): str(row["data_type"] or "") for row in rows[end:]}
        self._described[name] = {**details, _COLUMNS: "\n".join(names[:end])}
        return self._described[name]

    def forget(self) -> None:
        """Clear the cache: tables may have been created or changed."""
        self._described.clear()

    def leaves(
        self, found: Sequence[TextLeaf], physical: Sequence[str], plan: Any
    ) -> list[PlanLeaf]:
        """Return the datasets that the leaves of a plan read."""
        scans = list(_scans(physical))
        known = {column for leaf in found for column in leaf.columns}
        databases = {} if plan is None else dict(_jdbc_sources(plan))
        return [
            self._leaf(leaf, _find_places(leaf, scans, known), databases)
            for leaf in found
            if leaf.columns and leaf.kind not in _WITHOUT_DATA
        ]

    def _leaf(
        self,
        leaf: TextLeaf,
        places: Sequence[DatasetId],
        databases: dict[str, PlanLeaf],
    ) -> PlanLeaf:
        first, *_ = leaf.columns
        read = PlanLeaf(first, [], columns=leaf.columns)
        name, path = _table_name(leaf), _path(leaf)
        table = leaf.after.partition("JDBCRelation(")[2].rpartition(")")[0]
        if path:
            read.locations = [DatasetLocation(place) for place in name_paths([path])]
        elif name and (leaf.kind != "RelationV2" or self.columns(name)):
            read.locations = [self.table(name)]
        elif table:
            known = databases.get(_SUBQUERY_NUMBER.sub("", table).strip())
            if known is None:
                read.unknown = f"the table {table} of a database that is not known"
            else:
                read.locations, read.query = known.locations, known.query
                read.database = known.database
        else:
            form = leaf.after.partition(" ")[0]
            read.locations = [DatasetLocation(place, None, form) for place in places]
            if not places:
                read.unknown = f"{leaf.kind} {leaf.after}"[:_LONGEST_KIND].strip()
        return read


def _path(leaf: TextLeaf) -> str:
    """Return the path of files that are read by the newer interface of sources."""
    form, _, path = leaf.after.partition(" ")
    return path if leaf.kind == "RelationV2" and form and _SCHEME.match(path) else ""


def _table_name(leaf: TextLeaf) -> str:
    """Return the name of the table that a leaf reads; empty for files."""
    if leaf.kind == "RelationV2":
        return leaf.after.partition(" ")[0]
    if leaf.kind == "HiveTableRelation":
        quoted = leaf.before.lstrip("[").partition(", ")[0]
        return quoted.replace("`", "")
    return leaf.before if leaf.kind == "Relation" else ""


def _quoted(name: str) -> str:
    parts = name.replace("`", "").split(".")
    return ".".join(f"`{part}`" for part in parts)


class _Scan(NamedTuple):
    """A scan of files: the ids and names of the columns that it reads, and its datasets."""

    ids: set[int]
    names: set[str]
    places: tuple[DatasetId, ...]


def _scans(physical: Sequence[str]) -> Iterator[_Scan]:
    for line in physical:
        location = _LOCATION.search(line) if _SCAN.match(line) else None
        if location is None:
            continue
        end = _END_OF_PATHS.search(line, location.end())
        paths = line[location.end() : end.start() if end else len(line)].rstrip("]").split(", ")
        listed = line[: location.start()].partition("[")[2]
        columns = split_columns(listed.partition(" Batched:")[0])
        names = {name for name, _ in columns}
        yield _Scan({expr_id for _, expr_id in columns}, names, tuple(name_paths(paths)))


def _find_places(leaf: TextLeaf, scans: Sequence[_Scan], known: set[int]) -> Sequence[DatasetId]:
    """Return the datasets that a leaf reads.

    The optimizer may copy a leaf with new ids, and removes columns. A scan with unknown ids belongs
    to this leaf if its column names match and no other dataset is possible.
    """
    if leaf.kind != "Relation":  # a checkpoint has the ids of its plan
        return ()
    for scan in scans:
        if scan.ids & set(leaf.columns):
            return scan.places
    possible = {
        scan.places for scan in scans if not scan.ids & known and scan.names <= set(leaf.names)
    }
    return possible.pop() if len(possible) == 1 else ()


def _jdbc_sources(plan: Any) -> Iterator[tuple[str, PlanLeaf]]:
    """Yield the JDBC sources of a request, by the text with which plans print them."""
    for source in _data_sources(plan):
        options = dict(source.options)
        if "url" not in options:
            continue
        database = name_jdbc(options["url"])
        table = options.get("dbtable", "").strip()
        query = options.get("query", "")
        if table.startswith("("):
            query = table[1 : table.rfind(")")]
        if query:
            for printed in (table, f"({query})"):
                yield printed, PlanLeaf(-1, [], query=query, database=database)
        else:
            place = DatasetLocation(database.table(table), None, "jdbc")
            yield table, PlanLeaf(-1, [place])


def _data_sources(plan: Any) -> Iterator[Any]:
    for message in messages_in(plan):
        if message.DESCRIPTOR.full_name == "spark.connect.Read.DataSource":
            yield message


def messages_in(plan: Any, *, without: Callable[[Any], bool] = lambda _: False) -> Iterator[Any]:
    """Yield the messages of a plan at any depth, except those `without` and all in them."""
    waiting = [plan]
    while waiting:
        current = waiting.pop()
        if without(current):
            continue
        yield current
        for field, value in current.ListFields():
            if field.message_type is None or field.message_type.GetOptions().map_entry:
                continue
            waiting += [value] if hasattr(value, "DESCRIPTOR") else list(value)
