"""Which files may use a table: none that names it is missed, few others are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from downriver.capture.scan import Repository, ScanCatalog
from downriver.impact import CommitCode
from downriver.impact.changes.name_uses import CarriedNames, NameUses, list_parts, split_macros

if TYPE_CHECKING:
    from pathlib import Path

USED = {
    "from": ("a.sql", "select id from raw.orders"),
    "quoted": ("a.sql", 'select id from "DB"."Orders"'),
    "comma": ("a.sql", "select a.id from a, orders where a.x = 1"),
    "comma after a subquery": ("a.sql", "select 1 from (select x from b where x = 1), orders"),
    "comma after a condition": ("a.sql", "select 1 from a join b on a.x = b.x, orders"),
    "join in brackets": ("a.sql", "select 1 from (a join orders on true)"),
    "merge": ("a.sql", "merge into t using orders on t.id = orders.id when matched then delete"),
    "second statement": ("a.sql", "update t set x = 1; truncate orders"),
    "in a query of a select list": ("a.sql", "select (select max(id) from orders) as m from t"),
    "template": ("a.sql", "select 1 from {{ ref('orders') }}"),
    "template in a comment": ("a.sql", "-- {{ ref('orders') }}\nselect 1"),
    "argument of a macro": ("a.sql", "select {{ star(\n  'orders') }} from x"),
    "string": ("a.sql", "select dictGet('orders', 'x', id) from t"),
    "brackets that do not match": ("a.sql", "select a, orders {% if x %} ( {% endif %} from t"),
    "apostrophe in a comment": ("a.sql", "select a # don't\n, b from x where y = 'a', orders"),
    "Python": ("a.py", "spark.table('raw.orders')"),
    "SQL in Python": ("a.py", 'x = """select a\nfrom orders"""'),
    "YAML": ("a.yml", "models:\n  - name: orders\n"),
}
NOT_USED = {
    "column": ("a.sql", "select orders, count(orders) from t where orders > 1 group by orders"),
    "join column": ("a.sql", "select 1 from a join b using (orders)"),
    "condition": ("a.sql", "select 1 from a join b on a.orders = b.orders"),
    "comment": ("a.sql", "-- orders\nselect 1 from t /* orders */ {# orders #}"),
    "Python variable": ("a.py", "orders = load()  # the orders\nprint(orders.total)"),
}
ORDERS = CarriedNames(frozenset({"orders"}))


@pytest.mark.parametrize("name", USED)
def test_a_file_that_names_a_table_is_found(name: str) -> None:
    assert NameUses(*USED[name]).mentions(ORDERS, [], frozenset())


@pytest.mark.parametrize("name", NOT_USED)
def test_a_file_with_only_the_word_is_left_out(name: str) -> None:
    assert not NameUses(*NOT_USED[name]).mentions(ORDERS, [], frozenset())


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("a.sql", "select 1 from {{ ref('stg_' ~ x ~ '_orders') }} {% set x = 'raw' %}", True),
        ("a.sql", "{% set x = 'raw' %} select 1 from stg_{{ x }}_orders", True),
        ("a.py", "f'stg_{x}_orders' + 'raw'", True),
        # These names are written out, and none of them is the table.
        ("a.sql", "{% if x %} select 1 from {{ ref('stg_raw') }}, {{ ref('orders') }}", False),
        ("a.sql", "{% if x %} select stg, raw, orders from t", False),
    ],
)
def test_a_name_may_be_put_together_from_parts(path: str, text: str, found: bool) -> None:
    table = "stg_raw_orders"
    names = CarriedNames(frozenset({table}))
    assert NameUses(path, text).mentions(names, [list_parts(table)], frozenset()) is found


def test_the_macros_of_a_file_are_split() -> None:
    text = "{% macro a() %}ref('x'){% endmacro %} {%- macro b(y) -%}{{ a() }}{%- endmacro -%}"
    bodies = split_macros(text)
    assert "'x'" in bodies["a"]
    assert "'x'" not in bodies["b"]


FILES = {
    "dbt_project.yml": "name: shop\nprofile: shop\nvars:\n  seed: countries\n",
    "macros/m.sql": """
{% macro latest() %}select * from {{ ref('orders') }}{% endmacro %}
{% macro unrelated() %}1{% endmacro %}
{% macro snowflake__pick(t) %}{{ ref('stg_' ~ t) }}{% endmacro %}
""",
    "models/orders.sql": "select 1 as id",
    "models/countries.sql": "select 'a' as code",
    "models/stg_users.sql": "select 1 as id",
    "models/by_macro.sql": "{{ latest() }}",
    "models/by_other_macro.sql": "select {{ unrelated() }} as x",
    "models/by_variable.sql": "select code from {{ ref(var('seed')) }}",
    "models/by_argument.sql": "select id from {{ pick('users') }}",
    "models/after.sql": "select * from {{ ref('by_macro') }}",
}


@pytest.mark.parametrize(
    ("table", "readers"),
    [
        ("orders", {"models/by_macro.sql", "models/after.sql"}),
        ("countries", {"models/by_variable.sql"}),
        ("stg_users", {"models/by_argument.sql"}),
    ],
)
def test_readers_are_found_through_macros_and_variables(
    table: str, readers: set[str], tmp_path: Path
) -> None:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    code = CommitCode(Repository(tmp_path, is_fixed=True), ScanCatalog(namespace="shop"))
    found = code.downstream({table}, ())
    assert {path for path in found if path.startswith("models/")} == readers
