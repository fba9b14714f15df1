"""`downriver diff`: the graph at two moments."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from downriver.cli.output import (
    DisplayNames,
    FullNamesOption,
    JsonOption,
    StoreOption,
    counted,
    out,
    print_json,
)
from downriver.service import Lineage

_SIGNS = {"added": "[green]+[/]", "removed": "[red]-[/]", "changed": "[yellow]~[/]"}


def diff(
    start: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="TIME",
            help="The earlier moment: a time, or a period before now such as 7d.",
        ),
    ],
    end: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="TIME", help="The later moment, in the same form. Default: now."
        ),
    ] = None,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show how the graph changed between two moments.

    Lists datasets, jobs, columns and edges that were added or removed, columns with another type,
    and columns that are computed in another way.
    """
    with Lineage.open(store, create=False) as lineage:
        graph_diff = lineage.diff(start, end)
    if json:
        print_json(graph_diff)
        return
    texts = [difference.sentence for difference in graph_diff.differences]
    names = DisplayNames((), full=full_names, texts=texts)
    names.print_heading()
    for difference in graph_diff.differences:
        out.print(f"{_SIGNS[difference.change]} {names.replace_in(difference.sentence)}")
    counts: Counter[str] = Counter(difference.change for difference in graph_diff.differences)
    parts = [f"{counts[change]} {change}" for change in _SIGNS if counts[change]]
    state = (
        "complete" if graph_diff.complete else counted(len(graph_diff.blind_spots), "blind spot")
    )
    out.print(
        f"{', '.join(parts) or 'no differences'} · {graph_diff.start} to {graph_diff.end} · {state}"
    )
