"""What breaks, what changes and what does not, when the SQL of consumers is known."""

from __future__ import annotations

import pytest
from tests.unit.impact.estate import Estate, effect_on, hurt

from downriver.errors import EntityNotFoundError, InvalidRequestError
from downriver.model.changes import (
    ColumnAdd,
    ColumnDrop,
    ColumnRename,
    Deprecation,
    LogicChange,
    NullabilityChange,
    TableDrop,
    TableRename,
    TypeChange,
)
from downriver.model.verdicts import EffectSeverity


def rename(column: str = "order_total", to: str = "total") -> ColumnRename:
    return ColumnRename(dataset="raw.orders", column=column, to=to)


def test_a_query_that_names_a_renamed_column_fails(shop: Estate) -> None:
    effect = effect_on(shop.lineage.impact([rename()]), "stg.orders")
    assert effect.severity is EffectSeverity.BREAKING
    assert effect.outcome.value == "fails"
    assert effect.basis == "simulated"
    assert effect.affected_references == ["order_total"]
    (reference,) = effect.references
    assert (reference.path, reference.line, reference.clause) == ("stg_orders.sql", 3, "select")
    assert reference.text == "order_total,"


def test_readers_of_a_column_of_a_failed_query_lose_it_and_others_get_old_data(
    shop: Estate,
) -> None:
    found = hurt(shop.lineage.impact([rename()]))
    assert found["mart.doubled"] == "not_rebuilt"
    assert found["mart.ids"] == "not_rebuilt"


def test_a_star_passes_a_rename_on_to_readers_that_name_the_column(shop: Estate) -> None:
    impact = shop.lineage.impact([rename()])
    sums = effect_on(impact, "mart.sums")
    assert (sums.outcome.value, sums.hops) == ("fails", 2)
    assert sums.path == ["raw.orders.order_total", "stg.star.order_total"]
    star = effect_on(impact, "stg.star")
    assert star.severity is EffectSeverity.WARNING
    assert star.reason == "no longer outputs order_total, which breaks mart.sums"


def test_readers_of_the_table_without_the_column_are_counted_and_not_listed(shop: Estate) -> None:
    impact = shop.lineage.impact([rename()])
    assert "mart.names" not in hurt(impact)
    assert impact.untouched == 1
    assert impact.complete


def test_a_filter_is_a_reference_too(shop: Estate) -> None:
    effect = effect_on(
        shop.lineage.impact([ColumnDrop(dataset="raw.orders", column="legacy")]), "mart.names"
    )
    assert effect.references[0].clause == "filter"


def test_a_new_column_makes_an_unqualified_name_ambiguous(shop: Estate) -> None:
    impact = shop.lineage.impact([ColumnAdd(dataset="raw.orders", column="name")])
    assert hurt(impact) == {"mart.names": "fails", "stg.star": "changes"}
    assert "two of its tables" in effect_on(impact, "mart.names").reason


def test_a_rename_can_make_a_name_ambiguous(shop: Estate) -> None:
    assert hurt(shop.lineage.impact([rename(to="name")]))["mart.names"] == "fails"


def test_a_text_type_breaks_arithmetic(shop: Estate) -> None:
    impact = shop.lineage.impact(
        [TypeChange(dataset="raw.orders", column="order_total", to="varchar")]
    )
    assert hurt(impact) == {
        "mart.doubled": "fails",
        "mart.sums": "fails",
        "stg.orders": "changes",
        "stg.star": "changes",
    }


def test_a_wider_type_breaks_no_consumer(shop: Estate) -> None:
    impact = shop.lineage.impact(
        [TypeChange(dataset="raw.orders", column="order_total", to="decimal(18,4)")]
    )
    assert {effect.severity for effect in impact.effects} == {EffectSeverity.WARNING}


def test_the_same_type_in_other_words_is_no_change(shop: Estate) -> None:
    change = TypeChange(dataset="raw.orders", column="id", to="INTEGER")
    assert shop.lineage.impact([change]).effects == []


@pytest.mark.parametrize(
    "change",
    [TableDrop(dataset="raw.customers"), TableRename(dataset="raw.customers", to="people")],
)
def test_a_dropped_table_breaks_jobs_that_name_it(shop: Estate, change) -> None:
    impact = shop.lineage.impact([change])
    assert hurt(impact) == {"mart.names": "fails"}
    assert effect_on(impact, "mart.names").references[0].clause == "read"


