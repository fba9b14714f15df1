"""`Tool`: a typed function with a name, a description and JSON schemas, and its context."""

from __future__ import annotations

import typing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from downriver.errors import InvalidRequestError
from downriver.impact import SourceFolder

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from downriver.impact import Policy, SourceFiles
    from downriver.sdk import Tracker


class ToolContext(NamedTuple):
    """What tools work on: a tracker, the policy of the gate (None: default), and a code folder."""

    tracker: Tracker
    policy: Policy | None = None
    root: Path | None = None

    @property
    def code(self) -> SourceFiles | None:
        """The code to write patches for; None if the server decides."""
        return None if self.root is None else SourceFolder(self.root)


@dataclass(frozen=True)
class Tool:
    """A tool for people and models. `writes`: it changes the lineage."""

    name: str
    description: str
    arguments: type[msgspec.Struct]
    answer: type[msgspec.Struct]
    writes: bool
    run: Callable[[ToolContext, Any], Awaitable[Any]]

    async def call(self, context: ToolContext, arguments: dict[str, Any]) -> msgspec.Struct:
        """Validate the arguments and run the tool."""
        try:
            validated = msgspec.convert(arguments, self.arguments)
        except msgspec.ValidationError as exc:
            raise InvalidRequestError(self.name, str(exc)) from exc
        answer: msgspec.Struct = await self.run(context, validated)
        return answer

    def input_schema(self) -> dict[str, Any]:
        """Return the JSON schema of the arguments."""
        return _object_schema(self.arguments)

    def output_schema(self) -> dict[str, Any]:
        """Return the JSON schema of the answer."""
        return _object_schema(self.answer)


def make_tool(run: Callable[[ToolContext, Any], Awaitable[Any]], *, writes: bool = False) -> Tool:
    """Return a tool for a function; annotations give the schemas, the docstring the description."""
    hints = typing.get_type_hints(run)
    description = " ".join((run.__doc__ or "").split())
    return Tool(run.__name__, description, hints["args"], hints["return"], writes, run)


def _object_schema(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return a schema whose root is the object: clients do not follow a reference there."""
    schema = msgspec.json.schema(kind)
    definitions = schema.get("$defs", {})
    root = dict(definitions.pop(schema["$ref"].rpartition("/")[2]))
    if definitions:
        root["$defs"] = definitions
    return root
