"""The likeliest table of an unqualified column, by name conventions and other uses."""

from __future__ import annotations

import pytest

from downriver.columns import find_likeliest


@pytest.mark.parametrize(
    ("column", "tables", "best"),
    [
        ("order_total", ["customers", "orders"], 1),
        ("category_name", ["products", "categories"], 1),
        ("address_line", ["addresses", "people"], 0),
        ("customer_id", ["stg_customers", "stg_payments"], 0),
        ("productid", ["sales", "products"], 1),
        ("cust_name", ["orders", "customers"], 1),
        ("o_orderdate", ["lineitem", "orders"], 1),
        ("ps_supplycost", ["supplier", "partsupp"], 1),
        ("amount", ["orders", "payments"], None),
        ("is_active", ["invoices", "users"], None),
        ("p_name", ["part", "partsupp"], None),
    ],
)
def test_a_prefix_names_the_table(column: str, tables: list[str], best: int | None) -> None:
    assert find_likeliest(column, [("db", table) for table in tables]) == best


def test_an_alias_is_a_prefix_too() -> None:
    assert find_likeliest("ev_name", [("raw_a",), ("raw_b",)], ["x", "ev"]) == 1


def test_a_column_that_is_named_with_its_table_elsewhere_belongs_to_it() -> None:
    tables = [("orders",), ("payments",)]
    assert find_likeliest("amount", tables, uses={("payments",): {"amount"}}) == 1
    assert find_likeliest("order_id", tables, uses={("payments",): {"order_id"}}) == 1
    both = {("payments",): {"amount"}, ("orders",): {"amount"}}
    assert find_likeliest("amount", tables, uses=both) is None
