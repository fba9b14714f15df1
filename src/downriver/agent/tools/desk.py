"""What tools work on: a tracker, and what lies beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from downriver.impact import CodeFolder

if TYPE_CHECKING:
    from pathlib import Path

    from downriver.impact import Code, Policy
    from downriver.tracker import Tracker


class Desk(NamedTuple):
    """A tracker, the policy of the gate (the default one for None), and where the code is."""

    tracker: Tracker
    policy: Policy | None = None
    root: Path | None = None

    @property
    def code(self) -> Code | None:
        """The code to write patches for; None where only whoever holds the lineage may know it."""
        return None if self.root is None else CodeFolder(self.root)
