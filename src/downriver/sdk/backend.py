"""The interface between a tracker and the lineage it uses, and lineage in a local store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    from downriver.impact import Fix, Policy, SourceFiles
    from downriver.model.answers import (
        Direction,
        Paths,
        PossibleCuts,
        SameStatement,
        SameStatements,
    )
    from downriver.model.flows import (
        ColumnDerivations,
        EntityDetails,
        EntityLineage,
        EntityPage,
        ExportAnswer,
        Flow,
        RegisteredFlow,
        RegisteredPipeline,
    )
    from downriver.model.governance import Diagnosis, Incident, Kpis, TagReach
    from downriver.model.ids import NodeId
    from downriver.model.trust.quality import QualityScore
    from downriver.model.verdicts import ImpactAnswer, ImpactRequest
    from downriver.openlineage.wire import Event
    from downriver.service.capture import SqlCapture


class Backend(Protocol):
    """Registers lineage and answers questions about it. Safe to share between threads."""

    def send(self, events: Sequence[Event | bytes]) -> None:
        """Append events to the log, or raise if that is not possible now."""

    def name_entity(self, text: str) -> NodeId:
        """Return the id of a name, or the id it would get. This never waits for a server."""

    def register_flows(self, flows: Sequence[Flow]) -> list[RegisteredFlow]:
        """Register flows. All of them are on disk when this returns."""

    def submit_flow(self, flow: Flow) -> Future[RegisteredFlow]:
        """Register a flow in the background. The future resolves once it is on disk."""

    def register_pipeline(
        self, name: str, flows: Sequence[Flow], *, schedule: str | None, description: str
    ) -> RegisteredPipeline:
        """Register a pipeline and its steps."""

    def capture_sql(
        self, sql: str, *, dialect: str | None, description: str, ran: bool
    ) -> SqlCapture:
        """Read lineage from SQL and register it."""

    def related(
        self,
        entity: str,
        direction: Direction | str,
        *,
        depth: int | None,
        limit: int,
        as_of: str | None = None,
    ) -> EntityLineage:
        """Return what is upstream and downstream of an entity, now or at a past moment."""

    def paths(self, source: str, target: str, *, limit: int) -> Paths:
        """Return the paths from one entity to another."""

    def analyze_impact(self, request: ImpactRequest, policy: Policy | None = None) -> ImpactAnswer:
        """Return the effects of a change and the verdict of a policy (None: the default policy)."""

    def suggest_fix(self, request: ImpactRequest, code: SourceFiles | None) -> Fix:
        """Write the patch for a change to the given files, or to the backend's own repository."""

    def state_same(self, one: str, other: str, *, same: bool) -> SameStatement:
        """Record whether two names are one dataset."""

    def same_statements(self) -> SameStatements:
        """Return the recorded statements about names."""

    def possible_cuts(self) -> PossibleCuts:
        """Return the pairs of datasets that may be one dataset under two names."""

    def kpis(self) -> Kpis:
        """Return the KPIs of the whole graph."""

    def incident_report(self, entity: str, at: str | None) -> Incident:
        """Report the failures of an entity, the likely causes, and what is affected."""

    def quality(self, dataset: str) -> QualityScore:
        """Return the quality score of a dataset and the worst one upstream."""

    def tag_reach(self, tag: str) -> TagReach:
        """Return where a tag was set, and the columns that it reaches."""

    def export(
        self,
        entity: str,
        output_format: str,
        direction: Direction | str,
        *,
        depth: int | None,
        as_of: str | None,
        focus: str | None,
        diff: str | None,
    ) -> ExportAnswer:
        """Export a part of the graph in another format."""

    def search(self, text: str, *, limit: int, cursor: str | None) -> EntityPage:
        """Find entities by the words in their names."""

    def details(self, entity: str) -> EntityDetails:
        """Return the details of one entity."""

    def column_lineage(self, dataset: str, column: str) -> ColumnDerivations:
        """Return the columns that a column derives from."""

    def diagnose(self, dataset: str, column: str) -> Diagnosis:
        """Trace a metric that looks wrong back to its sources."""

    def close(self) -> None:
        """Release connections and files."""


