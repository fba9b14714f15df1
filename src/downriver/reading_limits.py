"""Limits of processor time and memory for reading one file, or one text, of code.

Code in Python stops with an exception. A C function that holds the interpreter does not: the system
ends the process. `bootstrap/supervision.py` then starts the command again, and the text that ended
the process is refused.
"""

from __future__ import annotations

import hashlib
import mmap
import signal
import threading
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from downriver import settings
from downriver.isolation import WorkerLimits, read_limits, restore_limits, set_limits
from downriver.model.unread import UnreadReason

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

_TIMER = getattr(signal, "ITIMER_PROF", None)  # processor time; Windows has none
_UNTIL_KILLED = 1  # seconds after the exception, which a C function may delay
_DIGEST = hashlib.sha256().digest_size


class OutOfTimeError(BaseException):
    """Reading a text took too long. Not an `Exception`: no reader may treat it as a parse error."""


class Refusal(NamedTuple):
    """The reason why a text is not read: how the process that read it ended."""

    reason: UnreadReason
    detail: str

    @classmethod
    def after(cls, by_signal: int) -> Refusal:
        """Return the refusal of a text whose reader ended by a signal."""
        if by_signal == signal.SIGXCPU:
            return cls.too_slow()
        if by_signal == signal.SIGKILL:
            return cls(UnreadReason.TOO_LARGE, "reading it takes more memory than the machine has")
        detail = f"the process that read it ended by signal {by_signal}"
        return cls(UnreadReason.TOO_DEEP, detail)

    @classmethod
    def too_slow(cls) -> Refusal:
        """Return the refusal of a text that takes too long."""
        seconds = settings.read_number(settings.CODE_SECONDS)
        return cls(UnreadReason.TOO_SLOW, f"reading it takes more than {seconds} s")

    @classmethod
    def too_large(cls) -> Refusal:
        """Return the refusal of a text that takes too much memory."""
        most = settings.read_number(settings.CODE_MB)
        return cls(UnreadReason.TOO_LARGE, f"reading it takes more than {most} MB of memory")


class SupervisedReading:
    """The current text of a supervised process, in memory shared with its parent; refused texts."""

    def __init__(self) -> None:
        self._now = mmap.mmap(-1, _DIGEST)
        self._refused: dict[bytes, Refusal] = {}
        self._before = read_limits()
        self.is_reading = False

    def begin(self, text: str) -> None:
        """Record the text that is read, and limit the process."""
        self.is_reading = True
        self._now[:] = _digest(text)
        limits = WorkerLimits.from_settings()
        set_limits(limits._replace(cpu_seconds=limits.cpu_seconds + _UNTIL_KILLED))

    def end(self) -> None:
        """Lift the limits."""
        restore_limits(self._before)
        self._now[:] = bytes(_DIGEST)
        self.is_reading = False

    def refusal_of(self, text: str) -> Refusal | None:
        """Return why a text is refused; None if it may be read."""
        return self._refused.get(_digest(text)) if self._refused else None

    def refuse_current(self, by_signal: int) -> bool:
        """Refuse the text that the child was reading when a signal ended it.

        False if there was none.
        """
        digest = bytes(self._now)
        if not any(digest) or digest in self._refused:
            return False
        self._refused[digest] = Refusal.after(by_signal)
        self._now[:] = bytes(_DIGEST)
        return True


_supervised: SupervisedReading | None = None


def supervise_reading() -> SupervisedReading:
    """Share the text that a forked process reads with its parent."""
    global _supervised
    _supervised = SupervisedReading()
    return _supervised


def refusal_of(text: str) -> Refusal | None:
    """Return why a text is refused; None if it may be read."""
    return None if _supervised is None else _supervised.refusal_of(text)


@contextmanager
def limited_reading(text: str) -> Iterator[None]:
    """Raise `OutOfTimeError` or `MemoryError` in the body if reading a text exceeds the limits.

    Inside another limit this has no effect. The limit of memory, and the end of a C function that
    takes too long, are those of a supervised process.
    """
    with processor_time(settings.read_number(settings.CODE_SECONDS)), supervised_limits(text):
        yield


def supervised_limits(text: str) -> AbstractContextManager[None]:
    """Return the limits of a supervised process, of which a parent can start another one."""
    reading = _supervised
    if reading is None or reading.is_reading:
        return nullcontext()
    return _limits_of_process(reading, text)


@contextmanager
def _limits_of_process(reading: SupervisedReading, text: str) -> Iterator[None]:
    reading.begin(text)
    try:
        yield
    finally:
        reading.end()


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


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
