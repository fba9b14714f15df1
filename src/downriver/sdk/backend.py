"""What a tracker needs of whoever holds the lineage: a store here, or a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    from downriver.impact import Fix, Policy, SourceFiles
    from downriver.model.answers import Direction, Paths
    from downriver.model.flows import (
        ColumnDerivation,
        EntityDetails,
        EntityLineage,
        EntityPage,
        ExportAnswer,
        Flow,
        RegisteredFlow,
        RegisteredPipeline,
    )
    from downriver.model.governance import Diagnosis, Incident, Kpis
    from downriver.model.ids import NodeId
    from downriver.model.verdicts import ImpactAnswer, ImpactRequest
    from downriver.service import SqlCapture


class Backend(Protocol):
    """Registers lineage and answers questions about it. Safe to share between threads."""

    def send(self, events: list[bytes]) -> None:
        """Put events into the log, or raise when that cannot be done now."""

    def name_entity(self, text: str) -> NodeId:
        """Return what a name means, or would mean if it were new; waits for no server."""

    def register_flows(self, flows: Sequence[Flow]) -> list[RegisteredFlow]:
        """Register flows; all of them are on disk when this returns."""

    def submit_flow(self, flow: Flow) -> Future[RegisteredFlow]:
        """Take a flow; the future resolves once it is on disk, with others that came meanwhile."""

    def register_pipeline(
        self, name: str, flows: Sequence[Flow], *, schedule: str | None, description: str
    ) -> RegisteredPipeline:
        """Register a pipeline and every step of it."""

    def capture_sql(
        self, sql: str, *, dialect: str | None, description: str, ran: bool
    ) -> SqlCapture:
        """Read lineage from SQL and register it."""

    def related(
        self, entity: str, direction: Direction | str, *, depth: int | None, limit: int
    ) -> EntityLineage:
        """Answer what feeds an entity and what it feeds."""

    def paths(self, source: str, target: str, *, limit: int) -> Paths:
        """Answer by which routes data gets from one entity to another."""

    def analyze_impact(self, request: ImpactRequest, policy: Policy | None = None) -> ImpactAnswer:
        """Answer what a change does, and what a policy, the default one for None, says of it."""

    def suggest_fix(self, request: ImpactRequest, code: SourceFiles | None) -> Fix:
        """Write the patch for a change: to these files, or to those known where lineage is."""

    def kpis(self) -> Kpis:
        """Answer how the whole graph is doing."""

    def incident_report(self, entity: str, at: str | None) -> Incident:
        """Answer what is wrong with an entity, where from, and whom it concerns."""

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
        """Write a piece of the graph down in another format."""

    def search(self, text: str, *, limit: int, cursor: str | None) -> EntityPage:
        """Find entities by the words in their names."""

    def details(self, entity: str) -> EntityDetails:
        """Answer with all that is known of one entity."""

    def column_lineage(self, dataset: str, column: str) -> list[ColumnDerivation]:
        """Answer from which columns a column is made."""

    def diagnose(self, dataset: str, column: str) -> Diagnosis:
        """Trace a metric that looks wrong back to its sources."""

    def close(self) -> None:
        """Release what is held."""
