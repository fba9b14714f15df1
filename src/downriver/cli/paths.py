"""`downriver paths`: how data gets from here to there."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from downriver.cli.output import JsonOption, StoreOption, out, print_json
from downriver.service import Lineage


def paths(
    source: Annotated[str, typer.Argument(metavar="FROM", help="Where the data comes from.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="Where the data goes to.")],
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many paths at most.")] = 10,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show the routes data takes from one dataset, job or column to another, shortest first."""
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
