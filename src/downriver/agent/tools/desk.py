"""What tools work on: a tracker, and what lies beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from downriver.errors import InvalidRequestError
from downriver.service import Lineage

if TYPE_CHECKING:
    from pathlib import Path

    from downriver.impact import Policy
    from downriver.tracker import Tracker


class Desk(NamedTuple):
    """A tracker, the policy of the gate (the default one for None), and where the code is."""

    tracker: Tracker
    policy: Policy | None = None
    root: Path | None = None

    def local(self, wanted_for: str) -> Lineage:
        """Return the store behind the tracker; what is only on a server cannot do everything."""
        backend = self.tracker.sync.backend
        if not isinstance(backend, Lineage):
            raise InvalidRequestError(
                wanted_for, "needs the store itself; ask the server's own MCP endpoint instead"
            )
        return backend
