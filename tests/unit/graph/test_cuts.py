"""One dataset under two names: joined where that is certain, otherwise a possible cut."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.graph.events import (
    column_lineage,
    copied,
    dataset,
    dataset_event,
    run_event,
    symlinks,
)

from downriver.errors import EntityNotFoundError, InvalidRequestError
from downriver.model.changes import TableDrop
from downriver.model.verdicts import Decision
from downriver.service import Lineage
from downriver.store.sqlite import SqliteStore


def writes(job, namespace, name):
    return run_event(job, [], [dataset(name, namespace)])


def reads(job, namespace, name, out):
    return run_event(job, [dataset(name, namespace)], [out])


def full(namespace, name):
    return f"dataset:{namespace}:{name}"


def names(trace):
    return {node.name for node in trace.nodes}


def cut_kinds(answer):
    return [spot.kind for spot in answer.blind_spots if spot.kind == "possible_cut"]


JOINED = [
    (("s3a://lake", "raw/orders/"), ("s3://lake", "raw/orders")),
    (("s3://lake", "raw/orders/day=2026-01-01"), ("s3://lake", "raw/orders")),
    (("s3://lake", "raw/orders"), ("s3n://lake", "raw/orders/*.parquet")),
    (("file", "/data/in/a.csv"), ("file", "/data/in")),
    (("hive://ms", "gold.orders"), ("hive://ms", "Gold.Orders")),
    (("snowflake://acc", "DB.PUBLIC.ORDERS"), ("snowflake://acc", "db.public.orders")),
    (("postgres://h:5432", 'db."public".orders'), ("postgres://h", "db.public.orders")),
]
POSSIBLE = [
    (("pg", "public.Orders"), ("pg", "public.orders")),
    (("s3://lake", "raw/Orders"), ("s3://lake", "raw/orders")),
    (("s3://lake", "out"), ("s3://lake", "out/a.csv")),
    (("pg", "warehouse.public.orders"), ("pg", "public.orders")),
    (("default", "orders"), ("postgres://h", "db.public.orders")),
    (("s3://lake", "wh/gold.db/orders"), ("hive://ms", "gold.orders")),
]


@pytest.mark.parametrize(("written", "read"), JOINED)
@pytest.mark.parametrize("reader_first", [True, False])
def test_certain_spellings_are_one_dataset(lineage, written, read, reader_first):
    events = [writes("w", *written), reads("r", *read, "report")]
    for event in events[::-1] if reader_first else events:
        lineage.ingest([event])
        lineage.trace(full(*(read if b'"r"' in event else written)))
    down = lineage.trace(full(*written))
    up = lineage.trace("report", "upstream")
    assert "report" in names(down)
    assert down.complete
    assert "w" in names(up)
    assert not cut_kinds(up)
    assert lineage.identity.possible_cuts().cuts == []


@pytest.mark.parametrize(("written", "read"), POSSIBLE)
def test_a_possible_cut_is_a_blind_spot_on_both_sides(lineage, written, read):
    lineage.ingest([writes("w", *written), reads("r", *read, "report")])
    down, up = lineage.trace(full(*written)), lineage.trace("report", "upstream")
    assert not down.complete
    assert not up.complete
    (spot,) = (s for s in down.blind_spots if s.kind == "possible_cut")
    assert spot.entity == full(*written)
    assert full(*read) in spot.message
    assert "downriver same" in spot.message
    (spot,) = (s for s in up.blind_spots if s.kind == "possible_cut")
    assert spot.entity == full(*read)
    (cut,) = lineage.identity.possible_cuts().cuts
    assert (cut.written, cut.read) == (full(*written), full(*read))


@pytest.mark.parametrize(("written", "read"), POSSIBLE)
def test_a_joined_cut_is_used_by_trace_and_impact(lineage, written, read):
    lineage.ingest([writes("w", *written), reads("r", *read, "report")])
    before = lineage.impact([TableDrop(dataset=full(*written))])
    assert cut_kinds(before)
    assert not before.complete
    lineage.identity.state_same(full(*written), full(*read))
    assert "report" in names(lineage.trace(full(*written)))
    assert lineage.trace(full(*written)).complete
    after = lineage.impact([TableDrop(dataset=full(*written))])
    assert not cut_kinds(after)
    assert "r" in {effect.name for effect in after.effects}
    assert lineage.identity.possible_cuts().cuts == []


@pytest.mark.parametrize(("written", "read"), POSSIBLE)
def test_a_dismissed_cut_is_no_blind_spot(lineage, written, read):
    lineage.ingest([writes("w", *written), reads("r", *read, "report")])
    lineage.identity.state_same(full(*read), full(*written), same=False)
    assert lineage.trace(full(*written)).complete
    assert "report" not in names(lineage.trace(full(*written)))
    assert lineage.identity.possible_cuts().cuts == []


@pytest.mark.parametrize(("written", "read"), JOINED[:2] + JOINED[4:])
def test_a_certain_join_can_be_undone(lineage, written, read):
    lineage.ingest([writes("w", *written), reads("r", *read, "report")])
    lineage.identity.state_same(full(*written), full(*read), same=False)
    assert "report" not in names(lineage.trace(full(*written)))
    lineage.identity.state_same(full(*written), full(*read))
    assert "report" in names(lineage.trace(full(*written)))


BOTH_ALIVE = [
    (("pg", "orders"), ("pg", "Orders")),
    (("pg", "prod.orders"), ("pg", "staging.orders")),
    (("s3://lake", "raw/orders"), ("s3://lake", "raw/Orders")),
    (("pg", "orders"), ("pg", "public.orders")),
    (("s3://lake", "out"), ("s3://lake", "out/a.csv")),
]


@pytest.mark.parametrize(("one", "other"), BOTH_ALIVE)
def test_two_tables_that_are_both_written_and_read_give_no_finding(lineage, one, other):
    for job, (namespace, name) in (("a", one), ("b", other)):
        lineage.ingest([writes(f"w{job}", namespace, name)])
        lineage.ingest([reads(f"r{job}", namespace, name, f"report_{job}")])
    assert lineage.identity.possible_cuts().cuts == []
    assert lineage.trace(full(*one)).complete
    assert names(lineage.trace(full(*one))).isdisjoint({"report_b"})


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (("pg", "staging.orders"), ("pg", "prod.orders")),
        (("postgres://a", "db.public.orders"), ("postgres://b", "db.public.orders")),
        (("s3://one", "raw/orders"), ("s3://two", "raw/orders")),
        (("s3://lake", "raw/a.csv"), ("s3://lake", "raw/b.csv")),
        (("prod", "orders"), ("staging", "orders")),
    ],
)
def test_different_datasets_give_no_finding(lineage, written, read):
    lineage.ingest([writes("w", *written), reads("r", *read, "report")])
    assert lineage.trace(full(*written)).complete
    assert lineage.identity.possible_cuts().cuts == []


def test_a_table_that_is_made_from_its_namesake_is_another_table(lineage):
    lineage.ingest([run_event("stage", ["shop.orders"], ["stg"])])
    lineage.ingest([run_event("model", ["stg"], ["orders"])])
    assert lineage.trace("shop.orders").complete
    assert lineage.identity.possible_cuts().cuts == []


def test_a_reader_under_another_spelling_of_a_table_that_is_read_is_found_too(lineage):
    lineage.ingest([writes("w", "pg", "orders"), reads("r", "pg", "orders", "one")])
    lineage.ingest([reads("r2", "pg", "ORDERS", "two")])
    assert cut_kinds(lineage.trace("dataset:pg:orders"))
    assert cut_kinds(lineage.trace("two", "upstream"))
    assert not cut_kinds(lineage.trace("one", "upstream"))


def test_a_cut_further_down_makes_an_answer_incomplete(lineage):
    lineage.ingest([run_event("a", ["src"], ["mid"]), run_event("b", ["mid"], ["End"])])
    lineage.ingest([run_event("c", ["end"], ["report"])])
    for answer in (lineage.trace("src"), lineage.impact([TableDrop(dataset="src")])):
        assert cut_kinds(answer)
        assert not answer.complete
    assert not lineage.trace.paths("src", "End").complete


def test_a_column_trace_names_the_cut(lineage):
    lineage.ingest(
        [
            run_event(
                "b", ["mid"], [dataset("End", columnLineage=column_lineage(x=[copied("mid.x")]))]
            ),
            run_event("c", ["end"], ["report"]),
        ]
    )
    assert cut_kinds(lineage.trace("mid.x"))


def test_the_latest_statement_counts(lineage):
    lineage.ingest([writes("w", "pg", "A.t"), reads("r", "pg", "a.t", "report")])
    for same in (True, False, True, False):
        lineage.identity.state_same("dataset:pg:A.t", "dataset:pg:a.t", same=same)
        assert ("report" in names(lineage.trace("dataset:pg:A.t"))) is same
    (statement,) = lineage.identity.statements().statements
    assert not statement.same


def test_a_symlinks_facet_does_not_undo_a_statement(lineage):
    lineage.ingest([writes("w", "pg", "A.t"), reads("r", "pg", "a.t", "report")])
    lineage.identity.state_same("dataset:pg:A.t", "dataset:pg:a.t")
    lineage.ingest([dataset_event("A.t", "pg", day=400, symlinks=symlinks())])
    assert "report" in names(lineage.trace("dataset:pg:A.t"))


def test_statements_are_about_two_known_datasets(lineage):
    lineage.ingest([writes("w", "pg", "a")])
    with pytest.raises(EntityNotFoundError):
        lineage.identity.state_same("a", "nothing")
    with pytest.raises(InvalidRequestError):
        lineage.identity.state_same("a", "dataset:pg:a")
    with pytest.raises(InvalidRequestError):
        lineage.identity.state_same("a", "job:etl:w")


EVENTS = (
    writes("w", "s3a://lake", "raw/orders/"),
    reads("r", "s3://lake", "raw/orders", "report"),
    reads("p", "s3://lake", "raw/orders/day=1", "daily"),
    dataset_event("raw/orders", "s3://lake", symlinks=symlinks("sales")),
)


@pytest.mark.parametrize("order", list(itertools.permutations(EVENTS)))
def test_spellings_join_whatever_the_order(lineage, order):
    for event in order:
        lineage.ingest([event])
        with lineage.session.reading():
            pass  # the index is refreshed after each event
    assert {"report", "daily", "w"} <= names(lineage.trace("sales", "both"))
    (root,) = {lineage.trace(n).root.id for n in ("sales", "dataset:s3a://lake:raw/orders/")}
    assert root == "dataset:db:sales"


words = st.text("abAB", min_size=1, max_size=2)
tables = st.lists(words, min_size=1, max_size=3).map(".".join)
uses = st.lists(st.tuples(st.booleans(), tables), min_size=1, max_size=12)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(uses)
def test_a_cut_always_connects_a_read_and_a_written_name(tmp_path_factory, uses):
    """No finding about names that are both written and read, and none is lost by loading later."""
    folder = tmp_path_factory.mktemp("cuts")
    events = [
        writes(f"w{at}", "pg", name)
        if is_write
        else reads(f"r{at}", "pg", name, f"out.o{at}.x{at}")
        for at, (is_write, name) in enumerate(uses)
    ]
    with (
        Lineage(SqliteStore(folder / "one.db")) as at_once,
        Lineage(SqliteStore(folder / "two.db")) as one_by_one,
    ):
        at_once.ingest(events)
        for event in events:
            one_by_one.ingest([event])
            with one_by_one.session.reading():
                pass
        cuts = at_once.identity.possible_cuts().cuts
        assert one_by_one.identity.possible_cuts().cuts == cuts
    written = {full("pg", name) for is_write, name in uses if is_write}
    read = {full("pg", name) for is_write, name in uses if not is_write}
    for cut in cuts:
        alive = written & read
        assert not {cut.written, cut.read} <= alive
        assert cut.written.casefold().endswith(cut.read.casefold().rpartition(":")[2]) or (
            cut.read.casefold().endswith(cut.written.casefold().rpartition(":")[2])
        )
    for one, other in itertools.product(written - read, read - written):
        if one.casefold() == other.casefold():
            assert any((cut.written, cut.read) == (one, other) for cut in cuts)


def test_the_gate_does_not_approve_across_a_possible_cut(lineage):
    lineage.ingest([writes("w", "pg", "Orders"), reads("r", "pg", "orders", "report")])
    change = TableDrop(dataset="dataset:pg:Orders")
    verdict = lineage.impact.gate(lineage.impact([change]))
    assert verdict.decision is not Decision.APPROVED
    assert not verdict.impact.complete
    assert "possible_cut" in {spot.kind for spot in verdict.impact.blind_spots}


def test_a_column_in_another_letter_case_is_a_possible_cut(lineage):
    source = {"namespace": "snowflake://a", "name": "db.s.orders", "field": "amount"}
    written = dataset(
        "DB.S.ORDERS", "snowflake://a", columnLineage=column_lineage(AMOUNT=[copied("raw.x")])
    )
    report = dataset("report", columnLineage=column_lineage(y=[source]))
    lineage.ingest([run_event("w", ["raw"], [written])])
    lineage.ingest([run_event("r", [dataset("db.s.orders", "snowflake://a")], [report])])
    for answer in (lineage.trace("raw.x"), lineage.trace("report.y", "upstream")):
        assert cut_kinds(answer)
        assert not answer.complete
