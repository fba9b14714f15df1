"""Draw a trace as a Mermaid flowchart."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from downriver.graph.draw.sketch import Line, Sketch, field_of, owner_of, printable, title_each

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
    sketch = Sketch.of(trace)
    keys = {node_id: f"n{number}" for number, node_id in enumerate(sketch.nodes)}
    body = [
        *_nodes(sketch, keys),
        *(_line(line, keys) for line in sketch.lines),
        *_CLASSES,
    ]
    comments = [f"%% {comment}" for comment in _comments(sketch)]
    return "\n".join(["flowchart LR", *(f"  {row}" for row in (*comments, *body)), ""])


def _comments(sketch: Sketch) -> Iterator[str]:
    if sketch.note:
        yield sketch.note
    if len(sketch.lines) > _EDGE_LIMIT:
        yield f"more than {_EDGE_LIMIT} edges: raise maxEdges and maxTextSize to render"


def _nodes(sketch: Sketch, keys: dict[str, str]) -> Iterator[str]:
    titles = title_each(map(owner_of, sketch.alone))
    for node in sketch.alone:
        yield _node(node, keys[node.id], titles[owner_of(node)], sketch.root.id)
    owned = sketch.owned
    for number, (owner, title) in enumerate(title_each(owned).items()):
        yield f'subgraph d{number}["{escape_text(title)}"]'
        for node in owned[owner]:
            yield "  " + _node(node, keys[node.id], field_of(node), sketch.root.id)
        yield "end"


def _node(node: TraceNode, key: str, title: str, root_id: str) -> str:
    before, after = _SHAPES[node.kind]
    style = "root" if node.id == root_id else node.kind
    return f'{key}{before}"{escape_text(title)}"{after}:::{style}'


def _line(line: Line, keys: dict[str, str]) -> str:
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
