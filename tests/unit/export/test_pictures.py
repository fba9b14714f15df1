"""A drawing shows the real edges of a trace and is valid whatever the names in it.

Golden files: `DOWNRIVER_UPDATE_GOLDEN=1 pytest tests/unit/graph/test_draw.py` rewrites them.
"""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ET
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from downriver.export.pictures import render_dot, render_mermaid, render_svg
from downriver.model.answers import BlindSpot, Trace, TraceEdge, TraceNode

GOLDEN = Path(__file__).parents[2] / "golden" / "draw"
RENDERERS = {"mmd": render_mermaid, "dot": render_dot, "svg": render_svg}
SVG = "{http://www.w3.org/2000/svg}"


# --- golden files ----------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", RENDERERS)
@pytest.mark.parametrize("case", sorted(path.name for path in GOLDEN.iterdir()))
def test_drawings_are_as_they_were(case, suffix):
    trace = msgspec.json.decode((GOLDEN / case / "trace.json").read_bytes(), type=Trace)
    expected = GOLDEN / case / f"expected.{suffix}"
    drawn = RENDERERS[suffix](trace)
    if os.environ.get("DOWNRIVER_UPDATE_GOLDEN"):
        expected.write_text(drawn, encoding="utf-8", newline="\n")
    assert drawn == expected.read_text(encoding="utf-8")


# --- traces to draw --------------------------------------------------------------------------


def dataset(name: str, namespace: str = "pg") -> TraceNode:
    node_id = f"dataset:{namespace}:{name}"
    return TraceNode(id=node_id, kind="dataset", namespace=namespace, name=name, depth=0)


def job(name: str, namespace: str = "dbt") -> TraceNode:
    node_id = f"job:{namespace}:{name}"
    return TraceNode(id=node_id, kind="job", namespace=namespace, name=name, depth=0)


def column(name: str, field: str, namespace: str = "pg") -> TraceNode:
    return TraceNode(
        id=f"column:{namespace}:{name}:{field}",
        kind="column",
        namespace=namespace,
        name=name,
        field=field,
        depth=0,
    )


def edge(source: TraceNode, target: TraceNode, **details) -> TraceEdge:
    facts = {
        "kind": "derives",
        "status": "active",
        "confidence": "exact",
        "first_seen": "2026-01-01T00:00:00Z",
        "last_seen": "2026-02-01T00:00:00Z",
        "first_event": "01",
        "last_event": "02",
        **details,
    }
    return TraceEdge(source=source.id, target=target.id, **facts)


def trace(nodes: list[TraceNode], edges: list[TraceEdge] = (), **details) -> Trace:
    facts = {"complete": True, "blind_spots": [], **details}
    return Trace(root=nodes[0], nodes=list(nodes), edges=list(edges), **facts)


NASTY = (
    "end", "subgraph", "direction TB", "style: #a;", "%%{init: {}}%%", "#quot;", "#35;", '"', "a]b",
    "([x])", "|", "a-->b", "`x`", "**b**", "__init__", "1. x", "1) x", "- x", "www.a.b",
    "fa:fa-car", "$$x$$", "ﬂ°°35¶ß", "<b>&amp;</b>", "]]>", "<script>alert(1)</script>", "\\",
    "\\N", "a\\",
    '\\"', "line\nbreak", "\r\n\t", "\x00\x1b\x7f\x85", "\u2028", "\u202eevil", "\ufffe", "\ud800",
    "名前", "عربي", "👩‍👩‍👧", "é", "", " ", "a\0b", "x" * 500,
)  # fmt: skip
names = st.sampled_from(NASTY) | st.text(max_size=12)


@st.composite
def traces(draw, names=names):
    """Any graph over any names, of datasets and jobs, of columns, or of all of them."""
    kinds = draw(st.sampled_from(["dj", "c", "djc"]))
    makers = {
        "d": st.builds(dataset, names, names),
        "j": st.builds(job, names, names),
        "c": st.builds(column, names, names, names),
    }
    some = st.one_of([makers[kind] for kind in kinds])
    nodes = draw(st.lists(some, min_size=1, max_size=8, unique_by=lambda node: node.id))
    edges = st.builds(
        edge,
        st.sampled_from(nodes),
        st.sampled_from(nodes),
        kind=st.sampled_from(["reads", "writes", "derives", "contains"]) | names,
        status=st.sampled_from(["active", "stale"]),
        type=st.sampled_from([None, "DIRECT", "INDIRECT"]),
        subtype=st.none() | names,
        masking=st.booleans(),
        job=st.none() | names,
    )
    spots = st.builds(BlindSpot, kind=names, entity=names, message=names)
    return trace(
        nodes,
        draw(st.lists(edges, max_size=12)),
        complete=draw(st.booleans()),
        blind_spots=draw(st.lists(spots, max_size=2)),
    )


