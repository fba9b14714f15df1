"""The sources of events in Downriver itself. Each source produces OpenLineage events."""
