"""A picture of a view has the groups, rows, marks and faded parts of the screen, and no others."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import msgspec
import pytest

from downriver.errors import InvalidRequestError
from downriver.export import render_view
from downriver.model.answers import BlindSpot
from downriver.model.views.drawn_view import DrawnColumn, DrawnEdge, DrawnNode, DrawnView

SVG = "{http://www.w3.org/2000/svg}"

ORDERS = DrawnNode(
    id="dataset:pg:orders",
    kind="dataset",
    namespace="pg",
    name="orders",
    marks=["pii"],
    columns=[DrawnColumn(name="zip", locked=True), DrawnColumn(name="email", marks=["pii"])],
)
LOAD = DrawnNode(id="job:dbt:load", kind="job", namespace="dbt", name="load", marks=["failed"])
MARTS = DrawnNode(
    id="group:pg marts", kind="group", namespace="pg", name="marts", members=12, faded=True
)
REPORT = DrawnNode(
    id="dataset:pg:report",
    kind="dataset",
    namespace="pg",
    name="report",
    reaching=["pii"],
    change="added",
    downstream_rest=3,
    blind_spot_count=2,
    columns=[DrawnColumn(name="postcode", reaching=["pii"])],
    column_rest=4,
)
EDGES = [
    DrawnEdge(source=ORDERS.id, target=LOAD.id, kind="reads"),
    DrawnEdge(source=LOAD.id, target=REPORT.id, kind="writes", change="added"),
    DrawnEdge(source=ORDERS.id, target=MARTS.id, members=7, faded=True),
    DrawnEdge(
        source=ORDERS.id,
        target=REPORT.id,
        source_column="zip",
        target_column="postcode",
        type="INDIRECT",
        subtype="JOIN",
        confidence="inferred",
    ),
]
VIEW = DrawnView(
    format="svg",
    title="orders",
    root=ORDERS.id,
    nodes=[ORDERS, LOAD, MARTS, REPORT],
    edges=EDGES,
    total=40,
    hidden=2,
    as_of="2026-03-01T00:00:00Z",
    diff="2026-02-01T00:00:00Z",
    blind_spots=[BlindSpot(kind="unread", entity="orders", message="no schema")],
)


def drawn(view: DrawnView = VIEW, **changes) -> str:
    return render_view(msgspec.structs.replace(view, **changes))


def texts(svg: str) -> list[str]:
    return ["".join(text.itertext()) for text in ET.fromstring(svg).iter(f"{SVG}text")]


def test_an_svg_of_a_view_has_the_cards_and_rows_of_the_screen():
    svg = ET.fromstring(drawn())
    assert len([e for e in svg.iter(f"{SVG}rect") if e.get("class") == "dr-card"]) == 4
    shown = texts(drawn())
    for text in ("orders", "load", "marts (12 nodes)", "report", "zip", "email", "postcode"):
        assert text in shown


def test_rows_keep_the_order_of_the_screen():
    shown = texts(drawn())
    assert shown.index("zip") < shown.index("email")


def test_what_is_not_on_a_locked_path_is_faded():
    svg = ET.fromstring(drawn())
    faded = [group for group in svg.iter() if "dr-faded" in (group.get("class") or "").split()]
    titles = [title.text for group in faded for title in group.iter(f"{SVG}title")]
    assert titles[0].startswith(f"{ORDERS.id} → {MARTS.id}")
    assert MARTS.id in titles
    assert not any(REPORT.id == title for title in titles)
    assert "dr-faded" not in drawn(nodes=[ORDERS], edges=[])


def test_cards_are_arranged_as_on_the_screen():
    places = {ORDERS.id: (-1, 0.0), LOAD.id: (1, 300.0), MARTS.id: (1, 20.0), REPORT.id: (4, 9.0)}
    nodes = [msgspec.structs.replace(node, place=places[node.id]) for node in VIEW.nodes]
    svg = ET.fromstring(drawn(nodes=nodes, edges=[]))
    cards = [
        (group.get("transform", "")[len("translate(") : -1].split(), "".join(group.itertext()))
        for group in svg.iter(f"{SVG}g")
        if group.find(f"{SVG}rect[@class='dr-card']") is not None
    ]

    def corner(name: str) -> tuple[float, float]:
        ((x, y),) = [place for place, text in cards if name in text.splitlines()[0]]
        return float(x), float(y)

    assert corner("orders")[0] < corner("marts")[0] < corner("report")[0]
    assert corner("marts")[0] == pytest.approx(corner("load")[0], abs=60)  # centred
    assert corner("marts")[1] < corner("load")[1]


@pytest.mark.parametrize("output_format", ["svg", "mermaid"])
@pytest.mark.parametrize(
    "word",
    [
        "pii propagates",
        "added",
        "2 blind spots",
        "3 more downstream",
        "4 columns not shown",
        "7 edges",
        "inferred",
        "3 of 40 shown",
        "12 in 1 group",
        "2 hidden",
        "as of 2026-03-01T00:00:00Z",
        "compared with 2026-02-01T00:00:00Z",
        "incomplete: 1 blind spot",
    ],
)
def test_every_format_says_what_the_screen_says(output_format, word):
    text = drawn(format=output_format)
    shown = "\n".join(texts(text)) if output_format == "svg" else text
    assert word in shown


def test_a_dataset_and_its_rows_are_one_box_in_mermaid():
    lines = [line.strip() for line in drawn(format="mermaid").splitlines()]
    box = lines.index('subgraph d0["orders"]')
    assert [line.split("[")[0].split(":::")[0] for line in lines[box + 1 : box + 4]] == [
        "n0",
        "n1",
        "n2",
    ]
    assert "linkStyle" in "\n".join(lines)


def test_an_edge_to_a_column_without_a_row_ends_at_the_dataset():
    edge = DrawnEdge(source=ORDERS.id, target=LOAD.id, source_column="city")
    assert f"{ORDERS.id} → {LOAD.id}" in drawn(edges=[edge])


@pytest.mark.parametrize(
    "changes",
    [
        {"nodes": [], "edges": []},
        {"nodes": [ORDERS, ORDERS], "edges": []},
        {"nodes": [ORDERS, msgspec.structs.replace(ORDERS, id="other")], "edges": []},
        {"nodes": [ORDERS], "edges": EDGES},
        {"edges": EDGES * 20_000},
    ],
)
def test_a_view_that_cannot_be_drawn_is_refused(changes):
    with pytest.raises(InvalidRequestError):
        drawn(**changes)


def test_a_moment_cannot_end_the_comment_of_a_diagram():
    comment = drawn(format="mermaid", as_of="x\nclick n0 %%{init}%%").splitlines()[1]
    assert "click n0" in comment
    assert "%" not in comment.removeprefix("  %%")


def test_names_of_a_view_stay_text():
    name = '<script>alert("x")</script>'
    node = msgspec.structs.replace(ORDERS, name=name, marks=[name], reaching=[name])
    svg = ET.fromstring(drawn(nodes=[node], edges=[], title=name))
    assert not list(svg.iter(f"{SVG}script"))
