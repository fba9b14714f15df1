"""`downriver status`, `rebuild` and `audit`: what a store holds, and whether its log is intact."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from downriver.cli.output import JsonOption, StoreOption, err, out, print_json, progress_bar
from downriver.errors import InvalidRequestError
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


def rebuild(store: StoreOption = None, json: JsonOption = False) -> None:
    """Drop the catalog and fold the whole log again, to the identical catalog."""
    with Lineage.open(store, create=False) as lineage, progress_bar("events") as bar:
        task = bar.add_task("Folding", total=None)
        total = lineage.rebuild(lambda done, of: bar.update(task, completed=done, total=of))
    if json:
        print_json({"events": total})
        return
    out.print(f"rebuilt from [bold]{total}[/] events")


app = typer.Typer(help="Prove that the log is as it was written.", no_args_is_help=True)


@app.command("verify")
def verify(
    expect: Annotated[
        str | None,
        typer.Option(
            "--expect",
            metavar="SEQ:CHAIN",
            help="A head noted earlier: also catches a log that was cut short or replaced.",
        ),
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Recompute the log's hash chain and name the first altered entry; exit code 1 if any is."""
    expected = None if expect is None else _parse_head(expect)
    with Lineage.open(store, create=False) as lineage, progress_bar("entries") as bar:
        task = bar.add_task("Verifying", total=lineage.status().counts.events)
        found = lineage.verify(
            expected=expected, progress=lambda done: bar.update(task, completed=done)
        )
    if json:
        print_json(found)
    elif found.ok:
        out.print(f"[green]intact[/] · {found.entries} entries · head {found.entries}:{found.head}")
    else:
        err.print(f"[bold red]altered[/] · entry {found.altered_seq} {found.reason}")
    if not found.ok:
        raise typer.Exit(1)


@app.command("event")
def event(
    digest: Annotated[str, typer.Argument(help="The SHA-256 an edge names as its evidence.")],
    store: StoreOption = None,
) -> None:
    """Print an event as it was sent, by the SHA-256 that the evidence of an edge names it by."""
    with Lineage.open(store, create=False) as lineage:
        found = lineage.find_event(digest)
    sys.stdout.buffer.write(found + b"\n") if hasattr(sys.stdout, "buffer") else sys.stdout.write(
        found.decode(errors="replace") + "\n"
    )


def _parse_head(text: str) -> tuple[int, bytes]:
    seq, _, chain = text.partition(":")
    if not (seq.isascii() and seq.isdigit() and len(seq) < 19 and int(seq)) or not chain:
        raise InvalidRequestError("--expect", f"{text!r} is not SEQ:CHAIN")
    try:
        return int(seq), bytes.fromhex(chain)
    except ValueError as exc:
        raise InvalidRequestError("--expect", f"{text!r} is not SEQ:CHAIN") from exc
