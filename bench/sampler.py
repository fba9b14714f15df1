"""Calls a function at intervals while other work runs."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def sampling(look: Callable[[], None], every: float) -> Iterator[threading.Thread]:
    """Call `look` at intervals of `every` seconds, in a thread."""
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
