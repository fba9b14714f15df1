"""A fork waits for threads to come out of a library with locks of its own."""

from __future__ import annotations

import threading

import pytest

from downriver.forking import Crossing

SECONDS = 10.0


@pytest.fixture
def crossing() -> Crossing:
    return Crossing()


def test_closing_off_waits_for_a_thread_that_is_inside(crossing: Crossing) -> None:
    entered, may_leave = threading.Event(), threading.Event()
    closed = threading.Event()

    def stay() -> None:
        with crossing:
            entered.set()
            may_leave.wait(SECONDS)

    def close_off() -> None:
        crossing.close_off()
        closed.set()

    inside, closing = threading.Thread(target=stay), threading.Thread(target=close_off)
    inside.start()
    assert entered.wait(SECONDS)
    closing.start()
    assert not closed.wait(0.1)
    may_leave.set()
    assert closed.wait(SECONDS)
    inside.join(SECONDS)
    closing.join(SECONDS)


def test_no_thread_gets_in_until_the_fork_is_over(crossing: Crossing) -> None:
    entered = threading.Event()

    def enter() -> None:
        with crossing:
            entered.set()

    crossing.close_off()
    thread = threading.Thread(target=enter)
    thread.start()
    assert not entered.wait(0.1)
    crossing.open_up()
    assert entered.wait(SECONDS)
    thread.join(SECONDS)


def test_a_thread_that_is_inside_may_go_further_in_and_fork(crossing: Crossing) -> None:
    with crossing:
        crossing.close_off()  # it does not wait for itself
        with crossing:
            pass
        crossing.open_up()
