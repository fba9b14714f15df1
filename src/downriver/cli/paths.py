"""`downriver paths`: how data gets from one entity to another."""

from __future__ import annotations

from typing import Annotated

import typer

from downriver.cli.output import JsonOption, StoreOption, escape, out, print_json
from downriver.service import Lineage


def paths(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The entity to start from.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="The entity to arrive at.")],
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="Show at most N paths.")
    ] = 10,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show the paths that data takes from one dataset, job or column to another, shortest first."""
    with Lineage.open(store, create=False) as lineage:
        answer = lineage.paths(source, target, limit=limit)
    if json:
        print_json(answer)
        return
    for path in answer.paths:
        out.print(" [dim]→[/] ".join(escape(node) for node in path))
    if not answer.paths:
        out.print(f"no path from {escape(answer.source.id)} to {escape(answer.target.id)}")
    for spot in answer.blind_spots:
        out.print(f"[yellow]incomplete[/]: {escape(spot.message)}")
