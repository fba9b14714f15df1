"""Text edited by position: what is not named stays as it is, to the last space."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import exp

from downriver.impact.places import identifier_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from downriver.impact.script import Script

_QUOTES = {'"': '"', "`": "`", "[": "]"}
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*\Z")


class Replacement(NamedTuple):
    """A stretch of text and what comes in its place."""

    start: int
    end: int
    text: str


def apply_edits(text: str, edits: Iterable[Replacement]) -> str:
    """Return text with stretches replaced, each once."""
    for edit in sorted(set(edits), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def unified_diff(path: str, before: str, after: str) -> str:
    """Return a patch that `git apply` takes."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True),
        after.splitlines(keepends=True),
        f"a/{path}",
        f"b/{path}",
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def rename_edits(script: Script, node: exp.Expression, new: str) -> Iterator[Replacement]:
    """Yield the edits that make a reference name another column, and keep its output's name."""
    name = identifier_of(node)
    place = place_in_file(script, name)
    if place is None:
        return
    written = script.sql[place.start : place.end]
    yield Replacement(place.start, place.end, _spelled(written, new))
    if _is_select_item(node):
        yield Replacement(place.end, place.end, f" as {written}")


def cast_edits(script: Script, node: exp.Expression, kind: str) -> Iterator[Replacement]:
    """Yield the edits that give a reference its old type again."""
    parts = [part for part in node.parts if "start" in part.meta]
    places = [place_in_file(script, part) for part in parts]
    if not places or any(place is None for place in places):
        return
    start = min(place.start for place in places if place is not None)
    end = max(place.end for place in places if place is not None)
    written = script.sql[start:end]
    alias = f" as {node.name!s}" if _is_select_item(node) else ""
    yield Replacement(start, end, f"cast({written} as {kind}){alias}")


def _is_select_item(node: exp.Expression) -> bool:
    return isinstance(node, exp.Column) and isinstance(node.parent, exp.Select)


def _spelled(written: str, new: str) -> str:
    """Return a new name in the quotes of the old one, or in some if it needs them."""
    quote = written[:1]
    if quote in _QUOTES:
        return f"{quote}{new}{_QUOTES[quote]}"
    return new if _PLAIN.match(new) else f'"{new}"'


def place_in_file(script: Script, name: exp.Expression) -> Replacement | None:
    """Return where a name stands in the file; in a template, the same one in a row of its kind."""
    start, end = name.meta.get("start"), name.meta.get("end")
    if start is None or end is None:
        return None
    for text in script.texts:
        written = text[start : end + 1]
        if str(name.name).casefold() not in written.casefold():
            continue
        if text == script.sql:
            return Replacement(start, end + 1, "")
        return _in_template(script.sql, text, written, start)
    return None


def _in_template(template: str, rendered: str, written: str, start: int) -> Replacement | None:
    pattern = re.compile(rf"(?<![\w$]){re.escape(written)}(?![\w$])")
    places = [match.start() for match in pattern.finditer(template)]
    before = [match.start() for match in pattern.finditer(rendered)]
    if len(places) != len(before) or start not in before:
        return None  # the template repeats or computes it: no one place is the right one
    at = places[before.index(start)]
    return Replacement(at, at + len(written), "")
