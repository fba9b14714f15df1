"""`downriver agent`: talk to the lineage."""

from __future__ import annotations

import asyncio
import sys
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from downriver.cli.output import JsonOption, StoreOption, err, escape, print_json
from downriver.errors import DownriverError, InvalidRequestError

if TYPE_CHECKING:
    from downriver.agent import Agent, ToolCall


class AgentRole(str, Enum):
    """What an agent is for; `agent.roles` has their prompts."""

    BUILDER = "builder"
    GATE = "gate"
    STEWARD = "steward"


_LEAVE = ("exit", "quit", ":q")


class AgentAnswer(msgspec.Struct, kw_only=True):
    """One answer, for programs: what was said, by whom, and which tools were used."""

    model: str
    answer: str
    calls: list[dict[str, Any]]


def agent(
    prompt: Annotated[
        str | None, typer.Option("--prompt", "-p", help="Answer this and leave; - reads it all.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", help="offline, a model's name, or provider:name."),
    ] = None,
    role: Annotated[
        AgentRole, typer.Option("--role", help="What the agent is for.")
    ] = AgentRole.STEWARD,
    allow_writes: Annotated[
        bool, typer.Option("--allow-writes", help="Let it register lineage.")
    ] = False,
    max_steps: Annotated[
        int, typer.Option("--max-steps", min=1, help="How many uses of tools an answer may take.")
    ] = 25,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Ask about lineage in plain words, with a model or without one."""
    from downriver.agent import (
        Agent,
        open_tracker,
    )  # its grammar takes a moment that other commands need not

    if prompt is None and json:
        raise InvalidRequestError("--json", "goes with --prompt")
    message = sys.stdin.read() if prompt == "-" else prompt
    tracker = open_tracker(store, allow_writes=allow_writes, notify=_notice)
    talker = Agent(
        model=model,
        tools=[tracker],
        role=role.value,
        allow_writes=allow_writes,
        max_steps=max_steps,
        notify=_notice,
    )
    try:
        if message is None:
            asyncio.run(_converse(talker))
        elif json:
            asyncio.run(_answer_json(talker, message))
        else:
            asyncio.run(_say(talker, message))
    finally:
        tracker.sync.close()


def _notice(notice: str) -> None:
    err.print(f"[yellow]{escape(notice)}[/]")


async def _answer_json(talker: Agent, message: str) -> None:
    answer = await talker.run(message)
    calls = [_told(call) for call in talker.calls]
    print_json(AgentAnswer(model=talker.model, answer=answer, calls=calls))


def _told(call: ToolCall) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(call)
    return told


async def _say(talker: Agent, message: str) -> None:
    async for piece in talker.stream(message):
        sys.stdout.write(piece)
        sys.stdout.flush()
    sys.stdout.write("\n")


async def _converse(talker: Agent) -> None:
    """Answer line after line; an empty line ends nothing, `exit` and end of input do."""
    err.print(f"[dim]{talker.model} · help shows what it understands · exit leaves[/]")
    while True:
        message = await asyncio.to_thread(_read_message)
        if message is None or message.strip().lower() in _LEAVE:
            return
        if not message.strip():
            continue
        try:
            await _say(talker, message)
        except DownriverError as error:
            err.print(f"[bold red]error:[/] {escape(error.message)}")


def _read_message() -> str | None:
    """Read a message: one line, or several where the first ends with a colon, up to a blank one."""
    err.print("[bold]>[/] ", end="")
    line = sys.stdin.readline()
    if not line:
        return None
    lines = [line]
    while lines[0].rstrip().endswith(":") and lines[-1].strip():
        lines.append(sys.stdin.readline())
    return "".join(lines)
