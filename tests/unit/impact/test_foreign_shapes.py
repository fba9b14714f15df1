"""Edits in shapes that other projects use: each is a change, or is reported as not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.impact.estate import effect_on, hurt
from tests.unit.impact.test_base import checkout, write
from tests.unit.impact.test_dbt_definitions import impact_of

from downriver.impact import list_changed_files

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = {
    "dbt_project.yml": "name: shop\nprofile: shop\n",
    "models/sources.yml": "sources:\n  - {name: raw, tables: [{name: orders}]}\n",
    "models/stg_orders.sql": "select id, total, status, changed_at "
    "from {{ source('raw', 'orders') }}\n",
}
WITHOUT_STATUS = {
    "models/stg_orders.sql": "select id, total, changed_at from {{ source('raw', 'orders') }}\n"
}
TWO_SNAPSHOTS = """{% snapshot orders_total %}
{{ config(unique_key='id', strategy='timestamp', updated_at='changed_at') }}
select id, total, changed_at from {{ ref('stg_orders') }}
{% endsnapshot %}

{% snapshot orders_status %}
{{ config(unique_key='id', strategy='check', check_cols=['status']) }}
select id, status from {{ ref('stg_orders') }}
{% endsnapshot %}
"""
YAML_SNAPSHOT = """snapshots:
  - name: orders_status
    relation: ref('stg_orders')
    config: {unique_key: id, strategy: check, check_cols: [status]}
"""
QUOTED_SNAPSHOT = YAML_SNAPSHOT.replace("ref('stg_orders')", "\"{{ ref('stg_orders') }}\"")
CURRENT = "select id, status from {{ ref('orders_status') }} where dbt_valid_to is null\n"


# Snapshots


@pytest.mark.parametrize(
    "snapshots",
    [
        {"snapshots/orders.sql": TWO_SNAPSHOTS},
        {"snapshots/orders.yml": YAML_SNAPSHOT, "models/other.sql": "select 1 as one\n"},
        {"models/orders.yml": QUOTED_SNAPSHOT},
    ],
    ids=["second in its file", "in a property file", "in a property file of models"],
)
def test_a_snapshot_without_a_file_of_its_own_is_a_consumer(
    tmp_path: Path, snapshots: dict[str, str]
) -> None:
    files = {**PROJECT, **snapshots, "models/current.sql": CURRENT}
    impact = impact_of(tmp_path, files, WITHOUT_STATUS)
    assert {"orders_status", "current"} <= hurt(impact).keys()
    assert not any(spot.kind == "unaccounted_column" for spot in impact.blind_spots)


def test_an_edited_query_of_a_second_snapshot_breaks_its_readers(tmp_path: Path) -> None:
    files = {**PROJECT, "snapshots/orders.sql": TWO_SNAPSHOTS, "models/current.sql": CURRENT}
    edited = TWO_SNAPSHOTS.replace("select id, status from", "select id, status as state from")
    impact = impact_of(tmp_path, files, {"snapshots/orders.sql": edited})
    assert hurt(impact)["current"] == "fails"
    assert "orders_total" not in hurt(impact)


def test_an_edited_option_of_a_snapshot_named_unlike_its_file_is_a_change(tmp_path: Path) -> None:
    files = {**PROJECT, "snapshots/orders.sql": TWO_SNAPSHOTS, "models/current.sql": CURRENT}
    edited = TWO_SNAPSHOTS.replace("['status']", "['id']")
    impact = impact_of(tmp_path, files, {"snapshots/orders.sql": edited})
    assert "current" in hurt(impact)


# Hooks


def test_an_edited_macro_of_a_model_with_a_hook_changes_the_model(tmp_path: Path) -> None:
    files = {
        **PROJECT,
        "macros/gross.sql": "{% macro gross(c) %}{{ c }} * 1.2{% endmacro %}\n",
        "models/orders.sql": "{{ config(post_hook='insert into log select 1 from {{ this }}') }}\n"
        "select id, {{ gross('total') }} as gross from {{ ref('stg_orders') }}\n",
        "models/sums.sql": "select sum(gross) as total from {{ ref('orders') }}\n",
    }
    edit = {"macros/gross.sql": "{% macro gross(c) %}{{ c }} * 1.19{% endmacro %}\n"}
    assert hurt(impact_of(tmp_path, files, edit))["sums"] == "changes"


def test_an_edited_macro_of_a_hook_is_not_approved(tmp_path: Path) -> None:
    files = {
        **PROJECT,
        "macros/note.sql": "{% macro note() %}insert into log select 1 from {{ this }}"
        "{% endmacro %}",
        "models/orders.sql": "{{ config(post_hook='{{ note() }}') }}\n"
        "select id from {{ ref('stg_orders') }}\n",
    }
    edit = {"macros/note.sql": files["macros/note.sql"].replace("select 1", "select 2")}
    assert not impact_of(tmp_path, files, edit).complete


# Documentation


def test_a_column_that_is_only_described_breaks_nothing(tmp_path: Path) -> None:
    described = """models:
  - name: stg_orders
    columns:
      - {name: id, data_tests: [unique]}
      - {name: status, description: s}
