"""Selects the facts of touched entities in this process, in a lake that is not large.

A join in Spark would read and hash all facts in the JVM. Arrow compares only the last part of each
key: the name of a node, or the id of a run. So it may select more entities than new events touch,
but always all facts of an entity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from downriver.lake import schemas
from downriver.lake.schemas import KIND_OF
from downriver.lake.silver.facts import facts_schema
from downriver.model.facts import EdgeKind, FacetRole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa
    import pyarrow.compute as pc
    from pyspark.sql import DataFrame

    from downriver.lake.schemas import LakeTable
    from downriver.lake.storage.tables import StoredRun, StoredTable, TableStorage

_ROWS_AT_ONCE = 50_000


class FileSelection:
    """The facts of touched entities, as small files below `path`."""

    def __init__(
        self,
        storage: TableStorage,
        facts: Mapping[str, StoredTable],
        folded: StoredRun,
        path: str,
    ) -> None:
        self._storage = storage
        self._folder = storage.folder
        self._stored = facts
        self._path = path
        self._filters = self._touched_by(folded)
        self._digests: list[bytes] = []

    def rows(self, table: LakeTable) -> DataFrame:
        """Return the facts of touched entities in a table, not merged."""
        rows = self._select(table, self._filters[table.name])
        if table is schemas.FACETS:
            self._digests = rows.column("digest").unique().to_pylist()
        return self._write(table, rows)

    def bodies(self, facets: DataFrame) -> DataFrame:
        """Return the bodies of the selected facets, which were read before."""
        return self._write(
            schemas.BODIES, self._select(schemas.BODIES, _is_in("digest", self._digests))
        )

    def release(self) -> None:
        """Remove the files."""
        self._folder.remove(self._path)

    def _touched_by(self, folded: StoredRun) -> dict[str, pc.Expression]:
        """Return the conditions that select the facts of the entities in folded facts."""
        import pyarrow.compute as pc

        def values(table: LakeTable, column: str) -> list[Any]:
            rows = self._rows_of(table, folded, pc.scalar(True))
            found: list[Any] = rows.column(column).unique().to_pylist()
            return found

        nodes = [
            *values(schemas.NODES, "name"),
            *values(schemas.FACETS, "name"),
            *values(schemas.COLUMNS, "name"),
        ]
        runs = [*values(schemas.RUNS, "run"), *values(schemas.FACETS, "run")]
        targets = [*values(schemas.CLAIMS, "name"), *values(schemas.DERIVATIONS, "target_name")]
        edges = self._rows_of(schemas.EDGES, folded, pc.scalar(True))
        of_node = (
            (pc.field("role") == int(FacetRole.NODE))
            | (pc.field("facet") == "tags")
            | pc.field("run").is_null()
        )
        return {
            "nodes": _is_in("name", nodes),
            "columns": _is_in("name", nodes),
            "edges": _has_owner(_owners(edges.to_pylist())),
            "runs": _is_in("run", runs),
            "facets": (of_node & _is_in("name", nodes)) | (~of_node & _is_in("run", runs)),
            "claims": _is_in("name", targets),
            "derivations": _is_in("target_name", targets),
        }

    def _select(self, table: LakeTable, wanted: pc.Expression) -> pa.Table:
        import pyarrow as pa

        runs = self._stored[f"facts.{table.name}"].runs
        return pa.concat_tables([self._rows_of(table, run, wanted) for run in runs])

    def _rows_of(self, table: LakeTable, run: StoredRun, wanted: pc.Expression) -> pa.Table:
        """Return the rows of a table in a run for which a condition is true."""
        import pyarrow as pa

        schema = pa.schema(list(facts_schema().field(KIND_OF[table.name]).type))
        if not run.folded:
            rows = self._folder.select_rows(run.path, table.column_names, wanted)
            return rows.select(table.column_names).cast(schema)
        parts = [pa.Table.from_batches([], schema)]
        for batch in self._folder.scan(run.path, [KIND_OF[table.name]], _ROWS_AT_ONCE):
            facts = batch.column(0).filter(batch.column(0).is_valid())
            parts.append(pa.Table.from_arrays(facts.flatten(), table.column_names).cast(schema))
        return pa.concat_tables(parts).filter(wanted)

    def _write(self, table: LakeTable, rows: pa.Table) -> DataFrame:
        path = f"{self._path}/{table.name}"
        self._folder.write_batches(f"{path}/part-0.parquet", rows.schema, rows.to_batches())
        return self._storage.read_parquet(table, path)


def _is_in(column: str, values: Iterable[Any]) -> pc.Expression:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = pa.binary() if column == "digest" else pa.string()
    wanted = sorted({value for value in values if value is not None})
    return pc.field(column).isin(pa.array(wanted, kind))


def _owners(edges: Sequence[Mapping[str, Any]]) -> list[str | None]:
    """Return the names of the owners of edges, as `touched_facts` defines them."""
    return [
        edge["target_name"]
        if edge["kind"] == EdgeKind.READS
        else edge["source_name"]
        if edge["kind"] == EdgeKind.WRITES or edge["via_name"] is None
        else edge["via_name"]
        for edge in edges
    ]


def _has_owner(names: Sequence[str | None]) -> pc.Expression:
    import pyarrow.compute as pc

    kind, via = pc.field("kind"), pc.field("via_name")
    reads, writes = kind == int(EdgeKind.READS), kind == int(EdgeKind.WRITES)
    of_source = writes | (~reads & via.is_null())
    of_via = ~reads & ~writes & via.is_valid()
    return (
        (reads & _is_in("target_name", names))
        | (of_source & _is_in("source_name", names))
        | (of_via & _is_in("via_name", names))
    )
