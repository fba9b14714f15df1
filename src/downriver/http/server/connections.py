"""Limits on connections: how long a client may take, and how much it may send before an answer.

uvicorn has no such limits. One timer per connection looks at a deadline that moves with
the request: for the headers, for the next part of the body, for the whole body, and for a client
that does not read its answer.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from downriver import settings
from downriver.http.errors import CLOSED_BECAUSE, ErrorBody

if TYPE_CHECKING:
    import asyncio

log = logging.getLogger("downriver")

_DISCARDED_BYTES = 2**20  # bytes of a body after its answer; more closes the connection
_FRAMING = 2  # factor for the overhead of chunks and their extensions


class ConnectionLimits(NamedTuple):
    """The limits of one connection."""

    header_bytes: int
    header_count: int
    header_seconds: int
    idle_seconds: int
    body_seconds: int
    request_bytes: int

    @classmethod
    def from_settings(cls) -> ConnectionLimits:
        """Return the limits in the settings."""
        return cls(
            header_bytes=settings.read_number(settings.HEADER_KB) * 2**10,
            header_count=settings.read_number(settings.HEADERS),
            header_seconds=settings.read_number(settings.HEADER_SECONDS),
            idle_seconds=settings.read_number(settings.IDLE_SECONDS),
            body_seconds=settings.read_number(settings.BODY_SECONDS),
            request_bytes=settings.read_number(settings.MAX_EVENT_MB) * 2**20 * _FRAMING,
        )


class _RefusedError(Exception):
    """Stops the parser: the request exceeds a limit."""

    def __init__(self, status: int, error: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.body = ErrorBody(error, detail)


class LimitedHttpProtocol(HttpToolsProtocol):
    """HTTP/1.1 of uvicorn, within limits."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._limits = ConnectionLimits.from_settings()
        self._timer: asyncio.TimerHandle | None = None
        self._deadline: float | None = None
        self._body_deadline = 0.0
        self._reads_headers = True
        self._received = 0  # bytes of the request so far
        self._header_bytes = 0
        self._discarded = 0
        self._refused: _RefusedError | None = None

    # Connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock of a connection."""
        super().connection_made(transport)
        self._start_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what arrived. Refuse a request that is over a limit."""
        if self.transport.is_closing():
            return
        self._received += len(data)
        if self._reads_headers:
            if self._deadline is None:  # the first byte after an answer
                self._start_headers()
        elif self._deadline is not None:
            self._deadline = min(self.loop.time() + self._limits.idle_seconds, self._body_deadline)
        super().data_received(data)
        if self._refused is None:
            self._check_size()
        if self._refused is not None:
            self._refuse(self._refused)

    def pause_writing(self) -> None:
        """Wait for a client that does not read its answer, up to a limit."""
        super().pause_writing()
        self._deadline = self.loop.time() + self._limits.idle_seconds
        self._arm()

    def resume_writing(self) -> None:
        """Continue with the answer."""
        super().resume_writing()
        later = min(self.loop.time() + self._limits.idle_seconds, self._body_deadline)
        self._deadline = None if self._reads_headers else later

    # Parser

    def on_message_begin(self) -> None:
        """Start to count a request."""
        super().on_message_begin()
        self._reads_headers = True
        self._header_bytes = self._discarded = 0
        self._start_headers()

    def on_url(self, url: bytes) -> None:
        """Count the URL as a header."""
        self._header_bytes += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header, or a trailer after the body."""
        self._header_bytes += len(name) + len(value)
        if self._is_over_header_limits():
            return  # `data_received` refuses the request
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin the request, unless its headers are over a limit."""
        self._reads_headers = False
        now = self.loop.time()
        self._body_deadline = now + self._limits.body_seconds
        self._deadline = min(now + self._limits.idle_seconds, self._body_deadline)
        self._received = 0
        if self._refused is None:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Pass on a part of the body. Cut off a client that sends on after its answer."""
        if self._refused is not None:
            return
        if self.cycle.response_complete:
            self._discarded += len(body)
            if self._discarded > _DISCARDED_BYTES:
                self.transport.abort()
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Stop the timer: the client has sent the whole request."""
        self._reads_headers = True
        self._deadline = None
        self._received = 0
        if self._refused is None:
            super().on_message_complete()

    # Limits

    def _start_headers(self) -> None:
        self._deadline = self.loop.time() + self._limits.header_seconds
        self._arm()

    def _arm(self) -> None:
        """Start a timer unless an earlier one runs. It looks at the deadline, which may move."""
        if self._deadline is None:
            return
        if self._timer is not None:
            if self._timer.when() <= self._deadline:
                return
            self._timer.cancel()
        self._timer = self.loop.call_at(self._deadline, self._check_deadline)

    def _check_deadline(self) -> None:
        self._timer = None
        if self._deadline is None or self.transport.is_closing():
            return
        now = self.loop.time()
        if self.flow.read_paused and not self.flow.write_paused:
            # The server does not read at the moment, so the client cannot send.
            self._deadline = now + self._limits.idle_seconds
        if now < self._deadline:
            self._arm()
        elif self.flow.write_paused:
            self._abort(f"the client read no answer for {self._limits.idle_seconds} s")
        elif self._reads_headers:
            seconds = self._limits.header_seconds
            self._refuse(_RefusedError(408, "RequestTimeout", f"no headers within {seconds} s"))
        else:
            self._refuse(_RefusedError(408, "RequestTimeout", self._late_body(now)))

    def _late_body(self, now: float) -> str:
        if now >= self._body_deadline:
            return f"the body is not complete after {self._limits.body_seconds} s"
        return f"no part of the body for {self._limits.idle_seconds} s"

    def _is_over_header_limits(self) -> bool:
        limits = self._limits
        if self._header_bytes > limits.header_bytes:
            detail = f"the URL and the headers are larger than {limits.header_bytes // 2**10} KB"
        elif len(self.headers) >= limits.header_count:
            detail = f"the request has more than {limits.header_count} headers"
        else:
            return False
        self._refused = self._refused or _RefusedError(431, "HeadersTooLarge", detail)
        return True

    def _check_size(self) -> None:
        if self._reads_headers and self._received > self._limits.header_bytes:
            # One header that has not ended yet: the parser has not passed it on.
            self._header_bytes = self._received
            self._is_over_header_limits()
        elif self._received > self._limits.request_bytes:
            self._refused = _RefusedError(413, "EventTooLarge", "the request body is too large")

    def _refuse(self, refused: _RefusedError) -> None:
        """Answer with an error if no answer has begun, and close the connection."""
        if self.transport.is_closing():
            return
        answering = self.cycle is not None and not self.cycle.response_complete
        if answering:
            self.cycle.scope["state"][CLOSED_BECAUSE] = str(refused)  # the request logs it
        else:
            self._log(str(refused))
        if not answering or not self.cycle.response_started:
            body = msgspec.json.encode(refused.body)
            self.transport.write(
                STATUS_LINE[refused.status]
                + b"content-type: application/json\r\nconnection: close\r\n"
                + f"content-length: {len(body)}\r\n\r\n".encode()
                + body
            )
        if answering:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()

    def _abort(self, reason: str) -> None:
        self._log(reason)
        self.transport.abort()

    def _log(self, reason: str) -> None:
        host = self.client[0] if self.client else "a client"
        log.warning("connection from %s closed: %s", host, reason)
