"""The tracker for code that does not await."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from downriver.capture.emit import Emitter
from downriver.capture.sql import parse_sql_lineage
from downriver.graph.entity_names import short_id
from downriver.model.flows import (
    DownstreamAnswer,
    Flow,
    LineageAnswer,
    PathsAnswer,
    UpstreamAnswer,
)
from downriver.model.impact_answers import ImpactRequest
from downriver.sending import flush_shared
from downriver.service import DEFAULT_NAMESPACE
from downriver.service.relating import MOST_RELATED
from downriver.tracker.flows import SqlFlows, make_flow, sql_flows
from downriver.tracker.functions import document, tracked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from concurrent.futures import Future

    from downriver.capture.emit import Spool
    from downriver.capture.functions import ColumnLineage
    from downriver.model.diagnoses import Diagnosis
    from downriver.model.flows import (
        ColumnDerivation,
        EntityDetails,
        EntityPage,
        ExportAnswer,
        RegisteredFlow,
        RegisteredPipeline,
        Related,
    )
    from downriver.model.ids import NodeId
    from downriver.model.impact_answers import ImpactAnswer
    from downriver.tracker.backend import Backend
    from downriver.tracker.functions import Ends, F


class SyncTracker:
    """Registers lineage and asks questions about it. Safe to share between threads."""

    def __init__(self, open_backend: Callable[[], Backend], spool: Spool) -> None:
        self._open = open_backend
        self._spool = spool
        self._connect()

    def _connect(self) -> None:
        self._process = os.getpid()
        self._holder = self._open()
        self._sender = Emitter(self._holder.send, self._spool)

    def _reconnect_after_fork(self) -> None:
        """Open anew in a forked process: connections and threads of its parent are none of its."""
        if self._process != os.getpid():
            self._connect()

    @property
    def _backend(self) -> Backend:
        self._reconnect_after_fork()
        return self._holder

    @property
    def _emitter(self) -> Emitter:
        self._reconnect_after_fork()
        return self._sender

    @property
    def backend(self) -> Backend:
        """Who holds the lineage, after what tracked functions did until now has arrived there."""
        self.flush()
        return self._backend

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until what tracked functions did is sent or spooled; False if that takes longer."""
        return flush_shared(timeout) and self._emitter.flush(timeout)

    def track(
        self,
        source: Ends = None,
        target: Ends = None,
        transformation: str | None = None,
        *,
        auto: bool = False,
        name: str | None = None,
        columns: Sequence[ColumnLineage] = (),
    ) -> Callable[[F], F]:
        """Record every call of a function as a run that reads `source` and writes `target`.

        Text in braces is taken from the call's arguments. With `auto`, what pandas, polars,
        pyarrow and duckdb read and write inside is added. A call that raises is a failed run, and
        no lineage.
        """
        return tracked(
            source,
            target,
            emit=self._emit,
            names=self._name_entity,
            auto=auto,
            job_name=name,
            description=transformation or "",
            columns=columns,
        )

    def document_column_lineage(
        self, job_name: str, lineage: Sequence[ColumnLineage], *, output: str | None = None
    ) -> None:
        """Say how a job makes the columns of `output`, or of what the columns' names begin with."""
        document(
            job_name,
            lineage,
            output,
            namespace=DEFAULT_NAMESPACE,
            emit=self._emit,
            names=self._name_entity,
        )

    def _emit(self, event: bytes) -> None:
        self._emitter.close_at_exit()
        self._emitter.emit(event)

    def _name_entity(self, text: str) -> NodeId:
        return self._backend.name_entity(text)

    # Registering

    def register_flow(
        self,
        source_id: str,
        target_id: str,
        flow_type: str = "batch",
        transformation: str | None = None,
        schedule: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> RegisteredFlow:
        """Register that data goes from one entity to another; on disk when this returns."""
        return self.start_flow(
            source_id, target_id, flow_type, transformation, schedule, metadata
        ).result()

    def start_flow(
        self,
        source_id: str,
        target_id: str,
        flow_type: str = "batch",
        transformation: str | None = None,
        schedule: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Future[RegisteredFlow]:
        """Begin to register a flow; the future resolves once it is on disk."""
        flow = make_flow(
            {
                "source_id": source_id,
                "target_id": target_id,
                "flow_type": flow_type,
                "transformation": transformation,
                "schedule": schedule,
                "metadata": metadata,
            }
        )
        return self._backend.submit_flow(flow)

    def register_flows(self, flows: Iterable[Flow | Mapping[str, Any]]) -> list[RegisteredFlow]:
        """Register many flows at once: far quicker than one by one."""
        return self.backend.register_flows([make_flow(flow) for flow in flows])

    def register_pipeline(
        self,
        name: str,
        steps: Sequence[Flow | Mapping[str, Any]],
        schedule: str | None = None,
        description: str = "",
    ) -> RegisteredPipeline:
        """Register a pipeline: steps with `source_id`, `target_id` and `transformation`."""
        return self.backend.register_pipeline(
            name, [make_flow(step) for step in steps], schedule=schedule, description=description
        )

    def capture_sql_lineage(
        self,
        sql: str,
        context_table: str | None = None,
        transformation: str | None = None,
        *,
        dialect: str | None = None,
    ) -> SqlFlows:
        """Register the flows of a statement that was run, from its text.

        `context_table` is where the rows of a bare SELECT went.
        """
        text = sql
        if context_table and not parse_sql_lineage(sql, dialect=dialect).outputs:
            text = f"INSERT INTO {context_table}\n{sql}"
        described = transformation or ""
        capture = self.backend.capture_sql(text, dialect=dialect, description=described, ran=True)
        return sql_flows(capture, described)

    # Asking

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
            entity_id=entity_id,
            lineage=found,
            upstream_count=len(found.upstream),
            downstream_count=len(found.downstream),
            omitted_count=found.omitted_count,
            complete=found.complete,
            blind_spots=found.blind_spots,
        )

    def trace_upstream(
        self, entity_id: str, max_depth: int | None = None, *, limit: int = MOST_RELATED
    ) -> UpstreamAnswer:
        """Answer what feeds an entity, nearest first."""
        found = self.backend.related(entity_id, "upstream", depth=max_depth, limit=limit)
        return UpstreamAnswer(
            entity_id=entity_id,
            upstream_sources=found.upstream,
            count=len(found.upstream),
            omitted_count=found.omitted_count,
            complete=found.complete,
            blind_spots=found.blind_spots,
        )

    def trace_downstream(
        self, entity_id: str, max_depth: int | None = None, *, limit: int = MOST_RELATED
    ) -> DownstreamAnswer:
        """Answer what an entity feeds, nearest first."""
        found = self.backend.related(entity_id, "downstream", depth=max_depth, limit=limit)
        return DownstreamAnswer(
            entity_id=entity_id,
            downstream_consumers=found.downstream,
            count=len(found.downstream),
            omitted_count=found.omitted_count,
            complete=found.complete,
            blind_spots=found.blind_spots,
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
                changes=None if changes is None else [dict(change) for change in changes],
            )
        )

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

    def get_upstream_chain(self, dataset: str) -> list[str]:
        """Return the ids of every dataset upstream of one, nearest first."""
        found = self.backend.related(dataset, "upstream", depth=None, limit=MOST_RELATED)
        return _datasets(found.upstream)

    def get_downstream_impact(self, dataset: str) -> list[str]:
        """Return the ids of every dataset downstream of one, nearest first."""
        found = self.backend.related(dataset, "downstream", depth=None, limit=MOST_RELATED)
        return _datasets(found.downstream)

    def close(self) -> None:
        """Send what waits, and release the store or the connection."""
        self._emitter.close()
        self._backend.close()


def _datasets(related: list[Related]) -> list[str]:
    return [entity.entity_id for entity in related if entity.kind == "dataset"]
