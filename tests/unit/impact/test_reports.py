"""A verdict in every format, compared with what was looked at once.

DOWNRIVER_UPDATE_GOLDEN=1 writes what is printed now; look at it before committing.
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
    render_explanation,
    render_github,
    render_markdown,
    render_sarif,
    render_text,
)
from downriver.model.changes import ColumnDrop, ColumnRename

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
    """A rename and a drop that hurt SQL, a Spark job and something unknown."""
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
def test_a_verdict_is_printed_as_it_was_looked_at(verdict: Verdict, name: str) -> None:
    printed = FORMATS[name](verdict)
    file = GOLDEN / name
    if os.environ.get("DOWNRIVER_UPDATE_GOLDEN") == "1":
        file.write_text(printed, "utf-8")
    assert printed == file.read_text("utf-8")
