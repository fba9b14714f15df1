"""Edits of dbt settings, packages, definitions and macros are judged, or reported as not read."""

from __future__ import annotations

import subprocess
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.unit.impact.test_base import DBT, checkout, commit, write

from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from downriver.impact import Policy
    from downriver.model.verdicts import Verdict

SEMANTICS = """
semantic_models:
  - name: orders
    model: ref('revenue')
    entities: [{name: id, type: primary}]
    dimensions: [{name: x, type: categorical, expr: id}]
    measures: [{name: total, agg: sum}]
metrics:
  - name: big_total
    label: Big
    type: simple
    type_params: {measure: total}
    filter: "{{ Dimension('id__x') }} > 1"
exposures:
  - name: board
    type: dashboard
    owner: {name: ana}
    depends_on: [ref('by_status')]
"""
INCREMENTAL = """{{ config(materialized='incremental', unique_key='id') }}
select id, total, status from {{ source('raw', 'orders') }}
{% if is_incremental() %}where id > 5{% else %}where id > 0{% endif %}
"""
MACROS = """{% macro today() %}{{ return(adapter.dispatch('today')()) }}{% endmacro %}
{% macro default__today() %}now(){% endmacro %}
{% macro bigquery__today() %}current_timestamp(){% endmacro %}
"""
BRANCHES = """select id, {% if target.type == 'fabric' %}{% if execute %}getdate() as day{% endif %}
{% elif target.type == 'redshift' %}getdate() as day
{% else %}{{ today() }} as day{% endif %}
from {{ ref('revenue') }}
"""
PROPERTIES = """models:
  - name: revenue
    config: {materialized: table}
    columns: [{name: id, data_type: int}, {name: total, data_type: int}]
"""
PACKAGES = "packages:\n  - package: dbt-labs/dbt_utils\n    version: 1.1.1\n"
PROJECT = DBT["dbt_project.yml"]
FILES = {
    **DBT,
    "models/semantics.yml": SEMANTICS,
    "models/schema.yml": PROPERTIES,
    "models/inc.sql": INCREMENTAL,
    "models/after_inc.sql": "select id from {{ ref('inc') }}",
    "models/timed.sql": "select id, {{ today() }} as at from {{ ref('revenue') }}",
    "macros/adapter.sql": MACROS,
    "seeds/countries.csv": "code,name\nDE,Germany\n",
    "models/countries_used.sql": "select code from {{ ref('countries') }}",
}


class Case(NamedTuple):
    """An edit, the decision, and the rule that decides."""

    edit: dict[str, str | None]
    decision: str
    rule: str
    files: Mapping[str, str] = MappingProxyType({})


def of_project(text: str, decision: str, rule: str) -> Case:
    return Case({"dbt_project.yml": PROJECT + text}, decision, rule)


def of_model(old: str, new: str, decision: str, rule: str) -> Case:
    return Case({"models/inc.sql": INCREMENTAL.replace(old, new)}, decision, rule)


def of_properties(old: str, new: str, decision: str, rule: str) -> Case:
    return Case({"models/schema.yml": PROPERTIES.replace(old, new)}, decision, rule)


def of_semantics(old: str, new: str, decision: str, rule: str) -> Case:
    return Case({"models/semantics.yml": SEMANTICS.replace(old, new)}, decision, rule)


