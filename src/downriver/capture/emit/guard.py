"""The one guard that keeps our faults out of the user's job."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.getLogger("downriver")

_seen: set[tuple[str, str]] = set()


@contextmanager
def guarded(doing: str) -> Iterator[None]:
    """Keep a fault of ours from the user's code: it is logged, the first of its kind as warning."""
    try:
        yield
    except Exception as exc:
        kind = (doing, type(exc).__name__)
        level = logging.DEBUG if kind in _seen else logging.WARNING
        _seen.add(kind)
        log.log(
            level,
            "Downriver failed in %s, the job goes on: %s",
            doing,
            exc,
            exc_info=level == logging.DEBUG,
        )
