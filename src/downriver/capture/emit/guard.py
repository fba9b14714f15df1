"""The guard that keeps Downriver's exceptions out of the user's job."""

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
    """Log exceptions instead of raising them; the first of each kind is a warning."""
    try:
        yield
    except Exception as exc:
        kind = (doing, type(exc).__name__)
        level = logging.DEBUG if kind in _seen else logging.WARNING
        _seen.add(kind)
        log.log(
            level,
            "Downriver failed while %s; the job continues: %s",
            doing,
            exc,
            exc_info=level == logging.DEBUG,
        )
