"""Looking at something again and again while other work goes on."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def looking(look: Callable[[], None], every: float) -> Iterator[threading.Thread]:
    """Call `look` every so many seconds, in a thread of its own."""
    stopped = threading.Event()

    def watch() -> None:
        while not stopped.wait(every):
            look()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield thread
    finally:
        stopped.set()
        thread.join()