def test_other_logic_changes_values_where_they_flow_and_rows_where_they_decide(
    shop: Estate,
) -> None:
    impact = shop.lineage.impact([LogicChange(dataset="raw.orders", columns=["legacy"])])
    assert hurt(impact) == {
        "mart.names": "changes",
        "stg.orders": "changes",
        "stg.star": "changes",
    }
    assert effect_on(impact, "mart.names").reason == "may have other rows"


def test_a_nullable_column_changes_its_readers(shop: Estate) -> None:
    change = NullabilityChange(dataset="raw.orders", column="order_total", nullable=True)
    assert hurt(shop.lineage.impact([change]))["mart.sums"] == "changes"


def test_a_deprecation_lists_every_consumer_down_the_line_with_its_last_run(shop: Estate) -> None:
    impact = shop.lineage.impact([Deprecation(dataset="raw.orders")])
    assert set(hurt(impact).values()) == {"deprecated"}
    assert len(impact.effects) == 6
    assert all(effect.last_run for effect in impact.effects)


def test_several_changes_at_once_are_one_answer(shop: Estate) -> None:
    impact = shop.lineage.impact([rename(), ColumnDrop(dataset="raw.orders", column="legacy")])
    assert effect_on(impact, "stg.orders").affected_references == ["order_total", "legacy"]
    assert impact.changes == [
        "rename raw.orders.order_total to total",
        "drop raw.orders.legacy",
    ]


def test_an_unknown_table_is_an_error_and_not_a_low_risk(shop: Estate) -> None:
    with pytest.raises(EntityNotFoundError):
        shop.lineage.impact([TableDrop(dataset="raw.ordres")])


def test_an_unknown_column_is_an_error_that_offers_near_ones(shop: Estate) -> None:
    with pytest.raises(EntityNotFoundError) as caught:
        shop.lineage.impact([ColumnDrop(dataset="raw.orders", column="order_totl")])
    assert caught.value.near == ["raw.orders.order_total"]


def test_a_name_that_is_taken_is_an_error(shop: Estate) -> None:
    with pytest.raises(InvalidRequestError, match="already has"):
        shop.lineage.impact([rename(to="legacy")])


def test_a_job_is_no_dataset(shop: Estate) -> None:
    with pytest.raises(InvalidRequestError, match="not a dataset"):
        shop.lineage.impact([TableDrop(dataset="job:db:ids")])


# Ways in which SQL can depend on a column


@pytest.mark.parametrize(
    ("sql", "outcome"),
    [
        ("select id from t order by a", "fails"),
        ("select id from t group by id having max(a) > 1", "fails"),
        ("select id from t join u using (a)", "fails"),
        ("select * exclude (a) from t", "fails"),
        ("select * replace (1 as a) from t", "fails"),
        ("select id, row_number() over (partition by a) n from t", "fails"),
        ("select id from t where exists (select 1 from u where u.a = t.a)", "fails"),
        ("with x as (select * from t) select id, a from x", "fails"),
        ("with x as (select * from t) select id from x", None),
        ("select count(*) n from t", None),
        ("select id from (select * from t) s", None),
        ("select * from t", "changes"),
        ("select * from t union all select * from v", "fails"),
        ("select t.* from t join u on u.id = t.id", "changes"),
    ],
)
def test_dropping_a_column_does_to_a_query_what_it_does_in_a_database(
    estate: Estate, sql: str, outcome: str | None
) -> None:
    estate.table("t", {"id": "int", "a": "int"})
    estate.table("u", {"id": "int", "a": "int", "b": "int"})
    estate.table("v", {"id": "int", "a": "int"})
    estate.sql("query", f"create table result as {sql}")
    impact = estate.lineage.impact([ColumnDrop(dataset="t", column="a")])
    assert hurt(impact) == ({} if outcome is None else {"result": outcome})


def test_a_dropped_column_breaks_a_reader_of_a_table_without_a_schema(estate: Estate) -> None:
    estate.sql("query", "create table result as select a, b from t")
    impact = estate.lineage.impact([ColumnDrop(dataset="t", column="a")])
    assert hurt(impact) == {"result": "fails"}
    assert not impact.complete
    assert impact.blind_spots[0].kind == "no_schema"


def test_columns_of_unknown_tables_pass_through_stars(estate: Estate) -> None:
    estate.sql("first", "create table one as select * from t")
    estate.sql("second", "create table two as select a from one")
    impact = estate.lineage.impact([ColumnDrop(dataset="t", column="a")])
    assert hurt(impact) == {"one": "changes", "two": "fails"}


