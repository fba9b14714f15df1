"""Draw a trace in DOT, the language of Graphviz."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.graph.draw.sketch import (
    PICTURES,
    Line,
    Sketch,
    field_of,
    owner_of,
    printable,
    title_each,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.model.answers import NodeKind, Trace, TraceNode

_HEAD = (
    "rankdir=LR",
    'graph [fontname="Helvetica", fontsize=11, nodesep=0.25, ranksep=0.9]',
    'node [fontname="Helvetica", fontsize=11, shape=box, style="rounded,filled"]',
    'edge [fontname="Helvetica", fontsize=9, color="#64748b", fontcolor="#475569", arrowsize=0.7]',
)
_LOOKS: dict[NodeKind, str] = {
    "dataset": 'shape=cylinder, style=filled, color="#2563eb", fillcolor="#eff6ff"',
    "job": 'color="#7c3aed", fillcolor="#f5f3ff"',
    "column": 'color="#0d9488", fillcolor="#f0fdfa"',
}
_ROOT_LOOK = 'color="#ea580c", penwidth=3'


def render_dot(trace: Trace) -> str:
    """Draw a trace in Graphviz's language; node ids are the ids of the trace."""
    sketch = Sketch.of(trace)
    comments = [f"// {sketch.note}"] if sketch.note else []
    body = [
        *_HEAD,
        *_nodes(sketch),
        *(_line(line) for line in sketch.lines),
    ]
    return "\n".join(["digraph lineage {", *(f"  {row}" for row in (*comments, *body)), "}", ""])


def _nodes(sketch: Sketch) -> Iterator[str]:
    titles = title_each(map(owner_of, sketch.alone))
    for node in sketch.alone:
        yield _node(node, titles[owner_of(node)], sketch.root.id)
    owned = sketch.owned
    for number, (owner, title) in enumerate(title_each(owned).items()):
        yield f'subgraph "cluster_{number}" {{'
        yield f'  label={_text(title)}; style=rounded; color="#94a3b8"'
        for node in owned[owner]:
            yield "  " + _node(node, field_of(node), sketch.root.id)
        yield "}"


def _node(node: TraceNode, title: str, root_id: str) -> str:
    look = _LOOKS[node.kind]
    if node.id == root_id:
        look = f"{look}, {_ROOT_LOOK}"
    return f"{_id(node.id)} [label={_text(title)}, tooltip={_text(node.id)}, {look}]"


def _line(line: Line) -> str:
    attributes = [f"label={_text(line.label)}"] if line.label else []
    if line.stale:
        attributes.append('style=dotted, color="#94a3b8"')
    elif line.indirect:
        attributes.append("style=dashed")
    edge = f"{_id(line.source)} -> {_id(line.target)}"
    return f"{edge} [{', '.join(attributes)}]" if attributes else edge


def _text(text: str) -> str:
    """Quote a label, in which Graphviz reads both backslashes and HTML entities."""
    return _quote(printable(text).replace("&", "&amp;"))


def _id(node_id: str) -> str:
    """Quote an id so that no two ids become one: what cannot be printed is written as a code."""
    return "".join(
        f"\\u{{{ord(char):x}}}" if ord(char) in PICTURES else char for char in _quote(node_id)
    )


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
