"""Commands that report on the whole graph: KPIs, incidents, tags, certification, monitoring."""
