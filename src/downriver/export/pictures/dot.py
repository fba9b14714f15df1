"""Draw a trace in DOT, the language of Graphviz."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.export.pictures.drawing import (
    PICTURES,
    Drawing,
    DrawnLine,
    Titles,
    badges_of,
    by_system,
    field_of,
    marks_of,
    owner_of,
    printable,
    split_columns,
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
_MARKS = {
    "certified": 'fillcolor="#dcfce7"',
    "pii": 'fillcolor="#fef3c7"',
    "broken": 'fillcolor="#fee2e2", color="#dc2626"',
    "added": 'fillcolor="#dcfce7", color="#16a34a"',
    "removed": 'fillcolor="#fee2e2", color="#dc2626"',
}
_CHANGES = {"added": "#16a34a", "removed": "#dc2626"}
_ROOT_LOOK = 'color="#ea580c", penwidth=3'


def render_dot(trace: Trace) -> str:
    """Draw a trace in Graphviz's language; node ids are the ids of the trace."""
    sketch = Drawing.of(trace)
    comments = [f"// {sketch.note}"] if sketch.note else []
    body = [
        *_HEAD,
        *_nodes(sketch),
        *(_line(line) for line in sketch.lines),
    ]
    return "\n".join(["digraph lineage {", *(f"  {row}" for row in (*comments, *body)), "}", ""])


def _nodes(sketch: Drawing) -> Iterator[str]:
    """Draw jobs, then datasets in a frame for each system; a single system has no frame."""
    titles, owners = title_each(map(owner_of, sketch.alone)), title_each(sketch.owned)
    for node in sketch.alone:
        if node.kind == "job":
            yield _node(node, titles[owner_of(node)], sketch.root.id)
    systems = by_system(sketch.nodes.values())
    for number, (system, nodes) in enumerate(systems.items()):
        inside = _system(nodes, (titles, owners), sketch.root.id, f"cluster_{number}")
        if len(systems) == 1:
            yield from inside
            continue
        yield f'subgraph "cluster_{number}" {{'
        yield f'  label={_text(system)}; style="rounded,dashed"; color="#cbd5e1"'
        yield from (f"  {row}" for row in inside)
        yield "}"


def _system(
    nodes: list[TraceNode], titles: tuple[Titles, Titles], root_id: str, cluster: str
) -> Iterator[str]:
    of_datasets, of_owners = titles
    datasets, tables = split_columns(nodes)
    for node in datasets:
        yield _node(node, of_datasets[owner_of(node)], root_id)
    for number, (owner, columns) in enumerate(tables.items()):
        yield f'subgraph "{cluster}_{number}" {{'
        yield f'  label={_text(of_owners[owner])}; style=rounded; color="#94a3b8"'
        for node in columns:
            yield "  " + _node(node, field_of(node), root_id)
        yield "}"


def _node(node: TraceNode, title: str, root_id: str) -> str:
    look = _LOOKS[node.kind]
    for mark in reversed(marks_of(node)):
        look = f"{look}, {_MARKS[mark]}"
    if node.id == root_id:
        look = f"{look}, {_ROOT_LOOK}"
    label = " · ".join((title, *badges_of(node)))
    return f"{_id(node.id)} [label={_text(label)}, tooltip={_text(node.id)}, {look}]"


def _line(line: DrawnLine) -> str:
    attributes = [f"label={_text(line.label)}"] if line.label else []
    if line.stale:
        attributes.append('style=dotted, color="#94a3b8"')
    elif line.indirect:
        attributes.append("style=dashed")
    if line.change:
        attributes.append(f'color="{_CHANGES[line.change]}", penwidth=2')
    edge = f"{_id(line.source)} -> {_id(line.target)}"
    return f"{edge} [{', '.join(attributes)}]" if attributes else edge


def _text(text: str) -> str:
    """Quote a label, in which Graphviz reads both backslashes and HTML entities."""
    return _quote(printable(text).replace("&", "&amp;"))


def _id(node_id: str) -> str:
    """Quote an id. Characters that cannot be printed become codes, so that ids stay distinct."""
    return "".join(
        f"\\u{{{ord(char):x}}}" if ord(char) in PICTURES else char for char in _quote(node_id)
    )


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
