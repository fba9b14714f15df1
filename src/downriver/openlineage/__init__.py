"""OpenLineage: the wire format, the facets, and `fold`, which turns an event into facts."""

from downriver.openlineage.fold import fold
from downriver.openlineage.wire import Event, parse_event, split_events

__all__ = ["Event", "fold", "parse_event", "split_events"]
