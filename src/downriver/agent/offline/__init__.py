"""The agent without a model: a deterministic planner over the same tools."""
