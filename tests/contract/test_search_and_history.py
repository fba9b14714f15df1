"""Search, the map and the past of the graph are the same on every store."""

from __future__ import annotations

import pytest
from tests.unit.graph import events as e

from downriver.errors import InvalidRequestError
from downriver.service import Lineage
from downriver.service.views.search import SearchFilter


@pytest.fixture(params=["sqlite", "postgres"])
def lineage(request, tmp_path):
    location = (
        str(tmp_path / "store")
        if request.param == "sqlite"
        else request.getfixturevalue("postgres_database")
    )
    with Lineage.open(location) as opened:
        yield opened


@pytest.fixture
def shop(lineage):
    labels = {
        "tags": {"tags": [{"key": "certified"}, {"key": "pii", "field": "Order_Mail"}]},
        "ownership": {"owners": [{"name": "team:orders"}]},
        "schema": e.schema("id", "Order_Mail", "Überschrift"),
    }
    lineage.ingest(
        [
            e.run_event("load_orders", [e.dataset("raw.orders", "pg://one")], ["stg_orders"]),
            e.run_event("model", ["stg_orders"], [e.dataset("orders", **labels)], day=2),
            e.run_event("report", ["orders"], ["daily"], day=3),
        ]
    )
    return lineage


def hits(page, kind):
    return [hit.name for hit in page.hits if hit.kind == kind]


def test_a_search_has_a_limit_of_different_words(shop):
    assert shop.search("order ORDER " * 5_000) == shop.search("order")
    with pytest.raises(InvalidRequestError, match="33 different words"):
        shop.search(" ".join(f"w{n}" for n in range(33)))


def test_a_search_finds_datasets_jobs_columns_tags_and_owners(shop):
    found = shop.search("order")
    assert hits(found, "dataset") == ["orders", "raw.orders", "stg_orders"]
    assert hits(found, "job") == ["load_orders"]
    assert hits(found, "column") == ["Order_Mail"]
    assert hits(found, "owner") == ["team:orders"]
    (column,) = [hit for hit in found.hits if hit.kind == "column"]
    assert (column.dataset, column.tags, column.match) == ("dataset:db:orders", ["pii"], [[0, 5]])
    assert hits(shop.search("pi"), "tag") == ["pii"]
    assert hits(shop.search("über"), "column") == ["Überschrift"]
    assert (found.total, found.complete) == (4, True)
    assert found.facets.kind == {"dataset": 3, "job": 1}
    assert found.facets.namespace == {"db": 2, "pg://one": 1, "etl": 1}
    assert found.facets.owner == {"team:orders": 1}


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ({"kind": "job"}, ["load_orders"]),
        ({"kind": "column"}, ["Order_Mail"]),
        ({"namespace": "pg*"}, ["raw.orders"]),
        ({"tag": "pii"}, ["orders", "Order_Mail"]),
        ({"owner": "team:orders"}, ["orders"]),
        ({"type": "table", "namespace": "db"}, ["orders", "stg_orders"]),
    ],
)
def test_filters(shop, where, wanted):
    found = shop.search("order", where=SearchFilter(**where))
    assert [hit.name for hit in found.hits] == wanted


def test_pages_continue(shop):
    first = shop.search("order", limit=3)
    second = shop.search("order", limit=3, cursor=first.next_cursor)
    names = [entity.name for page in (first, second) for entity in page.entities]
    assert names == ["orders", "raw.orders", "stg_orders", "load_orders"]
    assert second.next_cursor is None
    assert hits(second, "column") == []
    with pytest.raises(InvalidRequestError):
        shop.search("order", where=SearchFilter(kind="thing"))


def test_an_empty_search_lists_everything(shop):
    found = shop.search("")
    assert found.total == 7
    assert {hit.kind for hit in found.hits} == {"dataset", "job"}


def test_the_map_has_every_node_and_edge(shop):
    found = shop.map()
    assert (found.total, found.shown, len(found.ids)) == (7, 7, 7)
    pairs = zip(found.edges[::2], found.edges[1::2], strict=True)
    assert {(found.ids[a], found.ids[b]) for a, b in pairs} == {
        ("dataset:pg://one:raw.orders", "job:etl:load_orders"),
        ("job:etl:load_orders", "dataset:db:stg_orders"),
        ("dataset:db:stg_orders", "job:etl:model"),
        ("job:etl:model", "dataset:db:orders"),
        ("dataset:db:orders", "job:etl:report"),
        ("job:etl:report", "dataset:db:daily"),
    }
    place = found.ids.index("dataset:db:orders")
    assert (found.degrees[place], found.marks[place]) == (2, ["certified", "pii"])
    assert found.group_names[found.groups[place]] == "db"
    assert len(shop.map(as_of=e.moment(1)).ids) == 3


