"""Worker processes: a call ends within its limits, whatever it does."""

from __future__ import annotations

import os
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from downriver.errors import CodeLimitError
from downriver.isolation import WorkerFailedError, WorkerLimits, WorkerPool

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMITS = WorkerLimits(cpu_seconds=2, memory_mb=256, output_mb=1)


# Called in the worker


def reverse(payload: bytes) -> bytes:
    return payload[::-1]


def tell_process(payload: bytes) -> bytes:
    print("this is no answer")
    return b"%d" % os.getpid()


def hold_the_interpreter(payload: bytes) -> bytes:
    return b"%d" % len(sum([[1] * 1000] * 100_000, []))  # noqa: RUF017 — one C call of minutes


def take_memory(payload: bytes) -> bytes:
    return b"x" * 2**31


def answer_much(payload: bytes) -> bytes:
    return b"x" * (2 * 2**20)


def nest_deeply(payload: bytes) -> bytes:
    return nest_deeply(payload)


def fail(payload: bytes) -> bytes:
    raise ValueError(payload.decode())


def crash(payload: bytes) -> bytes:
    os.abort()


def leave(payload: bytes) -> bytes:
    os._exit(3)


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    with closing(WorkerPool(2, LIMITS)) as opened:
        yield opened


def test_a_call_returns_the_answer_and_the_worker_is_kept(pool: WorkerPool) -> None:
    assert pool.call(reverse, b"abc" * 100_000) == b"cba" * 100_000
    first = pool.call(tell_process, b"")
    assert pool.call(tell_process, b"") == first
    assert first != b"%d" % os.getpid()


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (hold_the_interpreter, "more than 2 s"),
        (take_memory, "more than 256 MB"),
        (answer_much, "larger than 1 MB"),
        (nest_deeply, "nested too deeply"),
        (crash, "signal 6"),
    ],
)
def test_a_call_over_its_limits_is_an_error(pool: WorkerPool, function, reason: str) -> None:
    with pytest.raises(CodeLimitError, match=reason):
        pool.call(function, b"")
    assert pool.call(reverse, b"abc") == b"cba"  # the next call finds a worker


@pytest.mark.parametrize(
    ("function", "reason"), [(fail, "ValueError: odd"), (leave, "exited with status 3")]
)
def test_a_fault_is_raised_here(pool: WorkerPool, function, reason: str) -> None:
    with pytest.raises(WorkerFailedError, match=reason):
        pool.call(function, b"odd")
    assert pool.call(reverse, b"abc") == b"cba"


def test_the_limit_of_time_holds_for_each_call(pool: WorkerPool) -> None:
    """Calls that are each within the limit do not add up to a call over it."""
    for _ in range(3):
        assert pool.call(work_for_a_second, b"") == b"done"


def work_for_a_second(payload: bytes) -> bytes:
    end = time.process_time() + 1
    while time.process_time() < end:
        pass
    return b"done"


def test_closing_ends_calls_that_are_under_way(pool: WorkerPool) -> None:
    failures: list[Exception] = []

    def call() -> None:
        try:
            pool.call(wait_for_ever, b"")
        except (CodeLimitError, WorkerFailedError) as exc:
            failures.append(exc)

    waiting = threading.Thread(target=call)
    waiting.start()
    while not pool.is_busy():
        time.sleep(0.01)
    pool.close()
    waiting.join(60)
    assert len(failures) == 1


def wait_for_ever(payload: bytes) -> bytes:
    threading.Event().wait()
    return b""