def test_names_that_did_not_resolve_before_are_not_caused_by_the_change(estate: Estate) -> None:
    estate.table("t", {"id": "int", "a": "int"})
    estate.sql("query", "create table result as select id, rowid_of_some_engine from t")
    assert hurt(estate.lineage.impact([ColumnDrop(dataset="t", column="a")])) == {}


def test_a_change_in_a_cycle_reaches_a_fixed_point(estate: Estate) -> None:
    estate.table("a", {"id": "int", "x": "int"})
    estate.sql("there", "create table b as select * from a")
    estate.sql("back", "insert into a select * from b")
    assert hurt(estate.lineage.impact([LogicChange(dataset="a", columns=["x"])])) == {
        "b": "changes",
        "a": "changes",
    }


def test_a_view_with_a_failing_query_breaks_its_readers(estate: Estate) -> None:
    estate.table("t", {"id": "int", "a": "int"})
    estate.sql("view", "create view v as select id, a from t")
    estate.sql("reader", "create table r as select id from v")
    assert hurt(estate.lineage.impact([ColumnDrop(dataset="t", column="a")])) == {
        "v": "fails",
        "r": "fails",
    }


# Writers


def test_a_required_column_breaks_writers_and_not_readers(estate: Estate) -> None:
    estate.table("t", {"id": "int", "a": "int"})
    estate.table("s", {"id": "int", "a": "int"})
    estate.sql("load", "insert into t (id, a) select id, a from s")
    estate.sql("read", "create table r as select id from t")
    impact = estate.lineage.impact([ColumnAdd(dataset="t", column="b", required=True)])
    assert [(e.name, e.severity.value) for e in impact.effects] == [
        ("t", "breaking"),
        ("r", "warning"),
    ]
    assert effect_on(impact, "t").reason == "does not fill b, which is now required"
    assert effect_on(impact, "r").outcome.value == "not_rebuilt"


def test_an_optional_column_breaks_only_inserts_by_position(estate: Estate) -> None:
    estate.table("t", {"id": "int", "a": "int"})
    estate.table("s", {"id": "int", "a": "int"})
    estate.sql("listed", "insert into t (id, a) select id, a from s")
    estate.sql("positional", "insert into t select id, a from s")
    impact = estate.lineage.impact([ColumnAdd(dataset="t", column="b")])
    assert hurt(impact) == {"positional": "fails"}


def test_postgres_takes_fewer_values_than_columns(estate: Estate) -> None:
    estate.table("t", {"id": "int", "a": "int"})
    estate.table("s", {"id": "int", "a": "int"})
    estate.sql("positional", "insert into t select id, a from s", dialect="postgres")
    assert hurt(estate.lineage.impact([ColumnAdd(dataset="t", column="b")])) == {}


def test_a_writer_that_names_a_renamed_column_fails(estate: Estate) -> None:
    estate.table("t", {"id": "int", "a": "int"})
    estate.table("s", {"id": "int", "a": "int"})
    estate.sql("load", "insert into t (id, a) select id, a from s")
    impact = estate.lineage.impact([ColumnRename(dataset="t", column="a", to="b")])
    assert hurt(impact) == {"t": "fails"}
    assert effect_on(impact, "t").references[0].clause == "write"


# Dialects


@pytest.mark.parametrize(
    ("dialect", "outcome"), [("duckdb", "fails"), ("postgres", "fails"), ("snowflake", "changes")]
)
def test_a_sum_of_text_fails_where_the_dialect_does_not_convert(
    estate: Estate, dialect: str, outcome: str
) -> None:
    estate.table("t", {"id": "int", "a": "int"})
    estate.sql("query", "create table result as select sum(a) as s from t", dialect=dialect)
    impact = estate.lineage.impact([TypeChange(dataset="t", column="a", to="varchar")])
    assert [o for _, o in hurt(impact).items()] == [outcome]


def test_names_are_shown_as_the_catalog_writes_them(estate: Estate) -> None:
    estate.table("t", {"id": "int", "a": "int"})
    estate.table("result", {"a": "int"})
    estate.sql("query", "create table result as select a from t", dialect="snowflake")
    estate.sql("after", "create table last as select a from result", dialect="snowflake")
    impact = estate.lineage.impact([ColumnDrop(dataset="t", column="a")])
    assert effect_on(impact, "LAST").path == ["t.a", "result.a"]
