"""Answers from a language model: choice of the provider, the tool loop, and a check of the text.

pydantic-ai runs the loop. Text that contradicts the policy's verdict is replaced by the verdict.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from downriver.agent.offline import replies
from downriver.agent.offline.intents import read_intent
from downriver.agent.tools.change_impact import ChangeImpactAnswer, GateAnswer
from downriver.errors import DownriverError, MissingDependencyError, ModelError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from pydantic_ai import Agent as Loop
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.usage import UsageLimits

    from downriver.agent.offline.planner import OfflinePlanner
    from downriver.agent.toolbox import Toolbox, ToolCall
    from downriver.agent.tools import Tool

OFFLINE = "offline"
DEFAULT_MODEL = "gpt-4o-mini"
_KEYS = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "cohere": ("CO_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
}
_FAMILIES = {"claude": "anthropic", "gemini": "google", "mistral": "mistral", "command": "cohere"}
ENDPOINT_VARIABLE = "OPENAI_BASE_URL"


def choose_model(wanted: str | None) -> tuple[str, str]:
    """Return the model as `provider:name` or `offline`, and a notice for the user.

    Without an API key the agent works offline.
    """
    if wanted == OFFLINE:
        return OFFLINE, ""
    provider, name = split_model(wanted or DEFAULT_MODEL)
    if has_key(provider):
        return f"{provider}:{name}", ""
    if wanted is None:
        return OFFLINE, ""
    keys = " or ".join(_KEYS.get(provider, (f"{provider.upper()}_API_KEY",)))
    return OFFLINE, f"no API key for {wanted} ({keys} is not set); answering offline"


def split_model(model: str) -> tuple[str, str]:
    """Return provider and name: from `anthropic:claude-…`, or from the name alone."""
    provider, colon, name = model.partition(":")
    if colon and provider in _KEYS:
        return provider, name
    if ENDPOINT_VARIABLE in os.environ:  # a custom endpoint may use any model name
        return "openai", model
    family = next((p for word, p in _FAMILIES.items() if model.startswith(word)), "openai")
    return family, model


def has_key(provider: str) -> bool:
    """True if a provider has an API key. A custom endpoint may need none."""
    if provider == "openai" and os.environ.get(ENDPOINT_VARIABLE):
        return True
    keys = _KEYS.get(provider, (f"{provider.upper()}_API_KEY",))
    return any(os.environ.get(key) for key in keys)


_DECISIONS = re.compile(r"\b(APPROVED|CAUTION|BLOCKED)\b")
_RISK = re.compile(r"\bRISK:?\**\s*(LOW|MEDIUM|HIGH)\b", re.IGNORECASE)
_AFFECTED = re.compile(r"\bAFFECTED SYSTEMS:?\**\s*(\d+)", re.IGNORECASE)
_PERMISSION = re.compile(
    r"\b(?:is|be|it's|are)\s+(?:perfectly\s+|quite\s+)?safe to\b|\bis approved\b|\bgo ahead\b"
    r"|\byou (?:can|may) (?:safely|go ahead)\b|\bsafe to (?:proceed|ship|deploy|merge)\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"\b(?:not|never|n't|isn't|unless|until|before)\b", re.IGNORECASE)
CONTRADICTION = "(The model's answer contradicted the policy and is not shown.)"


class PolicyDecision(NamedTuple):
    """The decision of the policy about a change."""

    decision: str
    risk: str
    affected: int


def last_decision(calls: Sequence[ToolCall]) -> PolicyDecision | None:
    """Return the last decision of the policy in these tool calls."""
    for call in reversed(calls):
        if isinstance(call.answer, GateAnswer):
            gate = call.answer
            return PolicyDecision(gate.decision, gate.risk, gate.affected_systems)
        if isinstance(call.answer, ChangeImpactAnswer):
            impact = call.answer
            return PolicyDecision(impact.verdict, impact.risk_level, impact.total_affected_count)
    return None


def states_decision(text: str) -> bool:
    """True if a text states a decision about a change."""
    return bool(_DECISIONS.search(text) or _PERMISSION.search(text))


def agrees(text: str, decision: PolicyDecision) -> bool:
    """True if a text does not contradict the decision of the policy."""
    stated = set(_DECISIONS.findall(text))
    if stated and decision.decision not in stated:
        return False
    labelled = re.search(r"\bDECISION:?\**\s*\[?(\w+)", text)
    if labelled and labelled[1].upper() != decision.decision:
        return False
    risk, affected = _RISK.search(text), _AFFECTED.search(text)
    if risk and risk[1].upper() != decision.risk:
        return False
    if affected and int(affected[1]) != decision.affected:
        return False
    return decision.decision == "APPROVED" or not _permits(text)


def _permits(text: str) -> bool:
    sentences = re.split(r"(?<=[.!?])\s+|\n", text)
    return any(_PERMISSION.search(s) and not _NEGATION.search(s) for s in sentences)


_EXPLAIN = (
    "{asked}\n\nThe policy has decided:\n{verdict}\n\nExplain this decision to the team in two or "
    "three sentences: who is affected and why, and what to do next. Do not state another decision."
)


class ModelPlanner:
    """Answers with a model, keeps the conversation, and enforces the decision of the policy."""

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
            return await self._explain_decision(text, toolbox)
        before = len(toolbox.calls)
        reply = await self._ask(text, toolbox)
        return await self._check_reply(reply, text, toolbox, before)

    async def stream(self, text: str, toolbox: Toolbox) -> AsyncIterator[str]:
        """Yield the answer in parts. An answer about a change is checked before it is shown."""
        if self._gate or read_intent(text).kind in ("gate", "impact"):
            yield await self.answer(text, toolbox)
            return
        before = len(toolbox.calls)
        buffered: list[str] = []
        async for part in self._parts(text, toolbox):
            if last_decision(toolbox.calls[before:]) is None:
                yield part
            else:
                buffered.append(part)
        if buffered:
            yield await self._check_reply("".join(buffered), text, toolbox, before)

    async def _explain_decision(self, text: str, toolbox: Toolbox) -> str:
        """Let the policy decide, then let the model explain the decision."""
        verdict = await self._offline.answer(text, toolbox)
        decision = last_decision(toolbox.calls)
        if decision is None:
            return verdict  # no decision to explain
        try:
            reply = await self._ask(_EXPLAIN.format(asked=text, verdict=verdict), toolbox)
        except ModelError as error:
            return f"{verdict}\n\n(No explanation from the model: {error.message})"
        return f"{verdict}\n\n{reply if agrees(reply, decision) else CONTRADICTION}"

    async def _check_reply(self, reply: str, text: str, toolbox: Toolbox, before: int) -> str:
        """Return the reply of a model, or the verdict if the reply contradicts or replaces it."""
        decision = last_decision(toolbox.calls[before:])
        if decision is None and read_intent(text).kind == "impact" and states_decision(reply):
            verdict = await self._offline.answer(text, toolbox)
            decision = last_decision(toolbox.calls[before:])
            if decision is None or not agrees(reply, decision):
                return f"{verdict}\n\n{CONTRADICTION}"
        if decision is None or agrees(reply, decision):
            return reply
        return f"{replies.render_decision(decision)}\n\n{CONTRADICTION}"

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

    async def _parts(self, text: str, toolbox: Toolbox) -> AsyncIterator[str]:
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
    """Return the model of pydantic-ai; OpenAI's may be at the endpoint of OPENAI_BASE_URL."""
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