"""
    impact = impact_of(tmp_path, {**PROJECT, "models/models.yml": described}, WITHOUT_STATUS)
    effect = effect_on(impact, "models/models")
    assert effect.outcome.value == "changes"
    assert effect.reason.startswith("documents ")
    assert [reference.line for reference in effect.references] == [5]


def test_a_column_that_is_described_and_tested_still_breaks_its_test(tmp_path: Path) -> None:
    tested = """models:
  - name: stg_orders
    columns:
      - {name: status, description: s, data_tests: [not_null]}
"""
    impact = impact_of(tmp_path, {**PROJECT, "models/models.yml": tested}, WITHOUT_STATUS)
    assert hurt(impact)["models/models"] == "fails"


# Python

LOADER = """import duckdb

COLUMNS = "columns={'id': 'INT', 'total': 'DOUBLE'}"
GREETING = "hello"


def load(args):
    prefix = "create table orders as " if args.new else "insert into orders "
    con = duckdb.connect("shop.db")
    con.execute(prefix + "select * from read_csv('" + args.path + "', " + COLUMNS + ")")


def greet():
    print(GREETING)
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("'total': 'DOUBLE'", "'amount': 'DOUBLE'"),
        ("select * from read_csv", "select id from read_csv"),
        ('"insert into orders "', '"insert or replace into orders "'),
    ],
    ids=["constant", "text of the query", "part of the query"],
)
def test_an_edit_of_a_run_time_query_is_not_approved(tmp_path: Path, old: str, new: str) -> None:
    edit = {"load.py": LOADER.replace(old, new)}
    impact = impact_of(tmp_path, {**PROJECT, "load.py": LOADER}, edit)
    assert not impact.complete
    assert {unread.path for unread in impact.unread} == {"load.py"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"hello"', '"hello!"'),
        ("def load(args):", 'def load(args):\n    """Load a file."""'),
        ("    con = ", "    # open\n    con = "),
    ],
    ids=["other code", "docstring", "comment"],
)
def test_an_edit_beside_a_run_time_query_changes_nothing(
    tmp_path: Path, old: str, new: str
) -> None:
    edit = {"load.py": LOADER.replace(old, new)}
    impact = impact_of(tmp_path, {**PROJECT, "load.py": LOADER}, edit)
    assert (impact.unread, impact.effects, impact.complete) == ([], [], True)


def test_an_edited_call_that_sets_up_a_used_object_is_not_approved(tmp_path: Path) -> None:
    setup = "import argparse\n\nparser = argparse.ArgumentParser()\n"
    setup += "parser.add_argument('--path', default='a.csv')\n"
    parsed = "def load():\n    args = parser.parse_args()"
    loader = setup + LOADER.replace("def load(args):", parsed)
    edit = {"load.py": loader.replace("a.csv", "b.csv")}
    assert not impact_of(tmp_path, {**PROJECT, "load.py": loader}, edit).complete


