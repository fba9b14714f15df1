"""`downriver spool`: events that could not be sent yet."""

from __future__ import annotations

from typing import Annotated

import typer

from downriver.cli.output import JsonOption, out, print_json
from downriver.sdk.delivery import open_sender, open_spool

app = typer.Typer(help="Look at and send the events that wait.", no_args_is_help=True)

ToOption = Annotated[
    str | None, typer.Option(help="A server's URL or a store; by default as jobs find it.")
]


@app.command("status")
def status(json: JsonOption = False) -> None:
    """Say how many events wait, and where."""
    spool = open_spool()
    found = spool.state()
    if json:
        print_json({"folder": str(spool.folder), **found._asdict()})
        return
    out.print(f"{found.events:,} events wait in {spool.folder}, {found.size:,} bytes")


@app.command("flush")
def flush(to: ToOption = None, json: JsonOption = False) -> None:
    """Send the events that wait; those that cannot be sent go on waiting."""
    spool = open_spool()
    sent = spool.drain(open_sender(to))
    left = spool.state().events
    if json:
        print_json({"sent": sent, "waiting": left})
    else:
        out.print(f"{sent:,} events sent, {left:,} wait")
