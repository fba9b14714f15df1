"""`gate --select` and `impact --select`: selected consumers are listed, the others are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.cli.command import downriver
from tests.unit.impact.test_base import DBT, checkout, write

from downriver.errors import InvalidRequestError
from downriver.impact import decide
from downriver.impact.report import render_markdown, render_text
from downriver.model.changes import ColumnDrop, LogicChange
from downriver.model.verdicts import LeftOut

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.impact.estate import Estate

    from downriver.service import Lineage

DROP = ColumnDrop(dataset="raw.orders", column="order_total")


def test_only_selected_consumers_are_judged(shop: Estate, lineage: Lineage) -> None:
    every = lineage.impact([DROP])
    found = lineage.impact([DROP], "stg.star mart.sums")
    assert {effect.name for effect in found.effects} == {"stg.star", "mart.sums"}
    assert found.left_out is not None
    assert found.left_out.consumers == len(every.effects) - 2


def test_an_answer_that_leaves_out_a_break_is_not_complete(shop: Estate, lineage: Lineage) -> None:
    found = lineage.impact([DROP], "mart.names")
    assert found.effects == []
    assert found.left_out is not None
    assert found.left_out.breaking > 0
    assert not found.complete
    verdict = decide(found)
    assert (verdict.decision.value, verdict.decided_by) == ("CAUTION", "unselected_consumers")
    text = render_text(verdict)
    assert "incomplete" in text
    assert "left out by --select mart.names" in text
    assert "stg.orders" in text, "it names what breaks"
    assert "left out by --select mart.names" in render_markdown(verdict).replace("\\", "")


def test_an_answer_counts_consumers_that_the_selector_leaves_out(
    shop: Estate, lineage: Lineage
) -> None:
    change = LogicChange(dataset="raw.orders", columns=["order_total"])
    found = lineage.impact([change], "mart.ids")
    assert found.left_out == LeftOut(selector="mart.ids", consumers=4, breaking=0)
    assert "4 affected consumers left out by --select mart.ids, 0 breaking" in render_text(
        decide(found)
    )


def test_a_selector_that_selects_nothing_is_an_error(shop: Estate, lineage: Lineage) -> None:
    with pytest.raises(InvalidRequestError, match="nowhere selects nothing"):
        lineage.impact([DROP], "nowhere")


def test_the_gate_selects_among_the_code_of_the_base(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "repo", DBT)
    write(folder, {"models/stg_orders.sql": "select id, status from {{ source('raw', 'orders') }}"})
    done = downriver("gate", "--base", "HEAD", "--select", "by_status", cwd=folder)
    assert done.returncode == 3, done.stdout
    assert "revenue" in done.stdout
    blocked = downriver("gate", "--base", "HEAD", "--select", "revenue+", cwd=folder)
    assert blocked.returncode == 1, blocked.stdout
