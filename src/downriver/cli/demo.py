"""`downriver demo`: a shop's pipeline, from its database to a dashboard and a model."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from downriver.cli.output import out
from downriver.cli.trace import show_trace
from downriver.events.files import read_events
from downriver.graph.draw import render_mermaid
from downriver.model.answers import Direction
from downriver.service import Lineage
from downriver.store.locate import FOLDER

if TYPE_CHECKING:
    from downriver.store import Receipt

_STORE = f"{FOLDER}/demo"
_DIAGRAM = "lineage.mmd"


def demo(
    location: Annotated[
        str, typer.Option("--store", metavar="WHERE", help="Where to keep the demo's lineage.")
    ] = _STORE,
) -> None:
    """Ingest a shipped set of events into .downriver/demo and trace them. Safe to repeat."""
    with Lineage.open(location) as lineage:
        receipts = _ingest_shipped_events(lineage)
        new = sum(not receipt.duplicate for receipt in receipts)
        out.rule("[bold]1 · events in[/]", align="left")
        out.print(f"{len(receipts)} OpenLineage events of a shop's pipeline, {new} of them new")
        out.rule("[bold]2 · what breaks if shop.public.orders changes?[/]", align="left")
        show_trace(lineage.trace("shop.public.orders"))
        out.rule("[bold]3 · where does predicted_ltv come from?[/]", align="left")
        show_trace(lineage.trace("predictions/customer_ltv.predicted_ltv", Direction.UPSTREAM))
        out.rule("[bold]4 · a diagram, and proof that nothing was altered[/]", align="left")
        diagram = Path(location) / _DIAGRAM
        if diagram.parent.is_dir():
            diagram.write_text(render_mermaid(lineage.trace("fct_orders", Direction.BOTH)), "utf-8")
            out.print(f"Mermaid diagram of fct_orders: {escape(str(diagram))}")
        checked = lineage.verify()
        out.print(f"log: {checked.entries} entries, chain {'intact' if checked.ok else 'BROKEN'}")
    out.rule("[bold]next[/]", align="left")
    where = f"--store {escape(location)}"
    out.print(
        f"[cyan]downriver trace revenue_daily.revenue_eur --upstream {where}[/]\n"
        f"[cyan]downriver serve {where}[/]   then point OPENLINEAGE_URL at it",
    )


def _ingest_shipped_events(lineage: Lineage) -> list[Receipt]:
    shipped = resources.files("downriver.cli") / "demo_events.jsonl"
    with shipped.open("rb") as stream:
        found = list(read_events(stream, "demo_events.jsonl"))
    return lineage.ingest([item.event for item in found if item.event is not None])
