"""OpenLineage in and out: wire format, and `fold`, which turns an event into facts."""

from downriver.events.fold import fold
from downriver.events.wire import Event, parse_event, split_events

__all__ = ["Event", "fold", "parse_event", "split_events"]
