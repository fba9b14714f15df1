"""Reading a request and rendering its response: body, query parameters, JSON."""

from __future__ import annotations

import zlib
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

import msgspec
from anyio import CapacityLimiter, to_thread
from starlette.responses import Response

from downriver import settings
from downriver.errors import (
    EventTooLargeError,
    InvalidEventError,
    InvalidRequestError,
    StoreBusyError,
)
from downriver.openlineage.wire import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from starlette.requests import Request

    from downriver.http.access import AccessControl
    from downriver.http.metrics import KpiGauges, ServerMetrics
    from downriver.http.v1.news import HeadWatch
    from downriver.isolation import WorkerPool
    from downriver.model.access import Scope
    from downriver.service import Lineage

T = TypeVar("T")
P = ParamSpec("P")
MAX_DEPTH = 10_000


_THREADS_AROUND = 2


class ReadPool:
    """A limited number of threads, and a limited number of questions that wait for one.

    Events never use these threads: the event loop receives an event, and the writing thread of the
    store commits it. API keys are looked up on threads of their own (`http/access/`).
    """

    def __init__(self, threads: int, most_waiting: int) -> None:
        self._threads = threads
        self._most = threads + most_waiting
        self._limiter = CapacityLimiter(threads)
        self._around = CapacityLimiter(_THREADS_AROUND)
        self._accepted = 0  # counted here: the limiter counts a task only some steps later

    @classmethod
    def from_settings(cls) -> ReadPool:
        """Return a pool with the size in the settings."""
        return cls(
            settings.read_number(settings.READERS), settings.read_number(settings.READ_QUEUE)
        )

    @property
    def waiting(self) -> int:
        """How many questions wait for a thread."""
        return max(0, self._accepted - self._threads)

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function on one of the threads and return its result, or raise if too many wait."""
        if self._accepted >= self._most:
            raise StoreBusyError(f"{self.waiting} questions are waiting to be answered")
        self._accepted += 1
        try:
            call = partial(function, *args, **kwargs)
            return await to_thread.run_sync(call, limiter=self._limiter)
        finally:
            self._accepted -= 1

    async def run_around(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a short step before or after an answer on a thread for such steps.

        They bypass the queue, so that a computed answer is never refused.
        """
        return await to_thread.run_sync(partial(function, *args, **kwargs), limiter=self._around)


class BodyBudget:
    """The bytes of all request bodies that a server holds, up to a limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.held = 0

    @contextmanager
    def reserve(self) -> Iterator[BodyReservation]:
        """Yield the reservation of one request, and return its bytes at the end."""
        reservation = BodyReservation(self)
        try:
            yield reservation
        finally:
            self.held -= reservation.size

    def take(self, size: int) -> None:
        """Count bytes, or raise if that would be too many."""
        if self.held + size > self._limit:
            raise StoreBusyError("too many request bodies are being received or answered")
        self.held += size


class BodyReservation:
    """The bytes of one request body so far."""

    def __init__(self, budget: BodyBudget) -> None:
        self._budget = budget
        self.size = 0

    def add(self, size: int) -> None:
        """Count another part of the body."""
        self._budget.take(size)
        self.size += size


class AppContext(NamedTuple):
    """What all requests of one application share."""

    lineage: Lineage
    max_body: int
    bodies: BodyBudget
    metrics: ServerMetrics
    kpi_gauges: KpiGauges
    simulation_threads: CapacityLimiter  # as many as there are workers
    workers: WorkerPool
    access: AccessControl
    head: HeadWatch
    reads: ReadPool


STATE = "downriver.state"  # in the scope of a request: the state of the store before its answer
_LIMITED = "downriver.context"  # in the scope of a request: the context for its namespaces


def context_of(request: Request) -> AppContext:
    """Return the context of a request: that of the application, limited to its namespaces."""
    limited: AppContext | None = request.scope.get(_LIMITED)
    context: AppContext = request.app.state.context
    return limited or context


def limit_context(request: Request, scope: Scope | None) -> None:
    """Limit all reads and writes of a request to namespaces."""
    if scope is not None:
        context: AppContext = request.app.state.context
        request.scope[_LIMITED] = context._replace(lineage=context.lineage.scoped(scope))


async def run_read(
    request: Request, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run a function that reads the store on a thread of the read pool, and return its result.

    The state of the store before the first of them is kept for the tag of the answer.
    """
    context = context_of(request)

    def read() -> T:
        if STATE not in request.scope:
            request.scope[STATE] = context.lineage.store.state()
        return function(*args, **kwargs)

    return await context.reads.run(read)


def json_response(body: Any, status: int = 200) -> Response:
    """Return a response with a value as JSON."""
    return Response(msgspec.json.encode(body), status, media_type="application/json")


def query_text(request: Request, name: str) -> str:
    """Return a required query parameter."""
    value = request.query_params.get(name, "")
    if not value:
        raise InvalidRequestError(name, "missing")
    return value


def query_number(request: Request, name: str, default: int | None, maximum: int) -> int | None:
    """Return a query parameter that is a whole number from 0 to `maximum`."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or int(text) > maximum:
        raise InvalidRequestError(name, f"{text!r} is not a whole number from 0 to {maximum}")
    return int(text)


def query_flag(request: Request, name: str) -> bool:
    """Return a query parameter that is `true` or `false`; false if it is missing."""
    text = request.query_params.get(name, "false").lower()  # Python's clients send `False`
    if text not in ("true", "false"):
        raise InvalidRequestError(name, f"{text!r} is not true or false")
    return text == "true"


_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


async def read_body(request: Request, limit: int) -> bytes:
    """Return the decompressed body. Raise as soon as it is larger than `limit` bytes."""
    reservation: BodyReservation = request.state.body
    encoding = request.headers.get("content-encoding", "").strip().lower()
    if encoding in ("gzip", "x-gzip", "deflate"):
        return await _inflated(request, limit, reservation)
    if encoding not in ("", "identity"):
        raise InvalidEventError("Content-Encoding", f"{encoding!r} is not supported; use gzip")
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise EventTooLargeError(limit)
        reservation.add(len(part))
        parts.append(part)
    return b"".join(parts)


async def _inflated(request: Request, limit: int, reservation: BodyReservation) -> bytes:
    # Decompress within the limit: a small body could expand to gigabytes in memory.
    inflater = zlib.decompressobj(_GZIP_OR_ZLIB)
    parts: list[bytes] = []
    remaining = limit + 1
    try:
        async for received in request.stream():
            part = received
            while part:
                if inflater.eof:  # a gzip file may consist of several members
                    inflater = zlib.decompressobj(_GZIP_OR_ZLIB)
                piece = inflater.decompress(part, remaining)
                remaining -= len(piece)
                reservation.add(len(piece))
                parts.append(piece)
                if remaining <= 0:
                    raise EventTooLargeError(limit)
                part = inflater.unused_data
    except zlib.error as exc:
        raise InvalidEventError("", f"the body is not valid gzip: {exc}") from exc
    if not inflater.eof:
        raise InvalidEventError("", "the gzip body is truncated")
    return b"".join(parts)


async def read_struct(request: Request, kind: type[T]) -> T:
    """Return the body decoded as a msgspec type."""
    return decode_struct(await read_body(request, context_of(request).max_body), kind)


def decode_struct(body: bytes, kind: type[T]) -> T:
    """Return a body decoded as a msgspec type."""
    try:
        return decode(body, kind)
    except InvalidEventError as exc:
        raise InvalidRequestError(exc.field or "body", exc.reason) from exc
