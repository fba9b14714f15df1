"""`downriver status`: what the store holds."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from downriver.cli.output import JsonOption, StoreOption, out, print_json
from downriver.service import Lineage


def status(store: StoreOption = None, json: JsonOption = False) -> None:
    """Say where the store is and what it holds."""
    with Lineage.open(store, create=False) as lineage:
        found = lineage.status()
    if json:
        print_json(found)
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_row("store", escape(found.store))
    for name in ("events", "datasets", "jobs", "runs", "edges", "columns", "column_edges"):
        table.add_row(name.replace("_", " "), f"{getattr(found.counts, name):,}")
    table.add_row("last event", found.last_received or "never")
    out.print(table)
