"""Lineage that a server holds, asked over HTTP."""

from __future__ import annotations

import http.client
import logging
import os
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec

from downriver import errors
from downriver.capture.emit import HttpSender
from downriver.capture.naming import new_node
from downriver.events.wire import parse_event
from downriver.model.answers import Paths
from downriver.model.diagnoses import Diagnosis
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
from downriver.model.ids import DatasetId
from downriver.model.impact_answers import ImpactAnswer, ImpactRequest
from downriver.service import DEFAULT_NAMESPACE, SqlCapture
from downriver.service.capturing import read_sql
from downriver.service.flowing import prepare_flows, prepare_pipeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.capture.emit import Spool
    from downriver.events import Event
    from downriver.model.answers import Direction
    from downriver.model.ids import NodeId

T = TypeVar("T")
log = logging.getLogger("downriver")

_AT_ONCE = 16
_READ_TIMEOUT = 60.0
_WRITE_TIMEOUT = 10.0  # whoever registers may be a job at work: then it is spooled
_FAILED = 400


class _Failure(msgspec.Struct):
    """The one shape of error body."""

    error: str = ""
    detail: str = ""
    field: str | None = None
    near: list[str] = []
    candidates: list[str] = []


class _Flows(msgspec.Struct):
    flows: list[RegisteredFlow]


class _Derivations(msgspec.Struct):
    derivations: list[ColumnDerivation]


