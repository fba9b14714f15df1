"""The facts of the entities that new events mention: complete for these entities, merged.

Silver and gold rows of an entity depend on its own facts only. The transforms of a whole lake,
applied to these facts, therefore return the current rows of the touched entities.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

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
# Also a facet of an input or output that a job declares: no run identifies it.
_OF_NODE = f"(role = {int(FacetRole.NODE)} OR facet = 'tags' OR run IS NULL)"


class TouchedFacts:
    """The facts of touched entities, kept in Spark until `release` is called."""

    def __init__(
        self, storage: TableStorage, facts: Mapping[str, StoredTable], folded: DataFrame
    ) -> None:
        self._storage = storage
        self._stored = facts
        self._kept: list[DataFrame] = []
        self._touched = {
            sort: self._keep(_touched(folded, sort)) for sort in ("node", "run", "owner", "target")
        }

    def frames(self) -> dict[str, DataFrame]:
        """Return the facts by table, as `facts.name`."""
        nodes = self._slice(schemas.NODES, "node", _NODE)
        facets = self._keep(self._facets())
        digests = facets.select("digest").distinct()
        bodies = self._rows(schemas.BODIES).join(digests, "digest", "left_semi")
        return {
            "facts.nodes": self._keep(nodes),
            "facts.edges": self._keep(self._slice(schemas.EDGES, "owner", _OWNER)),
            "facts.runs": self._slice(schemas.RUNS, "run", _RUN),
            "facts.facets": facets,
            "facts.claims": self._slice(schemas.CLAIMS, "target", _NODE),
            "facts.columns": self._slice(schemas.COLUMNS, "node", _NODE),
            "facts.derivations": self._slice(schemas.DERIVATIONS, "target", _TARGET),
            "facts.bodies": self._keep(merge_rows(schemas.BODIES, bodies)),
        }

    def release(self) -> None:
        """Remove the facts from Spark's memory."""
        for frame in self._kept:
            frame.unpersist()

    def _facets(self) -> DataFrame:
        """Return the facets of touched nodes, and those of touched runs."""
        rows = self._rows(schemas.FACETS)
        of_nodes = self._only(rows.where(_OF_NODE), "node", _NODE)
        of_runs = self._only(rows.where(f"NOT {_OF_NODE}"), "run", _RUN)
        return merge_rows(schemas.FACETS, of_nodes.unionAll(of_runs))

    def _slice(self, table: LakeTable, sort: str, entity: tuple[str, ...]) -> DataFrame:
        return merge_rows(table, self._only(self._rows(table), sort, entity))

    def _only(self, rows: DataFrame, sort: str, entity: tuple[str, ...]) -> DataFrame:
        known = rows.withColumn(ENTITY, entity_of(entity))
        return known.join(self._touched[sort], ENTITY, "left_semi").drop(ENTITY)

    def _rows(self, table: LakeTable) -> DataFrame:
        return fact_rows(self._storage, table, self._stored[f"facts.{table.name}"].runs)

    def _keep(self, frame: DataFrame) -> DataFrame:
        self._kept.append(frame.persist())
        return frame


def _touched(folded: DataFrame, sort: str) -> DataFrame:
    """Return the hashes of the touched entities of a sort."""
    parts = [
        of_kind(folded, table).select(entity_of(entity)) for table, entity in _TOUCHED_BY[sort]
    ]
    return reduce(lambda whole, part: whole.unionAll(part), parts).distinct()
