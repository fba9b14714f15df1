"""`Tool`: a typed function with a name, a description and JSON schemas, and its pages."""

from __future__ import annotations

import typing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Generic, NamedTuple, TypeVar

import msgspec

from downriver.errors import InvalidRequestError
from downriver.impact import SourceFolder
from downriver.model.answers import BlindSpot

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
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


T = TypeVar("T")

MAX_CHARACTERS = 12_000  # of one list in an answer: about 3,000 tokens
_SPOTS_SHOWN = 10
_MAX_LINE = 1_000

Limit = Annotated[int, msgspec.Meta(ge=1, le=200, description="Maximum number of items.")]
Cursor = Annotated[
    str | None, msgspec.Meta(description="The `next_cursor` of the previous answer.")
]


@dataclass(frozen=True)
class Page(Generic[T]):
    """A part of a list, and the cursor of the next part."""

    items: list[T]
    next_cursor: str | None


class ToolAnswer(msgspec.Struct, kw_only=True):
    """The completeness of an answer.

    `complete` is false when lineage is missing; `blind_spots` are the first of
    `blind_spot_count` reasons.
    """

    complete: bool = True
    blind_spots: list[BlindSpot] = []
    blind_spot_count: int = 0


def page(items: Sequence[T], cursor: str | None, limit: int) -> Page[T]:
    """Return the items after a cursor, up to the limit and the maximum size."""
    start = parse_cursor(cursor)
    shown: list[T] = []
    room = MAX_CHARACTERS
    for item in items[start : start + limit]:
        room -= len(msgspec.json.encode(item))
        if room < 0 and shown:
            break
        shown.append(item)
    end = start + len(shown)
    return Page(shown, str(end) if end < len(items) else None)


def page_text(text: str, cursor: str | None) -> tuple[str, str | None]:
    """Return the lines of a text after a cursor, and the cursor of the rest."""
    start = parse_cursor(cursor)
    if len(text) - start <= MAX_CHARACTERS:
        return text[start:], None
    end = text.rfind("\n", start, start + MAX_CHARACTERS) + 1 or start + MAX_CHARACTERS
    return text[start:end], str(end)


def shortened(text: str) -> str:
    """Return a text, cut at the maximum line length with a note of its full length."""
    if len(text) <= _MAX_LINE:
        return text
    return f"{text[:_MAX_LINE]}… ({len(text)} characters)"


def parse_cursor(cursor: str | None) -> int:
    """Parse a cursor into an offset."""
    if cursor is None or cursor == "":
        return 0
    if not (cursor.isascii() and cursor.isdigit()) or len(cursor) > 9:
        raise InvalidRequestError("cursor", f"{cursor!r} is not a cursor of an answer")
    return int(cursor)


def first_blind_spots(spots: Sequence[BlindSpot]) -> list[BlindSpot]:
    """Return the blind spots to show."""
    return list(spots[:_SPOTS_SHOWN])
