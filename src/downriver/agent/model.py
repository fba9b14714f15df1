"""The agent's mind where a model answers: pydantic-ai runs the loop, our tools do the work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from downriver.agent.offline import replies
from downriver.agent.offline.intents import read_intent
from downriver.agent.providers import split_model
from downriver.agent.verdict import DISAGREED, agrees, last_ruling, states_decision
from downriver.errors import DownriverError, MissingDependencyError, ModelError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from pydantic_ai import Agent as Loop
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.usage import UsageLimits

    from downriver.agent.calls import Toolbox
    from downriver.agent.offline.planner import OfflinePlanner
    from downriver.agent.tools import Tool

_EXPLAIN = (
    "{asked}\n\nThe policy has decided:\n{verdict}\n\nExplain this decision to the team in two or "
    "three sentences: who is affected and why, and what to do next. Do not state another decision."
)


class ModelMind:
    """Asks a model, remembers the conversation, and holds its words to the policy's verdict."""

    def __init__(
        self, model: str, prompt: str, max_tokens: int, offline: OfflinePlanner, *, gate: bool
    ) -> None:
        self._model = model
        self._prompt = prompt
        self._max_tokens = max_tokens
        self._offline = offline
        self._gate = gate
        self._history: list[ModelMessage] = []

    async def answer(self, text: str, toolbox: Toolbox) -> str:
        """Return the answer to a message."""
        kind = read_intent(text).kind
        if kind == "gate" or (self._gate and kind == "impact"):
            return await self._explained(text, toolbox)
        before = len(toolbox.calls)
        said = await self._ask(text, toolbox)
        return await self._held(said, text, toolbox, before)

    async def stream(self, text: str, toolbox: Toolbox) -> AsyncIterator[str]:
        """Yield the answer as it comes; what is about a change is checked before it is shown."""
        if self._gate or read_intent(text).kind in ("gate", "impact"):
            yield await self.answer(text, toolbox)
            return
        before = len(toolbox.calls)
        held: list[str] = []
        async for piece in self._pieces(text, toolbox):
            if last_ruling(toolbox.calls[before:]) is None:
                yield piece
            else:
                held.append(piece)
        if held:
            yield await self._held("".join(held), text, toolbox, before)

    async def _explained(self, text: str, toolbox: Toolbox) -> str:
        """Let the policy decide first, then let the model explain that decision."""
        verdict = await self._offline.answer(text, toolbox)
        ruling = last_ruling(toolbox.calls)
        if ruling is None:
            return verdict  # nothing could be decided: there is nothing to explain
        try:
            said = await self._ask(_EXPLAIN.format(asked=text, verdict=verdict), toolbox)
        except ModelError as error:
            return f"{verdict}\n\n(The model could not explain it: {error.message})"
        return f"{verdict}\n\n{said if agrees(said, ruling) else DISAGREED}"

    async def _held(self, said: str, text: str, toolbox: Toolbox, before: int) -> str:
        """Return a model's words, or the verdict where they contradict it or decide alone."""
        ruling = last_ruling(toolbox.calls[before:])
        if ruling is None and read_intent(text).kind == "impact" and states_decision(said):
            verdict = await self._offline.answer(text, toolbox)
            ruling = last_ruling(toolbox.calls[before:])
            if ruling is None or not agrees(said, ruling):
                return f"{verdict}\n\n{DISAGREED}"
        if ruling is None or agrees(said, ruling):
            return said
        return f"{replies.tell_ruling(ruling)}\n\n{DISAGREED}"

    async def _ask(self, text: str, toolbox: Toolbox) -> str:
        from pydantic_ai.exceptions import AgentRunError, UserError

        try:
            result = await self._loop(toolbox).run(
                text, message_history=self._history, usage_limits=self._limits(toolbox)
            )
        except (AgentRunError, UserError) as error:
            raise ModelError(self._model, _one_line(error)) from error
        self._history = result.all_messages()
        return result.output

    async def _pieces(self, text: str, toolbox: Toolbox) -> AsyncIterator[str]:
        from pydantic_ai import AgentRunResultEvent
        from pydantic_ai.exceptions import AgentRunError, UserError
        from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

        loop, limits = self._loop(toolbox), self._limits(toolbox)
        try:
            async with loop.run_stream_events(
                text, message_history=self._history, usage_limits=limits
            ) as events:
                async for event in events:
                    match event:
                        case PartStartEvent(part=TextPart(content=content)):
                            yield content
                        case PartDeltaEvent(delta=TextPartDelta(content_delta=content)):
                            yield content
                        case AgentRunResultEvent(result=result):
                            self._history = result.all_messages()
        except (AgentRunError, UserError) as error:
            raise ModelError(self._model, _one_line(error)) from error

    def _loop(self, toolbox: Toolbox) -> Loop[None, str]:
        try:
            from pydantic_ai import Agent as Loop
        except ImportError as exc:
            raise MissingDependencyError("pydantic-ai-slim", "agent") from exc
        tools = [_as_function(tool, toolbox) for tool in toolbox.tools()]
        return Loop(_open_model(self._model), instructions=self._prompt, tools=tools)

    def _limits(self, toolbox: Toolbox) -> UsageLimits:
        from pydantic_ai.usage import UsageLimits

        return UsageLimits(
            request_limit=toolbox.left + 1,
            tool_calls_limit=toolbox.left,
            total_tokens_limit=self._max_tokens,
        )


def _open_model(model: str) -> Any:
    """Return the model: OpenAI's chat API, at one's own endpoint if OPENAI_BASE_URL names one."""
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model

    provider, name = split_model(model)
    if provider == "openai":
        from pydantic_ai.models.openai import OpenAIChatModel

        return OpenAIChatModel(name)
    try:
        return infer_model(f"{provider}:{name}")
    except (UserError, ImportError) as error:
        raise ModelError(model, _one_line(error)) from error


def _as_function(tool: Tool, toolbox: Toolbox) -> Any:
    from pydantic_ai import Tool as Function

    return Function.from_schema(
        _caller(tool, toolbox), tool.name, tool.description, tool.input_schema()
    )


def _caller(tool: Tool, toolbox: Toolbox) -> Callable[..., Awaitable[Any]]:
    from pydantic_ai.exceptions import ToolFailed

    async def call(**arguments: Any) -> Any:
        try:
            answer = await toolbox.call(tool.name, arguments)
        except DownriverError as error:
            raise ToolFailed(error.message) from error
        return msgspec.to_builtins(answer)

    return call


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:500]
