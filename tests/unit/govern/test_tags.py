"""A tag propagates with the value."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.openlineage import dataset_event
from tests.unit.govern.scenario import derives, moment, output, run, schema, tagged, told

from downriver.govern.tags import TagEdge, propagate

if TYPE_CHECKING:
    from pathlib import Path


def edge(source: str, target: str, subtype: str = "IDENTITY", masking: bool = False) -> TagEdge:
    return TagEdge(source, target, subtype != "JOIN", subtype, masking)


def test_copies_and_computations_carry_counts_filters_and_masks_do_not() -> None:
    edges = [
        edge("a", "copy"),
        edge("copy", "upper", "TRANSFORMATION"),
        edge("a", "count", "AGGREGATION"),
        edge("a", "joined", "JOIN"),
        edge("a", "hash", "TRANSFORMATION", masking=True),
        edge("hash", "further"),
    ]
    found = propagate(edges, ["a"])
    assert found.reached == {"copy": ("a", "copy"), "upper": ("a", "copy", "upper")}
    assert found.stopped == {"hash": ("a", "hash")}


def test_a_column_that_is_masked_on_one_way_and_not_on_the_other_is_reached() -> None:
    edges = [edge("a", "x", masking=True), edge("a", "b"), edge("b", "x")]
    found = propagate(edges, ["a"])
    assert found.reached["x"] == ("a", "b", "x")
    assert found.stopped == {}


def test_cycles_end_and_the_order_of_edges_does_not_matter() -> None:
    edges = [edge("a", "b"), edge("b", "c"), edge("c", "a"), edge("a", "d"), edge("d", "c")]
    expected = propagate(edges, ["a"])
    for seed in range(10):
        random.Random(seed).shuffle(edges)
        assert propagate(edges, ["a"]) == expected
    assert set(expected.reached) == {"b", "c", "d"}


def test_a_tag_follows_the_lineage_of_a_moment(tmp_path: Path) -> None:
    events = [
        dataset_event("raw", {**schema(mail="text"), **tagged(mail="pii")}),
        *run("clean", 0, reads=["raw"], writes=[output("clean", derives(email="raw.mail"))]),
        *run("mart", 5, reads=["clean"], writes=[output("mart", derives(contact="clean.email"))]),
    ]
    with told(tmp_path, events) as lineage:
        ends = {
            as_of: {
                c.column.rpartition(":")[2] for c in lineage.govern.tag_reach("pii", as_of).reached
            }
            for as_of in (None, moment(2))
        }
    assert ends == {None: {"email", "contact"}, moment(2): {"email"}}


def test_the_reach_of_a_tag_is_returned_with_its_paths(tmp_path: Path) -> None:
    events = [
        dataset_event("raw", {**schema(mail="text"), **tagged(mail="pii")}),
        *run("clean", 0, reads=["raw"], writes=[output("clean", derives(email="raw.mail"))]),
        *run("mart", 0, reads=["clean"], writes=[output("mart", derives(
            contact="clean.email", hash="!clean.email", n="#clean.email"))]),
    ]  # fmt: skip
    with told(tmp_path, events) as lineage:
        found = lineage.govern.tag_reach("PII")
    reached = {c.column.split(":", 3)[-1]: c for c in found.reached}
    assert [name.rpartition(":")[2] for name in reached] == ["email", "contact"]
    contact = next(c for c in found.reached if c.column.endswith("contact"))
    assert [step.rpartition(":")[2] for step in contact.path] == ["mail", "email", "contact"]
    assert [c.column.rpartition(":")[2] for c in found.stopped] == ["hash"]