def nasty_trace() -> Trace:
    nodes = [
        make(name) for make in (dataset, job, lambda name: column(name, name)) for name in NASTY
    ]
    loops = [edge(node, node, kind=node.name, subtype=node.name, type="INDIRECT") for node in nodes]
    return trace(nodes, loops, complete=False)


def joined(drawn: Trace) -> set[tuple[str, str]]:
    return {(step.source, step.target) for step in drawn.edges}


# --- Mermaid ---------------------------------------------------------------------------------

TEXT = r"(?:[-0-9A-Za-z ,/._()]|[^\x00-\x7f\x80-\x9f\u2028\u2029]|#(?:quot|[0-9]+);)*"
MERMAID_LINES = {
    "head": r"flowchart LR",
    "comment": r"  %% [a-zA-Z0-9 :,]+",
    "node": rf' {{2,6}}(?P<id>n\d+)(?:\[\("(?P<dataset>{TEXT})"\)\]|\(\["(?P<job>{TEXT})"\]\)'
    rf'|\["(?P<column>{TEXT})"\]):::(?P<style>dataset|job|column|root)',
    "open": rf' {{2,4}}subgraph (?P<group>[sd])\d+\["(?P<title>{TEXT})"\]',
    "close": r" {2,4}end",
    "edge": rf'  (?P<source>n\d+) (?P<arrow>-->|-\.->)(?:\|"(?P<label>{TEXT})"\|)?'
    r" (?P<target>n\d+)",
    "style": r"  classDef (?:dataset|job|column|root|certified|pii|broken|added|removed)"
    r" [-a-z0-9:#,]+",
    "class": r"  class (?P<marked>n\d+(?:,n\d+)*) (?P<mark>certified|pii|broken|added|removed)",
}


class Mermaid(NamedTuple):
    """A Mermaid drawing, read back by a grammar stricter than Mermaid's own."""

    nodes: dict[str, re.Match[str]]
    edges: list[re.Match[str]]
    comments: list[str]
    homes: dict[str, list[str]]  # of each node, the titles of the boxes around it
    marks: dict[str, set[str]]


def parse_mermaid(text: str) -> Mermaid:
    assert text.endswith("\n")
    found = Mermaid({}, [], [], {}, {})
    around: list[re.Match[str]] = []
    for line in text[:-1].split("\n"):
        kind, match = parse_mermaid_line(line)
        if kind == "open":
            around.append(match)
            assert [box["group"] for box in around] in (["s"], ["d"], ["s", "d"])
        elif kind == "close":
            around.pop()
        elif kind == "node":
            in_table = bool(around) and around[-1]["group"] == "d"
            assert match["job" if in_table else "column"] is None
            found.nodes[match["id"]] = match
            found.homes[match["id"]] = [unescape_mermaid(box["title"]) for box in around]
        elif kind == "class":
            for key in match["marked"].split(","):
                found.marks.setdefault(key, set()).add(match["mark"])
        elif kind == "edge":
            found.edges.append(match)
        elif kind == "comment":
            found.comments.append(line.strip())
    assert not around
    return found


def parse_mermaid_line(line: str) -> tuple[str, re.Match[str]]:
    fits = [(kind, re.fullmatch(rule, line)) for kind, rule in MERMAID_LINES.items()]
    matches = [(kind, match) for kind, match in fits if match]
    assert len(matches) == 1, line
    return matches[0]


def unescape_mermaid(text: str) -> str:
    decoded = text.replace("#quot;", '"')
    decoded = re.sub(r"#(\d+);", lambda found: chr(int(found[1])), decoded)
    return decoded.replace("\u2060", "")


