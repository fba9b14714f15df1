"""What dbt does at build time: enforced contracts, and incremental models whose query changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.unit.impact.estate import Estate, effect_on, facet, hurt

from downriver.impact import FilePair
from downriver.model.changes import ColumnAdd, ColumnDrop, ColumnRename, TypeChange

if TYPE_CHECKING:
    from downriver.model.changes import Change
    from downriver.model.verdicts import Effect, Impact

COLUMNS = {"id": "integer", "amount": "integer", "note": "varchar"}


def model(estate: Estate, query: str, **build: Any) -> None:
    """Register a dbt model `orders` over the table `raw`, and a reader of its `amount`."""
    estate.table("raw", COLUMNS)
    facets = {
        "jobType": facet(integration="DBT", jobType="MODEL", processingType="BATCH"),
        "sql": facet(query=query, dialect="duckdb"),
        "downriver_code": facet(path="models/orders.sql", line=1),
        "downriver_build": facet(**build),
    }
    estate.job("orders", ["raw"], ["orders"], facets=facets)
    estate.sql("reader", "create table totals as select sum(amount) as total from orders")


def impact_of(estate: Estate, change: Change) -> Impact:
    return estate.lineage.impact([change])


def contract(*names: str, **types: str) -> list[dict[str, str]]:
    return [{"name": name, "type": types.get(name, "")} for name in names]


DROP = ColumnDrop(dataset="raw", column="amount")


def test_a_column_dropped_under_an_enforced_contract_fails_the_run(estate: Estate) -> None:
    model(estate, "select * from raw", contract=contract("id", "amount", "note"))
    impact = impact_of(estate, DROP)
    assert hurt(impact) == {"orders": "fails", "totals": "not_rebuilt"}
    assert effect_on(impact, "orders").reason == "its enforced contract has amount"


def test_without_a_contract_the_model_runs_and_its_reader_fails(estate: Estate) -> None:
    model(estate, "select * from raw")
    assert hurt(impact_of(estate, DROP)) == {"orders": "changes", "totals": "fails"}


def test_a_column_that_the_contract_does_not_list_fails_the_run(estate: Estate) -> None:
    model(estate, "select * from raw", contract=contract("id", "amount", "note"))
    impact = impact_of(estate, ColumnAdd(dataset="raw", column="extra", data_type="integer"))
    assert effect_on(impact, "orders").reason == "its enforced contract does not have extra"


def test_a_type_that_the_contract_does_not_have_fails_the_run(estate: Estate) -> None:
    columns = contract("id", "amount", "note", amount="integer")
    model(estate, "select * from raw", contract=columns)
    impact = impact_of(estate, TypeChange(dataset="raw", column="amount", to="varchar"))
    assert effect_on(impact, "orders").reason == "its enforced contract has amount as integer"


def test_a_contract_that_the_query_keeps_is_no_error(estate: Estate) -> None:
    query = "select id, cast(amount as integer) as amount, note from raw"
    model(estate, query, contract=contract("id", "amount", "note", amount="integer"))
    impact = impact_of(estate, TypeChange(dataset="raw", column="amount", to="bigint"))
    assert "orders" not in hurt(impact)


def incremental(estate: Estate, setting: str, change: Change) -> tuple[Effect, dict[str, str]]:
    model(estate, "select * from raw", materialized="incremental", onSchemaChange=setting)
    impact = impact_of(estate, change)
    return effect_on(impact, "orders"), hurt(impact)


@pytest.mark.parametrize("setting", ["", "ignore"])
def test_by_default_an_incremental_model_that_lost_a_column_fails(
    estate: Estate, setting: str
) -> None:
    effect, outcomes = incremental(estate, setting, DROP)
    assert outcomes == {"orders": "fails", "totals": "not_rebuilt"}
    assert effect.reason == (
        "inserts into a table that has amount, which its query no longer outputs"
    )


def test_by_default_a_new_column_is_not_added(estate: Estate) -> None:
    model(estate, "select * from raw", materialized="incremental")
    change = ColumnAdd(dataset="raw", column="extra", data_type="integer")
    assert hurt(impact_of(estate, change)) == {}


@pytest.mark.parametrize(
    "change",
    [
        DROP,
        ColumnRename(dataset="raw", column="amount", to="total"),
        ColumnAdd(dataset="raw", column="extra", data_type="integer"),
        TypeChange(dataset="raw", column="amount", to="varchar"),
    ],
)
def test_with_fail_any_other_column_fails_the_run(estate: Estate, change: Change) -> None:
    effect, _ = incremental(estate, "fail", change)
    assert effect.outcome.value == "fails"
    assert effect.reason.startswith("on_schema_change is fail, and its query changes ")


def test_with_append_a_lost_column_stays_and_is_null_in_new_rows(estate: Estate) -> None:
    effect, outcomes = incremental(estate, "append_new_columns", DROP)
    assert outcomes == {"orders": "changes", "totals": "changes"}
    assert effect.reason.endswith("append_new_columns keeps amount, null in new rows")


def test_with_sync_a_lost_column_is_dropped_with_its_data(estate: Estate) -> None:
    effect, outcomes = incremental(estate, "sync_all_columns", DROP)
    assert outcomes == {"orders": "changes", "totals": "fails"}
    (reader,) = [e for e in impact_of(estate, DROP).effects if e.name == "totals"]
    assert reader.severity.value == "breaking"
    assert "DROP COLUMN amount: data loss in all existing rows" in effect.reason


def test_with_sync_a_renamed_column_is_dropped_and_added(estate: Estate) -> None:
    change = ColumnRename(dataset="raw", column="amount", to="total")
    effect, outcomes = incremental(estate, "sync_all_columns", change)
    assert outcomes["totals"] == "fails"
    assert "DROP COLUMN amount" in effect.reason


@pytest.mark.parametrize(
    ("setting", "outcome"),
    [("fail", "fails"), ("sync_all_columns", "changes"), ("ignore", "fails")],
)
def test_an_edit_of_the_model_itself_is_judged_by_its_build(
    estate: Estate, setting: str, outcome: str
) -> None:
    model(estate, "select id, amount from raw", materialized="incremental", onSchemaChange=setting)
    edit = FilePair("models/orders.sql", "select id, amount from raw", "select id from raw")
    impact = estate.lineage.impact.of_files([edit])
    assert hurt(impact)["orders"] == outcome
