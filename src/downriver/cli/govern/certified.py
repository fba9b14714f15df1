"""`downriver certified`: whether the lineage upstream of certified datasets is complete."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from downriver.cli.output import JsonOption, StoreOption, escape, out, print_json
from downriver.service import Lineage

if TYPE_CHECKING:
    from downriver.model.governance import CertifiedPaths

_GAPS_SHOWN = 5


def certified(store: StoreOption = None, json: JsonOption = False) -> None:
    """Check that the lineage upstream of every certified dataset is complete.

    The exit code is 1 if it is not.
    """
    with Lineage.open(store, create=False) as lineage:
        found = lineage.certified_paths()
    if json:
        print_json(found)
    else:
        _show(found)
    sys.exit(int(found.integrity.count < found.integrity.total))


def _show(found: CertifiedPaths) -> None:
    for path in found.datasets:
        word = "[green]intact[/]" if path.intact else "[bold red]broken[/]"
        owners = f", owned by {', '.join(path.owners)}" if path.owners else ""
        out.print(f"{word} {escape(path.dataset)} ({path.upstream} upstream{escape(owners)})")
        for gap in path.gaps[:_GAPS_SHOWN]:
            out.print(f"       {escape(gap.entity)}: {escape(gap.message)}")
    out.print(f"{found.integrity.count} of {found.integrity.total} certified paths are intact")
