"""When an answer is complete: the one rule for traces, impacts, verdicts and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from downriver.model.answers import BlindSpot
    from downriver.model.unread import Unread

# Kinds of blind spots that the question causes by its limits. An answer that counts what it leaves
# out (`shown` and `total`) need not list them.
LIMITS = frozenset({"depth_limit", "node_limit"})


def is_complete(blind_spots: Collection[BlindSpot], *, unread: Collection[Unread] = ()) -> bool:
    """Return whether everything that an answer depends on is known.

    Whatever is unknown is a blind spot (`possible_cut`, `job_without_inputs`, a depth limit …) or,
    in a change, an unread file or statement. An answer with any of them is not complete.
    """
    return not blind_spots and not unread
