"""`downriver rebuild`: the catalog again from the log."""

from __future__ import annotations

from downriver.cli.output import JsonOption, StoreOption, out, print_json, progress_bar
from downriver.service import Lineage


def rebuild(store: StoreOption = None, json: JsonOption = False) -> None:
    """Drop the catalog and fold the whole log again, to the identical catalog."""
    with Lineage.open(store, create=False) as lineage, progress_bar("events") as bar:
        task = bar.add_task("Folding", total=None)
        total = lineage.rebuild(lambda done, of: bar.update(task, completed=done, total=of))
    if json:
        print_json({"events": total})
        return
    out.print(f"rebuilt from [bold]{total}[/] events")