class RemoteLineage:
    """Asks one server over connections that are kept. Safe to share between threads."""

    def __init__(self, url: str, key: str, spool: Spool) -> None:
        self._spool = spool
        self._sender = HttpSender(url, key)
        self._sending = threading.Lock()
        self._url = url.rstrip("/")
        self._parts = urlsplit(self._url)
        self._headers = {"Content-Type": "application/json", "User-Agent": "downriver"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._idle: deque[http.client.HTTPConnection] = deque()
        self._process = os.getpid()
        self._pool = ThreadPoolExecutor(_AT_ONCE, "downriver-remote")  # threads start when needed

    def send(self, events: list[bytes]) -> None:
        """Put events into the server's log, or raise when that cannot be done now."""
        with self._sending:
            self._sender(events)

    def name_entity(self, text: str) -> NodeId:
        """Return what a name means where no catalog is asked: a function must not wait for one."""
        return new_node(text, DEFAULT_NAMESPACE)

    def register_flows(self, flows: Sequence[Flow]) -> list[RegisteredFlow]:
        """Register flows; where the server is down they are spooled, and say so."""
        try:
            return self._post("/v1/flows", {"flows": flows}, _Flows).flows
        except errors.ServerUnreachableError as exc:
            registered, events = prepare_flows(flows, _offline)
            self._keep(events, exc)
            return [_spooled(flow) for flow in registered]

    def submit_flow(self, flow: Flow) -> Future[RegisteredFlow]:
        """Take a flow; a few requests are under way at once, and the server joins their commits."""
        return self._pool.submit(lambda: self.register_flows([flow])[0])

    def register_pipeline(
        self, name: str, flows: Sequence[Flow], *, schedule: str | None, description: str
    ) -> RegisteredPipeline:
        """Register a pipeline and every step of it."""
        body = {"name": name, "steps": flows, "schedule": schedule, "description": description}
        try:
            return self._post("/v1/pipelines", body, RegisteredPipeline)
        except errors.ServerUnreachableError as exc:
            done, events = prepare_pipeline(name, flows, schedule, description, node_for=_offline)
            self._keep(events, exc)
            done.flows = [_spooled(flow) for flow in done.flows]
            return done

    def capture_sql(
        self, sql: str, *, dialect: str | None, description: str, ran: bool
    ) -> SqlCapture:
        """Read lineage from SQL and register it."""
        body = {"sql": sql, "dialect": dialect, "description": description, "ran": ran}
        try:
            return self._post("/v1/sql", body, SqlCapture)
        except errors.ServerUnreachableError as exc:
            capture, event = read_sql(
                sql, dialect=dialect, description=description, ran=ran, names=offline_dataset
            )
            self._keep([parse_event(event)] if capture.registered else [], exc)
            return capture

    def _keep(self, events: list[Event], failure: errors.ServerUnreachableError) -> None:
        """Spool events that could not be sent: whoever registers them may be a job at work."""
        log.warning("%s; %d events are kept to be sent later", failure.message, len(events))
        self._spool.add([event.raw for event in events])

    def related(
        self, entity: str, direction: Direction | str, *, depth: int | None, limit: int
    ) -> EntityLineage:
        """Answer what feeds an entity and what it feeds."""
        asked = {"entity": entity, "direction": direction, "depth": depth, "limit": limit}
        return self._get("/v1/related", asked, EntityLineage)

    def paths(self, source: str, target: str, *, limit: int) -> Paths:
        """Answer by which routes data gets from one entity to another."""
        return self._get("/v1/paths", {"source": source, "target": target, "limit": limit}, Paths)

    def analyze_impact(self, request: ImpactRequest) -> ImpactAnswer:
        """Answer what a change does."""
        return self._post("/v1/impact", request, ImpactAnswer)

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
        asked = {
            "entity": entity,
            "format": output_format,
            "direction": direction,
            "depth": depth,
            "as_of": as_of,
            "focus": focus,
            "diff": diff,
        }
        return self._get("/v1/export", asked, ExportAnswer)

    def search(self, text: str, *, limit: int, cursor: str | None) -> EntityPage:
        """Find entities by the words in their names."""
        return self._get("/v1/search", {"text": text, "limit": limit, "cursor": cursor}, EntityPage)

    def details(self, entity: str) -> EntityDetails:
        """Answer with all that is known of one entity."""
        return self._get("/v1/entity", {"entity": entity}, EntityDetails)

    def column_lineage(self, dataset: str, column: str) -> list[ColumnDerivation]:
        """Answer from which columns a column is made."""
        asked = {"dataset": dataset, "column": column}
        return self._get("/v1/column-lineage", asked, _Derivations).derivations

    def diagnose(self, dataset: str, column: str) -> Diagnosis:
        """Trace a metric that looks wrong back to its sources."""
        return self._get("/v1/diagnosis", {"dataset": dataset, "column": column}, Diagnosis)

    def close(self) -> None:
        """Finish what is under way and close every connection."""
        self._pool.shutdown()
        self._sender.close()
        while self._idle:
            self._idle.pop().close()

    # Asking

    def _get(self, path: str, asked: dict[str, Any], kind: type[T]) -> T:
        given = {name: str(value) for name, value in asked.items() if value is not None}
        return self._ask("GET", f"{path}?{urlencode(given)}", None, kind)

    def _post(self, path: str, body: Any, kind: type[T]) -> T:
        return self._ask("POST", path, msgspec.json.encode(body), kind)

    def _ask(self, method: str, path: str, body: bytes | None, kind: type[T]) -> T:
        timeout = _READ_TIMEOUT if method == "GET" else _WRITE_TIMEOUT
        status, answer = self._request(method, self._parts.path + path, body, timeout)
        if status >= _FAILED:
            raise _error_of(self._url, status, answer)
        try:
            return msgspec.json.decode(answer, type=kind)
        except msgspec.DecodeError as exc:
            reason = f"its answer to {method} {path.partition('?')[0]} cannot be read: {exc}"
            raise errors.ServerError(self._url, reason) from exc

    def _request(
        self, method: str, path: str, body: bytes | None, timeout: float
    ) -> tuple[int, bytes]:
        connection = self._take()
        connection.timeout = timeout
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        try:
            try:
                connection.request(method, path, body, self._headers)
                response = connection.getresponse()
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                connection.close()  # an idle connection the server closed: once more
                connection.request(method, path, body, self._headers)
                response = connection.getresponse()
            answer = response.status, response.read()
        except (OSError, http.client.HTTPException) as exc:
            connection.close()
            raise errors.ServerUnreachableError(self._url, str(exc) or type(exc).__name__) from exc
        self._idle.append(connection)
        return answer

    def _take(self) -> http.client.HTTPConnection:
        """Return a connection no one else uses; a forked process makes its own."""
        if self._process != os.getpid():
            self._idle, self._process = deque(), os.getpid()
        try:
            return self._idle.pop()
        except IndexError:
            secure = self._parts.scheme == "https"
            kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
            return kind(self._parts.netloc.rpartition("@")[2])


def _offline(text: str, field: str) -> NodeId:
    return new_node(text, DEFAULT_NAMESPACE, field)


def offline_dataset(table: str) -> DatasetId:
    """Return the table that SQL names, where no catalog can be asked."""
    return DatasetId(DEFAULT_NAMESPACE, table)


def _spooled(flow: RegisteredFlow) -> RegisteredFlow:
    return msgspec.structs.replace(flow, status="spooled")


def _error_of(url: str, status: int, body: bytes) -> errors.DownriverError:
    """Return the error that the server tells of, as it would be raised here."""
    try:
        told = msgspec.json.decode(body, type=_Failure)
    except msgspec.DecodeError:
        told = _Failure()
    match told.error:
        case "EntityNotFound":
            found: errors.DownriverError = errors.EntityNotFoundError("", told.near)
        case "AmbiguousName":
            found = errors.AmbiguousNameError("", told.candidates)
        case "InvalidRequest" | "InvalidEvent":
            reason = told.detail.removeprefix(f"{told.field}: ")
            found = errors.InvalidRequestError(told.field or "request", reason)
        case "Unauthorized":
            found = errors.UnauthorizedError("this API key is missing or unknown")
        case "Forbidden":
            found = errors.ForbiddenError("", "")
        case "StoreBusy":
            found = errors.StoreBusyError("the server is overloaded")
        case _:
            return errors.ServerError(url, told.detail or f"it answered {status}")
    found.message = told.detail
    found.args = (told.detail,)
    return found
