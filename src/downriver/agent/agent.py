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

_NAMES = "Write ids as table:name, api:name, model:name, or as answers of tools show them."

ROLES = {
    "builder": (
        "You build a lineage graph. When someone describes pipelines, register every flow they "
        "describe: describe_pipeline reads plain sentences, register_pipeline and register_flow "
        "take flows one by one. Give each flow a label that says what happens on the way. Repeat "
        f"what could not be understood instead of guessing it. {_NAMES}"
    ),
    "gate": (
        "You explain decisions about changes to data. The decision is made by policy and given to "
        "you: never change it, weigh it or soften it. Say in two or three sentences who is "
        "affected and why, and what to do next."
    ),
    "steward": (
        "You are the steward of a data warehouse and answer questions about its lineage. Look "
        "things up with tools and never answer from memory. Trace both ways when a question is "
        "about dependencies in general, use analyze_impact before you speak of changes, and "
        "export_lineage with format mermaid for a diagram. Say when an answer is not complete. "
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
    """Open the lineage; who may only read makes no store, and is told where there is none."""
    try:
        return lineage(location, create=allow_writes)
    except StoreNotFoundError as missing:
        notify(
            f"{missing.message}. So does an agent that may write (allow_writes=True, "
            "--allow-writes); this one knows of nothing yet."
        )
        return lineage(MEMORY)


class Planner(Protocol):
    """What turns a message into an answer with the help of tools."""

    async def answer(self, text: str, toolbox: Toolbox) -> str:
        """Return the answer."""

    def stream(self, text: str, toolbox: Toolbox) -> AsyncIterator[str]:
        """Yield the answer, piece by piece."""


class _Session(NamedTuple):
    """What an agent holds between start and stop; `opened` is the tracker it opened itself."""

    toolbox: Toolbox
    mind: Planner
    opened: Tracker | None


def _to_stderr(notice: str) -> None:
    sys.stderr.write(f"downriver: {notice}\n")


class Agent:
    """Answers questions about lineage, registers it, and judges changes.

    With no API key for `model`, it works by fixed rules: `model="offline"` asks for that. A tracker
    that code hands over in `tools` may be written to; one that the agent opens itself may not,
    unless `allow_writes` says so. `max_steps` limits the uses of tools in one run, `max_tokens`
    what a model may spend on it.
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
    ) -> None:
        self.name = name
        self.prompt = prompt or role_prompt(role)
        self._role = role
        self._given = list(tools)
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
        """The model that answers; `offline` when none does."""
        return self._model

    @property
    def calls(self) -> list[ToolCall]:
        """Every use of a tool so far: which, with what, and how it went."""
        return self._calls

    async def start(self) -> None:
        """Get ready. Running starts it too."""
        self._started()

    def _started(self) -> _Session:
        if self._session is None:
            opened = None if self._given else self._open()
            desk = ToolContext(opened or _tracker_in(self._given), read_policy(None), Path.cwd())
            toolbox = Toolbox(
                desk,
                allow_writes=self._allow_writes,
                max_steps=self._max_steps,
                calls=self._calls,
            )
            self._session = _Session(toolbox, self._make_mind(), opened)
        return self._session

    def _open(self) -> Tracker:
        return open_tracker(None, allow_writes=self._allow_writes, notify=self._notify)

    def _make_mind(self) -> Planner:
        gate = self._role == "gate"
        offline = OfflinePlanner(gate=gate)
        if self._model == OFFLINE:
            return offline
        from downriver.agent.model_loop import ModelPlanner

        return ModelPlanner(self._model, self.prompt, self._max_tokens, offline, gate=gate)

    async def run(self, message: str) -> str:
        """Return the answer to a message."""
        session = self._session_for(message)
        return (await session.mind.answer(message, session.toolbox)).strip()

    async def stream(self, message: str) -> AsyncIterator[str]:
        """Yield the answer to a message as it comes."""
        session = self._session_for(message)
        async for piece in session.mind.stream(message, session.toolbox):
            yield piece

    def _session_for(self, message: str) -> _Session:
        if not message.strip():
            raise InvalidRequestError("message", "empty")
        session = self._started()
        session.toolbox.start_run()
        return session

    async def stop(self) -> None:
        """Let go of what the agent opened itself; a tracker given to it stays open."""
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
            raise InvalidRequestError("tools", f"{tool!r} is no tracker; give it lineage()")
    if len(given) > 1:
        raise InvalidRequestError("tools", "an agent works with one tracker")
    return given[0]


def _above_zero(name: str, value: int) -> int:
    if value < 1:
        raise InvalidRequestError(name, f"{value} is below one")
    return value
