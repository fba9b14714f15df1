"""Operators and relations: which columns there are, and what decides the rows."""

from __future__ import annotations

import pytest

from downriver.columns import (
    NOTHING,
    Certainty,
    Column,
    DependencyKind,
    Deps,
    Relation,
    Star,
    aggregate,
    compare_rows,
    distinct,
    filter_rows,
    generate,
    join,
    opaque,
    project,
    sort,
    source,
    union,
    union_by_name,
)

ORDERS = Relation([Column(name, source(("orders",), name)) for name in ("id", "amount")])
USERS = Relation([Column(name, source(("users",), name)) for name in ("id", "name")])
UNKNOWN = Relation([Star(("events",))])


def kinds(deps: Deps) -> set[tuple[str, str]]:
    return {(f"{key[0][-1]}.{key[1]}", DependencyKind(key[2]).name) for key in deps}


def test_a_join_has_the_columns_of_all_and_rows_by_its_condition():
    joined = join([ORDERS, USERS], source(("orders",), "id"))
    assert [column.name for column in joined.columns] == ["id", "amount", "id", "name"]
    assert kinds(joined.rows) == {("orders.id", "JOIN")}


@pytest.mark.parametrize(("operator", "kind"), [(filter_rows, "FILTER"), (sort, "SORT")])
def test_conditions_and_orders_decide_rows_and_keep_columns(operator, kind):
    result = operator(ORDERS, source(("orders",), "amount"))
    assert result.items == ORDERS.items
    assert kinds(result.rows) == {("orders.amount", kind)}
    assert ORDERS.rows == NOTHING


def test_an_aggregate_has_rows_by_its_keys():
    total = Column("total", source(("orders",), "amount"))
    result = aggregate(ORDERS, source(("orders",), "id"), [total])
    assert result.columns == [total]
    assert kinds(result.rows) == {("orders.id", "GROUP_BY")}


def test_distinct_compares_every_column_or_its_keys():
    assert kinds(distinct(ORDERS).rows) == {
        ("orders.id", "GROUP_BY"),
        ("orders.amount", "GROUP_BY"),
    }
    keyed = distinct(ORDERS, source(("orders",), "id"))
    assert kinds(keyed.rows) == {("orders.id", "GROUP_BY")}


def test_a_union_goes_by_position_with_the_names_of_the_first():
    result = union([ORDERS, USERS])
    assert [column.name for column in result.columns] == ["id", "amount"]
    assert kinds(result.columns[1].deps) == {
        ("orders.amount", "IDENTITY"),
        ("users.name", "IDENTITY"),
    }


def test_a_union_by_name_merges_columns_of_the_same_name():
    result = union_by_name([ORDERS, USERS])
    assert [column.name for column in result.columns] == ["id", "amount", "name"]
    assert kinds(result.columns[0].deps) == {("orders.id", "IDENTITY"), ("users.id", "IDENTITY")}


def test_a_union_with_an_unknown_table_first_finds_columns_of_both():
    found = union([UNKNOWN, Relation([Star(("archive",))])]).find("id")
    assert found is not None
    assert kinds(found.deps) == {("events.id", "IDENTITY"), ("archive.id", "IDENTITY")}
    assert set(found.deps.values()) == {Certainty.INFERRED}


def test_rows_that_are_removed_decide_rows_but_give_no_values():
    kept = compare_rows(union([ORDERS]), [ORDERS, USERS])
    assert kinds(kept.columns[0].deps) == {("orders.id", "IDENTITY")}
    assert ("users.name", "GROUP_BY") in kinds(kept.rows)


def test_generated_rows_depend_on_their_value():
    rows = generate(["item"], source(("orders",), "items"))
    assert kinds(rows.columns[0].deps) == {("orders.items", "TRANSFORMATION")}
    assert kinds(rows.rows) == {("orders.items", "JOIN")}


def test_generated_rows_without_names_have_any_column():
    rows = generate([], source(("orders",), "items"))
    assert rows.open
    found = rows.find("anything")
    assert found is not None
    assert kinds(found.deps) == {("orders.items", "TRANSFORMATION")}


def test_opaque_code_may_use_every_input_column():
    result = opaque([filter_rows(ORDERS, source(("orders",), "id"))], ["score"])
    assert kinds(result.columns[0].deps) == {
        ("orders.id", "TRANSFORMATION"),
        ("orders.amount", "TRANSFORMATION"),
    }
    assert kinds(result.rows) == {("orders.id", "FILTER")}


def test_a_column_of_two_unknown_tables_is_ambiguous():
    found = join([UNKNOWN, Relation([Star(("users",))])]).find("id")
    assert found is not None
    assert set(found.deps.values()) == {Certainty.AMBIGUOUS}


def test_a_dropped_column_is_not_found_whatever_its_case():
    relation = UNKNOWN.without(["Secret"])
    assert relation.find("secret") is None
    assert relation.find("id") is not None


def test_columns_are_found_by_name_in_any_case_and_by_number():
    relation = project(ORDERS, [Column("Id", NOTHING, number=7)])
    assert relation.find("id") is relation.find_number(7)


def test_columns_are_added_replaced_renamed_and_dropped():
    relation = ORDERS.with_column("AMOUNT", NOTHING).renamed_columns({"id": "order_id"})
    assert [column.name for column in relation.columns] == ["order_id", "AMOUNT"]
    assert [column.name for column in relation.without(["Order_ID"]).columns] == ["AMOUNT"]


def test_renaming_a_column_of_an_unknown_table_drops_its_old_name():
    relation = UNKNOWN.renamed_columns({"id": "event_id"})
    found = relation.find("event_id")
    assert found is not None
    assert kinds(found.deps) == {("events.id", "IDENTITY")}
    assert relation.find("id") is None


def test_relations_are_equal_by_content():
    assert filter_rows(ORDERS, NOTHING) == ORDERS
    assert ORDERS != USERS
    assert Relation([Star(("events",))]) == UNKNOWN


def struct(table: tuple[str, ...], **fields: str) -> Column:
    parts = {name: Column(name, source(table, column)) for name, column in fields.items()}
    deps = {key: certainty for part in parts.values() for key, certainty in part.deps.items()}
    return Column("s", deps, fields=parts)


def test_a_union_of_structs_unites_them_field_by_field():
    t, u = struct(("t",), a="x", b="y"), struct(("u",), a="p", b="q")
    (column,) = union([Relation([t]), Relation([u])]).columns
    assert column.fields is not None
    assert column.fields["a"].deps == {**source(("t",), "x"), **source(("u",), "p")}
    assert column.fields["b"].deps == {**source(("t",), "y"), **source(("u",), "q")}


def test_a_union_with_a_value_that_is_no_struct_has_no_fields():
    other = Column("s", source(("u",), "p"))
    (column,) = union([Relation([struct(("t",), a="x")]), Relation([other])]).columns
    assert column.fields is None
    assert column.deps == {**source(("t",), "x"), **source(("u",), "p")}
