"""`downriver redact`: erase the name of a person from facets in the log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from downriver.cli.output import JsonOption, StoreOption, out, print_json
from downriver.cli.trust.retention import DryRunOption
from downriver.impact import find_author
from downriver.service import Lineage

_SHOWN = 10


def redact(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A name or a mail address, as a whole word.")
    ],
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="The reason. The log records it.")
    ] = "",
    dry_run: DryRunOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Erase a name from the facets of all events: owners, descriptions, tags, errors.

    The hash chain of the log stays intact: a new entry names the changed ones. This cannot be
    undone. Names of datasets, jobs and columns stay.
    """
    with Lineage.open(store, create=False) as lineage:
        found = lineage.retention.redact(
            name, reason=reason, by=find_author(Path.cwd()), done=not dry_run
        )
    if json:
        print_json(found)
        return
    verb = "would be redacted" if dry_run else "redacted"
    noun = "log entry" if found.entries == 1 else "log entries"
    out.print(f"{found.entries:,} {noun} {verb}")
    if found.remaining:
        listed = ", ".join(map(str, found.remaining[:_SHOWN]))
        more = len(found.remaining) - _SHOWN
        rest = f" and {more} more" if more > 0 else ""
        out.print(f"[yellow]the name remains outside facets in log entries[/] {listed}{rest}")
