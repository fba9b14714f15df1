"""The questions a tracker answers: traces, paths, impact, incidents, exports and more."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from downriver.errors import EntityNotFoundError, InvalidRequestError, LowQualityError
from downriver.graph.names.entity_ids import short_id
from downriver.impact import SourceFolder
from downriver.model.flows import DownstreamAnswer, LineageAnswer, PathsAnswer, UpstreamAnswer
from downriver.model.verdicts import ImpactRequest
from downriver.service import DEFAULT_NAMESPACE
from downriver.service.limits import MOST_RELATED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from downriver.impact import Fix
    from downriver.model.answers import BlindSpot, PossibleCut, SameStatement
    from downriver.model.flows import (
        ColumnDerivations,
        EntityDetails,
        EntityLineage,
        EntityPage,
        ExportAnswer,
        Related,
    )
    from downriver.model.governance import Diagnosis, Incident, Kpis, TagReach
    from downriver.model.trust.quality import QualityScore
    from downriver.model.verdicts import ImpactAnswer
    from downriver.sdk.backend import Backend


class TrackerQueries(ABC):
    """The methods of a tracker that only read."""

    @property
    @abstractmethod
    def backend(self) -> Backend:
        """The store or server that holds the lineage."""

    def trace_lineage(
        self,
        entity_id: str,
        direction: str = "both",
        max_depth: int | None = None,
        *,
        limit: int = MOST_RELATED,
        as_of: str | None = None,
    ) -> LineageAnswer:
        """Return what is upstream and downstream of an entity, now or at a past moment."""
        answer = self.backend.related(
            entity_id, direction, depth=max_depth, limit=limit, as_of=as_of
        )
        return LineageAnswer(
            lineage=answer,
            upstream_count=len(answer.upstream),
            downstream_count=len(answer.downstream),
            **_answer_fields(entity_id, answer),
        )

    def trace_upstream(
        self, entity_id: str, max_depth: int | None = None, *, limit: int = MOST_RELATED
    ) -> UpstreamAnswer:
        """Return what feeds an entity, nearest first."""
        answer = self.backend.related(entity_id, "upstream", depth=max_depth, limit=limit)
        return UpstreamAnswer(
            upstream_sources=answer.upstream,
            count=len(answer.upstream),
            **_answer_fields(entity_id, answer),
        )

    def trace_downstream(
        self, entity_id: str, max_depth: int | None = None, *, limit: int = MOST_RELATED
    ) -> DownstreamAnswer:
        """Return what an entity feeds, nearest first."""
        answer = self.backend.related(entity_id, "downstream", depth=max_depth, limit=limit)
        return DownstreamAnswer(
            downstream_consumers=answer.downstream,
            count=len(answer.downstream),
            **_answer_fields(entity_id, answer),
        )

    def find_lineage_paths(self, source_id: str, target_id: str, limit: int = 10) -> PathsAnswer:
        """Return the paths from one entity to another, shortest first."""
        answer = self.backend.paths(source_id, target_id, limit=limit)
        return PathsAnswer(
            source_id=source_id,
            target_id=target_id,
            paths=[[short_id(step, DEFAULT_NAMESPACE) for step in path] for path in answer.paths],
            path_count=len(answer.paths),
            complete=answer.complete,
            blind_spots=answer.blind_spots,
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
        """Return the effects of a change downstream, and the verdict of the policy."""
        return self.backend.analyze_impact(
            ImpactRequest(
                entity_id=entity_id,
                change_type=change_type,
                column=column,
                to=to,
                data_type=data_type,
                required=required,
                nullable=nullable,
                changes=_copy_changes(changes),
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
        """Write the patch that prepares the code under `root` for a change, without applying it.

        With `root=None` the code is the repository that the server or the store was opened with.
        """
        request = ImpactRequest(
            entity_id=entity_id,
            change_type=change_type,
            column=column,
            to=to,
            data_type=data_type,
            changes=_copy_changes(changes),
        )
        return self.backend.suggest_fix(request, None if root is None else SourceFolder(Path(root)))

    def find_cuts(self) -> list[PossibleCut]:
        """Return the pairs of datasets that may be one dataset under two names."""
        return self.backend.possible_cuts().cuts

    def list_same(self) -> list[SameStatement]:
        """Return what is recorded about pairs of names: the latest statement about each."""
        return self.backend.same_statements().statements

    def kpis(self) -> Kpis:
        """Return the KPIs of the whole graph: coverage, blast radius, failures and more."""
        return self.backend.kpis()

    def incident_report(self, entity_id: str, at: str | None = None) -> Incident:
        """Report the failures of an entity, the likely causes, and what is affected."""
        return self.backend.incident_report(entity_id, at)

    def tag_reach(self, tag: str = "pii") -> TagReach:
        """Return the columns where a tag was set, and the columns that it reaches."""
        return self.backend.tag_reach(tag)

    def export_lineage(
        self,
        entity_id: str,
        format: str = "mermaid",  # noqa: A002 — the public name
        direction: str = "both",
        max_depth: int | None = None,
        *,
        as_of: str | None = None,
        focus: str | None = None,
        diff: str | None = None,
    ) -> ExportAnswer:
        """Export the graph around an entity as a drawing, or for another tool.

        `format` is `mermaid`, `dot`, `svg`, `json`, `csv`, `openlineage`, `cypher`, `datahub` or
        `atlas`.
        `focus` limits the graph to one column, `diff` marks the changes since a time.
        """
        return self.backend.export(
            entity_id, format, direction, depth=max_depth, as_of=as_of, focus=focus, diff=diff
        )

    def search_entities(
        self, text: str = "", limit: int = 20, cursor: str | None = None
    ) -> EntityPage:
        """Find datasets and jobs whose names contain all the words of `text`."""
        return self.backend.search(text, limit=limit, cursor=cursor)

    def get_entity(self, entity_id: str) -> EntityDetails:
        """Return the details of one dataset or job."""
        return self.backend.details(entity_id)

    def get_column_lineage(self, dataset: str, column: str) -> ColumnDerivations:
        """Return the columns that a column derives from, one entry for each job that writes it."""
        return self.backend.column_lineage(dataset, column)

    def diagnose_metric(self, dataset: str, column: str) -> Diagnosis:
        """Trace a metric that looks wrong back to its sources, and suggest where to look first."""
        return self.backend.diagnose(dataset, column)

    def require(self, dataset: str, *, min_score: float) -> QualityScore:
        """Return the quality score of a dataset. Raise LowQualityError if it is too low or unknown.

        The score, from 0 to 100, is the lowest of the dataset's own and those upstream.
        """
        score = self.backend.quality(dataset)
        try:
            is_enough = score.reaches(min_score)
        except ValueError as exc:
            raise InvalidRequestError("min_score", str(exc)) from exc
        if not is_enough:
            raise LowQualityError(score.dataset, score.score, min_score)
        return score

    def get_last_updated(self, source: str) -> str | None:
        """Return when a run last wrote a dataset, or the dataset of a column. None if unknown."""
        try:
            return self.backend.details(source).last_updated
        except (EntityNotFoundError, InvalidRequestError):
            dataset, dot, _ = source.rpartition(".")
            if not dot:
                raise
            return self.backend.details(dataset).last_updated

    def get_upstreams(self, dataset: str) -> list[str]:
        """Return the ids of the datasets that feed an entity directly."""
        answer = self.backend.related(dataset, "upstream", depth=1, limit=MOST_RELATED)
        return _dataset_ids(answer.upstream)

    def get_downstreams(self, dataset: str) -> list[str]:
        """Return the ids of the datasets that an entity feeds directly."""
        answer = self.backend.related(dataset, "downstream", depth=1, limit=MOST_RELATED)
        return _dataset_ids(answer.downstream)

    def get_upstream_chain(self, dataset: str) -> list[str]:
        """Return the ids of all datasets upstream of an entity, nearest first."""
        answer = self.backend.related(dataset, "upstream", depth=None, limit=MOST_RELATED)
        return _dataset_ids(answer.upstream)

    def get_downstream_impact(self, dataset: str) -> list[str]:
        """Return the ids of all datasets downstream of an entity, nearest first."""
        answer = self.backend.related(dataset, "downstream", depth=None, limit=MOST_RELATED)
        return _dataset_ids(answer.downstream)


class _AnswerFields(TypedDict):
    """The fields that all answers to traces have."""

    entity_id: str
    omitted_count: int
    complete: bool
    blind_spots: list[BlindSpot]


def _answer_fields(entity_id: str, answer: EntityLineage) -> _AnswerFields:
    return _AnswerFields(
        entity_id=entity_id,
        omitted_count=answer.omitted_count,
        complete=answer.complete,
        blind_spots=answer.blind_spots,
    )


def _copy_changes(changes: Sequence[Mapping[str, Any]] | None) -> list[dict[str, Any]] | None:
    return None if changes is None else [dict(change) for change in changes]


def _dataset_ids(related: list[Related]) -> list[str]:
    return [entity.entity_id for entity in related if entity.kind == "dataset"]
