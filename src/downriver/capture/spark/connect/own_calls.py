"""The calls of capture itself to a server of Spark Connect: not captured, and with a deadline.

PySpark's client sets no deadline. It waits without end for a server that does not answer, and for
ten minutes for one that is gone.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SECONDS_TO_ANSWER = 20.0  # for all requests of one call
_PAUSE = 60.0  # seconds without calls, after a server did not answer
_TO_PYSPARK = "_stub"
_current = threading.local()


def is_own_call() -> bool:
    """Return whether this thread is inside a call of capture."""
    return getattr(_current, "deadline", None) is not None


@contextmanager
def own_call(client: Any, seconds: float = SECONDS_TO_ANSWER) -> Iterator[None]:
    """Send the requests of this block as capture.

    Raise TimeoutError if the server does not answer them within `seconds`, and ConnectionError if
    it cannot be reached. For a minute after that, raise TimeoutError at once: the user's job must
    not wait for each of its plans.
    """
    stub = _bounded_stub(client)
    stub.check()
    before = getattr(_current, "deadline", None)
    _current.deadline = before or time.monotonic() + seconds
    try:
        yield
    except (TimeoutError, ConnectionError):
        stub.pause()
        raise
    finally:
        _current.deadline = before


def _bounded_stub(client: Any) -> _BoundedStub:
    stub = getattr(client, _TO_PYSPARK)
    if not isinstance(stub, _BoundedStub):
        stub = _BoundedStub(stub)
        setattr(client, _TO_PYSPARK, stub)
    return stub


class _BoundedStub:
    """The methods of a server. Those that a call of capture uses have its deadline."""

    def __init__(self, stub: Any) -> None:
        self._stub = stub
        self._silent_until = 0.0

    def check(self) -> None:
        """Raise if the server did not answer lately."""
        if time.monotonic() < self._silent_until:
            raise TimeoutError("the Spark Connect server did not answer a moment ago")

    def pause(self) -> None:
        """Send no more calls of capture for a while."""
        self._silent_until = time.monotonic() + _PAUSE

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._stub, name)
        deadline = getattr(_current, "deadline", None)
        return method if deadline is None else _bounded(method, deadline)


def _bounded(method: Callable[..., Any], deadline: float) -> Callable[..., Any]:
    def call(request: Any, **options: Any) -> Any:
        options["timeout"] = max(0.001, deadline - time.monotonic())
        with _translated():
            answer = method(request, **options)
        return _responses(answer) if hasattr(answer, "__next__") else answer

    return call


def _responses(stream: Iterator[Any]) -> Iterator[Any]:
    with _translated():
        yield from stream


@contextmanager
def _translated() -> Iterator[None]:
    """Turn the errors after which PySpark would wait and try again into errors that end a call."""
    import grpc

    try:
        yield
    except grpc.RpcError as exc:
        code = exc.code()
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            raise TimeoutError("the Spark Connect server did not answer in time") from exc
        if code in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED}:
            raise ConnectionError("the Spark Connect server cannot be reached") from exc
        raise