@given(traces())
@example(nasty_trace())
@settings(deadline=None)
def test_mermaid_is_valid_for_any_name_and_has_the_real_edges(drawn):
    mermaid = parse_mermaid(render_mermaid(drawn))
    ids = sorted(node.id for node in drawn.nodes)
    assert mermaid.nodes.keys() == {f"n{number}" for number in range(len(ids))}
    edges = {(ids[int(e["source"][1:])], ids[int(e["target"][1:])]) for e in mermaid.edges}
    assert edges == joined(drawn)


printable = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1)


@given(printable)
@example("ﬂ°°35¶ß")
@example("#quot;")
def test_a_mermaid_label_contains_the_name(name):
    mermaid = parse_mermaid(render_mermaid(trace([dataset(name)])))
    assert unescape_mermaid(mermaid.nodes["n0"]["dataset"]) == name


@pytest.mark.parametrize(
    "name", ["www.a.b", "direction TB", "__init__", "1. x", "1) x", "- x", "a_", "*", "fa:fa-car"]
)
def test_what_mermaid_reads_as_markup_is_escaped(name):
    assert f'"{name}"' not in render_mermaid(trace([dataset(name)]))


def test_ordinary_names_stay_readable_in_mermaid():
    text = render_mermaid(trace([dataset("shop-eu.stg_orders/v2")]))
    assert '[("shop-eu.stg_orders/v2")]:::root' in text


def test_mermaid_shows_how_columns_derive():
    a, b = column("orders", "amount"), column("daily", "revenue")
    steps = [
        ({"type": "DIRECT", "subtype": "IDENTITY"}, "-->", None),
        ({"type": "DIRECT", "subtype": "AGGREGATION"}, "-->", "AGGREGATION"),
        ({"type": "INDIRECT", "subtype": "FILTER"}, "-.->", "FILTER"),
        ({"type": "DIRECT", "subtype": "IDENTITY", "status": "stale"}, "-.->", "stale"),
        ({"type": "DIRECT", "subtype": "IDENTITY", "masking": True}, "-->", "masked"),
        ({"kind": "contains"}, "-->", "contains"),
    ]
    for details, arrow, label in steps:
        mermaid = parse_mermaid(render_mermaid(trace([a, b], [edge(a, b, **details)])))
        assert [(e["arrow"], e["label"]) for e in mermaid.edges] == [(arrow, label)]


def test_edges_that_look_the_same_are_drawn_once_with_all_their_words():
    a, b = column("orders", "amount"), column("daily", "revenue")
    edges = [edge(a, b, type="INDIRECT", subtype=word) for word in ("JOIN", "FILTER", "JOIN")]
    mermaid = parse_mermaid(render_mermaid(trace([a, b], edges)))
    assert [e["label"] for e in mermaid.edges] == ["FILTER, JOIN"]


def test_the_namespace_is_shown_only_for_ambiguous_names():
    nodes = [dataset("orders", "pg"), dataset("orders", "s3"), dataset("users", "pg")]
    mermaid = parse_mermaid(render_mermaid(trace(nodes)))
    titles = [unescape_mermaid(node["dataset"]) for node in mermaid.nodes.values()]
    assert titles == ["orders (pg)", "users", "orders (s3)"]


def test_mermaid_draws_each_system_as_a_box():
    here, there = dataset("orders", "postgres://a"), dataset("orders_daily", "snowflake://b")
    mermaid = parse_mermaid(render_mermaid(trace([here, job("daily"), there])))
    assert mermaid.homes == {"n0": ["postgres://a"], "n1": ["snowflake://b"], "n2": []}


def test_columns_are_drawn_in_their_table_in_its_system():
    here, there = column("orders", "id", "postgres://a"), column("daily", "id", "snowflake://b")
    mermaid = parse_mermaid(render_mermaid(trace([here, there])))
    assert mermaid.homes == {"n0": ["postgres://a", "orders"], "n1": ["snowflake://b", "daily"]}


def test_mermaid_draws_no_box_for_a_single_system():
    mermaid = parse_mermaid(render_mermaid(trace([dataset("a"), dataset("b")])))
    assert mermaid.homes == {"n0": [], "n1": []}


