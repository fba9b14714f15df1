"""`Agent`: answers messages with the tools of a tracker, with or without a language model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from downriver.agent.model_loop import OFFLINE, choose_model
from downriver.agent.offline.planner import OfflinePlanner
from downriver.agent.toolbox import Toolbox
from downriver.agent.tools import ToolContext
from downriver.errors import InvalidRequestError, StoreNotFoundError
from downriver.impact import read_policy
from downriver.sdk import Tracker, lineage
from downriver.store import MEMORY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from types import TracebackType

    from downriver.agent.toolbox import ToolCall

_NAMES = "Write ids as table:name, api:name, model:name, or as in the answers of tools."

ROLES = {
    "builder": (
        "You build a lineage graph. When someone describes pipelines, register every flow: "
        "describe_pipeline reads plain sentences, register_pipeline and register_flow take single "
        "flows. Give each flow a label that states the transformation. Repeat what could not be "
        f"understood; never guess. {_NAMES}"
    ),
    "gate": (
        "You explain decisions about changes to data. The policy makes the decision, which is "
        "given to you: never change or weaken it. State in two or three sentences who is "
        "affected and why, and what to do next."
    ),
    "steward": (
        "You are the steward of a data warehouse and answer questions about its lineage. Use the "
        "tools and never answer from memory. Trace both directions when a question is about "
        "dependencies in general, call analyze_impact before you discuss changes, and "
        "export_lineage with format mermaid for a diagram. State when an answer is incomplete. "
        f"{_NAMES}"
    ),
}
DEFAULT_ROLE = "steward"


def role_prompt(role: str) -> str:
    """Return the prompt of a role."""
    if role not in ROLES:
        raise InvalidRequestError("role", f"{role!r} is not one of {', '.join(ROLES)}")
    return ROLES[role]


def open_tracker(
    location: str | None, *, allow_writes: bool, notify: Callable[[str], None]
) -> Tracker:
    """Open the lineage. Without write permission no store is created; then memory is used."""
    try:
        return lineage(location, create=allow_writes)
    except StoreNotFoundError as missing:
        notify(
            f"{missing.message}. An agent with write permission (allow_writes=True, "
            "--allow-writes) creates it too; this agent starts with an empty graph."
        )
        return lineage(MEMORY)


class Planner(Protocol):
    """Turns a message into an answer by calling tools."""

    async def answer(self, text: str, toolbox: Toolbox) -> str:
        """Return the answer."""

    def stream(self, text: str, toolbox: Toolbox) -> AsyncIterator[str]:
        """Yield the answer in parts."""


class _Session(NamedTuple):
    """The state between start and stop. `opened` is a tracker that the agent opened itself."""

    toolbox: Toolbox
    planner: Planner
    opened: Tracker | None


def _to_stderr(notice: str) -> None:
    sys.stderr.write(f"downriver: {notice}\n")


class Agent:
    """Answers questions about lineage, registers lineage, and assesses changes.

    Without an API key for `model`, or with `model="offline"`, it works with fixed rules. A tracker
    passed in `tools` may be written to; one that the agent opens itself is read-only unless
    `allow_writes` is true. `context` replaces the tracker and the current folder that the tools
    work on. `max_steps` limits the tool calls of one run, `max_tokens` the tokens
    of a model.
    """

    def __init__(
        self,
        name: str = "Downriver",
        model: str | None = None,
        prompt: str = "",
        tools: Sequence[Tracker] = (),
        *,
        role: str = DEFAULT_ROLE,
        allow_writes: bool | None = None,
        max_steps: int = 25,
        max_tokens: int = 100_000,
        notify: Callable[[str], None] = _to_stderr,
        context: ToolContext | None = None,
    ) -> None:
        self.name = name
        self.prompt = prompt or role_prompt(role)
        self._role = role
        self._given = list(tools)
        self._context = context
        self._allow_writes = bool(tools) if allow_writes is None else allow_writes
        self._max_steps = _above_zero("max_steps", max_steps)
        self._max_tokens = _above_zero("max_tokens", max_tokens)
        self._model, notice = choose_model(model)
        self._notify = notify
        if notice:
            notify(notice)
        self._session: _Session | None = None
        self._calls: list[ToolCall] = []

    @property
    def model(self) -> str:
        """The model that answers, or `offline`."""
        return self._model

    @property
    def calls(self) -> list[ToolCall]:
        """All tool calls so far."""
        return self._calls

    @property
    def candidates(self) -> list[str]:
        """The ids that ambiguous and unknown names of the last message may mean."""
        return (
            [] if self._session is None else list(dict.fromkeys(self._session.toolbox.candidates))
        )

    async def start(self) -> None:
        """Open the tracker. `run` and `stream` do it too."""
        self._started()

    def _started(self) -> _Session:
        if self._session is None:
            opened = None if self._given or self._context else self._open()
            context = self._context or ToolContext(
                opened or _tracker_in(self._given), read_policy(None), Path.cwd()
            )
            toolbox = Toolbox(
                context,
                allow_writes=self._allow_writes,
                max_steps=self._max_steps,
                calls=self._calls,
            )
            self._session = _Session(toolbox, self._make_planner(), opened)
        return self._session

    def _open(self) -> Tracker:
        return open_tracker(None, allow_writes=self._allow_writes, notify=self._notify)

    def _make_planner(self) -> Planner:
        gate = self._role == "gate"
        offline = OfflinePlanner(gate=gate)
        if self._model == OFFLINE:
            return offline
        from downriver.agent.model_loop import ModelPlanner

        return ModelPlanner(self._model, self.prompt, self._max_tokens, offline, gate=gate)

    async def run(self, message: str) -> str:
        """Return the answer to a message."""
        session = self._session_for(message)
        return (await session.planner.answer(message, session.toolbox)).strip()

    async def stream(self, message: str) -> AsyncIterator[str]:
        """Yield the answer to a message in parts."""
        session = self._session_for(message)
        async for part in session.planner.stream(message, session.toolbox):
            yield part

    def _session_for(self, message: str) -> _Session:
        if not message.strip():
            raise InvalidRequestError("message", "empty")
        session = self._started()
        session.toolbox.start_run()
        return session

    async def stop(self) -> None:
        """Close the tracker if the agent opened it; a tracker passed in stays open."""
        session, self._session = self._session, None
        if session is not None and session.opened is not None:
            await session.opened.close()

    async def __aenter__(self) -> Agent:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        await self.stop()


def _tracker_in(given: Sequence[Tracker]) -> Tracker:
    for tool in given:
        if not isinstance(tool, Tracker):
            raise InvalidRequestError("tools", f"{tool!r} is not a tracker; pass lineage()")
    if len(given) > 1:
        raise InvalidRequestError("tools", "an agent uses exactly one tracker")
    return given[0]


def _above_zero(name: str, value: int) -> int:
    if value < 1:
        raise InvalidRequestError(name, f"{value} is less than 1")
    return value
