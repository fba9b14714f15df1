"""The oracle of `bench.sql_oracle` on a few statements, and on wrong lineage."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest
from bench.sql_databases import DATABASES
from bench.sql_execution import Case, StatementRunner, read_cases
from bench.sql_oracle import Effort, Verdict, judge

from downriver.capture.sql import ColumnEdge, ColumnRef, SqlLineage, parse_sql_lineage

CASES = {case.name: case for case in read_cases()}
EFFORT = Effort(kinds=5, rounds=1, extra=0)


@pytest.fixture(scope="module")
def shop() -> StatementRunner:
    return StatementRunner(DATABASES["shop"]())


def read(shop: StatementRunner, sql: str) -> SqlLineage:
    return parse_sql_lineage(sql, dialect="duckdb", schema=shop.database.schema)


def ask(shop: StatementRunner, sql: str, lineage: SqlLineage | None = None) -> Verdict:
    return judge(shop, Case("test", "test", "shop", sql), EFFORT, lineage)


@pytest.mark.parametrize(
    "name",
    [
        "columns_by_pattern_written_out",
        "first_and_last_value",
        "group_by_all_with_case",
        "join_using_star_key_in_the_middle",
        "limit_from_a_subquery",
        "mixed_chain",
        "order_by_alias_that_hides_a_column",
        "order_by_all",
        "pivot_two_columns",
        "recursive_cte_tree",
        "script_merge_then_read",
        "struct_field_by_key",
        "union_ordered_by_position",
        "unnest_in_select",
        "unpivot_standard",
    ],
)
def test_every_change_of_an_output_has_an_edge(shop: StatementRunner, name: str) -> None:
    verdict = judge(shop, CASES[name], EFFORT)
    assert (verdict.missed, verdict.problems) == ([], [])
    assert verdict.changes > 0


def test_statements_have_unique_names() -> None:
    cases = read_cases()
    assert [name for name, n in Counter(case.name for case in cases).items() if n > 1] == []
    topics = Counter(case.topic for case in cases)
    assert topics["tpch"] == 22
    assert len(cases) - topics["tpch"] >= 100


def test_a_missing_edge_is_reported_as_missed(shop: StatementRunner) -> None:
    sql = "select order_id, amount * 2 as doubled from orders where status = 'paid'"
    lineage = read(shop, sql)
    without_value = msgspec.structs.replace(
        lineage.statements[0],
        column_edges=[e for e in lineage.statements[0].column_edges if e.source.column != "amount"],
    )
    without_filter = msgspec.structs.replace(lineage.statements[0], dataset_edges=[])
    assert ask(shop, sql).missed == []
    lineage.statements = [without_value]
    assert ask(shop, sql, lineage).missed == ["orders.amount → doubled"]
    lineage.statements = [without_filter]
    assert set(ask(shop, sql, lineage).missed) == {
        "orders.status → order_id",
        "orders.status → doubled",
    }


def test_an_edge_that_no_change_shows_is_counted(shop: StatementRunner) -> None:
    sql = "select order_id, amount from orders"
    lineage = read(shop, sql)
    bogus = ColumnEdge(
        source=ColumnRef("orders", "note"),
        target=ColumnRef("", "amount"),
        type="INDIRECT",
        subtype="CONDITIONAL",
    )
    lineage.statements[0].column_edges.append(bogus)
    verdict = ask(shop, sql, lineage)
    assert [(e.source, e.target, e.group) for e in verdict.unseen] == [
        ("orders.note", "amount", "INDIRECT")
    ]
    assert verdict.reported == {"DIRECT": 2, "INDIRECT": 1, "ROWS": 0}


def test_an_unchanged_value_needs_a_direct_edge(shop: StatementRunner) -> None:
    sql = "select city from customers"
    lineage = read(shop, sql)
    (edge,) = lineage.statements[0].column_edges
    steers = msgspec.structs.replace(edge, type="INDIRECT", subtype="CONDITIONAL")
    lineage.statements[0].column_edges = [steers]
    assert ask(shop, sql, lineage).missed == ["customers.city → city, as it is"]


def test_an_identity_edge_that_changes_the_value_is_a_problem(shop: StatementRunner) -> None:
    sql = "select upper(city) as city from customers"
    lineage = read(shop, sql)
    (edge,) = lineage.statements[0].column_edges
    lineage.statements[0].column_edges = [msgspec.structs.replace(edge, subtype="IDENTITY")]
    (problem,) = ask(shop, sql, lineage).problems
    assert problem.startswith("city has only IDENTITY edges but contains")


def test_a_change_of_value_pairs_is_seen(shop: StatementRunner) -> None:
    sql = "select order_id, rank() over (order by amount, order_id) as place from orders"
    lineage = read(shop, sql)
    lineage.statements[0].column_edges = [
        e for e in lineage.statements[0].column_edges if e.source.column != "amount"
    ]
    assert ask(shop, sql, lineage).missed == ["orders.amount → which rows there are"]


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("select order_id from orders limit 3", "depends on the order in which rows are stored"),
        ("select order_id from orders where amount < 0", "the query has no rows"),
        ("select nothing from orders", "does not run"),
    ],
)
def test_a_statement_without_changes_is_rejected(
    shop: StatementRunner, sql: str, problem: str
) -> None:
    assert any(text.startswith(problem) for text in ask(shop, sql).problems)
