"""The facts of the entities that new events mention: complete for these entities, merged.

Silver and gold rows of an entity depend on its own facts only. The transforms of a whole lake,
applied to these facts, therefore return the current rows of the touched entities.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Protocol

from downriver.lake import schemas
from downriver.lake.silver.facts import fact_rows, merge_rows, of_kind
from downriver.lake.storage.runs import ENTITY, entity_of
from downriver.model.facts import EdgeKind, FacetRole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from downriver.lake.schemas import LakeTable
    from downriver.lake.storage.tables import StoredTable, TableStorage

_NODE = ("namespace", "name")
_RUN = ("job_namespace", "job_name", "run")
_TARGET = ("target_namespace", "target_name")


def _owner(part: str) -> str:
    return (
        f"CASE kind WHEN {int(EdgeKind.READS)} THEN target_{part} "
        f"WHEN {int(EdgeKind.WRITES)} THEN source_{part} "
        f"ELSE coalesce(via_{part}, source_{part}) END"
    )


_OWNER = (_owner("namespace"), _owner("name"))

# The facts that touch an entity of each sort, and the columns that identify it there.
_TOUCHED_BY: Mapping[str, tuple[tuple[LakeTable, tuple[str, ...]], ...]] = {
    "node": ((schemas.NODES, _NODE), (schemas.FACETS, _NODE), (schemas.COLUMNS, _NODE)),
    "run": ((schemas.RUNS, _RUN), (schemas.FACETS, _RUN)),
    "owner": ((schemas.EDGES, _OWNER),),
    "target": ((schemas.CLAIMS, _NODE), (schemas.DERIVATIONS, _TARGET)),
}
# The entities that select the rows of a table.
_SELECTED_BY: Mapping[LakeTable, tuple[str, tuple[str, ...]]] = {
    schemas.NODES: ("node", _NODE),
    schemas.EDGES: ("owner", _OWNER),
    schemas.RUNS: ("run", _RUN),
    schemas.CLAIMS: ("target", _NODE),
    schemas.COLUMNS: ("node", _NODE),
    schemas.DERIVATIONS: ("target", _TARGET),
}
# Also a facet of an input or output that a job declares: no run identifies it.
_OF_NODE = f"(role = {int(FacetRole.NODE)} OR facet = 'tags' OR run IS NULL)"


class FactSelection(Protocol):
    """Finds the facts of touched entities."""

    def rows(self, table: LakeTable) -> DataFrame:
        """Return the facts of touched entities in a table, not merged."""

    def bodies(self, facets: DataFrame) -> DataFrame:
        """Return the bodies of facets."""

    def release(self) -> None:
        """Free what the selection holds."""


class TouchedFacts:
    """The facts of touched entities, kept in Spark until `release` is called."""

    def __init__(self, selection: FactSelection) -> None:
        self._selection = selection
        self._kept: list[DataFrame] = []

    def frames(self) -> dict[str, DataFrame]:
        """Return the facts by table, as `facts.name`."""
        facets = self._keep(self._merged(schemas.FACETS))
        bodies = merge_rows(schemas.BODIES, self._selection.bodies(facets))
        return {
            "facts.nodes": self._keep(self._merged(schemas.NODES)),
            "facts.edges": self._keep(self._merged(schemas.EDGES)),
            "facts.runs": self._merged(schemas.RUNS),
            "facts.facets": facets,
            "facts.claims": self._merged(schemas.CLAIMS),
            "facts.columns": self._merged(schemas.COLUMNS),
            "facts.derivations": self._merged(schemas.DERIVATIONS),
            "facts.bodies": self._keep(bodies),
        }

    def release(self) -> None:
        """Remove the facts from Spark's memory."""
        for frame in self._kept:
            frame.unpersist()
        self._selection.release()

    def _merged(self, table: LakeTable) -> DataFrame:
        return merge_rows(table, self._selection.rows(table))

    def _keep(self, frame: DataFrame) -> DataFrame:
        self._kept.append(frame.persist())
        return frame


class JoinSelection:
    """Finds the facts of touched entities with joins in Spark, in a lake of any size."""

    def __init__(
        self, storage: TableStorage, facts: Mapping[str, StoredTable], folded: DataFrame
    ) -> None:
        self._storage = storage
        self._stored = facts
        self._touched = {sort: _touched(folded, sort).persist() for sort in _TOUCHED_BY}

    def rows(self, table: LakeTable) -> DataFrame:
        """Return the facts of touched entities in a table, not merged."""
        rows = self._rows(table)
        if table is schemas.FACETS:
            of_nodes = self._only(rows.where(_OF_NODE), "node", _NODE)
            of_runs = self._only(rows.where(f"NOT {_OF_NODE}"), "run", _RUN)
            return of_nodes.unionAll(of_runs)
        sort, entity = _SELECTED_BY[table]
        return self._only(rows, sort, entity)

    def bodies(self, facets: DataFrame) -> DataFrame:
        """Return the bodies of facets."""
        digests = facets.select("digest").distinct()
        return self._rows(schemas.BODIES).join(digests, "digest", "left_semi")

    def release(self) -> None:
        """Remove the entities from Spark's memory."""
        for frame in self._touched.values():
            frame.unpersist()

    def _only(self, rows: DataFrame, sort: str, entity: tuple[str, ...]) -> DataFrame:
        known = rows.withColumn(ENTITY, entity_of(entity))
        return known.join(self._touched[sort], ENTITY, "left_semi").drop(ENTITY)

    def _rows(self, table: LakeTable) -> DataFrame:
        return fact_rows(self._storage, table, self._stored[f"facts.{table.name}"].runs)


def _touched(folded: DataFrame, sort: str) -> DataFrame:
    """Return the hashes of the touched entities of a sort."""
    parts = [
        of_kind(folded, table).select(entity_of(entity)) for table, entity in _TOUCHED_BY[sort]
    ]
    return reduce(lambda whole, part: whole.unionAll(part), parts).distinct()
