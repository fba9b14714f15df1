"""Requests in the log and the metrics: each has an id, and a span with OpenTelemetry."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timezone
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from downriver.http.errors import CLIENT_CLOSED, REFUSED_BECAUSE
from downriver.model.control_characters import escape_json, escape_line, escape_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from downriver.http.access.refusals import RefusalLog
    from downriver.http.metrics import ServerMetrics

log = logging.getLogger("downriver.requests")

ROUTE = "downriver.route"  # in the scope of a request: the path of its endpoint
_REFUSED = (401, 403)
_HEADER = b"x-request-id"
_VALID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_request_id: ContextVar[str] = ContextVar("request_id", default="")


class ObservedRequests:
    """Middleware around all others."""

    def __init__(self, app: ASGIApp, metrics: ServerMetrics, refusals: RefusalLog) -> None:
        self._app = app
        self._metrics = metrics
        self._refusals = refusals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and record its result."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == _HEADER), b"")
        request_id = given.decode() if _VALID.fullmatch(given) else uuid4().hex
        token = _request_id.set(request_id)
        status = 500
        started = time.perf_counter()

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (_HEADER, request_id.encode())]
            await send(message)

        self._metrics.in_progress += 1
        try:
            with _span(scope) as span:
                await self._app(scope, receive, send_with_id)
                if span is not None:
                    span.update_name(f"{scope['method']} {scope.get(ROUTE, '')}".strip())
                    span.set_attribute("http.route", scope.get(ROUTE, ""))
                    span.set_attribute("http.response.status_code", status)
        finally:
            seconds = time.perf_counter() - started
            route = scope.get(ROUTE, "other")
            self._metrics.in_progress -= 1
            self._metrics.count_request(_method(scope), route, status, seconds)
            if status in _REFUSED:
                self._refusals.add(scope, route, scope.get(REFUSED_BECAUSE, ""))
            if log.isEnabledFor(logging.INFO):
                _log_request(scope, status, seconds)
            _request_id.reset(token)


def _method(scope: Scope) -> str:
    """Return the method, or OTHER: a client may invent any, and each would be a metric."""
    method: str = scope["method"]
    return method if method in ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS") else "OTHER"


def _log_request(scope: Scope, status: int, seconds: float) -> None:
    client = scope.get("client")
    log.info(
        "request",
        extra={
            "fields": {
                "method": scope["method"],
                "path": scope["path"],
                "route": scope.get(ROUTE, "other"),
                "status": status,
                "duration_ms": round(seconds * 1000, 2),
                "client": client[0] if client else "",
                "disconnected": status == CLIENT_CLOSED,
            }
        },
    )


@cache
def _tracer() -> Any:
    """Return OpenTelemetry's tracer, or None if its package is not installed."""
    try:
        from opentelemetry import trace
    except ModuleNotFoundError:
        return None
    return trace.get_tracer("downriver")


@contextmanager
def _span(scope: Scope) -> Iterator[Any]:
    tracer = _tracer()
    if tracer is None:
        yield None
        return
    from opentelemetry.propagate import extract
    from opentelemetry.trace import SpanKind

    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    attributes = {"http.request.method": scope["method"], "url.path": scope["path"]}
    with tracer.start_as_current_span(
        scope["method"], context=extract(headers), kind=SpanKind.SERVER, attributes=attributes
    ) as span:
        yield span


# Log lines


def configure_logging(log_format: str) -> None:
    """Write the log to standard error: warnings as text, or all requests too as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if log_format == "json" else _TextFormatter())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("downriver").setLevel(
        logging.INFO if log_format == "json" else logging.WARNING
    )


class _TextFormatter(logging.Formatter):
    """Time, level, message and request id in one line; control characters are escaped."""

    def format(self, record: logging.LogRecord) -> str:
        request_id = _request_id.get()
        suffix = f" [{request_id}]" if request_id else ""
        line = f"{_time_of(record)} {record.levelname} {escape_line(record.getMessage())}{suffix}"
        if record.exc_info:
            line += "\n" + escape_text(self.formatException(record.exc_info))
        return line


class _JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": _time_of(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request_id := _request_id.get():
            fields["request_id"] = request_id
        fields.update(getattr(record, "fields", {}))
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return escape_json(json.dumps(fields, default=str))


def _time_of(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, timezone.utc)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
