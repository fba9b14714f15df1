"""Flows that people register, alone or in batches. Each ends as an event in the log."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from downriver.errors import DownriverError, InvalidRequestError, StoreError
from downriver.fork_safety import renew_in_child
from downriver.graph.names.entity_ids import EntityNames
from downriver.model.flows import Flow, RegisteredFlow, RegisteredPipeline
from downriver.model.ids import DEFAULT_NAMESPACE, JobId
from downriver.openlineage.events import flow_event, pipeline_event
from downriver.openlineage.wire import render_time
from downriver.service.session import now

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.model.ids import NodeId
    from downriver.openlineage import Event
    from downriver.service.session import StoreSession
    from downriver.store import Receipt

    Waiting: TypeAlias = tuple[Flow, Future[RegisteredFlow]]
    Prepare: TypeAlias = Callable[[list[Flow]], tuple[list[RegisteredFlow], list[Event]]]
    Submit: TypeAlias = Callable[[list[Event]], list[Future[Receipt]]]

_LARGEST_BATCH = 512


class FlowQueue:
    """Takes flows from any thread; queued flows are resolved and written as one batch."""

    def __init__(self, prepare: Prepare, submit: Submit) -> None:
        self._prepare = prepare
        self._submit = submit
        self._waiting: deque[Waiting] = deque()
        self._closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="downriver-flows", daemon=True)
        self._thread.start()

    def put(self, flow: Flow) -> Future[RegisteredFlow]:
        """Queue a flow; the future resolves once it is on disk."""
        future: Future[RegisteredFlow] = Future()
        future.set_running_or_notify_cancel()  # so that it cannot be cancelled
        with self._changed:
            if self._closing:
                raise StoreError("the store is closing")
            self._waiting.append((flow, future))
            self._changed.notify()
        return future

    def close(self) -> None:
        """Write the queued flows, then stop."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while batch := self._next_batch():
            self._register(batch)

    def _next_batch(self) -> list[Waiting]:
        with self._changed:
            while not self._waiting and not self._closing:
                self._changed.wait()
            count = min(len(self._waiting), _LARGEST_BATCH)
            return [self._waiting.popleft() for _ in range(count)]

    def _register(self, batch: list[Waiting]) -> None:
        try:
            registered, events = self._prepare([flow for flow, _ in batch])
            receipts = self._submit(events)
        except DownriverError as exc:
            self._register_singly(batch, exc)
            return
        for (_, future), done, receipt in zip(batch, registered, receipts, strict=True):
            receipt.add_done_callback(partial(_resolve_future, future, done))

    def _register_singly(self, batch: list[Waiting], failure: DownriverError) -> None:
        """Register each flow alone, so that an invalid one does not fail the others."""
        if len(batch) == 1:
            batch[0][1].set_exception(failure)
            return
        for one in batch:
            self._register([one])


def _resolve_future(
    future: Future[RegisteredFlow], done: RegisteredFlow, receipt: Future[Receipt]
) -> None:
    failure = receipt.exception()
    if failure is None:
        future.set_result(done)
    else:
        future.set_exception(failure)


