"""Where events come from besides other tools: each source ends as an OpenLineage event."""
