"""Lineage in plain words: one list of tools, an agent that uses them, and MCP."""