@pytest.mark.parametrize("mark", ["certified", "pii", "broken", "added", "removed"])
def test_every_format_shows_marks(mark):
    node = msgspec.structs.replace(dataset("orders"), marks=[mark, "something else"])
    drawn = trace([dataset("raw"), node])
    assert parse_mermaid(render_mermaid(drawn)).marks == {"n0": {mark}}
    assert f'class="dr-dataset dr-{mark}"' in render_svg(drawn)
    assert render_dot(drawn) != render_dot(trace([dataset("raw"), dataset("orders")]))


def test_mermaid_warns_when_its_default_limit_is_exceeded():
    nodes = [dataset(f"t{number}") for number in range(502)]
    edges = [edge(nodes[0], node) for node in nodes[1:]]
    assert "maxEdges" in parse_mermaid(render_mermaid(trace(nodes, edges))).comments[0]
    assert not parse_mermaid(render_mermaid(trace(nodes, edges[:500]))).comments


# --- DOT -------------------------------------------------------------------------------------

DOT_TOKEN = re.compile(
    r'(?P<space>\s+|//[^\n]*\n)|(?P<id>"(?:[^"\\]|\\.)*"|[A-Za-z_]\w*|[0-9.]+)|(?P<mark>->|[{}\[\]=;,])',
    re.DOTALL,
)


def tokenize_dot(text: str) -> list[str]:
    tokens, position = [], 0
    while position < len(text):
        match = DOT_TOKEN.match(text, position)
        assert match, text[position : position + 40]
        position = match.end()
        if not match["space"]:
            tokens.append(match[0])
    return tokens


class Dot:
    """A DOT drawing, read by the part of the DOT grammar it uses."""

    def __init__(self, text: str) -> None:
        self.tokens = tokenize_dot(text)[::-1]
        self.nodes: dict[str, dict[str, str]] = {}
        self.edges: list[tuple[str, str]] = []
        self.clusters: list[str] = []
        assert self.take() == "digraph"
        self.take()
        self.block()
        assert not self.tokens

    def take(self) -> str:
        return self.tokens.pop()

    def block(self) -> None:
        assert self.take() == "{"
        while self.tokens[-1] != "}":
            self.statement()
            if self.tokens[-1] == ";":
                self.take()
        self.take()

    def statement(self) -> None:
        first = self.take()
        if first == "subgraph":
            self.clusters.append(self.take())
            self.block()
        elif self.tokens[-1] == "=":
            self.take()
            self.take()
        elif self.tokens[-1] == "->":
            self.take()
            self.edges.append((dot_id(first), dot_id(self.take())))
            self.attributes()
        elif first in ("graph", "node", "edge"):
            self.attributes()
        else:
            self.nodes[dot_id(first)] = self.attributes()

    def attributes(self) -> dict[str, str]:
        found = {}
        if self.tokens[-1] == "[":
            while self.take() != "]":
                key, equals, found[key] = self.take(), self.take(), self.take()
                assert equals == "="
                assert self.tokens[-1] in ",]"
        return found


def dot_id(token: str) -> str:
    """Undo all escapes of an id, to check that distinct ids stay distinct."""
    assert token[0] == token[-1] == '"'
    return re.sub(
        r'\\(?:u\{([0-9a-f]+)\}|([\\"]))',
        lambda found: chr(int(found[1], 16)) if found[1] else found[2],
        token[1:-1],
    )


@given(traces())
@example(nasty_trace())
@settings(deadline=None)
def test_dot_is_valid_for_any_name_and_has_the_real_nodes_and_edges(drawn):
    text = render_dot(drawn)
    assert all(char == "\n" or char.isprintable() or ord(char) > 0x9F for char in text)
    dot = Dot(text)
    assert dot.nodes.keys() == {node.id for node in drawn.nodes}
    assert set(dot.edges) == joined(drawn)
    owners = {(node.namespace, node.name) for node in drawn.nodes if node.kind == "column"}
    systems = {node.namespace for node in drawn.nodes if node.kind != "job"}
    assert len(dot.clusters) == len(owners) + (len(systems) if len(systems) > 1 else 0)


def test_dot_labels_are_not_read_as_escapes_or_entities():
    dot = Dot(render_dot(trace([dataset("\\N &lt; \\l")])))
    (attributes,) = dot.nodes.values()
    assert attributes["label"] == r'"\\N &amp;lt; \\l"'


# --- SVG -------------------------------------------------------------------------------------


