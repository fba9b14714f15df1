"""Macros of dbt packages that are built in."""

from __future__ import annotations

import pytest

from downriver.capture.sql import Template, render_sql


@pytest.mark.parametrize(
    "arguments",
    ["ref('days'), ['id']", "ref('days'), except=['id']", "from=ref('days'), except=['id']"],
)
def test_filtered_columns_take_arguments_by_place_or_by_name(arguments: str) -> None:
    call = f"dbt_utils.get_filtered_columns_in_relation({arguments})"
    template = Template(columns_of=lambda table: ["id", "day", "users"])
    rendered = render_sql(f"select {{{{ {call} | join(', ') }}}} from x", template)
    assert rendered.texts == ["select day, users from x"]
    assert rendered.blind_spots == []


@pytest.mark.parametrize(
    "macros",
    [
        "{% macro _short(c) %}left({{ c }}, 3){% endmacro %}",
        "{% macro cut(c) %}{{ return(_short(c)) }}{% endmacro %}"
        "{% macro _short(c) %}left({{ c }}, 3){% endmacro %}",
        "{% macro cut() %}{{ _short(*varargs) }}{% endmacro %}"
        "{% macro _short(c) -%} left({{ c }}, {{ __length() }}) {%- endmacro %}"
        "{% macro __length() %}3{% endmacro %}",
    ],
    ids=["called by a model", "called by a macro", "called by another private macro"],
)
def test_a_macro_whose_name_begins_with_an_underscore_is_rendered(macros: str) -> None:
    name = "cut" if "macro cut" in macros else "_short"
    rendered = render_sql(f"select {{{{ {name}('day') }}}} from x", Template(macros=(macros,)))
    assert rendered.texts == ["select left(day, 3) from x"]
    assert rendered.blind_spots == []
