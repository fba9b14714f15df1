"""Selectors, compared with a reference that walks over all events."""

from __future__ import annotations

from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.graph import events as e
from tests.unit.graph.random_events import DATASETS, JOBS, MOMENTS, event_lists
from tests.unit.graph.reference import Reference

from downriver.errors import InvalidRequestError
from downriver.graph.selectors import UNLIMITED, Atom, parse_selector
from downriver.service import Lineage
from downriver.store.sqlite import SqliteStore

FOREVER = MOMENTS[0]


@pytest.fixture
def selected(lineage):
    def select(q, **options):
        found = lineage.select(q, **options)
        return [name.split(":")[-1] for name in found.ids]

    return select


names = st.sampled_from([f"dataset:db:{n}" for n in DATASETS] + [f"job:etl:{n}" for n in JOBS])
depths = st.sampled_from(["", "0", "1", "2"])


@st.composite
def atoms(draw):
    name = draw(names)
    shape = draw(st.sampled_from(["plain", "up", "down", "both", "around"]))
    if shape == "around":
        return f"@{name}"
    before = f"{draw(depths)}+" if shape in ("up", "both") else ""
    after = f"+{draw(depths)}" if shape in ("down", "both") else ""
    return f"{before}{name}{after}"


terms = st.lists(atoms(), min_size=1, max_size=2).map(",".join)
unions = st.lists(terms, min_size=1, max_size=2).map(" ".join)
selectors = st.one_of(unions, st.tuples(unions, unions).map(" --exclude ".join))


class SlowSelection:
    """What a selector means, spelled out with sets."""

    def __init__(self, reference):
        self.reference = reference
        self.by_id = {str(node): node for node in reference.facts.nodes}

    def select(self, text):
        included, *excluded = text.split(" --exclude ")
        return self.union(included) - set().union(*map(self.union, excluded))

    def union(self, text):
        return set().union(*(self.term(term) for term in text.split(" ")))

    def term(self, text):
        return set.intersection(*(self.atom(atom) for atom in text.split(",")))

    def atom(self, text):
        around = text.startswith("@")
        text = text.lstrip("@")
        up, plus, rest = text.partition("+")
        before = None
        if plus and (up == "" or up.isdigit()):
            before, text = up, rest
        name, plus, after = text.partition("+")
        node = self.by_id.get(name)
        if node is None:
            return set()
        if around:
            below = self.walk(node, "", downstream=True)
            return set().union(*(self.walk(self.by_id[n], "", downstream=False) for n in below))
        found = {str(self.reference.one(node))}
        if before is not None:
            found |= self.walk(node, before, downstream=False)
        if plus:
            found |= self.walk(node, after, downstream=True)
        return found

    def walk(self, node, depth, *, downstream):
        limit = int(depth) if depth else None
        asked = {"downstream": downstream, "depth": limit, "as_of": FOREVER}
        return set(self.reference.trace(node, **asked).depths)


@settings(max_examples=40, deadline=None)
@given(event_lists, st.lists(selectors, min_size=4, max_size=8))
def test_a_selector_selects_what_a_walk_over_all_events_finds(tmp_path_factory, story, texts):
    events = [event for batch in story for event in batch]
    slow = SlowSelection(Reference(events))
    store = SqliteStore(tmp_path_factory.mktemp("story") / "lineage.db")
    with closing(Lineage(store)) as lineage:
        lineage.ingest(events)
        for text in texts:
            assert set(lineage.select(text).ids) == slow.select(text), text


def test_a_selector_is_parsed():
    (((atom,),), excluded) = parse_selector("2+orders+")
    assert atom == Atom("2+orders+", "name", "orders", 2, UNLIMITED)
    assert excluded == ()
    assert parse_selector('tag:"a b"').included[0][0][1:3] == ("tag", "a b")
    assert parse_selector('+"my table, old"+1').included[0][0].value == "my table, old"
    assert (
        parse_selector("dataset:postgres://db:5432:public.orders").included[0][0].method == "name"
    )
    assert len(parse_selector("a b,c d").included) == 3
    assert len(parse_selector("a exclude b c").excluded) == 2


@pytest.mark.parametrize(
    "text",
    [
        *("", "  ", ",", "a,", ",a", "a,,b", "tag:", '"open', "exclude a", "a exclude", "@+a"),
        *("+", "@", "++", "a+99999", "x" * 3000),
    ],
)
def test_a_wrong_selector_is_an_error(text):
    with pytest.raises(InvalidRequestError):
        parse_selector(text)


@pytest.fixture
def shop(lineage):
    labels = {
        "tags": {"tags": [{"key": "certified"}, {"key": "pii", "value": "email", "field": "mail"}]},
        "ownership": {"owners": [{"name": "team:Sales"}]},
    }
    lineage.ingest(
        [
            e.run_event("load", [e.dataset("raw.orders", "pg://one")], ["stg_orders"], day=1),
            e.run_event("model", ["stg_orders"], [e.dataset("orders", **labels)], day=2),
            e.run_event("report", ["orders"], ["daily"], day=3),
            e.run_event("daily_job", ["orders", "stg_customers"], ["weekly"], day=4),
        ]
    )
    return lineage


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("stg_*", ["stg_customers", "stg_orders"]),
        ("STG_ord*", ["stg_orders"]),
        ("raw*", ["raw.orders"]),
        ("orders", ["orders"]),
        ("tag:pii", ["orders"]),
        ("tag:pii:email", ["orders"]),
        ("tag:cert*", ["orders"]),
        ("owner:sales", ["orders"]),
        ("owner:team:sales", ["orders"]),
        ("namespace:pg*", ["raw.orders"]),
        ("kind:job,stg_orders+1", ["model"]),
        ("tag:pii+1", ["daily", "daily_job", "orders", "report", "weekly"]),
        ("tag:pii+1 --exclude kind:job", ["daily", "orders", "weekly"]),
        ("type:script,1+daily", ["report"]),
        ("@report", ["daily", "load", "model", "orders", "raw.orders", "report", "stg_orders"]),
    ],
)
def test_criteria(shop, selected, text, wanted):
    del shop
    assert sorted(selected(text)) == sorted(wanted)


def test_a_criterion_that_matches_nothing_is_reported(shop):
    found = shop.select("stg_orders nothing tag:none")
    assert (found.total, found.unknown) == (1, ["nothing", "tag:none"])


def test_a_selection_of_the_past_has_only_what_was_known_then(shop, selected):
    del shop
    assert selected("stg_orders+", as_of=e.moment(2)) == ["orders", "stg_orders", "model"]


def test_the_graph_of_a_selection_has_the_jobs_between(shop):
    found = shop.graph.select("stg_orders orders")
    assert {node.name for node in found.nodes} == {"stg_orders", "orders", "model"}
    assert (found.root, found.shown, found.total) == (None, 3, 3)
    assert len(found.edges) == 2
    few = shop.graph.select("kind:dataset", limit=2)
    assert (few.shown, few.total, few.complete) == (2, 10, False)


def test_an_export_draws_exactly_the_nodes_of_a_view(shop):
    ids = ["dataset:db:orders", "job:etl:report"]
    drawn = shop.export.selection(None, "svg", ids=ids)
    assert (drawn.node_count, drawn.edge_count) == (2, 1)
    assert shop.export.selection("orders+1", "json").node_count == 5
