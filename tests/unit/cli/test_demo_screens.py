"""The screens of the demo, for pipelines other than its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from downriver.cli.demo.screens import (
    RelativeNames,
    join_traces,
    show_breakage,
    show_flows,
    show_origins,
)
from downriver.model.answers import BlindSpot, Trace, TraceEdge, TraceNode

FOLDER = RelativeNames(Path("/lake"))


def node(text: str, depth: int = 0) -> TraceNode:
    """A column from `raw/orders.amount`, a job from `job:clean`, a dataset from `raw/orders`."""
    if text.startswith("job:"):
        name = text.removeprefix("job:")
        return TraceNode(id=text, kind="job", namespace="spark", name=name, depth=depth)
    dataset, _, field = text.partition(".")
    return TraceNode(
        id=text,
        kind="column" if field else "dataset",
        namespace="file",
        name=f"/lake/{dataset}",
        field=field or None,
        depth=depth,
        derivation="DIRECT" if field else None,
    )


def edge(source: str, target: str, kind: str = "DIRECT") -> TraceEdge:
    return TraceEdge(
        source=source,
        target=target,
        kind="derives",
        type=kind,
        status="active",
        confidence="exact",
        first_seen="",
        last_seen="",
        first_event="",
        last_event="",
        job="job:spark:clean",
    )


def trace(root: str, *edges: TraceEdge, spots: tuple[BlindSpot, ...] = ()) -> Trace:
    ids = dict.fromkeys([root, *(end for each in edges for end in (each.source, each.target))])
    nodes = [node(each, depth=index) for index, each in enumerate(ids)]
    return Trace(
        root=nodes[0],
        nodes=nodes,
        edges=list(edges),
        complete=not spots,
        blind_spots=list(spots),
    )


def test_a_chain_is_one_line_and_ends_in_one_dataset_are_one_cell(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = trace(
        "marts/m.x", edge("clean/c.b", "marts/m.x"), edge("raw/r.d", "clean/c.b"),
        edge("raw/r.e", "clean/c.b"),
    )  # fmt: skip
    show_origins(answer, FOLDER)
    assert capsys.readouterr().out.splitlines()[0] == "marts/m.x ← clean/c.b ← raw/r.d, e"


def test_a_step_that_a_longer_path_implies_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    answer = trace("p.x", edge("m.y", "p.x"), edge("f.z", "m.y"), edge("f.z", "p.x"))
    show_origins(answer, FOLDER)
    assert capsys.readouterr().out.splitlines()[0] == "p.x ← m.y ← f.z"


def test_branches_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    answer = trace(
        "p.x", edge("f.one", "p.x"), edge("f.three", "p.x"), edge("r.a", "f.one"),
        edge("r.b", "f.three"),
    )  # fmt: skip
    show_origins(answer, FOLDER)
    assert capsys.readouterr().out.splitlines()[:3] == [
        "p.x",
        "├── f.one   ← r.a",
        "└── f.three ← r.b",
    ]


@pytest.mark.parametrize("show", [show_origins, show_breakage])
def test_a_cycle_ends(show, capsys: pytest.CaptureFixture[str]) -> None:
    show(trace("a.x", edge("a.x", "b.x"), edge("b.x", "a.x")), FOLDER)
    assert capsys.readouterr().out.splitlines()[-1].startswith("complete")


def test_what_breaks_is_shown_below_what_it_depends_on(capsys: pytest.CaptureFixture[str]) -> None:
    answer = trace(
        "raw/r.a", edge("raw/r.a", "c.b"), edge("c.b", "m.d"), edge("c.b", "m.e"),
        edge("raw/r.a", "z.f"), edge("raw/r.a", "m.d"),
    )  # fmt: skip
    show_breakage(answer, FOLDER)
    assert capsys.readouterr().out.splitlines() == [
        "1 job reads it by name: clean",
        "raw/r.a",
        "├── ✗ c.b",
        "│   └── ✗ m.d, e",
        "└── ✗ z.f",
        "complete · 3 tables and models break downriver",
    ]


def test_jobs_are_shown_in_the_order_data_flows(capsys: pytest.CaptureFixture[str]) -> None:
    late = trace("raw/r", edge("clean/c", "job:a_late"), edge("job:a_late", "marts/m"))
    early = trace("raw/r", edge("raw/r", "job:b_early"), edge("job:b_early", "clean/c"))
    show_flows(join_traces([late, early]), FOLDER)
    assert capsys.readouterr().out.splitlines() == [
        "clean/c ← b_early ← raw/r",
        "marts/m ← a_late  ← clean/c",
        "complete · 3 datasets, 2 jobs",
    ]


def test_blind_spots_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    spot = BlindSpot(kind="opaque", entity="job:clean", message="a UDF")
    show_breakage(trace("r.a", edge("r.a", "c.b"), spots=(spot,)), FOLDER)
    assert "incomplete" in (shown := capsys.readouterr().out)
    assert "? job:clean: a UDF" in shown
