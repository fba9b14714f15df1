"""The tags of a Jinja template, found in one pass over the text however broken it is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_OPENS = re.compile(r"\{[{%#]")
_CLOSERS = {"{{": "}}", "{%": "%}", "{#": "#}"}
_REFERENCE = re.compile(r"\{\{-?\s*(?:ref|source)\s*\(([^()]*)\)\s*-?\}\}")
_BLOCK = re.compile(r"\{%[-+]?\s*(\w+)")
_TEST = re.compile(r"\{%[-+]?\s*(?:test|data_test)\s+(\w+)")

# Blocks that dbt adds to Jinja and that make no rows.
_LEFT_OUT = frozenset({"materialization", "docs"})
_MARK = "unknown_template"


def find_tags(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the tags and comments of a template begin and end."""
    at = 0
    unclosed: set[str] = set()  # kinds of which no more are closed: looking again would take long
    while (found := _OPENS.search(text, at)) is not None:
        kind = found.group()
        end = -1 if kind in unclosed else text.find(_CLOSERS[kind], found.end())
        if end < 0:
            unclosed.add(kind)
            at = found.end()
            if len(unclosed) == len(_CLOSERS):
                return
        else:
            at = end + 2
            yield found.start(), at


def is_template(text: str) -> bool:
    """Return whether a text has Jinja in it."""
    return "{" in text and next(find_tags(text), None) is not None


def replace_tags(text: str, replaced: Callable[[str], str]) -> str:
    """Return a template with each tag replaced."""
    pieces: list[str] = []
    at = 0
    for start, end in find_tags(text):
        pieces += (text[at:start], replaced(text[start:end]))
        at = end
    return "".join([*pieces, text[at:]])


def with_lines_kept(text: str) -> str:
    """Return a template whose tags of several lines leave as many: errors keep their line."""
    return replace_tags(text, lambda tag: tag + "\n" * tag.count("\n"))


def without_jinja(text: str) -> str:
    """Return a template with tables where they are plain to see, and marks for the rest."""
    return replace_tags(text, _plain)


def _plain(tag: str) -> str:
    kept = "\n" * tag.count("\n")
    reference = _REFERENCE.match(tag)
    if reference is not None:
        return ".".join(re.findall(r"['\"]([^'\"]+)", reference.group(1))) + kept
    return _MARK + kept if tag.startswith("{{") else kept


def without_dbt_blocks(text: str) -> str:
    """Return a template with the blocks that dbt adds to Jinja as Jinja, or as nothing."""
    pieces: list[str] = []
    at = 0
    skipping = ""  # the block that is left out until it ends
    for start, end in find_tags(text):
        tag = text[start:end]
        block = _BLOCK.match(tag)
        name = block.group(1) if block is not None else ""
        if skipping:
            skipping = "" if name == f"end{skipping}" else skipping
        else:
            pieces.append(text[at:start])
            skipping = name if name in _LEFT_OUT else ""
            pieces.append("" if skipping else _as_jinja(tag, name))
        at = end
    return "".join([*pieces, "" if skipping else text[at:]])


def _as_jinja(tag: str, name: str) -> str:
    if name in ("snapshot", "endsnapshot"):
        return ""
    if name in ("test", "data_test"):
        return _TEST.sub(r"{% macro test_\1", tag, count=1)
    return "{% endmacro %}" if name in ("endtest", "enddata_test") else tag
