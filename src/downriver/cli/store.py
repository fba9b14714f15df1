"""`downriver status`, `rebuild` and `audit`: what a store holds, and whether its log is intact."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from downriver.cli.output import (
    JsonOption,
    StoreOption,
    err,
    out,
    print_json,
    print_rows,
    progress_bar,
)
from downriver.errors import InvalidRequestError
from downriver.service import Lineage

_COUNTS = ("events", "datasets", "jobs", "runs", "edges", "columns", "column_edges")


def status(store: StoreOption = None, json: JsonOption = False) -> None:
    """Show where the store is and how much it holds."""
    with Lineage.open(store, create=False) as lineage:
        current = lineage.admin.status()
    if json:
        print_json(current)
        return
    counts = [(name.replace("_", " "), f"{getattr(current.counts, name):,}") for name in _COUNTS]
    print_rows(
        [("store", current.store), *counts, ("last event", current.last_received or "never")]
    )


def rebuild(store: StoreOption = None, json: JsonOption = False) -> None:
    """Drop the catalog and rebuild it from the log. The result is identical.

    Readers see the old catalog until the new one is complete.
    """
    with Lineage.open(store, create=False) as lineage, progress_bar("events") as bar:
        task = bar.add_task("Rebuilding", total=None)
        total = lineage.admin.rebuild(lambda done, of: bar.update(task, completed=done, total=of))
    if json:
        print_json({"events": total})
        return
    out.print(f"rebuilt from [bold]{total}[/] events")


def verify(
    expect: Annotated[
        str | None,
        typer.Option(
            "--expect",
            metavar="SEQ:CHAIN",
            help="Compare with a head that this command printed earlier. This also detects a log "
            "that was cut short or replaced.",
        ),
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Recompute the hash chain of the log and name the first altered entry.

    The exit code is 1 if an entry was altered.
    """
    expected = None if expect is None else _parse_head(expect)
    with Lineage.open(store, create=False) as lineage, progress_bar("entries") as bar:
        task = bar.add_task("Verifying", total=lineage.admin.status().counts.events)
        result = lineage.admin.verify(
            expected=expected, progress=lambda done: bar.update(task, completed=done)
        )
    if json:
        print_json(result)
    elif result.ok:
        head = f"{result.entries}:{result.head}"
        out.print(f"[green]intact[/] · {result.entries} entries · head {head}")
    else:
        err.print(f"[bold red]altered[/] · entry {result.altered_seq} {result.reason}")
    if not result.ok:
        raise typer.Exit(1)


def _parse_head(text: str) -> tuple[int, bytes]:
    seq, _, chain = text.partition(":")
    if not (seq.isascii() and seq.isdigit() and len(seq) < 19 and int(seq)) or not chain:
        raise InvalidRequestError("--expect", f"{text!r} is not SEQ:CHAIN")
    try:
        return int(seq), bytes.fromhex(chain)
    except ValueError as exc:
        raise InvalidRequestError("--expect", f"{text!r} is not SEQ:CHAIN") from exc


def event(
    digest: Annotated[
        str, typer.Argument(metavar="SHA256", help="The SHA-256 of the event, as edges show it.")
    ],
    store: StoreOption = None,
) -> None:
    """Print an event as it was received.

    Edges name the events that prove them by SHA-256, in `first_event` and `last_event`.
    """
    with Lineage.open(store, create=False) as lineage:
        content = lineage.trace.find_event(digest)
    sys.stdout.flush()
    if hasattr(sys.stdout, "buffer"):
        sys.stdout.buffer.write(content + b"\n")
    else:
        sys.stdout.write(content.decode(errors="replace") + "\n")
