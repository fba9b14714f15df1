"""Text in an SVG: escaped, measured, and shortened to the room there is."""

from __future__ import annotations

import unicodedata
from html import escape

from downriver.graph.draw.sketch import printable

# The width of one cell of text: a letter of a monospaced face, an average one of the others.
NAME_CELL, SMALL_CELL = 7.25, 5.7


def xml(text: str) -> str:
    """Escape text for an element or an attribute."""
    return escape(printable(text))


def xml_lines(*lines: str) -> str:
    """Join lines of a tooltip; a line break inside one of them is not a line of ours."""
    return "\n".join(xml(line) for line in lines)


def number(value: float) -> str:
    """Write a coordinate to a tenth, without idle zeros."""
    return f"{value:.1f}".removesuffix(".0")


def count_cells(text: str) -> int:
    """Estimate how wide text is: two cells for East Asian letters, none for marks over others."""
    return sum(map(_cell, text))


def _cell(char: str) -> int:
    if char.isascii():
        return 1
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def fit(text: str, cells: float) -> str:
    """Shorten text in its middle: names are told apart by how they begin and, more, end."""
    if count_cells(text) <= cells + 0.01:  # a width computed from the text must be found to fit it
        return text
    head = _take(text, (cells - 1) * 0.4)
    tail = _take(text[::-1], cells - 1 - count_cells(head))[::-1]
    return f"{head}…{tail}"


def _take(text: str, cells: float) -> str:
    """Return the beginning of text that fits."""
    taken = 0
    for number, char in enumerate(text):
        taken += _cell(char)
        if taken > cells:
            return text[:number]
    return text
