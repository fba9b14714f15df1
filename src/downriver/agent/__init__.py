"""Lineage in plain words: one list of tools, an agent that uses them, and MCP."""

from downriver.agent.agent import Agent
from downriver.agent.calls import ToolCall
from downriver.agent.opening import open_tracker
from downriver.agent.tools import TOOLS, Tool

__all__ = ["TOOLS", "Agent", "Tool", "ToolCall", "open_tracker"]
