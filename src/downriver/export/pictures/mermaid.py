"""Draw a trace as a Mermaid flowchart."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from downriver.export.pictures.drawing import (
    Drawing,
    DrawnLine,
    Titles,
    badges_of,
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
# Mermaid interprets the text of a quoted label: Markdown, HTML, icons (`fa:`), directives
# (`%%{…}%%`), statements. Only these characters need no escape: letters, digits, spaces, and
# punctuation between letters or digits that cannot be Markdown.
_SPECIAL = re.compile(
    r"[^-0-9A-Za-z ,/._()\x80-\U0010ffff]"
    r"|(?<![0-9A-Za-z])[-._]|[-._](?![0-9A-Za-z])"
    r"|(?<=[0-9])\)"  # `1)` begins a list
    r"|(?<=[Ww]{3})\."  # `www.` begins a link
    r"|(?<=direction)[\s\ufeff]"  # `direction TB` is a statement, even between quotes
    r"|(?<=ﬂ)(?=°)|(?<=¶)(?=ß)"  # Mermaid puts these around its entities while it works
)
_UNCOMMON = re.compile(r"[^-+0-9A-Za-z ,.:]")  # in a comment, which could be a directive
_WORD_JOINER = "#8288;"


def render_mermaid(trace: Trace) -> str:
    """Draw a trace as a Mermaid flowchart, for Markdown files, pull requests and wikis."""
    return draw_mermaid(Drawing.of(trace))


def draw_mermaid(sketch: Drawing) -> str:
    """Write a drawing as a Mermaid flowchart."""
    keys = {node_id: f"n{number}" for number, node_id in enumerate(sketch.nodes)}
    body = [
        *_nodes(sketch, keys),
        *(_line(line, keys) for line in sketch.lines),
        *_CLASSES,
        *_marks(sketch),
        *_fading(sketch, keys),
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


def _fading(sketch: Drawing, keys: dict[str, str]) -> Iterator[str]:
    """Return the styles of what is not on a locked path."""
    nodes = [key for node_id, key in keys.items() if node_id in sketch.faded]
    lines = [str(number) for number, line in enumerate(sketch.lines) if line.faded]
    if nodes:
        yield "classDef faded opacity:0.3"
        yield f"class {','.join(nodes)} faded"
    if lines:
        yield f"linkStyle {','.join(lines)} opacity:0.3"


def _comments(sketch: Drawing) -> Iterator[str]:
    if sketch.summary:
        yield _UNCOMMON.sub("?", sketch.summary)
    if sketch.note:
        yield sketch.note
    if len(sketch.lines) > _EDGE_LIMIT:
        yield f"more than {_EDGE_LIMIT} edges: raise maxEdges and maxTextSize to render"


def _nodes(sketch: Drawing, keys: dict[str, str]) -> Iterator[str]:
    """Draw jobs, then datasets in a frame for each system; a single system has no frame."""
    titles, owners = title_each(map(owner_of, sketch.alone)), title_each(sketch.owned)
    for node in sketch.alone:
        if node.kind == "job":
            title = sketch.text_of(node, titles[owner_of(node)])
            yield _node(node, keys[node.id], title, sketch.root.id)
    systems = by_system(sketch.nodes.values())
    for number, (system, nodes) in enumerate(systems.items()):
        inside = _system(nodes, keys, (titles, owners), sketch)
        if len(systems) == 1:
            yield from inside
            continue
        yield f'subgraph s{number}["{escape_text(system)}"]'
        yield from (f"  {row}" for row in inside)
        yield "end"


def _system(
    nodes: list[TraceNode], keys: dict[str, str], titles: tuple[Titles, Titles], sketch: Drawing
) -> Iterator[str]:
    of_datasets, of_owners = titles
    datasets, tables = split_columns(nodes)
    for node in datasets:
        title = sketch.text_of(node, of_datasets[owner_of(node)])
        yield _node(node, keys[node.id], title, sketch.root.id)
    for owner, columns in tables.items():
        yield f'subgraph d{keys[columns[0].id][1:]}["{escape_text(of_owners[owner])}"]'
        for node in columns:
            title = sketch.text_of(node, field_of(node))
            yield "  " + _node(node, keys[node.id], title, sketch.root.id)
        yield "end"


def _node(node: TraceNode, key: str, title: str, root_id: str) -> str:
    before, after = _SHAPES[node.kind]
    style = "root" if node.id == root_id else node.kind
    label = " · ".join((title, *badges_of(node)))
    return f'{key}{before}"{escape_text(label)}"{after}:::{style}'


def _line(line: DrawnLine, keys: dict[str, str]) -> str:
    arrow = "-->" if line.solid else "-.->"
    label = f'|"{escape_text(line.label)}"|' if line.label else ""
    return f"{keys[line.source]} {arrow}{label} {keys[line.target]}"


def escape_text(text: str) -> str:
    """Return a name as a label that Mermaid shows as it is."""
    return _SPECIAL.sub(_entity, printable(text))


def _entity(match: re.Match[str]) -> str:
    char = match[0]
    if not char:
        return _WORD_JOINER
    return "#quot;" if char == '"' else f"#{ord(char)};"
