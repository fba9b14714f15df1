"""What a tracker is asked: traces, impact, what went wrong, and all else that reads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from downriver.errors import EntityNotFoundError, InvalidRequestError
from downriver.graph.names.entity_ids import short_id
from downriver.impact import SourceFolder
from downriver.model.flows import DownstreamAnswer, LineageAnswer, PathsAnswer, UpstreamAnswer
from downriver.model.verdicts import ImpactRequest
from downriver.service import DEFAULT_NAMESPACE
from downriver.service.entities import MOST_RELATED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from downriver.impact import Fix
    from downriver.model.answers import BlindSpot
    from downriver.model.flows import (
        ColumnDerivation,
        EntityDetails,
        EntityLineage,
        EntityPage,
        ExportAnswer,
        Related,
    )
    from downriver.model.governance import Diagnosis, Incident, Kpis
    from downriver.model.verdicts import ImpactAnswer
    from downriver.sdk.backend import Backend


class TrackerQueries(ABC):
    """The questions."""

    @property
    @abstractmethod
    def backend(self) -> Backend:
        """Who holds the lineage."""

    def trace_lineage(
        self,
        entity_id: str,
        direction: str = "both",
        max_depth: int | None = None,
        *,
        limit: int = MOST_RELATED,
    ) -> LineageAnswer:
        """Answer what feeds an entity and what it feeds."""
        found = self.backend.related(entity_id, direction, depth=max_depth, limit=limit)
        return LineageAnswer(
            lineage=found,
            upstream_count=len(found.upstream),
            downstream_count=len(found.downstream),
            **_traced(entity_id, found),
        )

    def trace_upstream(
        self, entity_id: str, max_depth: int | None = None, *, limit: int = MOST_RELATED
    ) -> UpstreamAnswer:
        """Answer what feeds an entity, nearest first."""
        found = self.backend.related(entity_id, "upstream", depth=max_depth, limit=limit)
        return UpstreamAnswer(
            upstream_sources=found.upstream,
            count=len(found.upstream),
            **_traced(entity_id, found),
        )

    def trace_downstream(
        self, entity_id: str, max_depth: int | None = None, *, limit: int = MOST_RELATED
    ) -> DownstreamAnswer:
        """Answer what an entity feeds, nearest first."""
        found = self.backend.related(entity_id, "downstream", depth=max_depth, limit=limit)
        return DownstreamAnswer(
            downstream_consumers=found.downstream,
            count=len(found.downstream),
            **_traced(entity_id, found),
        )

    def find_lineage_paths(self, source_id: str, target_id: str, limit: int = 10) -> PathsAnswer:
        """Answer by which routes data gets from one entity to another, shortest first."""
        found = self.backend.paths(source_id, target_id, limit=limit)
        return PathsAnswer(
            source_id=source_id,
            target_id=target_id,
            paths=[[short_id(step, DEFAULT_NAMESPACE) for step in path] for path in found.paths],
            path_count=len(found.paths),
            complete=found.complete,
            blind_spots=found.blind_spots,
        )

    def analyze_impact(
        self,
        entity_id: str,
        change_type: str = "schema_change",
        *,
        column: str | None = None,
        to: str | None = None,
        data_type: str | None = None,
        required: bool = False,
        nullable: bool | None = None,
        changes: Sequence[Mapping[str, Any]] | None = None,
    ) -> ImpactAnswer:
        """Answer what a change does to everyone downstream, and what the policy says of it."""
        return self.backend.analyze_impact(
            ImpactRequest(
                entity_id=entity_id,
                change_type=change_type,
                column=column,
                to=to,
                data_type=data_type,
                required=required,
                nullable=nullable,
                changes=_copied(changes),
            )
        )

    def suggest_fix(
        self,
        entity_id: str,
        change_type: str = "schema_change",
        *,
        column: str | None = None,
        to: str | None = None,
        data_type: str | None = None,
        changes: Sequence[Mapping[str, Any]] | None = None,
        root: str | Path | None = ".",
    ) -> Fix:
        """Write the patch that prepares the code under `root` for a change. Nothing is applied.

        With `root=None` the code is that which the server, or the store, was opened with.
        """
        request = ImpactRequest(
            entity_id=entity_id,
            change_type=change_type,
            column=column,
            to=to,
            data_type=data_type,
            changes=_copied(changes),
        )
        return self.backend.suggest_fix(request, None if root is None else SourceFolder(Path(root)))

    def kpis(self) -> Kpis:
        """Answer how the whole graph is doing: coverage, blast radius, failures and the like."""
        return self.backend.kpis()

    def incident_report(self, entity_id: str, at: str | None = None) -> Incident:
        """Answer what is wrong with an entity, since when, where from, and whom it concerns."""
        return self.backend.incident_report(entity_id, at)

    def export_lineage(
        self,
        entity_id: str,
        format: str = "mermaid",  # noqa: A002 — the name users know
        direction: str = "both",
        max_depth: int | None = None,
        *,
        as_of: str | None = None,
        focus: str | None = None,
        diff: str | None = None,
    ) -> ExportAnswer:
        """Write the graph around an entity down: as a drawing, or for another tool.

        `format` is `mermaid`, `dot`, `svg`, `json`, `csv`, `openlineage`, `cypher` or `datahub`.
        `focus` is a column to follow, `diff` a moment to compare with.
        """
        return self.backend.export(
            entity_id, format, direction, depth=max_depth, as_of=as_of, focus=focus, diff=diff
        )

    def search_entities(
        self, text: str = "", limit: int = 20, cursor: str | None = None
    ) -> EntityPage:
        """Find datasets and jobs whose names hold all the words of `text`."""
        return self.backend.search(text, limit=limit, cursor=cursor)

    def get_entity(self, entity_id: str) -> EntityDetails:
        """Answer with all that is known of one dataset or job."""
        return self.backend.details(entity_id)

    def get_column_lineage(self, dataset: str, column: str) -> list[ColumnDerivation]:
        """Answer from which columns a column is made, one answer for each job that makes it."""
        return self.backend.column_lineage(dataset, column)

    def diagnose_metric(self, dataset: str, column: str) -> Diagnosis:
        """Trace a metric that looks wrong back to its sources, and say where to look first."""
        return self.backend.diagnose(dataset, column)

    def get_last_updated(self, source: str) -> str | None:
        """Return when a run last filled a dataset, or that of a column; None if none is known."""
        try:
            return self.backend.details(source).last_updated
        except (EntityNotFoundError, InvalidRequestError):
            dataset, dot, _ = source.rpartition(".")
            if not dot:
                raise
            return self.backend.details(dataset).last_updated

    def get_upstreams(self, dataset: str) -> list[str]:
        """Return the ids of the datasets that feed one directly."""
        found = self.backend.related(dataset, "upstream", depth=1, limit=MOST_RELATED)
        return _datasets(found.upstream)

    def get_downstreams(self, dataset: str) -> list[str]:
        """Return the ids of the datasets that one feeds directly."""
        found = self.backend.related(dataset, "downstream", depth=1, limit=MOST_RELATED)
        return _datasets(found.downstream)

    def get_upstream_chain(self, dataset: str) -> list[str]:
        """Return the ids of every dataset upstream of one, nearest first."""
        found = self.backend.related(dataset, "upstream", depth=None, limit=MOST_RELATED)
        return _datasets(found.upstream)

    def get_downstream_impact(self, dataset: str) -> list[str]:
        """Return the ids of every dataset downstream of one, nearest first."""
        found = self.backend.related(dataset, "downstream", depth=None, limit=MOST_RELATED)
        return _datasets(found.downstream)


class _Traced(TypedDict):
    """What every answer to a trace says of itself."""

    entity_id: str
    omitted_count: int
    complete: bool
    blind_spots: list[BlindSpot]


def _traced(entity_id: str, found: EntityLineage) -> _Traced:
    return _Traced(
        entity_id=entity_id,
        omitted_count=found.omitted_count,
        complete=found.complete,
        blind_spots=found.blind_spots,
    )


def _copied(changes: Sequence[Mapping[str, Any]] | None) -> list[dict[str, Any]] | None:
    return None if changes is None else [dict(change) for change in changes]


def _datasets(related: list[Related]) -> list[str]:
    return [entity.entity_id for entity in related if entity.kind == "dataset"]
