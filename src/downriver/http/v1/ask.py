"""Questions in plain language, answered by the agent in a stream of events.

Each event is two lines, `event: NAME` and `data: JSON`, and an empty line.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import StreamingResponse

from downriver.errors import DownriverError, InvalidRequestError, StoreBusyError
from downriver.http.endpoint import Endpoint, answers
from downriver.http.errors import error_body
from downriver.http.request import context_of, read_struct
from downriver.store import KeyRole

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from starlette.requests import Request
    from starlette.responses import Response

    from downriver.agent import Agent, ToolCall
    from downriver.http.request import AppContext

_LONGEST_QUESTION = 10_000
_MOST_AT_ONCE = 8
_INTERVAL = 0.05  # seconds between checks for new tool calls
_SUMMARY = 300
_NODES = 50
_running = 0


class AskTurn(msgspec.Struct, kw_only=True):
    """An earlier message of the conversation. `role` is user or assistant."""

    role: str
    text: str


class AskRequest(msgspec.Struct, kw_only=True):
    """A question, and the conversation before it."""

    question: str
    history: list[AskTurn] = []


async def post_ask(request: Request) -> Response:
    """Answer a question as a stream of events: `{"question": …, "history": […]}`."""
    asked = await read_struct(request, AskRequest)
    if not asked.question.strip():
        raise InvalidRequestError("question", "empty")
    if len(asked.question) > _LONGEST_QUESTION:
        raise InvalidRequestError("question", f"longer than {_LONGEST_QUESTION} characters")
    with _reserve_answer():
        pass  # a busy server refuses the request before the stream begins
    return StreamingResponse(
        _answer(asked, context_of(request)),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store"},
    )


async def _answer(asked: AskRequest, context: AppContext) -> AsyncIterator[bytes]:
    """Yield the events of an answer. The work ends when the client leaves."""
    try:
        with _reserve_answer():
            agent = await asyncio.to_thread(_make_agent, context)
            async for event in _answer_of(agent, asked):
                yield event
    except DownriverError as error:
        yield _event("error", error_body(error, context.lineage.admin.store_url))


@contextmanager
def _reserve_answer() -> Iterator[None]:
    """Count an answer, or raise if too many are active at one time."""
    global _running
    if _running >= _MOST_AT_ONCE:
        raise StoreBusyError("too many questions are being answered")
    _running += 1
    try:
        yield
    finally:
        _running -= 1


async def _answer_of(agent: Agent, asked: AskRequest) -> AsyncIterator[bytes]:
    parts: asyncio.Queue[str | None] = asyncio.Queue()
    work = asyncio.create_task(_collect(agent, _message(asked, agent), parts))
    try:
        async for event in _events(agent, work, parts):
            yield event
        await work
        root = next((node for call in agent.calls for node in _nodes(call)), None)
        graph = {} if root is None else {"graph": {"root": root}}
        names = {"candidates": agent.candidates} if agent.candidates else {}
        yield _event("done", {**graph, **names})
    finally:
        work.cancel()
        with suppress(asyncio.CancelledError, DownriverError):
            await work
        await agent.stop()


def _make_agent(context: AppContext) -> Agent:
    """Return an agent that reads this store and writes nothing."""
    from downriver.agent import Agent
    from downriver.agent.tools import ToolContext
    from downriver.http.isolated_lineage import IsolatedLineage
    from downriver.sdk import SyncTracker, Tracker
    from downriver.sdk.delivery import open_spool

    repository = context.lineage.session.repository
    backend = IsolatedLineage(context.lineage, context.workers)
    tracker = Tracker(SyncTracker(backend, open_spool()))
    tools = ToolContext(tracker, None, repository.root if repository else None)
    return Agent(context=tools, allow_writes=False, notify=lambda notice: None)


def _message(asked: AskRequest, agent: Agent) -> str:
    """Return the question, for a language model after the conversation so far."""
    if agent.model == "offline" or not asked.history:
        return asked.question
    earlier = "\n".join(f"{turn.role}: {turn.text}" for turn in asked.history[-10:])
    return f"The conversation so far:\n{earlier}\n\nThe question:\n{asked.question}"


async def _collect(agent: Agent, message: str, parts: asyncio.Queue[str | None]) -> None:
    try:
        async for part in agent.stream(message):
            parts.put_nowait(part)
    finally:
        parts.put_nowait(None)


async def _events(
    agent: Agent, work: asyncio.Task[None], parts: asyncio.Queue[str | None]
) -> AsyncIterator[bytes]:
    """Yield calls of tools as they start and end, in their order, and the text as it comes."""
    reported = _ReportedCalls(agent)
    while not work.cancelled():
        part: str | None = ""
        with suppress(asyncio.TimeoutError):
            part = await asyncio.wait_for(parts.get(), _INTERVAL)
        for event in reported.new_events():
            yield event
        if part is None:
            return
        if part:
            yield _event("text", {"text": part})


class _ReportedCalls:
    """The calls of tools that were reported to the client, each before the next."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._started = 0
        self._ended = 0

    def new_events(self) -> Iterator[bytes]:
        """Yield the new events since the last call."""
        calls = self._agent.calls
        while self._ended < len(calls):
            call = calls[self._ended]
            if self._started == self._ended:
                self._started += 1
                yield _event("tool", {"name": call.tool, "arguments": call.arguments})
            if not _has_ended(call):
                return
            self._ended += 1
            yield _result(call)


def _has_ended(call: ToolCall) -> bool:
    return call.ok or bool(call.error)


def _result(call: ToolCall) -> bytes:
    text = call.error if call.answer is None else msgspec.json.encode(call.answer).decode()
    content: dict[str, Any] = {"name": call.tool, "ok": call.ok, "summary": text[:_SUMMARY]}
    return _event("tool_result", {**content, "nodes": _nodes(call)[:_NODES]})


def _nodes(call: ToolCall) -> list[str]:
    """Return the ids of datasets and jobs that the answer of a tool contains, in its order."""
    if call.answer is None:
        return []
    ids: dict[str, None] = {}
    _find_ids(msgspec.to_builtins(call.answer), ids)
    return list(ids)


def _find_ids(value: Any, ids: dict[str, None]) -> None:
    match value:
        case dict():
            for inner in value.values():
                _find_ids(inner, ids)
        case list():
            for inner in value:
                _find_ids(inner, ids)
        case str() if value.startswith(("dataset:", "job:")) and "\n" not in value:
            ids[value] = None


def _event(name: str, content: Any) -> bytes:
    return f"event: {name}\ndata: ".encode() + msgspec.json.encode(content) + b"\n\n"


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "POST",
        "/v1/ask",
        post_ask,
        KeyRole.READER,
        answers(None, 400, 413, 503),
        body=AskRequest,
    ),
)
