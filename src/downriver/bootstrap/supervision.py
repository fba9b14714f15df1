"""Commands that read code run in a child process.

A template of one line can keep a C function busy for hours, so the operating system ends a process
that exceeds its limits (`reading_limits.py`). The parent then starts the command again in a new
child, and the file that ended the first child is reported as not read.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from types import FrameType

    from downriver.reading_limits import SupervisedReading

COMMANDS = frozenset({"capture", "gate", "fix"})
_MOST_REFUSED = 20  # files that end the process, until the command fails
_FAILED = 1
_BY_LIMIT = ("SIGXCPU", "SIGKILL", "SIGSEGV", "SIGABRT", "SIGBUS")
_PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP")


def continue_in_child() -> None:
    """Return in a child process. This process waits for it and exits with its exit code.

    A process with threads is not forked: the child would have their locks, and not the threads.
    """
    if not hasattr(os, "fork") or threading.active_count() > 1:
        return
    from downriver.reading_limits import supervise_reading

    reading = supervise_reading()
    for _ in range(_MOST_REFUSED):
        child = os.fork()
        if child == 0:
            return
        _exit_unless_ended_by_code(_wait(child), reading)
    _fail(f"{_MOST_REFUSED} files exceed the limits of processor time or memory")


def _wait(child: int) -> int:
    """Return how the child ended. Signals that end this process end the child instead."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            os.kill(child, number)

    numbers = [getattr(signal, name) for name in _PASSED_ON]
    # The terminal sends Ctrl-C to the child, too.
    handlers = {n: signal.SIG_IGN if n == signal.SIGINT else pass_on for n in numbers}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        _, status = os.waitpid(child, 0)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return os.waitstatus_to_exitcode(status)


def _exit_unless_ended_by_code(code: int, reading: SupervisedReading) -> None:
    """Return if a file ended the child and the command can start again; else exit."""
    if code >= 0:
        sys.exit(code)
    by_limit = {getattr(signal, name) for name in _BY_LIMIT}
    if -code not in by_limit or not reading.refuse_current(-code):
        os.kill(os.getpid(), -code)  # end as the child did
        sys.exit(128 - code)
    if "-" in sys.argv[1:]:  # standard input was read, so nothing is left to read again
        _fail("the code on standard input exceeds the limits of processor time or memory")


def _fail(message: str) -> NoReturn:
    sys.stderr.write(f"error: {message}\n")
    sys.exit(_FAILED)
