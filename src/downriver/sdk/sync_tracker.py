"""The synchronous tracker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from downriver.capture.emit import Emitter
from downriver.capture.sql import parse_sql_lineage
from downriver.model.flows import (
    Flow,
)
from downriver.sdk.decorators import emit_documentation, track_calls
from downriver.sdk.delivery import flush_shared
from downriver.sdk.flows import SqlFlows, make_flow, sql_flows
from downriver.sdk.queries import TrackerQueries
from downriver.service import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from concurrent.futures import Future

    from downriver.capture.emit import Spool
    from downriver.capture.functions import ColumnLineage
    from downriver.model.answers import SameStatement
    from downriver.model.flows import (
        RegisteredFlow,
        RegisteredPipeline,
    )
    from downriver.model.ids import NodeId
    from downriver.openlineage.wire import Event
    from downriver.sdk.backend import Backend
    from downriver.sdk.decorators import DatasetNames, F


class SyncTracker(TrackerQueries):
    """Registers lineage and answers questions about it. Safe to share between threads."""

    def __init__(self, backend: Backend, spool: Spool) -> None:
        self._backend = backend
        self._emitter = Emitter(backend.send, spool)

    @property
    def backend(self) -> Backend:
        """The store or server, after it has received all events of tracked functions so far."""
        self.flush()
        return self._backend

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until all events are sent or spooled. False if that takes longer than `timeout`."""
        return flush_shared(timeout) and self._emitter.flush(timeout)

    def track(
        self,
        source: DatasetNames = None,
        target: DatasetNames = None,
        transformation: str | None = None,
        *,
        auto: bool = False,
        name: str | None = None,
        columns: Sequence[ColumnLineage] = (),
    ) -> Callable[[F], F]:
        """Record every call of a function as a run that reads `source` and writes `target`.

        Text in braces is replaced by the call's arguments. With `auto`, datasets that pandas,
        polars, pyarrow and duckdb read or write during the call are added. A call that raises is
        a failed run and adds no lineage.
        """
        return track_calls(
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
        """Record how a job derives the columns of `output`, or of the dataset that they name."""
        emit_documentation(
            job_name,
            lineage,
            output,
            namespace=DEFAULT_NAMESPACE,
            emit=self._emit,
            names=self._name_entity,
        )

    def _emit(self, event: Event) -> None:
        self._emitter.close_at_exit()
        self._emitter.emit(event)

    def _name_entity(self, text: str) -> NodeId:
        return self._backend.name_entity(text)

    def register_flow(
        self,
        source_id: str,
        target_id: str,
        flow_type: str = "batch",
        transformation: str | None = None,
        schedule: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> RegisteredFlow:
        """Register that data flows from one entity to another. It is on disk when this returns."""
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
        """Register a flow in the background. The future resolves once it is on disk."""
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
        """Register many flows at once, which is much faster than one by one."""
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
        """Register the flows of a SQL statement that was executed.

        `context_table` is the table that received the rows of a SELECT.
        """
        text = sql
        if context_table and not parse_sql_lineage(sql, dialect=dialect).outputs:
            text = f"INSERT INTO {context_table}\n{sql}"
        described = transformation or ""
        capture = self.backend.capture_sql(text, dialect=dialect, description=described, ran=True)
        return sql_flows(capture, described)

    def mark_same(self, dataset: str, other: str, *, undo: bool = False) -> SameStatement:
        """Record that two names are one dataset, or with `undo` that they are different."""
        return self.backend.state_same(dataset, other, same=not undo)

    def close(self) -> None:
        """Send remaining events, and release the store or the connection."""
        self._emitter.close()
        self._backend.close()
