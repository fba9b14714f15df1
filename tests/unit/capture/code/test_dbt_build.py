"""The settings that decide how dbt builds a model, wherever a project writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from downriver.capture.code.dbt_build import build_settings, inline_config, list_folder_configs
from downriver.capture.scan import Repository, find_projects
from downriver.openlineage.facets.custom import ContractColumn

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("{{ config(materialized='incremental', on_schema_change='fail') }} select 1", "fail"),
        ('{{\n  config(\n    materialized = "incremental",\n    unique_key=["a", "b"],\n'
         '    on_schema_change = "sync_all_columns",\n  )\n}}\nselect 1', "sync_all_columns"),
        ("{{ config(post_hook=f('x'), on_schema_change='ignore') }} select 1", "ignore"),
        ("select 'on_schema_change=\"fail\"' as note", None),
    ],
)  # fmt: skip
def test_settings_are_read_from_the_config_call(sql: str, expected: str | None) -> None:
    assert inline_config(sql).get("on_schema_change") == expected


def test_a_contract_in_the_config_call_is_read() -> None:
    config = inline_config("{{ config(contract={'enforced': true}) }} select 1 as id")
    built = build_settings([config], {"columns": [{"name": "id", "data_type": "int"}]})
    assert built.contract == [ContractColumn("id", "int")]


def test_the_innermost_folder_of_the_project_counts() -> None:
    section = {
        "shop": {
            "+materialized": "view",
            "marts": {"+materialized": "incremental", "daily": {"+on_schema_change": "fail"}},
        }
    }
    *_, marts, daily, orders = list_folder_configs(section, ["shop", "marts", "daily", "orders"])
    assert {**marts, **daily, **orders} == {
        "materialized": "incremental",
        "on_schema_change": "fail",
    }
    assert list(list_folder_configs(section, ["shop", "staging"])) == [
        {},
        {"materialized": "view"},
        {},
    ]


def test_the_model_overrides_its_properties_and_these_override_the_project(tmp_path: Path) -> None:
    (tmp_path / "models" / "marts").mkdir(parents=True)
    (tmp_path / "dbt_project.yml").write_text(
        "name: shop\nmodels:\n  shop:\n    marts:\n      +materialized: table\n"
        "      +contract:\n        enforced: true\n"
    )
    (tmp_path / "models" / "schema.yml").write_text(
        "models:\n  - name: orders\n    config:\n      materialized: incremental\n"
        "      on_schema_change: fail\n    columns:\n      - name: id\n        data_type: bigint\n"
    )
    sql = "{{ config(on_schema_change='append_new_columns') }} select 1 as id"
    (tmp_path / "models" / "marts" / "orders.sql").write_text(sql)
    repository = Repository(tmp_path)
    (project,) = find_projects(repository, list(repository.files()))
    built = project.build_of("models/marts/orders.sql", "orders", sql)
    assert built.materialized == "incremental"
    assert built.on_schema_change == "append_new_columns"
    assert built.contract == [ContractColumn("id", "bigint")]
