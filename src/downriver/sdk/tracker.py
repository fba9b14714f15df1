"""The trackers, synchronous and async, and `lineage()`, which opens one."""

from __future__ import annotations

import asyncio
import functools
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from downriver import settings
from downriver.capture.emit import Emitter, Spool
from downriver.capture.functions.runs import name_dataset
from downriver.capture.sql import ColumnEdge, parse_sql_lineage
from downriver.errors import InvalidRequestError
from downriver.model.answers import MappingStruct
from downriver.model.flows import Flow
from downriver.sdk.backend import LocalLineage
from downriver.sdk.decorators import emit_documentation, track_calls
from downriver.sdk.delivery import flush_shared, open_spool
from downriver.sdk.queries import TrackerQueries
from downriver.sdk.remote import RemoteLineage
from downriver.service import DEFAULT_NAMESPACE, Lineage
from downriver.store import MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
    from concurrent.futures import Future
    from types import TracebackType

    from downriver.capture.functions import ColumnLineage
    from downriver.capture.mlflow import MlflowHook
    from downriver.model.answers import SameStatement
    from downriver.model.flows import RegisteredFlow, RegisteredPipeline
    from downriver.model.ids import NodeId
    from downriver.openlineage.wire import Event
    from downriver.sdk.backend import Backend
    from downriver.sdk.decorators import DatasetName, DatasetNames, F
    from downriver.service.capture import SqlCapture


class SqlFlows(MappingStruct, kw_only=True):
    """The flows that capturing a SQL statement registered."""

    source_tables: list[str]
    target_tables: list[str]
    flows_registered: list[dict[str, str]]
    flow_count: int
    columns: list[ColumnEdge]
    complete: bool
    blind_spots: list[str]


def make_flow(flow: Flow | Mapping[str, Any]) -> Flow:
    """Return a flow, given as one or as a dictionary of its fields. Unknown fields are an error."""
    if isinstance(flow, Flow):
        return flow
    given = dict(flow)
    for name, other in (("source", "source_id"), ("target", "target_id")):
        if name in given:
            given.setdefault(other, given.pop(name))
    unknown = given.keys() - set(Flow.__struct_fields__)
    if unknown:
        raise InvalidRequestError("flow", f"unknown fields: {', '.join(sorted(map(str, unknown)))}")
    for name in ("source_id", "target_id"):
        if given.get(name) is None:
            raise InvalidRequestError(name, "missing; write it like table:orders or api:stripe")
        given[name] = name_dataset(given[name])
    fields = {name: value for name, value in given.items() if value is not None}
    fields["metadata"] = dict(fields.get("metadata", {}))
    return Flow(**fields)


def sql_flows(capture: SqlCapture, transformation: str) -> SqlFlows:
    """Return the flows of a script: from each table a statement reads to each it writes."""
    sql_lineage = capture.lineage
    pairs = {
        (source, target)
        for statement in sql_lineage.statements
        for source in statement.inputs
        for target in statement.outputs
    }
    flows = [
        {"source": source, "target": target, "transformation": transformation}
        for source, target in sorted(pairs)
    ]
    return SqlFlows(
        source_tables=sql_lineage.inputs,
        target_tables=sql_lineage.outputs,
        flows_registered=flows,
        flow_count=len(flows),
        columns=[*sql_lineage.column_edges, *sql_lineage.dataset_edges],
        complete=sql_lineage.complete,
        blind_spots=[spot.message for spot in sql_lineage.blind_spots],
    )


