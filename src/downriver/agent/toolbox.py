"""The tools of one agent: calls are counted, timed and logged, and writes need permission."""

from __future__ import annotations

import logging
import time
from typing import Any

import msgspec

from downriver.agent.tools import TOOLS, Tool, ToolContext
from downriver.errors import DownriverError, InvalidRequestError

_log = logging.getLogger("downriver.agent")


class ToolCall(msgspec.Struct, kw_only=True):
    """One use of a tool: what was asked, and how it went."""

    tool: str
    arguments: dict[str, Any]
    ok: bool
    error: str
    milliseconds: float
    answer: msgspec.Struct | None = None


class Toolbox:
    """The tools over one desk. `calls` are those of all runs, `left` how many this run may make."""

    def __init__(
        self, desk: ToolContext, *, allow_writes: bool, max_steps: int, calls: list[ToolCall]
    ) -> None:
        self.desk = desk
        self.allow_writes = allow_writes
        self.calls = calls
        self._tools = {tool.name: tool for tool in TOOLS}
        self._max_steps = max_steps
        self.left = max_steps

    def start_run(self) -> int:
        """Give a new run its steps; return the number of calls before it."""
        self.left = self._max_steps
        return len(self.calls)

    def tools(self) -> list[Tool]:
        """Return what may be used: all, or what only reads. A description may be tried out."""
        return [t for t in self._tools.values() if self.allow_writes or not _only_writes(t)]

    async def call(self, name: str, arguments: dict[str, Any]) -> msgspec.Struct:
        """Use a tool. Its errors are raised as they are, and logged too."""
        started = time.perf_counter()
        call = ToolCall(tool=name, arguments=arguments, ok=False, error="", milliseconds=0.0)
        self.calls.append(call)
        try:
            call.answer = await self._allowed(name, arguments).call(self.desk, arguments)
            call.ok = True
        except DownriverError as error:
            call.error = error.message
            raise
        finally:
            call.milliseconds = round((time.perf_counter() - started) * 1000, 1)
            _log.info("%s %s: %s", name, arguments, "ok" if call.ok else call.error)
        return call.answer

    def _allowed(self, name: str, arguments: dict[str, Any]) -> Tool:
        tool = self._tools.get(name)
        if tool is None:
            raise InvalidRequestError("tool", f"there is none called {name!r}")
        check_write(tool, arguments, allow_writes=self.allow_writes)
        if self.left <= 0:
            raise InvalidRequestError(
                "max_steps",
                f"{self._max_steps} uses of tools were not enough; ask for less at once",
            )
        self.left -= 1
        return tool


def check_write(tool: Tool, arguments: dict[str, Any], *, allow_writes: bool) -> None:
    """Refuse what would change the lineage where that is not allowed; a dry run changes nothing."""
    if tool.writes and not allow_writes and arguments.get("dry_run") is not True:
        raise InvalidRequestError(
            tool.name, "writing is not allowed here; it needs allow_writes=True or --allow-writes"
        )


def _only_writes(tool: Tool) -> bool:
    return tool.writes and "dry_run" not in tool.arguments.__struct_fields__
