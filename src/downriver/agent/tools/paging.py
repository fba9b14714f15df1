"""Pages of long answers, with totals and cursors. Nothing is cut off silently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Generic, TypeVar

import msgspec

from downriver.errors import InvalidRequestError
from downriver.model.answers import BlindSpot

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

MAX_CHARACTERS = 12_000  # of one list in one answer: some 3,000 tokens
_SPOTS_SHOWN = 10
_MAX_LINE = 1_000

Limit = Annotated[int, msgspec.Meta(ge=1, le=200, description="How many to show at most.")]
Cursor = Annotated[
    str | None, msgspec.Meta(description="The `next_cursor` of the answer before, to go on there.")
]


@dataclass(frozen=True)
class Page(Generic[T]):
    """The part of a list that is shown, and the cursor that shows the next part."""

    items: list[T]
    next_cursor: str | None


class ToolAnswer(msgspec.Struct, kw_only=True):
    """What every answer about the graph says of itself.

    `complete` is false when something could not be seen; `blind_spots` are the first of
    `blind_spot_count` reasons.
    """

    complete: bool = True
    blind_spots: list[BlindSpot] = []
    blind_spot_count: int = 0


def page(items: Sequence[T], cursor: str | None, limit: int) -> Page[T]:
    """Return the items from a cursor on, as many as are wanted and fit."""
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
    """Return the lines of a text from a cursor on that fit, and the cursor of the rest."""
    start = parse_cursor(cursor)
    if len(text) - start <= MAX_CHARACTERS:
        return text[start:], None
    end = text.rfind("\n", start, start + MAX_CHARACTERS) + 1 or start + MAX_CHARACTERS
    return text[start:end], str(end)


def shortened(text: str) -> str:
    """Return a text that is not too long for a line of an answer; one that is says so itself."""
    if len(text) <= _MAX_LINE:
        return text
    return f"{text[:_MAX_LINE]}… ({len(text)} characters)"


def parse_cursor(cursor: str | None) -> int:
    """Return where a cursor points to."""
    if cursor is None or cursor == "":
        return 0
    if not (cursor.isascii() and cursor.isdigit()) or len(cursor) > 9:
        raise InvalidRequestError("cursor", f"{cursor!r} is none that an answer gave")
    return int(cursor)


def first_blind_spots(spots: Sequence[BlindSpot]) -> list[BlindSpot]:
    """Return the blind spots that are shown; their count is told beside them."""
    return list(spots[:_SPOTS_SHOWN])
