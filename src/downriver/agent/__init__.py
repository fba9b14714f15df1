"""Lineage in plain English: one list of tools, an agent that calls them, and an MCP server."""

from downriver.agent.agent import Agent, open_tracker
from downriver.agent.toolbox import ToolCall
from downriver.agent.tools import TOOLS, Tool

__all__ = ["TOOLS", "Agent", "Tool", "ToolCall", "open_tracker"]
