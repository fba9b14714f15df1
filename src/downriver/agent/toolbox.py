"""The tools of one agent: calls are counted, timed and logged, and writes need permission."""

from __future__ import annotations

import logging
import time
from typing import Any

import msgspec

from downriver.agent.tools import TOOLS, Tool, ToolContext
from downriver.errors import (
    AmbiguousNameError,
    DownriverError,
    EntityNotFoundError,
    InvalidRequestError,
)

_log = logging.getLogger("downriver.agent")


class ToolCall(msgspec.Struct, kw_only=True):
    """One call of a tool: its arguments, result and duration."""

    tool: str
    arguments: dict[str, Any]
    ok: bool
    error: str
    milliseconds: float
    answer: msgspec.Struct | None = None


class Toolbox:
    """The tools of one agent. `calls` are all calls so far, `left` the calls left in this run.

    `candidates` are the ids that ambiguous and unknown names of this run may mean.
    """

    def __init__(
        self, context: ToolContext, *, allow_writes: bool, max_steps: int, calls: list[ToolCall]
    ) -> None:
        self.context = context
        self.allow_writes = allow_writes
        self.calls = calls
        self.candidates: list[str] = []
        self._tools = {tool.name: tool for tool in TOOLS}
        self._max_steps = max_steps
        self.left = max_steps

    def start_run(self) -> int:
        """Reset the limit for a new run; return the number of calls before it."""
        self.left = self._max_steps
        self.candidates.clear()
        return len(self.calls)

    def note_candidates(self, error: DownriverError) -> None:
        """Keep the ids that the error of a name lists."""
        if isinstance(error, AmbiguousNameError):
            self.candidates += error.candidates
        elif isinstance(error, EntityNotFoundError):
            self.candidates += error.near

    def tools(self) -> list[Tool]:
        """Return the permitted tools; without write permission, those that read or can dry-run."""
        return [t for t in self._tools.values() if self.allow_writes or not _only_writes(t)]

    async def call(self, name: str, arguments: dict[str, Any]) -> msgspec.Struct:
        """Call a tool. Errors are logged and raised unchanged."""
        started = time.perf_counter()
        call = ToolCall(tool=name, arguments=arguments, ok=False, error="", milliseconds=0.0)
        self.calls.append(call)
        try:
            call.answer = await self._allowed(name, arguments).call(self.context, arguments)
            call.ok = True
        except DownriverError as error:
            call.error = error.message
            self.note_candidates(error)
            raise
        finally:
            call.milliseconds = round((time.perf_counter() - started) * 1000, 1)
            _log.info("%s %s: %s", name, arguments, "ok" if call.ok else call.error)
        return call.answer

    def _allowed(self, name: str, arguments: dict[str, Any]) -> Tool:
        tool = self._tools.get(name)
        if tool is None:
            raise InvalidRequestError("tool", f"no tool named {name!r}")
        check_write(tool, arguments, allow_writes=self.allow_writes)
        if self.left <= 0:
            raise InvalidRequestError(
                "max_steps",
                f"the limit of {self._max_steps} tool calls is reached; ask for less at once",
            )
        self.left -= 1
        return tool


def check_write(tool: Tool, arguments: dict[str, Any], *, allow_writes: bool) -> None:
    """Raise an error if a call would write without permission; a dry run is permitted."""
    if tool.writes and not allow_writes and arguments.get("dry_run") is not True:
        raise InvalidRequestError(
            tool.name, "writing is not allowed; set allow_writes=True or --allow-writes"
        )


def _only_writes(tool: Tool) -> bool:
    return tool.writes and "dry_run" not in tool.arguments.__struct_fields__
