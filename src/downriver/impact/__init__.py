"""Change -> effects -> verdict: what breaks, decided by policy, and the patch."""

from downriver.impact.analysis import analyse
from downriver.impact.proposal import Proposed
from downriver.impact.world import World

__all__ = ["Proposed", "World", "analyse"]
