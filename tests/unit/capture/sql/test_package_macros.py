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