def test_the_map_in_groups_counts_edges(shop):
    found = shop.map("namespace")
    names = found.group_names
    assert dict(zip(names, found.group_sizes, strict=True)) == {"db": 3, "etl": 3, "pg://one": 1}
    assert {(names[a], names[b]): n for a, b, n in found.group_edges} == {
        ("db", "etl"): 2,
        ("etl", "db"): 3,
        ("pg://one", "etl"): 1,
    }
    assert shop.map("schema").group_names == ["db", "etl", "pg://one:raw"]
    with pytest.raises(InvalidRequestError):
        shop.map("colour")


def test_an_empty_store_has_an_empty_map_and_no_changes(lineage):
    assert lineage.map().ids == []
    assert lineage.map("schema").group_edges == []
    assert lineage.history.changes().changes == []
    assert lineage.search("x").hits == []


def test_versions_of_a_schema_state_what_changed(lineage):
    def orders(**columns):
        fields = [{"name": name, "type": kind} for name, kind in columns.items()]
        return [e.dataset("orders", schema={"fields": fields})]

    lineage.ingest(
        [
            e.run_event("load", [], orders(id="int", total="int"), day=1, run="a"),
            e.run_event("load", [], orders(id="int", total="int"), day=2, run="b"),
            e.run_event("load", [], orders(id="text", tax="int"), day=3, run="c"),
        ]
    )
    first, second = lineage.history.schema_versions("orders").versions
    assert (first.at, first.last_seen) == (e.moment(1), e.moment(2))
    assert (first.added, first.removed, first.retyped) == ([], [], [])
    assert (second.added, second.removed) == (["tax"], ["total"])
    assert [(c.name, c.old, c.new) for c in second.retyped] == [("id", "int", "text")]
    with pytest.raises(InvalidRequestError):
        lineage.history.schema_versions("load")


def test_changes_are_the_moments_between_which_the_graph_differs(shop):
    found = shop.history.changes("orders")
    assert [change.at for change in found.changes] == [e.moment(day) for day in (1, 2, 3)]
    assert [change.nodes_added for change in found.changes] == [3, 2, 2]
    totals = [shop.graph("orders", as_of=change.at).total for change in found.changes]
    assert totals == [1, 5, 7]
    assert [c.at for c in shop.history.changes(since=e.moment(3)).changes] == [e.moment(3)]
    latest = shop.history.changes(limit=1)
    assert ([c.at for c in latest.changes], latest.omitted_count) == ([e.moment(3)], 2)


def test_an_edge_that_turned_stale_is_a_change(lineage):
    lineage.ingest(
        [
            e.run_event("load", ["raw"], ["orders"], day=1),
            e.run_event("load", ["other"], ["orders"], day=80, run="run-2"),
        ]
    )
    changes = {change.at[:10]: change for change in lineage.history.changes("orders").changes}
    assert changes["2026-01-31"].removed == 1
    before = lineage.graph("orders", as_of="2026-01-31T11:00:00Z")
    after = lineage.graph("orders", as_of="2026-01-31T13:00:00Z")
    assert {edge.status for edge in before.edges} == {"active"}
    assert "stale" in {edge.status for edge in after.edges}


def test_the_last_point_of_the_history_equals_the_kpis_of_now(shop):
    points = shop.govern.kpi_history(points=3).points
    now = shop.govern.kpis()
    assert points[-1].lineage_coverage == now.lineage_coverage.percent
    assert points[-1].blast_radius == now.blast_radius.median
    assert (points[-1].datasets, points[-1].jobs) == (now.datasets, now.jobs)
    assert (points[0].at, points[0].datasets, points[0].jobs) == (e.moment(1), 2, 1)
    assert points[0].failure_rate == 0


def test_the_failure_rate_of_the_past_counts_the_runs_before_it(lineage):
    failed = e.run_event("load", ["raw"], ["orders"], day=1).replace(b"COMPLETE", b"FAIL")
    lineage.ingest([failed, e.run_event("load", ["raw"], ["orders"], day=100, run="run-2")])
    history = lineage.govern.kpi_history(points=200).points
    rates = {point.at[:10]: point.failure_rate for point in history}
    assert rates["2026-01-01"] == 100
    assert list(rates.values()).count(None) > 0  # no run ended in the 30 days before
    assert lineage.govern.kpi_history(points=1, since="1d").points[0].datasets == 2
    with pytest.raises(InvalidRequestError):
        lineage.govern.kpi_history(points=0)


def test_the_integrity_of_certified_paths_is_that_of_the_moment(shop):
    shop.ingest(
        [e.run_event("unknown", [], ["raw.orders"], day=5)]
    )  # reads nothing: its upstream is unknown
    points = shop.govern.kpi_history(points=3, certified=True).points
    shares = [point.certified_path_integrity for point in points]
    assert shares[0] is None  # nothing was certified
    assert shares[-1] == shop.govern.kpis().certified_path_integrity.percent
    assert shop.govern.kpi_history(points=1).points[0].certified_path_integrity is None


def test_an_empty_store_has_no_history(lineage):
    assert lineage.govern.kpi_history().points == []
