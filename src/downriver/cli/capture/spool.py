"""`downriver spool`: events that could not be sent yet."""

from __future__ import annotations

from typing import Annotated

import typer

from downriver.cli.output import JsonOption, out, print_json
from downriver.sdk.delivery import open_sender, open_spool

ToOption = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="TARGET",
        help="Send to this server URL or store. By default events go where jobs send them.",
    ),
]


def status(json: JsonOption = False) -> None:
    """Show how many events are spooled, and in which folder."""
    spool = open_spool()
    state = spool.state()
    if json:
        print_json({"folder": str(spool.folder), **state._asdict()})
        return
    out.print(f"{state.events:,} events spooled in {spool.folder}, {state.size:,} bytes")
    if state.dropped:
        out.print(f"{state.dropped:,} events were dropped, because the spool was full")


def flush(to: ToOption = None, json: JsonOption = False) -> None:
    """Send the spooled events. Those that cannot be sent stay in the spool."""
    spool = open_spool()
    sent = spool.drain(open_sender(to))
    left = spool.state().events
    if json:
        print_json({"sent": sent, "waiting": left})
    else:
        out.print(f"{sent:,} events sent, {left:,} still spooled")
