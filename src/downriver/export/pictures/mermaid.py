"""Draw a trace as a Mermaid flowchart."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from downriver.export.pictures.drawing import (
    Drawing,
    DrawnLine,
    Titles,
    by_system,
    field_of,
    owner_of,
    printable,
    split_columns,
    title_each,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.model.answers import NodeKind, Trace, TraceNode

_SHAPES: dict[NodeKind, tuple[str, str]] = {
    "dataset": ("[(", ")]"),
    "job": ("([", "])"),
    "column": ("[", "]"),
}
_CLASSES = (
    "classDef dataset stroke:#2563eb",
    "classDef job stroke:#7c3aed",
    "classDef column stroke:#0d9488",
    "classDef root stroke:#ea580c,stroke-width:4px",
)
_MARKS = {
    "certified": "classDef certified fill:#dcfce7",
    "pii": "classDef pii fill:#fef3c7",
    "broken": "classDef broken fill:#fee2e2,stroke:#dc2626",
    "added": "classDef added fill:#dcfce7,stroke:#16a34a",
    "removed": "classDef removed fill:#fee2e2,stroke:#dc2626,stroke-dasharray:4",
}
_EDGE_LIMIT = 500
# Mermaid reads more in a quoted label than its quotes: Markdown, HTML, icons (`fa:`), directives
# (`%%{…}%%`), statements. What stays as it is: letters, digits, spaces, and punctuation of names
# where it stands between letters or digits and cannot be Markdown.
_SPECIAL = re.compile(
    r"[^-0-9A-Za-z ,/._()\x80-\U0010ffff]"
    r"|(?<![0-9A-Za-z])[-._]|[-._](?![0-9A-Za-z])"
    r"|(?<=[0-9])\)"  # `1)` begins a list
    r"|(?<=[Ww]{3})\."  # `www.` begins a link
    r"|(?<=direction)[\s\ufeff]"  # `direction TB` is a statement, even between quotes
    r"|(?<=ﬂ)(?=°)|(?<=¶)(?=ß)"  # between these Mermaid keeps its entities while it works
)
_WORD_JOINER = "#8288;"


def render_mermaid(trace: Trace) -> str:
    """Draw a trace as a Mermaid flowchart, for Markdown files, pull requests and wikis."""
    sketch = Drawing.of(trace)
    keys = {node_id: f"n{number}" for number, node_id in enumerate(sketch.nodes)}
    body = [
        *_nodes(sketch, keys),
        *(_line(line, keys) for line in sketch.lines),
        *_CLASSES,
        *_marks(sketch),
    ]
    comments = [f"%% {comment}" for comment in _comments(sketch)]
    return "\n".join(["flowchart LR", *(f"  {row}" for row in (*comments, *body)), ""])


def _marks(sketch: Drawing) -> Iterator[str]:
    """Return the styles of the marks in use, and the nodes that have them."""
    keys = {node_id: f"n{number}" for number, node_id in enumerate(sketch.nodes)}
    for mark, look in _MARKS.items():
        marked = [keys[node.id] for node in sketch.nodes.values() if mark in node.marks]
        if marked:
            yield look
            yield f"class {','.join(marked)} {mark}"


def _comments(sketch: Drawing) -> Iterator[str]:
    if sketch.note:
        yield sketch.note
    if len(sketch.lines) > _EDGE_LIMIT:
        yield f"more than {_EDGE_LIMIT} edges: raise maxEdges and maxTextSize to render"


def _nodes(sketch: Drawing, keys: dict[str, str]) -> Iterator[str]:
    """Draw jobs, then datasets in a frame for each system; a single system has no frame."""
    titles, owners = title_each(map(owner_of, sketch.alone)), title_each(sketch.owned)
    for node in sketch.alone:
        if node.kind == "job":
            yield _node(node, keys[node.id], titles[owner_of(node)], sketch.root.id)
    systems = by_system(sketch.nodes.values())
    for number, (system, nodes) in enumerate(systems.items()):
        inside = _system(nodes, keys, (titles, owners), sketch.root.id)
        if len(systems) == 1:
            yield from inside
            continue
        yield f'subgraph s{number}["{escape_text(system)}"]'
        yield from (f"  {row}" for row in inside)
        yield "end"


def _system(
    nodes: list[TraceNode], keys: dict[str, str], titles: tuple[Titles, Titles], root_id: str
) -> Iterator[str]:
    of_datasets, of_owners = titles
    datasets, tables = split_columns(nodes)
    for node in datasets:
        yield _node(node, keys[node.id], of_datasets[owner_of(node)], root_id)
    for owner, columns in tables.items():
        yield f'subgraph d{keys[columns[0].id][1:]}["{escape_text(of_owners[owner])}"]'
        for node in columns:
            yield "  " + _node(node, keys[node.id], field_of(node), root_id)
        yield "end"


def _node(node: TraceNode, key: str, title: str, root_id: str) -> str:
    before, after = _SHAPES[node.kind]
    style = "root" if node.id == root_id else node.kind
    return f'{key}{before}"{escape_text(title)}"{after}:::{style}'


def _line(line: DrawnLine, keys: dict[str, str]) -> str:
    arrow = "-->" if line.solid else "-.->"
    label = f'|"{escape_text(line.label)}"|' if line.label else ""
    return f"{keys[line.source]} {arrow}{label} {keys[line.target]}"


def escape_text(text: str) -> str:
    """Return a name as a label that Mermaid shows as it is."""
    return _SPECIAL.sub(_entity, printable(text))


def _entity(found: re.Match[str]) -> str:
    char = found[0]
    if not char:
        return _WORD_JOINER
    return "#quot;" if char == '"' else f"#{ord(char)};"