BLOCKED, CAUTION, APPROVED = "BLOCKED", "CAUTION", "APPROVED"
BREAKS, UNREAD, CHANGES = "breaking_consumers", "unread_files", "changed_consumers"
DEFINITIONS, NOTHING = "edited_definitions", "nothing_affected"
REMOVED = "removed_datasets"
CASES = {
    # The semantic layer
    "metric renamed": of_semantics("big_total", "large_total", CAUTION, DEFINITIONS),
    "metric filter": of_semantics("> 1", "> 2", CAUTION, DEFINITIONS),
    "metric label": of_semantics("label: Big", "label: Large", APPROVED, NOTHING),
    "metric removed": Case(
        {"models/semantics.yml": SEMANTICS.split("metrics:")[0]}, CAUTION, DEFINITIONS
    ),
    "measure aggregated otherwise": of_semantics("agg: sum", "agg: max", CAUTION, CHANGES),
    "exposure removed": Case(
        {"models/semantics.yml": SEMANTICS.split("exposures:")[0]}, APPROVED, NOTHING
    ),
    # Packages
    "package version": Case(
        {"packages.yml": PACKAGES.replace("1.1.1", "1.3.0")},
        CAUTION,
        UNREAD,
        {"packages.yml": PACKAGES},
    ),
    "package removed": Case(
        {"packages.yml": "packages: []\n"}, CAUTION, UNREAD, {"packages.yml": PACKAGES}
    ),
    "package added": Case({"packages.yml": PACKAGES}, APPROVED, NOTHING),
    # The project file
    "project materialization": of_project(
        "models:\n  shop:\n    +materialized: incremental\n", CAUTION, CHANGES
    ),
    "project view to table": of_project(
        "models:\n  shop:\n    +materialized: table\n", APPROVED, NOTHING
    ),
    "project schema": of_project("models:\n  shop:\n    +schema: other\n", CAUTION, UNREAD),
    "project disabled": of_project("models:\n  shop:\n    +enabled: false\n", BLOCKED, BREAKS),
    "project tags": of_project("models:\n  shop:\n    +tags: [daily]\n", APPROVED, NOTHING),
    "project quoting": of_project("quoting: {identifier: true}\n", CAUTION, UNREAD),
    "profile": Case({"profiles.yml": "shop: {target: dev}\n"}, CAUTION, UNREAD),
    "project version": of_project("version: '2'\n", APPROVED, NOTHING),
    "project folders": of_project("model-paths: [models, more]\n", CAUTION, UNREAD),
    "project unused variable": of_project("vars: {since: 2020}\n", APPROVED, NOTHING),
    "project variable of a package": Case(
        {"dbt_project.yml": PROJECT + "vars: {since: 2020}\n"},
        CAUTION,
        UNREAD,
        {"packages.yml": PACKAGES},
    ),
    # Property files
    "contract that fits": of_properties(
        "materialized: table", "contract: {enforced: true}", APPROVED, NOTHING
    ),
    "contract without a column": Case(
        {
            "models/schema.yml": PROPERTIES.replace(
                "table}", "table, contract: {enforced: true}}"
            ).replace(", {name: total, data_type: int}", "")
        },
        BLOCKED,
        BREAKS,
    ),
    "model disabled": of_properties("materialized: table", "enabled: false", BLOCKED, BREAKS),
    "last model disabled": Case(
        {"models/after_inc.sql": "{{ config(enabled=false) }} select id from {{ ref('inc') }}"},
        CAUTION,
        REMOVED,
    ),
    "model disabled with its readers": Case(
        {
            "models/inc.sql": INCREMENTAL.replace("(", "(enabled=false, ", 1),
            "models/after_inc.sql": "{{ config(enabled=False) }} select id from {{ ref('inc') }}",
        },
        CAUTION,
        REMOVED,
    ),
    "model disabled with its tests": Case(
        {"models/after_inc.sql": "{{ config(enabled=false) }} select id from {{ ref('inc') }}"},
        CAUTION,
        REMOVED,
        {
            "models/after.yml": "models:\n  - name: after_inc\n"
            "    columns: [{name: id, data_tests: [unique]}]\n"
        },
    ),
    "column of a disabled reader": Case(
        {"models/wide.sql": "select id from {{ source('raw', 'orders') }}"},
        APPROVED,
        NOTHING,
        {
            "models/wide.sql": "select id, status from {{ source('raw', 'orders') }}",
            "models/off.sql": "{{ config(enabled=false) }} select status from {{ ref('wide') }}",
        },
    ),
    "option that turns a model off is computed": Case(
        {"models/inc.sql": INCREMENTAL.replace("(", "(enabled=false, ", 1)},
        BLOCKED,
        BREAKS,
        {
            "models/after_inc.sql": "{{ config(enabled=var('all', true)) }}"
            " select id from {{ ref('inc') }}"
        },
    ),
    "model alias": of_properties("materialized: table", "alias: income", CAUTION, UNREAD),
    "unknown option": of_properties("table}", "table, row_access: x}", CAUTION, UNREAD),
    "latest version": of_properties(
        "- name: revenue", "- name: revenue\n    latest_version: 2", CAUTION, UNREAD
    ),
    "description": of_properties(
        "- name: revenue", "- name: revenue\n    description: all", APPROVED, NOTHING
    ),
    "tests": of_properties("{name: id,", "{name: id, data_tests: [unique],", APPROVED, NOTHING),
    # The config call of a model
    "unique key": of_model("unique_key='id'", "unique_key='total'", CAUTION, CHANGES),
    "incremental to table": of_model("materialized='incremental', ", "", CAUTION, CHANGES),
    "to ephemeral": Case(
        {
            "models/revenue.sql": "{{ config(materialized='ephemeral') }}"
            + DBT["models/revenue.sql"]
        },
        CAUTION,
        UNREAD,
    ),
    "schema": of_model("unique_key='id'", "unique_key='id', schema='mart'", CAUTION, UNREAD),
    "tags": of_model("unique_key='id'", "unique_key='id', tags=['daily']", APPROVED, NOTHING),
    "hook": of_model(
        "unique_key='id'", "unique_key='id', post_hook='delete from {{ this }}'", CAUTION, UNREAD
    ),
    "other branch of a condition": of_model("id > 0", "id > 1", CAUTION, CHANGES),
    # Macros
    "macro of one adapter": Case(
        {"macros/adapter.sql": MACROS.replace("current_timestamp()", "current_date()")},
        CAUTION,
        UNREAD,
    ),
    "default macro": Case(
        {"macros/adapter.sql": MACROS.replace("}now()", "}now() + 1")}, CAUTION, CHANGES
    ),
    "variable in a call of an unknown macro": Case(
        {"dbt_project.yml": PROJECT + "vars: {prefix: b}\n"},
        CAUTION,
        CHANGES,
        {
            "dbt_project.yml": PROJECT + "vars: {prefix: a}\n",
            "models/named.sql": "select {{ other.cut(var('prefix')) }} from {{ ref('revenue') }}",
        },
    ),
    "variable in a part that is not rendered": Case(
        {"dbt_project.yml": PROJECT + "vars: {prefix: b}\n"},
        CAUTION,
        UNREAD,
        {
            "dbt_project.yml": PROJECT + "vars: {prefix: a}\n",
            "models/named.sql": "select {{ other.cut() }} {% if var('wide', false) %}"
            ", {{ var('prefix') }} as p{% endif %} from {{ ref('revenue') }}",
        },
    ),
    "branch of a template that another warehouse takes": Case(
        {"models/branches.sql": BRANCHES.replace("{{ today() }} as day", "{{ today() }} as date")},
        BLOCKED,
        BREAKS,
        {
            "models/branches.sql": BRANCHES,
            "models/of_branches.sql": "select day from {{ ref('branches') }}",
        },
    ),
    "value in a branch that another warehouse takes": Case(
        {"models/branches.sql": BRANCHES.replace("{{ today() }} as", "{{ today() }} + 1 as")},
        CAUTION,
        CHANGES,
        {
            "models/branches.sql": BRANCHES,
            "models/of_branches.sql": "select day from {{ ref('branches') }}",
        },
    ),
    "macro that dbt calls": Case(
        {"macros/names.sql": "{% macro generate_schema_name(n, node) %}x{% endmacro %}"},
        CAUTION,
        UNREAD,
    ),
    "new macro": Case(
        {"macros/new.sql": "{% macro half(c) %}{{ c }} / 2{% endmacro %}"}, APPROVED, NOTHING
    ),
    "macro without a caller": Case(
        {"macros/lost.sql": "{% macro lost() %}2{% endmacro %}"},
        CAUTION,
        UNREAD,
        {"macros/lost.sql": "{% macro lost() %}1{% endmacro %}"},
    ),
    # Names that no longer exist
    "macro removed": Case({"macros/money.sql": None}, BLOCKED, BREAKS),
    "source removed": Case({"models/sources.yml": "sources: []\n"}, BLOCKED, BREAKS),
    "model renamed": Case(
        {"models/stg_orders.sql": None, "models/stg_order.sql": DBT["models/stg_orders.sql"]},
        BLOCKED,
        BREAKS,
    ),
    "model moved": Case(
        {
            "models/stg_orders.sql": None,
            "models/staging/stg_orders.sql": DBT["models/stg_orders.sql"],
        },
        APPROVED,
        NOTHING,
    ),
    "seed removed": Case({"seeds/countries.csv": None}, BLOCKED, BREAKS),
    "seed in a folder of the project file": Case(
        {"data/rates.csv": "code\nDE\n"},
        BLOCKED,
        BREAKS,
        {
            "dbt_project.yml": PROJECT + "seed-paths: [data]\n",
            "data/rates.csv": "code,rate\nDE,1\n",
            "models/rated.sql": "select rate from {{ ref('rates') }}",
        },
    ),
    "prose without a suffix": Case(
        {"CHANGELOG": "Fix alter table orders drop column total\n"},
        APPROVED,
        NOTHING,
        {"CHANGELOG": "First\n"},
    ),
    "reference to no model": Case(
        {"models/revenue.sql": DBT["models/revenue.sql"].replace("stg_orders", "stg_order")},
        BLOCKED,
        BREAKS,
    ),
    "reference in a comment": Case(
        {"models/revenue.sql": DBT["models/revenue.sql"] + "{# {{ ref('stg_order') }} #}"},
        APPROVED,
        NOTHING,
    ),
}


