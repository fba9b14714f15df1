"""A verdict in every format, compared with reviewed output.

DOWNRIVER_UPDATE_GOLDEN=1 writes the present output; review it before you commit it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from tests.unit.impact.estate import facet

from downriver.impact import decide
from downriver.impact.report import (
    name_impact,
    name_verdict,
    render_explanation,
    render_github,
    render_markdown,
    render_sarif,
    render_text,
    short_names,
)
from downriver.impact.report.text import list_places
from downriver.model.changes import ColumnDrop, ColumnRename
from downriver.model.verdicts import Reference, join_parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.impact.estate import Estate

    from downriver.model.verdicts import Verdict

GOLDEN = Path(__file__).parents[2] / "golden" / "impact"
PATCH = "--- a/stg_orders.sql\n+++ b/stg_orders.sql\n@@ -1 +1 @@\n-a ``` b\n+c\n"

FORMATS: dict[str, Callable[[Verdict], str]] = {
    "text.txt": lambda verdict: render_text(verdict) + render_explanation(verdict),
    "markdown.md": lambda verdict: render_markdown(verdict, PATCH),
    "github.txt": render_github,
    "sarif.json": lambda verdict: (
        json.dumps(render_sarif(verdict, "0.0.0"), indent=2, ensure_ascii=False) + "\n"
    ),
}


@pytest.fixture
def verdict(shop: Estate) -> Verdict:
    """A rename and a drop that affect SQL, a Spark job and a job without column lineage."""
    shop.table("mart.names", tags={"certified": "true"}, owners=["team:crm", "ana|<b>"])
    shop.job(
        "ltv_model", ["stg.orders"], ["features"], columns={"spend": ["stg.orders.order_total"]},
        facets={"jobType": facet(integration="SPARK", jobType="JOB", processingType="BATCH")},
    )  # fmt: skip
    shop.job("opaque: 100%", ["raw.orders"], ["export"])
    changes = [
        ColumnRename(dataset="raw.orders", column="order_total", to="total"),
        ColumnDrop(dataset="raw.orders", column="legacy"),
    ]
    impact = shop.lineage.impact(changes)
    for effect in impact.effects:
        effect.last_run = None
    return decide(msgspec.structs.replace(impact))


@pytest.mark.parametrize("name", FORMATS)
def test_a_verdict_renders_as_in_the_golden_file(verdict: Verdict, name: str) -> None:
    printed = FORMATS[name](verdict)
    file = GOLDEN / name
    if os.environ.get("DOWNRIVER_UPDATE_GOLDEN") == "1":
        file.write_text(printed, "utf-8")
    assert printed == file.read_text("utf-8")


def test_names_are_short_where_they_are_unambiguous(shop: Estate) -> None:
    impact = shop.lineage.impact([ColumnDrop(dataset="raw.orders", column="order_total")])
    named = name_impact(impact, short_names(impact))
    assert named.changes == ["drop raw.orders.order_total"]
    assert {effect.name for effect in named.effects} == {
        "stg.orders",
        "star",
        "doubled",
        "ids",
        "sums",
    }
    assert {effect.consumer for effect in named.effects} == {e.consumer for e in impact.effects}


def test_full_names_are_ids_in_every_sentence(verdict: Verdict) -> None:
    named = name_verdict(verdict, None)
    spark = next(e for e in named.impact.effects if e.asset_type == "spark_job")
    assert spark.name == spark.consumer
    assert "column:db:stg.orders:order_total" in spark.reason
    assert "dataset:db:mart." in named.reason
    assert all(target in "; ".join(named.impact.changes) for target in named.impact.targets)


def test_the_joined_parts_of_a_sentence_are_the_sentence(verdict: Verdict) -> None:
    for effect in verdict.impact.effects:
        assert join_parts(effect.reason_parts) == effect.reason
        assert len(effect.path) == len(effect.path_ids)
    for finding in verdict.findings:
        assert join_parts(finding.message_parts) == finding.message


def test_a_file_without_known_lines_is_one_place_with_its_columns():
    known = Reference(dataset="d", column="a", path="m.sql", line=3, clause="select", text="a,")
    unknown = [Reference(dataset="d", column=name, path="load.py") for name in ("a", "b")]
    nowhere = Reference(dataset="d", column="a")
    assert list(list_places([*unknown, known, nowhere])) == [
        ("load.py", "", "a, b"),
        ("m.sql:3", "select", "a,"),
    ]
    assert list(list_places(unknown[:1])) == [("load.py", "", "")]
