"""The tools over the Model Context Protocol, on standard input or under the HTTP server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from downriver import __version__
from downriver.agent.toolbox import check_write
from downriver.agent.tools import TOOLS
from downriver.errors import DownriverError, InvalidRequestError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server
    from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult
    from mcp_types import Tool as ListedTool

    from downriver.agent.tools import Tool, ToolContext

_INSTRUCTIONS = (
    "Data lineage: what feeds a dataset, what depends on it, what a change breaks. Answers state "
    "whether they are complete; next_cursor fetches the next page. Names may be short (orders), "
    "typed (table:orders, api:stripe, model:churn) or full ids from answers. gate_change decides "
    "by policy: report its decision unchanged."
)


def build_server(
    context_of: Callable[[Any], ToolContext], may_write: Callable[[Any], Awaitable[bool]]
) -> Server[Any]:
    """Return the MCP server.

    `context_of` returns the context of the tools for a request (None on standard input).
    `may_write` returns whether the request may write.
    """
    try:
        from mcp.server.lowlevel import Server
        from mcp_types import ListToolsResult
    except ImportError as exc:
        raise MissingDependencyError("mcp", "mcp") from exc

    async def list_tools(
        request_context: ServerRequestContext[Any], params: Any
    ) -> ListToolsResult:
        del params
        writes = await may_write(request_context.request)
        return ListToolsResult(
            tools=[_describe_tool(tool) for tool in TOOLS if writes or _reads(tool)]
        )

    async def call_tool(
        request_context: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult:
        writes = await may_write(request_context.request)
        context = context_of(request_context.request)
        return await _call_tool(context, params.name, params.arguments or {}, writes)

    return Server(
        "downriver",
        version=__version__,
        title="Downriver",
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def serve_stdio(context: ToolContext, *, allow_writes: bool) -> None:
    """Serve one client on standard input and output until it disconnects."""

    async def may_write(request: object) -> bool:
        del request
        return allow_writes

    server = build_server(lambda request: context, may_write)
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _reads(tool: Tool) -> bool:
    """Whether a tool is useful without write permission: it reads, or has a dry run."""
    return not tool.writes or "dry_run" in tool.arguments.__struct_fields__


def _describe_tool(tool: Tool) -> ListedTool:
    from mcp_types import Tool as ListedTool
    from mcp_types import ToolAnnotations

    hints = ToolAnnotations(
        read_only_hint=not tool.writes,
        destructive_hint=False,
        idempotent_hint=True,
        open_world_hint=False,
    )
    return ListedTool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema(),
        output_schema=tool.output_schema(),
        annotations=hints,
    )


async def _call_tool(
    context: ToolContext, name: str, arguments: dict[str, Any], writes: bool
) -> CallToolResult:
    """Call a tool; errors are returned as results, for the model to read."""
    from mcp_types import CallToolResult, TextContent

    try:
        tool = _tool_named(name)
        check_write(tool, arguments, allow_writes=writes)
        answer = await tool.call(context, arguments)
    except DownriverError as error:
        message = TextContent(type="text", text=f"{_kind(error)}: {error.message}")
        return CallToolResult(content=[message], is_error=True)
    text = msgspec.json.encode(answer).decode()
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=msgspec.to_builtins(answer),
    )


def _tool_named(name: str) -> Tool:
    tool = next((tool for tool in TOOLS if tool.name == name), None)
    if tool is None:
        raise InvalidRequestError("tool", f"no tool named {name!r}")
    return tool


def _kind(error: DownriverError) -> str:
    return type(error).__name__.removesuffix("Error")
