"""A fork waits until no thread is inside a library that has locks."""

from __future__ import annotations

import os
import threading

import pytest

from downriver.fork_safety import ForkGate, renew_in_child

SECONDS = 10.0


@pytest.fixture
def gate() -> ForkGate:
    return ForkGate()


def test_closing_waits_for_a_thread_that_is_inside(gate: ForkGate) -> None:
    entered, may_leave = threading.Event(), threading.Event()
    closed = threading.Event()

    def stay() -> None:
        with gate:
            entered.set()
            may_leave.wait(SECONDS)

    def close() -> None:
        gate.close()
        closed.set()

    inside, closing = threading.Thread(target=stay), threading.Thread(target=close)
    inside.start()
    assert entered.wait(SECONDS)
    closing.start()
    assert not closed.wait(0.1)
    may_leave.set()
    assert closed.wait(SECONDS)
    inside.join(SECONDS)
    closing.join(SECONDS)


def test_no_thread_enters_until_the_fork_is_done(gate: ForkGate) -> None:
    entered = threading.Event()

    def enter() -> None:
        with gate:
            entered.set()

    gate.close()
    thread = threading.Thread(target=enter)
    thread.start()
    assert not entered.wait(0.1)
    gate.reopen()
    assert entered.wait(SECONDS)
    thread.join(SECONDS)


def test_a_thread_that_is_inside_may_enter_again_and_fork(gate: ForkGate) -> None:
    with gate:
        gate.close()  # it does not wait for itself
        with gate:
            pass
        gate.reopen()


class Renewing:
    """Counts how often it was renewed, and fails on request."""

    def __init__(self, *, fails: bool) -> None:
        self.fails, self.renewed = fails, 0
        renew_in_child(self)

    def renew(self) -> None:
        self.renewed += 1
        if self.fails:
            raise RuntimeError("cannot begin anew")


def test_one_failed_renewal_does_not_prevent_the_others() -> None:
    held = [Renewing(fails=number % 2 == 0) for number in range(8)]
    child = os.fork()
    if child == 0:
        os._exit(0 if all(one.renewed == 1 for one in held) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert not any(one.renewed for one in held)
