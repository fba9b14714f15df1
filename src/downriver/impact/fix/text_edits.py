"""Edits of a text, and the patch that makes them."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class TextEdit(NamedTuple):
    """A range of text and its replacement."""

    start: int
    end: int
    text: str


def apply_edits(text: str, edits: Iterable[TextEdit]) -> str:
    """Return the text with each range replaced once."""
    for edit in sorted(set(edits), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def unified_diff(path: str, before: str, after: str) -> str:
    """Return a patch for `git apply`."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True),
        after.splitlines(keepends=True),
        f"a/{path}",
        f"b/{path}",
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
