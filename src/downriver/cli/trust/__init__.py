"""Commands about trust in the data: KPIs, incidents, tags, verdicts."""
