"""How the command line shows things: colour for people, JSON for programs."""

from __future__ import annotations

import sys
from typing import Annotated, Any, NoReturn

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from downriver.errors import DownriverError

# No emoji: `dataset:snowflake:…` is an id. Soft wrap: a long name is never cut.
out = Console(highlight=False, soft_wrap=True, emoji=False)
err = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="WHERE",
        help="A directory or postgresql:// URL; default DOWNRIVER_STORE, else the nearest "
        ".downriver/.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

EXIT_FAILED = 2  # the exit code of a command that could not do what was asked


def render_json(value: Any) -> str:
    """Return a value of ours as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def print_json(value: Any) -> None:
    """Print a value of ours as indented JSON."""
    sys.stdout.write(render_json(value))


def fail(error: DownriverError, *, as_json: bool) -> NoReturn:
    """Say what went wrong and leave."""
    if as_json:
        body = {"error": type(error).__name__.removesuffix("Error"), "detail": error.message}
        for name in ("field", "near", "candidates"):
            if value := getattr(error, name, None):
                body[name] = value
        sys.stderr.write(msgspec.json.encode(body).decode() + "\n")
    else:
        err.print(f"[bold red]error:[/] {escape(error.message)}")
    sys.exit(EXIT_FAILED)


def progress_bar(unit: str) -> Progress:
    """Return a progress bar on stderr; it is silent when no one is watching."""
    count = MofNCompleteColumn() if unit != "bytes" else TaskProgressColumn()
    return Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        count,
        TextColumn(unit if unit != "bytes" else ""),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )
