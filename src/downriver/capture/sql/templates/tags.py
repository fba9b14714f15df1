"""The tags of a template's text: Jinja's own, and the blocks that dbt adds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_OPENS = re.compile(r"\{[{%#]")
_CLOSERS = {"{{": "}}", "{%": "%}", "{#": "#}"}
_REFERENCE = re.compile(r"\{\{-?\s*(?:ref|source)\s*\(([^()]*)\)\s*-?\}\}")
_BLOCK = re.compile(r"\{%[-+]?\s*(\w+)")
_MACRO = re.compile(r"\{%[-+]?\s*(macro|test|data_test)\s+(\w+)")

# Blocks that dbt adds to Jinja and that return no rows.
_REMOVED_BLOCKS = frozenset({"materialization", "docs"})
_PLACEHOLDER = "unknown_template"


def find_tags(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each tag and comment of a template."""
    at = 0
    unclosed: set[str] = set()  # kinds with no closing tag left, not searched again
    while (match := _OPENS.search(text, at)) is not None:
        kind = match.group()
        end = -1 if kind in unclosed else text.find(_CLOSERS[kind], match.end())
        if end < 0:
            unclosed.add(kind)
            at = match.end()
            if len(unclosed) == len(_CLOSERS):
                return
        else:
            at = end + 2
            yield match.start(), at


def is_template(text: str) -> bool:
    """Return whether a text contains Jinja."""
    return "{" in text and next(find_tags(text), None) is not None


def replace_tags(text: str, replaced: Callable[[str], str]) -> str:
    """Return a template with each tag replaced."""
    pieces: list[str] = []
    at = 0
    for start, end in find_tags(text):
        pieces += (text[at:start], replaced(text[start:end]))
        at = end
    return "".join([*pieces, text[at:]])


def keep_line_numbers(text: str) -> str:
    """Add line breaks after tags of several lines, so that rendered text keeps its line numbers."""
    return replace_tags(text, lambda tag: tag + "\n" * tag.count("\n"))


def strip_jinja(text: str) -> str:
    """Replace references by their tables, and all other tags by placeholders."""
    return replace_tags(text, _plain_text)


def _plain_text(tag: str) -> str:
    kept = "\n" * tag.count("\n")
    reference = _REFERENCE.match(tag)
    if reference is not None:
        return ".".join(re.findall(r"['\"]([^'\"]+)", reference.group(1))) + kept
    return _PLACEHOLDER + kept if tag.startswith("{{") else kept


def strip_dbt_blocks(text: str) -> str:
    """Replace the blocks that dbt adds to Jinja by plain Jinja, or remove them."""
    pieces: list[str] = []
    at = 0
    skipping = ""  # the block that is being removed
    for start, end in find_tags(text):
        tag = text[start:end]
        block = _BLOCK.match(tag)
        name = block.group(1) if block is not None else ""
        if skipping:
            skipping = "" if name == f"end{skipping}" else skipping
        else:
            pieces.append(text[at:start])
            skipping = name if name in _REMOVED_BLOCKS else ""
            pieces.append("" if skipping else _as_jinja(tag, name))
        at = end
    return "".join([*pieces, "" if skipping else text[at:]])


def _as_jinja(tag: str, name: str) -> str:
    if name in ("snapshot", "endsnapshot"):
        return ""
    if name in ("test", "data_test"):
        return _MACRO.sub(r"{% macro test_\2", tag, count=1)
    return "{% endmacro %}" if name in ("endtest", "enddata_test") else tag


def find_macros(text: str) -> dict[str, str]:
    """Return the macros of a file, each as a text of its own; tests are macros `test_NAME`."""
    macros: dict[str, str] = {}
    name, started = "", 0
    for start, end in find_tags(text):
        tag = text[start:end]
        block = _BLOCK.match(tag)
        word = block.group(1) if block is not None else ""
        opening = _MACRO.match(tag)
        if opening is not None and not name:
            kind, name = opening.groups()
            name = name if kind == "macro" else f"test_{name}"
            started = start
        elif name and word in ("endmacro", "endtest", "enddata_test"):
            macros[name] = strip_dbt_blocks(text[started:end])
            name = ""
    return macros
