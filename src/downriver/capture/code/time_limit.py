"""A limit of processor time for reading one file, so that one file cannot hold up a scan."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

_TIMER = getattr(signal, "ITIMER_PROF", None)  # processor time; Windows has none


class OutOfTimeError(BaseException):
    """Reading a file took too long. Not an `Exception`: no reader may treat it as a parse error."""


@contextmanager
def processor_time(seconds: int) -> Iterator[None]:
    """Raise `OutOfTimeError` in the body after this much processor time of the process.

    Only the main thread gets signals. Elsewhere, and inside another limit, this has no effect.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if _TIMER is None or not is_main or any(signal.getitimer(_TIMER)):
        yield
        return
    previous = signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(_TIMER, seconds)
    try:
        yield
    finally:
        signal.setitimer(_TIMER, 0)
        signal.signal(signal.SIGPROF, previous)


def _stop(number: int, frame: Any) -> NoReturn:
    raise OutOfTimeError
