"""`downriver paths`: how data gets from one entity to another."""

from __future__ import annotations

from typing import Annotated

import typer

from downriver.cli.names import DisplayNames, FullNamesOption
from downriver.cli.output import JsonOption, StoreOption, out, print_json
from downriver.service import Lineage


def paths(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The entity to start from.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="The entity to arrive at.")],
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="Show at most N paths.")
    ] = 10,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show the paths that data takes from one dataset, job or column to another, shortest first."""
    with Lineage.open(store, create=False) as lineage:
        answer = lineage.trace.paths(source, target, limit=limit)
    if json:
        print_json(answer)
        return
    ends = (answer.source.id, answer.target.id)
    ids = [*ends, *(node for path in answer.paths for node in path)]
    texts = (spot.message for spot in answer.blind_spots)
    names = DisplayNames(ids, full=full_names, texts=texts)
    names.print_heading()
    for path in answer.paths:
        out.print(" [dim]→[/] ".join(names.label(node) for node in path))
    if not answer.paths:
        out.print(f"no path from {names.label(ends[0])} to {names.label(ends[1])}")
    for spot in answer.blind_spots:
        out.print(f"[yellow]incomplete[/]: {names.replace_in(spot.message)}")
