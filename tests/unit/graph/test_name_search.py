"""A search in names finds what a simple loop over all names finds, in the same order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.graph.events import run_event

from downriver.graph.index import name_search
from downriver.graph.index.name_search import NameSearch
from downriver.model.ids import JobId

if TYPE_CHECKING:
    from downriver import Lineage

# Few characters, so that words are found; some change their length in lower case or UTF-8.
TEXTS = st.text(st.sampled_from("abAB_.\nßİé🦆"), max_size=8)
NODES = st.tuples(st.sampled_from([0, 1]), st.sampled_from(["x", "y"]), TEXTS)
WORDS = st.lists(st.text(st.sampled_from("abAB_.é🦆"), min_size=1, max_size=4), max_size=3)

Node = tuple[int, str, str]


class Catalog:
    """The nodes of a catalog, as a reader yields them."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, str, str]] = []
        self.changes = SimpleNamespace(nodes=self._nodes)

    def add(self, nodes: list[Node]) -> None:
        self.rows += [(number, *node) for number, node in enumerate(nodes, len(self.rows) + 1)]

    def _nodes(self, after: int) -> list[tuple[int, int, str, str]]:
        return [row for row in self.rows if row[0] > after]

    def matching(self, words: list[str]) -> list[int]:
        def order(row: tuple[int, int, str, str]) -> tuple[int, int, bytes, str, int]:
            number, kind, namespace, name = row
            lower = name.lower().replace("\n", " ").encode()
            return kind, len(name), lower, namespace, number

        found = [r for r in self.rows if all(word.lower() in r[3].lower() for word in words)]
        return [row[0] for row in sorted(found, key=order)]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(NODES, max_size=60, unique=True), max_size=4),
    st.lists(WORDS, min_size=1, max_size=4),
    st.integers(0, 5),
    st.integers(1, 70),
    st.integers(0, 100),
)
def test_a_search_equals_a_loop_over_all_names(batches, questions, offset, limit, most):
    catalog, names = Catalog(), NameSearch()
    for batch in batches:
        catalog.add(batch)
        names = names.loaded(catalog)
        for words in questions:
            expected = catalog.matching(words)
            found = names.search(words, limit, offset, most)
            assert found.ids == expected[offset : offset + limit]
            assert found.all_counted == (len(expected) <= most)
            if found.all_counted:
                assert found.total == len(expected)
            else:
                assert most <= found.total <= len(expected)


def test_a_rare_name_is_found_among_many():
    catalog = Catalog()
    catalog.add([(0, "db", f"sales.table_{number:06d}") for number in range(20_000)])
    names = NameSearch().loaded(catalog)
    assert names.search(["table_012345"], 10, 0, 100).ids == [12346]
    assert names.search(["12345"], 10, 0, 100).ids == [12346]
    assert names.search(["table", "12345"], 10, 0, 100).ids == [12346]
    assert names.search(["nothing"], 10, 0, 100).ids == []


def test_names_are_merged_into_few_segments():
    catalog, names = Catalog(), NameSearch()
    for number in range(500):
        catalog.add([(0, "db", f"t{number}")])
        names = names.loaded(catalog)
    assert len(names.segments) < 6
    assert names.search(["t"], 1000, 0, 1000).total == 500


def test_a_search_sees_new_names_and_those_of_a_rebuilt_catalog(lineage: Lineage) -> None:
    lineage.ingest([run_event("j", ["orders"], ["orders_daily"])])
    assert [entity.name for entity in lineage.entities.search("ORDERS").entities] == [
        "orders",
        "orders_daily",
    ]
    lineage.ingest([run_event("k", ["old_orders"], ["x"])])
    assert lineage.entities.search("orders").total == 3
    lineage.store.rebuild(lambda done, total: None)
    assert lineage.entities.search("orders").total == 3


def test_a_page_has_the_cursor_of_the_next_page(lineage: Lineage) -> None:
    lineage.ingest([run_event("j", [f"t{n}" for n in range(5)], ["u"])])
    first = lineage.entities.search("t", limit=3)
    assert (first.total, first.total_is_exact, first.complete) == (5, True, False)
    second = lineage.entities.search("t", limit=3, cursor=first.cursor)
    assert [entity.name for entity in (*first.entities, *second.entities)] == [
        "t0",
        "t1",
        "t2",
        "t3",
        "t4",
    ]
    assert (second.complete, second.cursor) == (True, None)


def test_datasets_come_before_jobs_and_short_names_before_long_ones(lineage: Lineage) -> None:
    lineage.ingest([run_event("load", ["load_log"], ["load_a"])])
    found = lineage.entities.search("load").entities
    assert [entity.name for entity in found] == ["load_a", "load_log", "load"]
    assert found[-1].id == str(JobId("etl", "load"))


@pytest.mark.parametrize("text", ["", "   ", "*", "%", "_", "nothing like it"])
def test_any_text_is_a_valid_search(lineage: Lineage, text: str) -> None:
    lineage.ingest([run_event("j", ["a"], ["b"])])
    expected = 3 if not text.strip() else 0
    assert lineage.entities.search(text).total == expected


@pytest.mark.parametrize("few", [0, 20_000])
@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(NODES, max_size=60, unique=True), max_size=3),
    WORDS,
    st.one_of(st.none(), st.sets(st.integers(1, 150))),
    st.integers(0, 100),
)
def test_matches_are_all_names_with_the_words_that_are_allowed(few, batches, words, allowed, most):
    catalog, names = Catalog(), NameSearch()
    for batch in batches:
        catalog.add(batch)
        names = names.loaded(catalog)
    flags = None
    if allowed is not None:
        flags = np.zeros(max(allowed, default=0) + 1, np.bool_)
        flags[[*allowed]] = True
    expected = [n for n in catalog.matching(words) if allowed is None or n in allowed]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(name_search, "_FEW_ALLOWED", few)
        patch.setattr(name_search, "_BLOCKS_READ", 1)
        found = names.match(words, most, flags)
    assert found.is_whole == (len(expected) <= most)
    if found.is_whole:
        assert sorted(found.ids.tolist()) == sorted(expected)
    else:
        assert {*expected[:most]} <= {*found.ids.tolist()} <= {*expected}