class SyncTracker(TrackerQueries):
    """Registers lineage and answers questions about it. Safe to share between threads."""

    def __init__(self, backend: Backend, spool: Spool) -> None:
        self._backend = backend
        self._emitter = Emitter(backend.send, spool)
        self._mlflow: MlflowHook | None = None

    @property
    def backend(self) -> Backend:
        """The store or server, after it has received all events of tracked functions so far."""
        self.flush()
        return self._backend

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until all events are sent or spooled. False if that takes longer than `timeout`."""
        read = self._mlflow is None or self._mlflow.flush(timeout)
        return flush_shared(timeout) and self._emitter.flush(timeout) and read

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

    def mlflow(self, *, write_tags: bool = True) -> MlflowHook:
        """Record the MLflow runs of this process: datasets, training run, model versions, features.

        A run is read when it ends, and again when its model is registered or gets an alias. With
        `write_tags`, its lineage id is written into its tags.
        """
        from downriver.capture.mlflow import MlflowHook

        if self._mlflow is None:
            self._mlflow = MlflowHook(self._emit, write_tags=write_tags)
            self._mlflow.install()
        return self._mlflow

    def _emit(self, event: Event) -> None:
        self._emitter.close_at_exit()
        self._emitter.emit(event)

    def _name_entity(self, text: str) -> NodeId:
        return self._backend.name_entity(text)

    def register_flow(
        self,
        source_id: DatasetName,
        target_id: DatasetName,
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
        source_id: DatasetName,
        target_id: DatasetName,
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
        if self._mlflow is not None:
            self._mlflow.flush()
            self._mlflow.uninstall()
        self._emitter.close()
        self._backend.close()


P = ParamSpec("P")
R = TypeVar("R")


def _async(
    method: Callable[Concatenate[SyncTracker, P], R],
) -> Callable[Concatenate[Tracker, P], Coroutine[Any, Any, R]]:
    """Return an async method that runs `method` in a thread, with its signature and docstring."""

    @functools.wraps(method)
    async def call(self: Tracker, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(method, self.sync, *args, **kwargs)

    return call


def _async_future(
    start: Callable[Concatenate[SyncTracker, P], Future[R]],
    method: Callable[Concatenate[SyncTracker, P], R],
) -> Callable[Concatenate[Tracker, P], Coroutine[Any, Any, R]]:
    """Return an async method that awaits the future of `start`, without a thread."""

    @functools.wraps(method)
    async def call(self: Tracker, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.wrap_future(start(self.sync, *args, **kwargs))

    return call


class Tracker:
    """Registers lineage and answers questions about it. `sync` is the same without `await`."""

    def __init__(self, sync: SyncTracker) -> None:
        self.sync = sync
        self.track = sync.track
        self.mlflow = sync.mlflow

    register_flow = _async_future(SyncTracker.start_flow, SyncTracker.register_flow)
    register_flows = _async(SyncTracker.register_flows)
    register_pipeline = _async(SyncTracker.register_pipeline)
    capture_sql_lineage = _async(SyncTracker.capture_sql_lineage)
    trace_lineage = _async(SyncTracker.trace_lineage)
    trace_upstream = _async(SyncTracker.trace_upstream)
    trace_downstream = _async(SyncTracker.trace_downstream)
    find_lineage_paths = _async(SyncTracker.find_lineage_paths)
    analyze_impact = _async(SyncTracker.analyze_impact)
    suggest_fix = _async(SyncTracker.suggest_fix)
    mark_same = _async(SyncTracker.mark_same)
    list_same = _async(SyncTracker.list_same)
    find_cuts = _async(SyncTracker.find_cuts)
    kpis = _async(SyncTracker.kpis)
    incident_report = _async(SyncTracker.incident_report)
    tag_reach = _async(SyncTracker.tag_reach)
    require = _async(SyncTracker.require)
    export_lineage = _async(SyncTracker.export_lineage)
    search_entities = _async(SyncTracker.search_entities)
    get_entity = _async(SyncTracker.get_entity)
    get_column_lineage = _async(SyncTracker.get_column_lineage)
    diagnose_metric = _async(SyncTracker.diagnose_metric)
    get_last_updated = _async(SyncTracker.get_last_updated)
    get_upstreams = _async(SyncTracker.get_upstreams)
    get_downstreams = _async(SyncTracker.get_downstreams)
    get_upstream_chain = _async(SyncTracker.get_upstream_chain)
    get_downstream_impact = _async(SyncTracker.get_downstream_impact)
    document_column_lineage = _async(SyncTracker.document_column_lineage)
    flush = _async(SyncTracker.flush)
    close = _async(SyncTracker.close)

    async def __aenter__(self) -> Tracker:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        await self.close()


def lineage(location: str | None = None, *, create: bool = True) -> Tracker:
    """Open the lineage at `location`: a directory, postgresql://…, a server URL or `:memory:`.

    The default is DOWNRIVER_URL, else DOWNRIVER_STORE, else the nearest `.downriver/`. A missing
    store is created unless `create` is false.
    """
    return Tracker(lineage_sync(location, create=create))


def lineage_sync(location: str | None = None, *, create: bool = True) -> SyncTracker:
    """Open a synchronous tracker. The arguments are those of `lineage`."""
    target = location or settings.read_text(settings.URL)
    if target.startswith(("http://", "https://")):
        spool = open_spool()
        remote = RemoteLineage(target, settings.read_text(settings.API_KEY), spool)
        return SyncTracker(remote, spool)
    return SyncTracker(LocalLineage(Lineage.open(location, create=create)), _spool_beside(location))


def _spool_beside(location: str | None) -> Spool:
    """Return the spool of one store. Each store has its own, so that events are not mixed."""
    if location == MEMORY:
        return Spool(Path(tempfile.gettempdir()) / "downriver-memory-spool")
    if not location or "://" in location:
        return open_spool()
    path = Path(location).expanduser()
    return Spool((path.parent if path.suffix == ".db" else path) / "spool")