@given(traces())
@example(nasty_trace())
@settings(deadline=None)
def test_svg_is_valid_for_any_name_and_has_a_path_for_each_edge(drawn):
    svg = ET.fromstring(render_svg(drawn).encode())
    tags = {element.tag.removeprefix(SVG) for element in svg.iter()}
    assert tags <= {"svg", "title", "desc", "style", "defs", "marker", "rect", "g", "path", "text"}
    drawn_lines = [path for path in svg.iter(f"{SVG}path") if path.get("marker-end")]
    looks = {(e.source, e.target, e.type == "INDIRECT", e.status) for e in drawn.edges}
    assert len(drawn_lines) == len(looks)


@given(traces())
@settings(deadline=None)
def test_boxes_are_inside_the_picture_and_apart(drawn):
    svg = ET.fromstring(render_svg(drawn).encode())
    width, height = map(float, svg.get("viewBox").split()[2:])
    boxes = list(card_boxes(svg))
    for left, top, right, bottom in boxes:
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height
    for a, b in combinations(boxes, 2):
        assert a[2] < b[0] or b[2] < a[0] or a[3] < b[1] or b[3] < a[1]


def card_boxes(svg):
    for group in svg.iter(f"{SVG}g"):
        card = group.find(f"{SVG}rect[@class='dr-card']")
        if card is not None:
            x, y = map(float, re.findall(r"[\d.]+", group.get("transform")))
            yield x, y, x + float(card.get("width")), y + float(card.get("height"))


def test_a_long_name_is_shortened_and_its_tooltip_shows_all_of_it():
    long = dataset("warehouse.analytics.a_table_with_a_very_long_name_indeed_v2")
    svg = ET.fromstring(render_svg(trace([long])))
    shown = [text.text for text in svg.iter(f"{SVG}text")]
    assert any("…" in text and text.endswith("_v2") for text in shown)
    assert long.id in [title.text for title in svg.iter(f"{SVG}title")]


def test_an_svg_has_a_text_description():
    svg = ET.fromstring(render_svg(trace([dataset("orders"), job("load")])))
    title, description = svg[0], svg[1]
    assert svg.get("role") == "img"
    assert svg.get("aria-labelledby").split() == [title.get("id"), description.get("id")]
    assert title.text == "Lineage of orders"
    assert description.text == "2 nodes, 0 edges around dataset:pg:orders; complete"


def test_an_svg_fetches_nothing_and_runs_nothing():
    text = render_svg(nasty_trace())
    assert not re.search(r"<script|href=|url\((?!#dr-)|@import|\son\w+=", text)


def test_an_svg_suits_light_and_dark_pages():
    assert "prefers-color-scheme:dark" in render_svg(trace([dataset("orders")]))


# --- all formats -----------------------------------------------------------------------------


@pytest.mark.parametrize("render", RENDERERS.values())
@given(drawn=traces(), random=st.randoms())
@settings(deadline=None, max_examples=40)
def test_the_order_of_a_traces_lists_does_not_change_the_drawing(render, drawn, random):
    shuffled = msgspec.structs.replace(drawn, nodes=[*drawn.nodes], edges=[*drawn.edges])
    random.shuffle(shuffled.nodes)
    random.shuffle(shuffled.edges)
    assert render(shuffled) == render(drawn)


@pytest.mark.parametrize("render", RENDERERS.values())
def test_an_incomplete_trace_is_marked_incomplete(render):
    spots = [BlindSpot(kind="opaque_udf", entity="x", message="unknown")] * 3
    whole = trace([dataset("orders")])
    part = msgspec.structs.replace(whole, complete=False, blind_spots=spots, omitted_count=1)
    assert "incomplete: 3 blind spots, 1 node not shown" in render(part)
    assert "incomplete" not in render(whole)


@pytest.mark.parametrize("render", RENDERERS.values())
def test_an_edge_to_a_node_the_trace_does_not_list_is_drawn_all_the_same(render):
    orders, load = dataset("orders"), job("load_everything")
    assert "load_everything" in render(trace([orders], [edge(load, orders, kind="writes")]))


@pytest.mark.parametrize("render", RENDERERS.values())
def test_a_root_missing_from_the_nodes_is_drawn_all_the_same(render):
    lonely = trace([dataset("orders")])
    assert render(msgspec.structs.replace(lonely, nodes=[])) == render(lonely)