def test_a_write_that_becomes_unknown_is_not_a_removed_table(tmp_path: Path) -> None:
    plain = "import duckdb\n\ndef load(args):\n    con = duckdb.connect('shop.db')\n"
    query = "create or replace table raw.orders as select * from 'orders.csv'"
    before = f'{plain}    con.execute("{query}")\n'
    after = f"{plain}    con.execute(args.start + \"select * from 'orders.csv'\")\n"
    impact = impact_of(tmp_path, {**PROJECT, "load.py": before}, {"load.py": after})
    assert impact.unread
    assert not any(change.startswith("drop") for change in impact.changes)


PYTHON_MODEL = """RATE = 1.2


def gross(frame):
    frame["gross"] = frame["total"] * RATE
    return frame


def model(dbt, session):
    return gross(dbt.ref("stg_orders").df())
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [("1.2", "1.19"), ('frame["gross"]', 'frame["with_tax"]'), (".df()", ".df().head(10)")],
    ids=["constant", "column in a function", "rows"],
)
def test_an_edited_dbt_model_in_python_changes_its_readers(
    tmp_path: Path, old: str, new: str
) -> None:
    files = {
        **PROJECT,
        "models/taxed.py": PYTHON_MODEL,
        "models/sums.sql": "select sum(gross) as total from {{ ref('taxed') }}\n",
    }
    impact = impact_of(tmp_path, files, {"models/taxed.py": PYTHON_MODEL.replace(old, new)})
    assert "sums" in hurt(impact)
    assert not impact.complete


def test_a_comment_in_a_dbt_model_in_python_changes_nothing(tmp_path: Path) -> None:
    files = {**PROJECT, "models/taxed.py": PYTHON_MODEL}
    edit = {"models/taxed.py": f"# taxes\n{PYTHON_MODEL}"}
    assert impact_of(tmp_path, files, edit).effects == []


# SQLMesh

MESH = {
    "config.yaml": "model_defaults:\n  dialect: duckdb\n",
    "models/gold/orders.sql": "MODEL (kind FULL, cron '@daily');\n\n"
    "SELECT @surrogate_key(id) AS order_key, total, status FROM silver.orders\n",
    "models/gold/sums.sql": "MODEL (kind FULL);\n\nSELECT sum(total) AS total FROM gold.orders\n",
}
ORDERS = "models/gold/orders.sql"


@pytest.mark.parametrize(
    ("old", "new"),
    [(" FROM silver", " -- the source\nFROM silver"), ("cron '@daily'", "cron '@hourly'")],
    ids=["comment", "schedule"],
)
def test_layout_and_schedule_of_a_sqlmesh_model_with_macros_change_nothing(
    tmp_path: Path, old: str, new: str
) -> None:
    impact = impact_of(tmp_path, MESH, {ORDERS: MESH[ORDERS].replace(old, new)})
    assert (impact.unread, impact.effects) == ([], [])


def test_a_column_lost_from_a_sqlmesh_model_with_macros_breaks_its_readers(tmp_path: Path) -> None:
    impact = impact_of(tmp_path, MESH, {ORDERS: MESH[ORDERS].replace(" total,", "")})
    assert hurt(impact)["gold.sums"] == "fails"
    assert not any(unread.reason.may_alter_tables for unread in impact.unread)


def test_a_sqlmesh_model_that_begins_to_keep_rows_is_not_approved(tmp_path: Path) -> None:
    kind = "kind INCREMENTAL_BY_UNIQUE_KEY (unique_key order_key)"
    impact = impact_of(tmp_path, MESH, {ORDERS: MESH[ORDERS].replace("kind FULL", kind)})
    assert [(u.path, u.line, u.reason.value) for u in impact.unread] == [(ORDERS, 1, "setting")]


# Variables of the project that uses a package

PACKAGE = {
    **PROJECT,
    "models/orders.sql": "{% if var('with_orders', false) %}select id, status from "
    "{{ ref('stg_orders') }}{% else %}select 1 as id{% endif %}\n",
    "integration_tests/dbt_project.yml": "name: tests\nprofile: t\nvars: {with_orders: true}\n",
    "integration_tests/packages.yml": "packages:\n  - local: ../\n",
}


def test_a_package_has_the_variables_of_the_project_that_tests_it(tmp_path: Path) -> None:
    assert "orders" in hurt(impact_of(tmp_path, PACKAGE, WITHOUT_STATUS))


def test_a_package_keeps_the_variables_that_it_sets_itself(tmp_path: Path) -> None:
    own = "name: shop\nprofile: shop\nvars: {with_orders: false}\n"
    files = {**PACKAGE, "dbt_project.yml": own}
    assert "orders" not in hurt(impact_of(tmp_path, files, WITHOUT_STATUS))


# Data


def test_an_edited_data_file_that_code_reads_is_not_approved(tmp_path: Path) -> None:
    files = {**PROJECT, "data/rates.csv": "id,rate\n1,2\n", "load.py": "import pandas as pd\n"
             "pd.read_csv('data/rates.csv').to_parquet('out/rates.parquet')\n"}  # fmt: skip
    impact = impact_of(tmp_path, files, {"data/rates.csv": "id,tax\n1,2\n"})
    assert impact.effects or impact.unread
    assert not impact.complete or impact.effects


@pytest.mark.parametrize(
    ("path", "reader"),
    [
        ("data/a.jsonl", "data/a.jsonl"),
        ("data/a.tsv", "data/*"),
        ("in/a.parquet", "in/*.parquet"),
        ("in/a.tsv", "../in/{identifier}.tsv"),
        ("in/a.csv.gz", "s3/in/${FILE}.csv.gz"),
    ],
)
def test_a_data_file_of_another_type_is_reported_if_code_names_it(
    tmp_path: Path, path: str, reader: str
) -> None:
    query = f"create table t as select * from read_it('{reader}');\n"
    repository = checkout(tmp_path / "repo", {"t.sql": query, path: "one", "data/unused.tsv": "1"})
    write(repository, {path: "two", "data/unused.tsv": "2"})
    named = [unread.path for unread in list_changed_files(repository, "HEAD", None).unread]
    assert path in named
    assert ("data/unused.tsv" in named) == (reader == "data/*")


# Definitions of tables

DEFINITIONS = {
    "infra/orders.tf": 'resource "google_bigquery_table" "orders" {\n  table_id = "orders"\n'
    '  schema = jsonencode([\n    {name = "id"},\n    {name = "status"}\n  ])\n}\n',
    "schemas/orders.json": '[{"name": "id", "type": "INTEGER"},\n'
    ' {"name": "status", "type": "STRING"}]\n',
    "schemas/orders.avsc": '{"type": "record", "name": "orders",\n'
    ' "fields": [{"name": "id", "type": "int"}, {"name": "status", "type": "string"}]}\n',
    "schemas/shop.proto": "message orders {\n  int64 id = 1;\n  string status = 2;\n}\n",
    "contracts/orders.yaml": "dataset: orders\nfields:\n  - name: id\n  - name: status\n",
}


@pytest.mark.parametrize("path", DEFINITIONS)
def test_a_definition_that_loses_a_column_in_use_is_not_approved(tmp_path: Path, path: str) -> None:
    files = {**PROJECT, path: DEFINITIONS[path]}
    impact = impact_of(tmp_path, files, {path: DEFINITIONS[path].replace("status", "state")})
    assert not impact.complete
    assert path in {unread.path for unread in impact.unread}


def test_a_comment_of_a_definition_changes_nothing(tmp_path: Path) -> None:
    path = "infra/orders.tf"
    text = DEFINITIONS[path].replace("status", "state")
    files = {**PROJECT, path: f"# the status of an order\n{text}"}
    edit = {path: files[path].replace("# the status", "# the state")}
    assert impact_of(tmp_path, files, edit).unread == []


def test_a_definition_that_loses_a_word_of_no_table_changes_nothing(tmp_path: Path) -> None:
    path = "schemas/orders.json"
    files = {**PROJECT, path: DEFINITIONS[path].replace("INTEGER", "INT64")}
    assert impact_of(tmp_path, files, {path: DEFINITIONS[path]}).unread == []
