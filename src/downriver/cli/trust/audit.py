"""`downriver audit checkpoint` and `export`: signed heads of the log, the audit log as a file."""

from __future__ import annotations

from typing import Annotated

import typer

from downriver.cli.output import (
    JsonOption,
    OutputOption,
    StoreOption,
    counted,
    err,
    escape,
    out,
    print_json,
    write_exactly,
)
from downriver.errors import InvalidRequestError
from downriver.service import Lineage


def checkpoint(
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="PLACE",
            help="Append the checkpoint to this file, commit it to git:PATH, or post it to a URL.",
        ),
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Sign the head of the log: the number of entries, the chain value and the time.

    Keep checkpoints in a place that people with write access to the store cannot change. `audit
    verify --against` then detects a log that was cut short or rewritten. Without --to the
    checkpoint is only printed.
    """
    with Lineage.open(store, create=False) as lineage:
        made = lineage.checkpoints(to)
    if json or to is None:
        print_json(made)
        return
    place = escape(to.rpartition("@")[2])
    out.print(f"checkpoint {made.entries}:{made.chain} written to {place}")


def export(
    output: OutputOption = None,
    audit_format: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="Write jsonl or csv.")
    ] = "jsonl",
    actor: Annotated[
        str | None,
        typer.Option(
            "--actor", metavar="NAME", help="Write only actions of this key, or of `local`."
        ),
    ] = None,
    action: Annotated[
        str | None,
        typer.Option(
            "--action", metavar="ACTION", help="Write only this action, such as write or refused."
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="Write only actions since this time, or since a period ago (24h).",
        ),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Write the audit log as lines of JSON or as CSV, the newest entry first."""
    from downriver.govern.audit.log_export import render_audit
    from downriver.service.govern import parse_since
    from downriver.service.session import now

    start = None if since is None else parse_since(since, now())
    with Lineage.open(store, create=False) as lineage:
        entries = lineage.checkpoints.audit_entries(actor=actor, action=action, since=start)
        lines = render_audit(entries, audit_format.strip().lower())
        if output is None:
            for line in lines:
                write_exactly(line)
            return
        try:
            with output.open("w", encoding="utf-8", newline="") as file:
                count = sum(1 for line in lines if file.write(line))
        except OSError as exc:
            raise InvalidRequestError("--output", f"{output}: {exc.strerror}") from exc
    err.print(f"{counted(count, 'line')} written to {escape(str(output))}")
