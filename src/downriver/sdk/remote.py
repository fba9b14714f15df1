"""Lineage on a server, over persistent HTTP connections."""

from __future__ import annotations

import http.client
import logging
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec

from downriver import errors
from downriver.capture.dataset_names import new_node
from downriver.capture.emit import HttpSender
from downriver.fork_safety import keep_inherited, renew_in_child
from downriver.impact import Fix, find_yaml_mentions
from downriver.model.answers import Paths, PossibleCuts, SameStatement, SameStatements
from downriver.model.flows import (
    ColumnDerivations,
    ColumnLineageAnswer,
    EntityDetails,
    EntityLineage,
    EntityPage,
    ExportAnswer,
    Flow,
    RegisteredFlow,
    RegisteredPipeline,
)
from downriver.model.governance import Diagnosis, Incident, Kpis, TagReach
from downriver.model.ids import DatasetId
from downriver.model.trust.quality import QualityScore
from downriver.model.verdicts import ImpactAnswer, ImpactRequest
from downriver.service import DEFAULT_NAMESPACE
from downriver.service.capture import SqlCapture, read_sql
from downriver.service.registration.flows import prepare_flows, prepare_pipeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.capture.emit import Spool
    from downriver.impact import Policy, SourceFiles
    from downriver.model.answers import Direction
    from downriver.model.ids import NodeId
    from downriver.openlineage import Event

T = TypeVar("T")

READ_TIMEOUT = 60.0
WRITE_TIMEOUT = (
    10.0  # short, because the caller may be a running job; on a timeout the event is spooled
)
_REDIRECT, _FAILED = 300, 400


class _Failure(msgspec.Struct):
    """The body of an error response."""

    error: str = ""
    detail: str = ""
    field: str | None = None
    near: list[str] = []
    candidates: list[str] = []
    outside: list[str] = []