def judge(
    folder: Path, base: str = "HEAD", head: str | None = None, policy: Policy | None = None
) -> Verdict:
    with Lineage.open(":memory:") as lineage:
        return lineage.impact.gate(lineage.impact.of_commits(folder, base, head), policy)


@pytest.mark.parametrize("name", CASES)
def test_an_edit_of_dbt_settings_is_judged_or_reported(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    folder = checkout(tmp_path / "repo", {**FILES, **case.files})
    write(folder, case.edit)
    found = judge(folder)
    assert (found.decision.value, found.decided_by) == (case.decision, case.rule), found.reason
    assert found.impact.complete == (not found.impact.unread and not found.impact.blind_spots)


def test_a_setting_is_reported_with_its_line_and_its_models(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "repo", FILES)
    write(folder, {"dbt_project.yml": PROJECT + "models:\n  shop:\n    +schema: mart\n"})
    (unread,) = judge(folder).impact.unread
    assert unread.location == "dbt_project.yml:5"
    assert "schema: not set -> mart: the table is built in another place" in unread.detail
    assert "more" in unread.detail  # one line for all models


def test_a_broken_reference_names_its_line(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "repo", FILES)
    write(folder, {"macros/money.sql": None})
    (broken,) = judge(folder).impact.breaking
    assert broken.reason == "calls macro cents, which no longer exists"
    assert [(r.path, r.line) for r in broken.references] == [("models/in_cents.sql", 1)]


def test_a_file_whose_content_git_does_not_have_is_not_approved(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "repo", FILES)
    shown = subprocess.run(
        ["git", "rev-parse", "HEAD:seeds/countries.csv"],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    commit(folder, {"seeds/countries.csv": "code\nDE\n"})
    (folder / ".git" / "objects" / shown[:2] / shown[2:]).unlink()
    found = judge(folder, "HEAD~1", "HEAD")
    assert (found.decision.value, found.decided_by) == (CAUTION, UNREAD)
    assert [unread.reason.value for unread in found.impact.unread] == ["base_unread"]
