"""Requests about code: answered in a worker process, within limits of time and memory."""

from __future__ import annotations

import logging
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from anyio import to_thread
from starlette.responses import Response

from downriver.errors import DownriverError, StoreBusyError, StoreError
from downriver.http.errors import (
    REFUSED_BECAUSE,
    ErrorBody,
    answer_fault,
    error_body,
    error_response,
    status_of,
)
from downriver.http.request import context_of, json_response, read_body
from downriver.isolation import WorkerFailedError
from downriver.model.access import ACTOR, Scope
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from downriver.isolation import WorkerPool

    # A function from a request's body to an answer, which is rendered as JSON.
    AnswerCode: TypeAlias = Callable[[Lineage, bytes], Any]

log = logging.getLogger("downriver")

_MOST_WAITING = 64  # requests; further ones get 503
FAILED = 400


class CodeRequest(msgspec.Struct, kw_only=True):
    """The input of a worker: a function, the body of a request, and the location of the store."""

    function: str  # module:name
    body: bytes
    status: int
    location: str
    repository: str | None
    actor: str
    namespaces: tuple[str, ...] | None  # the namespaces of the request's key


class CodeAnswer(msgspec.Struct, kw_only=True):
    """The output of a worker: a status and JSON."""

    status: int
    body: bytes


def ask_worker(workers: WorkerPool, payload: bytes) -> CodeAnswer:
    """Return a worker's answer to a `CodeRequest`."""
    return msgspec.msgpack.decode(workers.call(answer_in_worker, payload), type=CodeAnswer)


async def answer_code(request: Request, function: AnswerCode, status: int = 200) -> Response:
    """Return the response that `function` gives for the body of a request."""
    context = context_of(request)
    body = await read_body(request, context.max_body)
    limiter = context.simulation_threads
    if limiter.statistics().tasks_waiting >= _MOST_WAITING:
        raise StoreBusyError("too many requests about code are waiting")
    payload = request_payload(context.lineage, function, body, status)
    if payload is None:
        answer = await to_thread.run_sync(function, context.lineage, body, limiter=limiter)
        return json_response(answer, status)
    try:
        answered = await to_thread.run_sync(
            ask_worker,
            context.workers,
            payload,
            limiter=limiter,
            abandon_on_cancel=True,  # a stopping server ends the worker and does not wait for it
        )
    except WorkerFailedError as exc:
        log.error("a request about code failed in its worker: %s", exc)  # noqa: TRY400
        return await answer_fault(request, exc)
    if answered.status >= FAILED:
        detail = msgspec.json.decode(answered.body, type=ErrorBody).detail
        request.scope[REFUSED_BECAUSE] = detail
        return error_response(answered.body, answered.status)
    return Response(answered.body, answered.status, media_type="application/json")


async def ask_about_code(request: Request, function: AnswerCode, body: bytes) -> None:
    """Run `function` for a request that succeeds without it, too. Log a failure."""
    context = context_of(request)
    payload = request_payload(context.lineage, function, body)
    limiter = context.simulation_threads
    try:
        if payload is None:
            await to_thread.run_sync(function, context.lineage, body, limiter=limiter)
            return
        answered = await to_thread.run_sync(
            ask_worker, context.workers, payload, limiter=limiter, abandon_on_cancel=True
        )
    except (DownriverError, WorkerFailedError) as exc:
        log.warning("the SQL of an event could not be read: %s", exc)
        return
    if answered.status >= FAILED:
        detail = msgspec.json.decode(answered.body, type=ErrorBody).detail
        log.warning("the SQL of an event could not be read: %s", detail)


def request_payload(
    lineage: Lineage, function: AnswerCode, body: bytes, status: int = 200
) -> bytes | None:
    """Return the request for a worker, or None if no other process can open the store."""
    whole = lineage.session.base or lineage.session
    scope = lineage.session.scope
    if whole.store.location is None:
        return None
    repository = lineage.session.repository
    return msgspec.msgpack.encode(
        CodeRequest(
            function=f"{function.__module__}:{function.__name__}",
            body=body,
            status=status,
            location=whole.store.location,
            repository=str(repository.root) if repository else None,
            actor=ACTOR.get(),
            namespaces=None if scope is None else scope.patterns,
        )
    )


def load_graph(lineage: Lineage, body: bytes) -> None:
    """Load the graph before the first question."""
    del body
    lineage.session.prepare()


# In the worker


def answer_in_worker(payload: bytes) -> bytes:
    """Answer a `CodeRequest` with a `CodeAnswer`."""
    request = msgspec.msgpack.decode(payload, type=CodeRequest)
    module, _, name = request.function.partition(":")
    function = getattr(import_module(module), name)
    ACTOR.set(request.actor)
    try:
        lineage = _opened.open(request)
        if request.namespaces is not None:
            lineage = lineage.scoped(Scope(request.namespaces))
        answer = function(lineage, request.body)
        answered = CodeAnswer(status=request.status, body=msgspec.json.encode(answer))
    except DownriverError as error:
        if isinstance(error, StoreError):
            _opened.close()  # the next request opens it again
        body = msgspec.json.encode(error_body(error, request.location))
        answered = CodeAnswer(status=status_of(type(error)), body=body)
    return msgspec.msgpack.encode(answered)


class _OpenedLineage:
    """The store that this worker has open: the one of the last request."""

    def __init__(self) -> None:
        self._place: tuple[str, str | None] | None = None
        self._lineage: Lineage | None = None

    def open(self, request: CodeRequest) -> Lineage:
        place = (request.location, request.repository)
        if self._lineage is None or self._place != place:
            self.close()
            repository = Path(request.repository) if request.repository else None
            self._lineage = Lineage.open(request.location, create=False, repository=repository)
            self._place = place
        return self._lineage

    def close(self) -> None:
        if self._lineage is not None:
            with closing(self._lineage):
                self._lineage = None


_opened = _OpenedLineage()
