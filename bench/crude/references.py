"""What the crude readers return, and the text operations that they share."""

from __future__ import annotations

import re
from bisect import bisect_right

import msgspec

HOLE = "\ue000"  # stands for text that is only known at run time
KNOWN_HOLE = "\ue001"  # stands for a template expression that is counted by itself


class Reference(msgspec.Struct, frozen=True, order=True, kw_only=True):
    """A name in an I/O position. `name` is empty if the code computes it, by `expression`.

    `start` and `stop` are the first and last line of the statement or call that contains it.
    """

    path: str
    line: int
    position: str
    name: str
    start: int
    stop: int
    written: bool = False
    is_path: bool = False
    expression: str = ""
    is_query: bool = False  # the name is unknown because the whole query is unknown


class Lines:
    """Line numbers of offsets in a text."""

    def __init__(self, text: str, first: int = 1) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._first = first

    def at(self, offset: int) -> int:
        """Return the line of an offset."""
        return bisect_right(self._starts, offset) - 1 + self._first


def blank(text: str) -> str:
    """Return spaces in place of a text. Its line breaks stay."""
    return re.sub(r"[^\n]", " ", text)


def closing(text: str, opened: int) -> int:
    """Return the offset after the bracket that closes the one at `opened`. Strings are skipped."""
    depth = 0
    for match in _BRACKETS.finditer(text, opened):
        token = match[0]
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
            if depth == 0:
                return match.end()
    return len(text)


_BRACKETS = re.compile(
    r"\"\"\"(?:\\.|(?!\"\"\")[^\\])*\"\"\"|'''(?:\\.|(?!''')[^\\])*'''"
    r"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|[()\[\]{}]|#[^\n]*",
    re.DOTALL,
)