class Connection:
    """Sends requests to a server. Safe to share between threads."""

    def __init__(self, url: str, key: str) -> None:
        self._url = url.rstrip("/")
        self._parts = urlsplit(self._url)
        self._headers = {"Content-Type": "application/json", "User-Agent": "downriver"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._idle: deque[http.client.HTTPConnection] = deque()

    def renew(self) -> None:
        """Drop the connections of the parent process after a fork."""
        keep_inherited(*self._idle)
        self._idle = deque()

    def close(self) -> None:
        """Close every connection that is not in use."""
        while self._idle:
            self._idle.pop().close()

    def get(self, path: str, query: dict[str, Any], kind: type[T]) -> T:
        """Send a GET request, without parameters that are None, and return the decoded answer."""
        given = {name: str(value) for name, value in query.items() if value is not None}
        return self._send("GET", f"{path}?{urlencode(given)}", None, kind, READ_TIMEOUT)

    def post(self, path: str, body: Any, kind: type[T], timeout: float = WRITE_TIMEOUT) -> T:
        """Send a POST request and return the decoded answer."""
        return self._send("POST", path, msgspec.json.encode(body), kind, timeout)

    def _send(self, method: str, path: str, body: bytes | None, kind: type[T], timeout: float) -> T:
        status, answer = self._request(method, self._parts.path + path, body, timeout)
        if _REDIRECT <= status < _FAILED:
            reason = f"it answered {status}; set DOWNRIVER_URL to the server's own address"
            raise errors.ServerUnreachableError(self._url, reason)
        if status >= _FAILED:
            raise error_of_response(self._url, status, answer)
        try:
            return msgspec.json.decode(answer, type=kind)
        except msgspec.DecodeError as exc:
            reason = f"invalid answer to {method} {path.partition('?')[0]}: {exc}"
            raise errors.ServerError(self._url, reason) from exc

    def _request(
        self, method: str, path: str, body: bytes | None, timeout: float
    ) -> tuple[int, bytes]:
        connection = self._take_connection()
        connection.timeout = timeout
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        try:
            try:
                connection.request(method, path, body, self._headers)
                response = connection.getresponse()
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                connection.close()  # the server closed an idle connection: try again
                connection.request(method, path, body, self._headers)
                response = connection.getresponse()
            answer = response.status, response.read()
        except (OSError, http.client.HTTPException) as exc:
            connection.close()
            raise errors.ServerUnreachableError(self._url, errors.describe_failure(exc)) from exc
        self._idle.append(connection)
        return answer

    def _take_connection(self) -> http.client.HTTPConnection:
        """Return a connection that no other thread uses."""
        try:
            return self._idle.pop()
        except IndexError:
            secure = self._parts.scheme == "https"
            kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
            return kind(self._parts.netloc.rpartition("@")[2])


def error_of_response(url: str, status: int, body: bytes) -> errors.DownriverError:
    """Return the exception for an error response, the same as a local store would raise."""
    try:
        failure = msgspec.json.decode(body, type=_Failure)
    except msgspec.DecodeError:
        failure = _Failure()
    match failure.error:
        case "EntityNotFound":
            error: errors.DownriverError = errors.EntityNotFoundError("", failure.near)
        case "AmbiguousName":
            error = errors.AmbiguousNameError("", failure.candidates)
        case "InvalidRequest" | "InvalidEvent":
            reason = failure.detail.removeprefix(f"{failure.field}: ")
            error = errors.InvalidRequestError(failure.field or "request", reason)
        case "Unauthorized":
            error = errors.UnauthorizedError("this API key is missing or unknown")
        case "Forbidden":
            error = errors.ForbiddenError("", failure.outside)
        case "StoreBusy":
            error = errors.StoreBusyError("the server is overloaded")
        case _:
            return errors.ServerError(url, failure.detail or f"HTTP status {status}")
    error.message = failure.detail
    error.args = (failure.detail,)
    return error


log = logging.getLogger("downriver")

_AT_ONCE = 16


class _Flows(msgspec.Struct):
    flows: list[RegisteredFlow]


class RemoteLineage:
    """Uses one server, and spools events while it is down. Safe to share between threads."""

    def __init__(self, url: str, key: str, spool: Spool) -> None:
        self._spool = spool
        self._sender = HttpSender(url, key, reject=spool.reject)
        self._server = Connection(url, key)
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Make new connections and threads after a fork."""
        self._server.renew()
        self._sending = threading.Lock()
        self._pool = ThreadPoolExecutor(_AT_ONCE, "downriver-remote")  # starts threads when needed

    def send(self, events: Sequence[Event | bytes]) -> None:
        """Append events to the server's log, or raise if that is not possible now."""
        with self._sending:
            self._sender(events)

    def name_entity(self, text: str) -> NodeId:
        """Return the id of a name without a request: a tracked function must not wait."""
        return new_node(text, DEFAULT_NAMESPACE)

    def register_flows(self, flows: Sequence[Flow]) -> list[RegisteredFlow]:
        """Register flows. If the server is down they are spooled, with the status `spooled`."""
        try:
            return self._server.post("/v1/flows", {"flows": flows}, _Flows).flows
        except errors.ServerUnreachableError as exc:
            registered, events = prepare_flows(flows, _offline)
            self._keep(events, exc)
            return [_spooled(flow) for flow in registered]

    def submit_flow(self, flow: Flow) -> Future[RegisteredFlow]:
        """Register a flow in the background. The server commits concurrent requests together."""
        return self._pool.submit(lambda: self.register_flows([flow])[0])

    def register_pipeline(
        self, name: str, flows: Sequence[Flow], *, schedule: str | None, description: str
    ) -> RegisteredPipeline:
        """Register a pipeline and its steps."""
        body = {"name": name, "steps": flows, "schedule": schedule, "description": description}
        try:
            return self._server.post("/v1/pipelines", body, RegisteredPipeline)
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
            return self._server.post("/v1/sql", body, SqlCapture)
        except errors.ServerUnreachableError as exc:
            capture, event = read_sql(
                sql, dialect=dialect, description=description, ran=ran, names=resolve_table_offline
            )
            self._keep([event] if capture.registered else [], exc)
            return capture

    def _keep(self, events: list[Event], failure: errors.ServerUnreachableError) -> None:
        """Spool events that could not be sent, because the caller may be a running job."""
        log.warning("%s; %d events are spooled and sent later", failure.message, len(events))
        self._spool.add(events)

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
        query = {
            "entity": entity,
            "direction": direction,
            "depth": depth,
            "limit": limit,
            "as_of": as_of,
        }
        return self._server.get("/v1/related", query, EntityLineage)

    def paths(self, source: str, target: str, *, limit: int) -> Paths:
        """Return the paths from one entity to another."""
        return self._server.get(
            "/v1/paths", {"source": source, "target": target, "limit": limit}, Paths
        )

    def analyze_impact(self, request: ImpactRequest, policy: Policy | None = None) -> ImpactAnswer:
        """Return the effects of a change and the verdict of a policy (None: the default policy)."""
        body = {**msgspec.to_builtins(request), "policy": policy}
        return self._server.post("/v1/impact", body, ImpactAnswer, READ_TIMEOUT)

    def suggest_fix(self, request: ImpactRequest, code: SourceFiles | None) -> Fix:
        """Write the patch for a change. Local files are sent if the server requests them."""
        files = None if code is None else find_yaml_mentions(code, request)
        while True:
            body = {**msgspec.to_builtins(request), "files": files}
            fix = self._server.post("/v1/fix", body, Fix, READ_TIMEOUT)
            if code is None or files is None:
                return fix
            wanted = {path: code.read(path) for path in fix.absent if path not in files}
            present = {path: text for path, text in wanted.items() if text is not None}
            if not present:
                return fix
            files.update(present)

    def state_same(self, one: str, other: str, *, same: bool) -> SameStatement:
        """Record whether two names are one dataset."""
        body = {"one": one, "other": other, "same": same}
        return self._server.post("/v1/same", body, SameStatement)

    def same_statements(self) -> SameStatements:
        """Return the recorded statements about names."""
        return self._server.get("/v1/same", {}, SameStatements)

    def possible_cuts(self) -> PossibleCuts:
        """Return the pairs of datasets that may be one dataset under two names."""
        return self._server.get("/v1/cuts", {}, PossibleCuts)

    def kpis(self) -> Kpis:
        """Return the KPIs of the whole graph."""
        return self._server.get("/v1/kpis", {}, Kpis)

    def incident_report(self, entity: str, at: str | None) -> Incident:
        """Report the failures of an entity, the likely causes, and what is affected."""
        return self._server.get("/v1/incidents", {"entity": entity, "at": at}, Incident)

    def quality(self, dataset: str) -> QualityScore:
        """Return the quality score of a dataset and the worst one upstream."""
        return self._server.get("/v1/quality", {"dataset": dataset}, QualityScore)

    def tag_reach(self, tag: str) -> TagReach:
        """Return where a tag was set, and the columns that it reaches."""
        return self._server.get("/v1/tags", {"tag": tag}, TagReach)

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
        query = {
            "entity": entity,
            "format": output_format,
            "direction": direction,
            "depth": depth,
            "as_of": as_of,
            "focus": focus,
            "diff": diff,
        }
        return self._server.get("/v1/export", query, ExportAnswer)

    def search(self, text: str, *, limit: int, cursor: str | None) -> EntityPage:
        """Find entities by the words in their names."""
        return self._server.get(
            "/v1/search", {"text": text, "limit": limit, "cursor": cursor}, EntityPage
        )

    def details(self, entity: str) -> EntityDetails:
        """Return the details of one entity."""
        return self._server.get("/v1/entity", {"entity": entity}, EntityDetails)

    def column_lineage(self, dataset: str, column: str) -> ColumnDerivations:
        """Return the columns that a column derives from."""
        query = {"dataset": dataset, "column": column}
        answer = self._server.get("/v1/column-lineage", query, ColumnLineageAnswer)
        return ColumnDerivations(
            answer.derivations, complete=answer.complete, blind_spots=answer.blind_spots
        )

    def diagnose(self, dataset: str, column: str) -> Diagnosis:
        """Trace a metric that looks wrong back to its sources."""
        return self._server.get("/v1/diagnosis", {"dataset": dataset, "column": column}, Diagnosis)

    def close(self) -> None:
        """Finish pending requests and close every connection."""
        self._pool.shutdown()
        self._sender.close()
        self._server.close()


def _offline(text: str, field: str) -> NodeId:
    return new_node(text, DEFAULT_NAMESPACE, field)


def resolve_table_offline(table: str) -> DatasetId:
    """Return the id of a table in SQL, when no catalog is available."""
    return DatasetId(DEFAULT_NAMESPACE, table)


def _spooled(flow: RegisteredFlow) -> RegisteredFlow:
    return msgspec.structs.replace(flow, status="spooled")
