"""`downriver certified`: whether the lineage upstream of certified datasets is complete."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from downriver.cli.names import DisplayNames, FullNamesOption
from downriver.cli.output import JsonOption, StoreOption, escape, out, print_json
from downriver.service import Lineage

if TYPE_CHECKING:
    from downriver.model.governance import CertifiedPaths

_GAPS_SHOWN = 5


def certified(
    full_names: FullNamesOption = False, store: StoreOption = None, json: JsonOption = False
) -> None:
    """Check that the lineage upstream of every certified dataset is complete.

    The exit code is 1 if it is not.
    """
    with Lineage.open(store, create=False) as lineage:
        found = lineage.govern.certified_paths()
    if json:
        print_json(found)
    else:
        _show(found, full_names=full_names)
    sys.exit(int(found.integrity.count < found.integrity.total))


def _show(found: CertifiedPaths, *, full_names: bool) -> None:
    gaps = [gap for path in found.datasets for gap in path.gaps]
    ids = [*(path.dataset for path in found.datasets), *(gap.entity for gap in gaps)]
    names = DisplayNames(ids, full=full_names, texts=(gap.message for gap in gaps))
    names.print_heading()
    for path in found.datasets:
        word = "[green]intact[/]" if path.intact else "[bold red]broken[/]"
        owners = f", owned by {', '.join(path.owners)}" if path.owners else ""
        out.print(f"{word} {names[path.dataset]} ({path.upstream} upstream{escape(owners)})")
        for gap in path.gaps[:_GAPS_SHOWN]:
            out.print(f"       {names.label(gap.entity)}: {names.replace_in(gap.message)}")
    out.print(f"{found.integrity.count} of {found.integrity.total} certified paths are intact")