class LocalLineage:
    """The backend of a tracker on a store that this process opened itself."""

    def __init__(self, lineage: Lineage) -> None:
        self.lineage = lineage

    def send(self, events: Sequence[Event | bytes]) -> None:
        """Append events to the log, or raise if that is not possible now."""
        self.lineage.ingest(events)

    def name_entity(self, text: str) -> NodeId:
        """Return the id of a name, or the id it would get."""
        return self.lineage.flows.name_entity(text)

    def register_flows(self, flows: Sequence[Flow]) -> list[RegisteredFlow]:
        """Register flows. All of them are on disk when this returns."""
        return self.lineage.flows.register(flows)

    def submit_flow(self, flow: Flow) -> Future[RegisteredFlow]:
        """Register a flow in the background. The future resolves once it is on disk."""
        return self.lineage.flows.submit(flow)

    def register_pipeline(
        self, name: str, flows: Sequence[Flow], *, schedule: str | None, description: str
    ) -> RegisteredPipeline:
        """Register a pipeline and its steps."""
        return self.lineage.flows.register_pipeline(
            name, flows, schedule=schedule, description=description
        )

    def capture_sql(
        self, sql: str, *, dialect: str | None, description: str, ran: bool
    ) -> SqlCapture:
        """Read lineage from SQL and register it."""
        return self.lineage.capture.sql(sql, dialect=dialect, description=description, ran=ran)

    def related(
        self,
        entity: str,
        direction: Direction | str,
        *,
        depth: int | None,
        limit: int,
        as_of: str | None = None,
    ) -> EntityLineage:
        """Return what is upstream and downstream of an entity."""
        return self.lineage.entities.related(
            entity, direction, depth=depth, limit=limit, as_of=as_of
        )

    def paths(self, source: str, target: str, *, limit: int) -> Paths:
        """Return the paths from one entity to another."""
        return self.lineage.trace.paths(source, target, limit=limit)

    def analyze_impact(self, request: ImpactRequest, policy: Policy | None = None) -> ImpactAnswer:
        """Return the effects of a change and the verdict of a policy (None: the default policy)."""
        return self.lineage.impact.analyze(request, policy)

    def suggest_fix(self, request: ImpactRequest, code: SourceFiles | None) -> Fix:
        """Write the patch for a change to the given files, or to the repository of the store."""
        return self.lineage.impact.suggest_fix(request, code)

    def state_same(self, one: str, other: str, *, same: bool) -> SameStatement:
        """Record whether two names are one dataset."""
        return self.lineage.identity.state_same(one, other, same=same)

    def same_statements(self) -> SameStatements:
        """Return the recorded statements about names."""
        return self.lineage.identity.statements()

    def possible_cuts(self) -> PossibleCuts:
        """Return the pairs of datasets that may be one dataset under two names."""
        return self.lineage.identity.possible_cuts()

    def kpis(self) -> Kpis:
        """Return the KPIs of the whole graph."""
        return self.lineage.govern.kpis()

    def incident_report(self, entity: str, at: str | None) -> Incident:
        """Report the failures of an entity, the likely causes, and what is affected."""
        return self.lineage.govern.incident_report(entity, at)

    def quality(self, dataset: str) -> QualityScore:
        """Return the quality score of a dataset and the worst one upstream."""
        return self.lineage.quality(dataset)

    def tag_reach(self, tag: str) -> TagReach:
        """Return where a tag was set, and the columns that it reaches."""
        return self.lineage.govern.tag_reach(tag)

    def export(
        self,
        entity: str,
        output_format: str,
        direction: Direction | str,
        *,
        depth: int | None,
        as_of: str | None,
        focus: str | None,
        diff: str | None,
    ) -> ExportAnswer:
        """Export a part of the graph in another format."""
        return self.lineage.export(
            entity, output_format, direction, depth=depth, as_of=as_of, focus=focus, diff=diff
        )

    def search(self, text: str, *, limit: int, cursor: str | None) -> EntityPage:
        """Find entities by the words in their names."""
        return self.lineage.entities.search(text, limit=limit, cursor=cursor)

    def details(self, entity: str) -> EntityDetails:
        """Return the details of one entity."""
        return self.lineage.entities.details(entity)

    def column_lineage(self, dataset: str, column: str) -> ColumnDerivations:
        """Return the columns that a column derives from."""
        return self.lineage.entities.column_lineage(dataset, column)

    def diagnose(self, dataset: str, column: str) -> Diagnosis:
        """Trace a metric that looks wrong back to its sources."""
        return self.lineage.entities.diagnose(dataset, column)

    def close(self) -> None:
        """Release the store."""
        self.lineage.close()