class FlowApi:
    """Registers flows, one by one or many at once."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Replace the threads and locks after a fork: those of the parent do not work here."""
        self._queue: FlowQueue | None = None
        self._starting = threading.Lock()

    def register(
        self, flows: Sequence[Flow], *, namespace: str = DEFAULT_NAMESPACE
    ) -> list[RegisteredFlow]:
        """Register flows; all of them are on disk when this returns."""
        registered, events = self._prepare_flows(flows, namespace)
        self._session.ingest_many(events)
        return registered

    def submit(self, flow: Flow) -> Future[RegisteredFlow]:
        """Queue a flow; it is written together with others that are registered meanwhile."""
        with self._starting:
            if self._queue is None:
                prepare = partial(self._prepare_flows, namespace=DEFAULT_NAMESPACE)
                self._queue = FlowQueue(prepare, self._session.submit)
        return self._queue.put(flow)

    def close(self) -> None:
        """Write the queued flows."""
        if self._queue is not None:
            self._queue.close()
            self._queue = None

    def name_entity(self, text: str, *, namespace: str = DEFAULT_NAMESPACE) -> NodeId:
        """Return the node of a name, or the new node that the name would create."""
        with self._session.reading() as view:
            names = EntityNames(view.reader, view.graph.nodes.identities, namespace)
            return names.node_for(text, "entity_id")

    def register_pipeline(
        self,
        name: str,
        flows: Sequence[Flow],
        *,
        schedule: str | None = None,
        description: str = "",
        namespace: str = DEFAULT_NAMESPACE,
    ) -> RegisteredPipeline:
        """Register a pipeline and every step of it."""
        with self._session.reading() as view:
            names = EntityNames(view.reader, view.graph.nodes.identities, namespace)
            done, events = prepare_pipeline(
                name, flows, schedule, description, node_for=names.node_for, namespace=namespace
            )
        self._session.ingest_many(events)
        return done

    def _prepare_flows(
        self, flows: Sequence[Flow], namespace: str
    ) -> tuple[list[RegisteredFlow], list[Event]]:
        with self._session.reading() as view:
            names = EntityNames(view.reader, view.graph.nodes.identities, namespace)
            return prepare_flows(flows, names.node_for)


def prepare_flows(
    flows: Sequence[Flow], node_for: Callable[[str, str], NodeId]
) -> tuple[list[RegisteredFlow], list[Event]]:
    """Return the answer to registering flows, and the events to store for it.

    `node_for` resolves a name; its second argument is the field, for error messages.
    """
    at = now()
    registered: list[RegisteredFlow] = []
    events: list[Event] = []
    for flow in flows:
        source = node_for(flow.source_id, "source_id")
        target = node_for(flow.target_id, "target_id")
        if source == target:
            raise InvalidRequestError("target_id", f"{flow.target_id!r} is also the source")
        event = flow_event(flow, source, target, at)
        events.append(event)
        registered.append(_registered(flow, str(source), str(target), at, event))
    return registered, events


def prepare_pipeline(
    name: str,
    flows: Sequence[Flow],
    schedule: str | None,
    description: str,
    *,
    node_for: Callable[[str, str], NodeId],
    namespace: str = DEFAULT_NAMESPACE,
) -> tuple[RegisteredPipeline, list[Event]]:
    """Return the answer to registering a pipeline, and the events to store for it."""
    if not name.strip():
        raise InvalidRequestError("name", "empty")
    if not flows:
        raise InvalidRequestError("steps", "a pipeline has at least one step")
    steps = [_step(flow, name, schedule) for flow in flows]
    registered, events = prepare_flows(steps, node_for)
    job = JobId(namespace, name.strip())
    itself = pipeline_event(job, now(), steps, schedule, description)
    done = RegisteredPipeline(
        pipeline_name=name, steps_registered=len(steps), schedule=schedule, flows=registered
    )
    return done, [*events, itself]


def _step(flow: Flow, pipeline: str, schedule: str | None) -> Flow:
    return Flow(
        source_id=flow.source_id,
        target_id=flow.target_id,
        flow_type=flow.flow_type,
        transformation=flow.transformation,
        schedule=flow.schedule or schedule,
        metadata=flow.metadata,
        pipeline=pipeline,
    )


def _registered(flow: Flow, source: str, target: str, at: int, event: Event) -> RegisteredFlow:
    return RegisteredFlow(
        flow_id=f"flow:{event.ref.digest.hex()}",
        source_id=flow.source_id,
        target_id=flow.target_id,
        flow_type=flow.flow_type,
        transformation=flow.transformation,
        schedule=flow.schedule,
        pipeline=flow.pipeline,
        source=source,
        target=target,
        registered_at=render_time(at),
    )
