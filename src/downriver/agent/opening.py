"""What an agent works on when no one hands it a tracker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.errors import StoreNotFoundError
from downriver.store import MEMORY
from downriver.tracker import Tracker, lineage

if TYPE_CHECKING:
    from collections.abc import Callable


def open_tracker(
    location: str | None, *, allow_writes: bool, notify: Callable[[str], None]
) -> Tracker:
    """Open the lineage; who may only read makes no store, and is told where there is none."""
    try:
        return lineage(location, create=allow_writes)
    except StoreNotFoundError as missing:
        notify(
            f"{missing.message}. So does an agent that may write (allow_writes=True, "
            "--allow-writes); this one knows of nothing yet."
        )
        return lineage(MEMORY)
