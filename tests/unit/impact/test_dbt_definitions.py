"""Columns that dbt's definitions and generic tests name: each is a reference, or not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.impact.test_base import checkout, write

from downriver.capture.code.dbt_resources import list_filters, list_semantic_fields
from downriver.impact import list_changed_files, open_trees
from downriver.service import Lineage

if TYPE_CHECKING:
    from pathlib import Path

    from downriver.model.verdicts import Impact

SEMANTICS = """
semantic_models:
  - name: orders
    model: ref('orders')
    entities:
      - {name: order, type: primary, expr: id}
    dimensions:
      - {name: state, type: categorical, expr: status}
    measures:
      - {name: total, agg: sum}
metrics:
  - name: total
    type: simple
    type_params: {measure: total}
"""
FILES = {
    "dbt_project.yml": "name: shop\nprofile: shop\n",
    "models/orders.sql": "select id, total, status from raw.orders\n",
    "models/semantics.yml": SEMANTICS,
}
EDIT = {"models/orders.sql": "select id, total, upper(status) as status from raw.orders\n"}


def impact_of(folder: Path, files: dict[str, str], edit: dict[str, str]) -> Impact:
    repository = checkout(folder / "repo", files)
    write(repository, edit)
    pairs, unread = list_changed_files(repository, "HEAD", None)
    with Lineage.open(":memory:") as lineage, open_trees(repository, "HEAD", None) as trees:
        return lineage.impact.of_files(pairs, trees, unread)


FILTERED = {
    "filter of a metric": """  - name: paid
    type: simple
    type_params: {measure: total}
    filter: "{{ Dimension('order__state') }} = 'paid'"
""",
    "list of filters": """  - name: paid
    type: simple
    type_params: {measure: total}
    filter:
      - "{{ TimeDimension('metric_time', 'day') }} > '2024-01-01'"
      - |
        {{ Dimension('order__state') }} = 'paid'
""",
    "filter of a measure": """  - name: paid
    type: simple
    type_params:
      measure: {name: total, filter: "{{ Dimension('order__state') }} = 'paid'"}
""",
    "filter of an input metric": """  - name: paid
    type: derived
    type_params:
      expr: total
      metrics: [{name: total, filter: "{{ Dimension('order__state') }} = 'paid'"}]
""",
    "where of a saved query": """saved_queries:
  - name: paid
    query_params:
      metrics: [total]
      where: ["{{ Dimension('order__state') }} = 'paid'"]
""",
    "group of a saved query": """saved_queries:
  - name: paid
    query_params:
      metrics: [total]
      group_by: ["Dimension('order__state')"]
""",
}


@pytest.mark.parametrize("case", FILTERED)
def test_a_filter_uses_the_dimension_that_it_names(case: str, tmp_path: Path) -> None:
    files = {**FILES, "models/semantics.yml": f"{SEMANTICS}{FILTERED[case]}"}
    found = impact_of(tmp_path, files, EDIT)
    affected = {effect.name: effect for effect in found.effects}
    (name,) = {name for name in affected if name.endswith(".paid")}
    assert any(r.column == "state" for r in affected[name].references), affected[name]
    assert "metric.total" not in affected, "it does not use the dimension"
    assert found.complete


def test_a_dimension_that_no_semantic_model_has_is_a_blind_spot(tmp_path: Path) -> None:
    metric = FILTERED["filter of a metric"].replace("order__state", "order__region")
    files = {**FILES, "models/semantics.yml": f"{SEMANTICS}{metric}"}
    found = impact_of(
        tmp_path,
        files,
        {"models/orders.sql": "select id, total + 1 as total, status from raw.orders"},
    )
    assert not found.complete
    assert any("region" in spot.message for spot in found.blind_spots)


def test_filters_of_a_manifest_are_found() -> None:
    raw = {"filter": {"where_filters": [{"where_sql_template": "{{ Dimension('a__b__c') }} = 1"}]}}
    (condition,) = list_filters(raw)
    assert list_semantic_fields(condition) == [("b", "c")]


GENERIC = {
    "tests/generic/later.sql": "{% test later(model, column_name, than) %}\n"
    "select * from {{ model }} where {{ column_name }} < {{ than }}\n{% endtest %}\n",
    "macros/sums.sql": "{% test adds_up(model, parts, whole) %}\nselect 1 from {{ model }} where "
    "{% for p in parts %}{{ p }} + {% endfor %}0 <> {{ whole }}\n{% endtest %}\n",
    "macros/labelled.sql": "{% test labelled(model, column_name, label) %}\n"
    "select * from {{ model }} where {{ column_name }} = '{{ label }}'\n{% endtest %}\n",
    "models/orders.sql": "select id, total, tax, net, status from raw.orders\n",
}
TESTS = {
    "column test": ("columns: [{name: total, tests: [{later: {than: tax}}]}]", True),
    "arguments apart": (
        "columns: [{name: total, data_tests: [{later: {arguments: {than: tax}}}]}]",
        True,
    ),
    "list of columns": ("tests: [{adds_up: {parts: [net, tax], whole: total}}]", True),
    "text in quotes": ("columns: [{name: total, tests: [{labelled: {label: tax}}]}]", False),
}


@pytest.mark.parametrize("case", TESTS)
def test_the_macro_of_a_generic_test_decides_which_arguments_are_columns(
    case: str, tmp_path: Path
) -> None:
    tested, breaks = TESTS[case]
    properties = f"models:\n  - name: orders\n    {tested}\n"
    files = {**FILES, **GENERIC, "models/orders.yml": properties}
    edit = {"models/orders.sql": "select id, total, net, status from raw.orders\n"}
    found = impact_of(tmp_path, files, edit)
    assert bool(found.breaking) is breaks, found
    if breaks:
        (effect,) = found.breaking
        assert {(r.path, r.line, r.column) for r in effect.references} == {
            ("models/orders.yml", 3, "tax")
        }
