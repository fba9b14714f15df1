"""A waiver that let a change pass, as an event: the log remembers who did so and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from downriver.events.render import PRODUCER, dataset, facet
from downriver.events.wire import render_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.model.ids import DatasetId

WAIVERS = "downriver_waivers"
_SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/DatasetEvent"


def render_waiver_event(
    changed: DatasetId, at: int, changes: Sequence[str], waived: Sequence[dict[str, Any]]
) -> bytes:
    """Return a DatasetEvent that says which rules were waived for which changes."""
    content = facet("DownriverWaivers", "1-0-0", changes=list(changes), waived=list(waived))
    return msgspec.json.encode(
        {
            "eventTime": render_time(at),
            "producer": PRODUCER,
            "schemaURL": _SCHEMA,
            "dataset": dataset(changed, {WAIVERS: content}),
        }
    )
