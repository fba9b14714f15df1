"""`downriver agent` and `mcp`: answers in plain English, and tools for assistants."""

from __future__ import annotations

import asyncio
import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from downriver.cli.output import JsonOption, StoreOption, err, escape, print_json, write
from downriver.errors import DownriverError, InvalidRequestError
from downriver.impact import read_policy
from downriver.sdk import lineage

if TYPE_CHECKING:
    from downriver.agent import Agent


class AgentRole(str, Enum):
    """The role of an agent; `agent.agent` has the prompts."""

    BUILDER = "builder"
    GATE = "gate"
    STEWARD = "steward"


_EXIT_WORDS = ("exit", "quit", ":q")


class AgentAnswer(msgspec.Struct, kw_only=True):
    """One answer as JSON: the model, the text, and the tool calls."""

    model: str
    answer: str
    calls: list[dict[str, Any]]


def agent(
    prompt: Annotated[
        str | None,
        typer.Option(
            "--prompt",
            "-p",
            metavar="TEXT",
            help="Answer this message and exit. `-` reads standard input. Default: a conversation.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            help="offline, the name of a model, or provider:name. Default: gpt-4o-mini with an "
            "API key, else offline.",
        ),
    ] = None,
    role: Annotated[
        AgentRole, typer.Option("--role", help="The task of the agent. It selects the prompt.")
    ] = AgentRole.STEWARD,
    allow_writes: Annotated[
        bool, typer.Option("--allow-writes", help="Allow the agent to register lineage.")
    ] = False,
    max_steps: Annotated[
        int,
        typer.Option(
            "--max-steps", metavar="N", min=1, help="Stop after N tool calls for one answer."
        ),
    ] = 25,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Ask about lineage in plain English, with or without a language model."""
    from downriver.agent import Agent, open_tracker

    if prompt is None and json:
        raise InvalidRequestError("--json", "needs --prompt")
    message = sys.stdin.read() if prompt == "-" else prompt
    tracker = open_tracker(store, allow_writes=allow_writes, notify=_notice)
    assistant = Agent(
        model=model,
        tools=[tracker],
        role=role.value,
        allow_writes=allow_writes,
        max_steps=max_steps,
        notify=_notice,
    )
    try:
        if message is None:
            asyncio.run(_converse(assistant))
        elif json:
            asyncio.run(_answer_json(assistant, message))
        else:
            asyncio.run(_print_answer(assistant, message))
    finally:
        tracker.sync.close()


def _notice(notice: str) -> None:
    err.print(f"[yellow]{escape(notice)}[/]")


async def _answer_json(assistant: Agent, message: str) -> None:
    answer = await assistant.run(message)
    calls = [msgspec.to_builtins(call) for call in assistant.calls]
    print_json(AgentAnswer(model=assistant.model, answer=answer, calls=calls))


async def _print_answer(assistant: Agent, message: str) -> None:
    async for part in assistant.stream(message):
        write(part)
        sys.stdout.flush()
    sys.stdout.write("\n")


async def _converse(assistant: Agent) -> None:
    """Answer messages until `exit` or the end of the input."""
    err.print(f"[dim]{assistant.model} · type help for examples, exit to quit[/]")
    while True:
        message = await asyncio.to_thread(_read_message)
        if message is None or message.strip().lower() in _EXIT_WORDS:
            return
        if not message.strip():
            continue
        try:
            await _print_answer(assistant, message)
        except DownriverError as error:
            err.print(f"[bold red]error:[/] {escape(error.message)}")


def _read_message() -> str | None:
    """Read a message: one line; after a first line with a colon, all lines up to a blank one."""
    err.print("[bold]>[/] ", end="")
    line = sys.stdin.readline()
    if not line:
        return None
    lines = [line]
    while lines[0].rstrip().endswith(":") and lines[-1].strip():
        lines.append(sys.stdin.readline())
    return "".join(lines)


def mcp(
    allow_writes: Annotated[
        bool, typer.Option("--allow-writes", help="Also offer the tools that register lineage.")
    ] = False,
    repo: Annotated[
        Path | None,
        typer.Option(
            "--repo",
            metavar="DIR",
            help="Write the patches of suggest_fix for this repository. Default: the working "
            "directory.",
        ),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Serve the Model Context Protocol (MCP) on standard input and output.

    An assistant in an editor or a chat starts this command to query lineage.
    """
    from downriver.agent.mcp_server import serve_stdio
    from downriver.agent.tools import ToolContext

    tracker = lineage(store, create=allow_writes)
    try:
        context = ToolContext(tracker, read_policy(None), repo or Path.cwd())
        asyncio.run(serve_stdio(context, allow_writes=allow_writes))
    finally:
        tracker.sync.close()
