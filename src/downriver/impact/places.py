"""Where in a file a reference stands, and in which clause."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.model.verdicts import Reference

if TYPE_CHECKING:
    from downriver.impact.world import Process

_CLAUSES: tuple[tuple[type[exp.Expression], str], ...] = (
    (exp.Where, "filter"),
    (exp.Having, "filter"),
    (exp.Qualify, "filter"),
    (exp.Join, "join"),
    (exp.Group, "group"),
    (exp.Order, "order"),
    (exp.Merge, "write"),
    (exp.Update, "write"),
    (exp.Schema, "write"),
)


def clause_of(node: exp.Expression) -> str:
    """Return the clause a node stands in: select, join, filter, group, order, write or read."""
    if isinstance(node, exp.Table):
        return "read"
    current: exp.Expression | None = node
    while current is not None:
        for kind, clause in _CLAUSES:
            if isinstance(current, kind):
                return clause
        if isinstance(current, exp.Query):
            return "select"
        current = current.parent
    return "other"


def identifier_of(node: exp.Expression) -> exp.Expression:
    """Return the name inside a node, which knows its place in the text."""
    if isinstance(node, exp.Identifier):
        return node
    if isinstance(node, (exp.Column, exp.Table)) and isinstance(node.this, exp.Identifier):
        return node.this
    return next((i for i in node.find_all(exp.Identifier) if "line" in i.meta), node)


def reference_to(process: Process, node: exp.Expression, dataset: str, column: str) -> Reference:
    """Return the place of a node in the file its SQL came from, as far as that is known."""
    script = process.script
    name = identifier_of(node)
    line = int(name.meta.get("line", 0))
    text = ""
    if script is not None and line:
        text, line = _in_file(process, script.texts, name, line)
    return Reference(
        dataset=dataset,
        column=column,
        clause=clause_of(node),
        path=process.path,
        line=line,
        text=text,
    )


def _in_file(
    process: Process, texts: list[str], name: exp.Expression, line: int
) -> tuple[str, int]:
    start = int(name.meta.get("start", 0))
    source = texts[-1] if len(texts) == 1 else _text_with(texts, name, start)
    raw = process.code.raw if process.code is not None else ""
    sql = process.script.sql if process.script is not None else source
    original = raw or sql
    if original != source:
        line = _matching_line(source, original, str(name.name), start) or 0
    lines = original.splitlines()
    text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    first = process.code.line if process.code is not None else 0
    return text, line + max(first - 1, 0) if line else 0


def _text_with(texts: list[str], name: exp.Expression, start: int) -> str:
    wanted = str(name.name).casefold()
    for text in texts:
        if text[start : start + len(wanted) + 1].casefold().strip('"`[').startswith(wanted):
            return text
    return texts[0]


def _matching_line(rendered: str, original: str, name: str, start: int) -> int | None:
    """Find a word of rendered text in its template: as the same one in a row of its kind."""
    pattern = re.compile(rf"\b{re.escape(name)}\b", re.IGNORECASE)
    before = sum(1 for _ in pattern.finditer(rendered[:start]))
    places = [match.start() for match in pattern.finditer(original)]
    if not places:
        return None
    at = places[min(before, len(places) - 1)]
    return original.count("\n", 0, at) + 1
