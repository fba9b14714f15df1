"""Renames of columns in dbt's YAML: every property that names a column is patched or listed."""

from __future__ import annotations

import pytest

from downriver.impact.fix.yaml_edits import list_mentions, patch_yaml

RENAMED = {
    "column": (
        "models:\n  - name: orders\n    columns:\n      - name: total\n",
        "models:\n  - name: orders\n    columns:\n      - name: amount\n",
    ),
    "expression of a test": (
        "models: [{name: orders, tests: [{dbt_utils.expression_is_true: "
        '{expression: "total >= 0 and subtotal <= total"}}]}]',
        "models: [{name: orders, tests: [{dbt_utils.expression_is_true: "
        '{expression: "amount >= 0 and subtotal <= amount"}}]}]',
    ),
    "columns of a test, nested arguments": (
        "models: [{name: orders, data_tests: [{unique_combination_of_columns: "
        "{arguments: {combination_of_columns: [id, total]}}}]}]",
        "models: [{name: orders, data_tests: [{unique_combination_of_columns: "
        "{arguments: {combination_of_columns: [id, amount]}}}]}]",
    ),
    "source freshness": (
        "sources: [{name: raw, tables: [{name: orders, loaded_at_field: total::timestamp}]}]",
        "sources: [{name: raw, tables: [{name: orders, loaded_at_field: amount::timestamp}]}]",
    ),
    "configuration": (
        "models: [{name: orders, config: {unique_key: [id, total], cluster_by: 'total'}, "
        "columns: [{name: id}]}]",
        "models: [{name: orders, config: {unique_key: [id, amount], cluster_by: 'amount'}, "
        "columns: [{name: id}]}]",
    ),
    "relationship of another model": (
        "models: [{name: items, columns: [{name: total, tests: [{relationships: "
        "{to: ref('orders'), field: total}}]}]}]",
        "models: [{name: items, columns: [{name: total, tests: [{relationships: "
        "{to: ref('orders'), field: amount}}]}]}]",
    ),
    "rows of a unit test": (
        "unit_tests: [{name: t, model: report, given: [{input: ref('orders'), rows: [{id: 1, "
        "total: 2}]}, {input: ref('items'), rows: [{total: 2}]}], expect: {rows: [{total: 2}]}}]",
        "unit_tests: [{name: t, model: report, given: [{input: ref('orders'), rows: [{id: 1, "
        "amount: 2}]}, {input: ref('items'), rows: [{total: 2}]}], expect: {rows: [{total: 2}]}}]",
    ),
    "expected rows of the model's own unit test": (
        "unit_tests: [{name: t, model: orders, given: [], expect: {rows: [{total: 2}]}}]",
        "unit_tests: [{name: t, model: orders, given: [], expect: {rows: [{amount: 2}]}}]",
    ),
    "semantic model": (
        "semantic_models:\n  - name: o\n    model: ref('orders')\n    measures:\n"
        "      - name: revenue\n        expr: total * 2\n      - name: total\n        agg: sum\n",
        "semantic_models:\n  - name: o\n    model: ref('orders')\n    measures:\n"
        "      - name: revenue\n        expr: amount * 2\n      - name: total\n"
        "        expr: amount\n        agg: sum\n",
    ),
}


@pytest.mark.parametrize("name", RENAMED)
def test_a_column_is_renamed_where_yaml_names_it(name: str) -> None:
    before, after = RENAMED[name]
    assert patch_yaml(before, "orders", "total", "amount") == after
    assert list_mentions(before, "orders", "total", patched=True) == []


@pytest.mark.parametrize(
    "text",
    [
        "models: [{name: items, columns: [{name: total}]}]",
        "models: [{name: orders, description: the total, columns: [{name: subtotal}]}]",
        "models: [{name: items, tests: [{expression_is_true: {expression: total > 0}}]}]",
    ],
    ids=["other model", "prose and longer names", "test of another model"],
)
def test_other_columns_of_this_name_stay(text: str) -> None:
    assert patch_yaml(text, "orders", "total", "amount") == text


def test_what_is_not_patched_is_listed_with_its_line() -> None:
    text = "models:\n  - name: orders\n    meta:\n      sla_column: total\n"
    assert patch_yaml(text, "orders", "total", "amount") == text
    assert [(m.line, m.text) for m in list_mentions(text, "orders", "total", patched=True)] == [
        (4, "total")
    ]
    broken = "models:\n  - name: orders\n    columns: [{name: {{ total }}}]\n   x: total\n"
    assert [m.line for m in list_mentions(broken, "orders", "total", patched=True)] == [3, 4]
