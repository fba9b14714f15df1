"""Score an answer: right, partly right, asked back, or wrong without a sign of doubt."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from downriver import Agent

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from downriver import Tracker
    from downriver.agent.toolbox import ToolCall

Score = Literal["right", "partly", "asked", "wrong"]
_DOUBT = re.compile(
    r"not understood|did not understand|not found|cannot answer|not registered|did you mean|"
    r"please rephrase|which ",
    re.IGNORECASE,
)
_IMPACT = ("analyze_impact", "gate_change")


class ExpectedCall(NamedTuple):
    """A tool that has to be called, and arguments that it has to get; `*` matches any text."""

    tool: str
    arguments: dict[str, str]


@dataclass
class Paraphrase:
    """A message and the expected reaction of the agent."""

    text: str
    flows: set[tuple[str, str]] = field(default_factory=set)
    calls: list[ExpectedCall] = field(default_factory=list)
    says: list[str] = field(default_factory=list)
    ask: bool = False


class Scored(NamedTuple):
    """A message, its score, and what the agent did."""

    paraphrase: Paraphrase
    score: Score
    reply: str
    done: str


def read_paraphrases(path: Path) -> list[Paraphrase]:
    """Read the messages of a file."""
    blocks = path.read_text("utf-8").split("\n\n")[1:]
    return [_read(block.strip("\n").splitlines()) for block in blocks]


def _read(lines: list[str]) -> Paraphrase:
    found = Paraphrase("\n".join(line[2:] for line in lines if line.startswith(">")))
    for line in lines:
        if line.startswith(">"):
            continue
        if line == "ask":
            found.ask = True
        elif line.startswith("says "):
            found.says.append(line.removeprefix("says "))
        elif " -> " in line:
            source, _, target = line.partition(" -> ")
            found.flows.add((normal(source), normal(target)))
        else:
            found.calls.append(_expected(line))
    return found


def _expected(line: str) -> ExpectedCall:
    tool, _, rest = line.partition(" ")
    pairs = re.findall(r"(\w+)=(.*?)(?=\s+\w+=|$)", rest)
    return ExpectedCall(tool, dict(pairs))


def normal(name: object) -> str:
    """Return a name without the kind that plain names get."""
    text = re.sub(r"^(?:dataset|column):default:", "", str(name).casefold())
    text = re.sub(r"^dataset:(\w+://[^:]+):", r"\1/", text)
    text = re.sub(r"^table:", "", text).replace(":", ".") if "://" not in text else text
    return text.replace(" ", "_")


def score_all(tracker: Tracker, paraphrases: Iterable[Paraphrase]) -> list[Scored]:
    """Score every message; the agent may not write, so that each meets the same graph."""

    async def run() -> list[Scored]:
        return [await _score(tracker, paraphrase) for paraphrase in paraphrases]

    return asyncio.run(run())


async def _score(tracker: Tracker, paraphrase: Paraphrase) -> Scored:
    agent = Agent("Steward", "offline", tools=[tracker], allow_writes=False)
    reply = await agent.run(paraphrase.text)
    done = "; ".join(f"{call.tool} {_shown(call)}" for call in agent.calls)
    return Scored(paraphrase, _grade(paraphrase, agent.calls, reply), reply, done)


def _shown(call: ToolCall) -> str:
    if call.tool == "describe_pipeline":
        return " ".join(f"{source}->{target}" for source, target in sorted(_flows(call)))
    changes = getattr(call.answer, "changes", "")
    rest = {k: v for k, v in call.arguments.items() if k not in ("description", "text", "sql")}
    return f"{rest} {changes}"


def _grade(wanted: Paraphrase, calls: list[ToolCall], reply: str) -> Score:
    flows = {flow for call in calls if call.tool == "describe_pipeline" for flow in _flows(call)}
    doubt = _DOUBT.search(reply) is not None
    said = all(text.casefold() in reply.casefold() for text in wanted.says)
    answered = [call for call in calls if call.ok and call.tool != "describe_pipeline"]
    if not flows and not answered and doubt:
        if wanted.ask:
            return "right" if said else "asked"
        return "asked"
    if wanted.ask:
        return "wrong"
    if wanted.flows:
        if answered or flows - wanted.flows:
            return "wrong"
        if flows == wanted.flows:
            return "right" if not doubt else "partly"
        return "partly" if doubt else "wrong"
    if flows:
        return "wrong"
    matched = len(answered) == len(wanted.calls) and all(
        _matches(expected, call) for expected, call in zip(wanted.calls, answered, strict=True)
    )
    return "right" if matched and said else "wrong"


def _flows(call: ToolCall) -> set[tuple[str, str]]:
    answer: Any = call.answer
    pipelines = answer.pipelines if answer is not None else []
    return {
        (normal(flow.source), normal(flow.target))
        for pipeline in pipelines
        for flow in pipeline.flows
    }


def _matches(expected: ExpectedCall, call: ToolCall) -> bool:
    tools = _IMPACT if expected.tool == "impact" else (expected.tool,)
    if call.tool not in tools:
        return False
    return all(_given(name, value, call) for name, value in expected.arguments.items()) and all(
        name in expected.arguments for name in ("max_depth", "as_of") if name in call.arguments
    )


def _given(name: str, value: str, call: ToolCall) -> bool:
    if name == "change":
        answer: Any = call.answer
        return [change.casefold() for change in answer.changes] == [value.casefold()]
    given = normal(call.arguments.get(name, ""))
    if value.endswith("*"):
        return bool(given) and given.startswith(value[:-1])
    return given == normal(value)


def summary(scored: list[Scored]) -> dict[str, float]:
    """Return the share of each score in percent."""
    counts = Counter(item.score for item in scored)
    return {
        score: round(100 * counts[score] / len(scored), 1)
        for score in ("right", "partly", "asked", "wrong")
    }
