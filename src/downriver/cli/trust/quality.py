"""`downriver quality`: the quality score of a dataset."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from downriver.cli.output import JsonOption, StoreOption, escape, out, print_json
from downriver.cli.trust.incident import AtOption
from downriver.cli.trust.schema import DatasetArgument
from downriver.service import Lineage


def quality(
    dataset: DatasetArgument,
    fail_under: Annotated[
        float | None,
        typer.Option(
            "--fail-under", metavar="SCORE", help="Exit with 1 if the score is lower, or unknown."
        ),
    ] = None,
    at: AtOption = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show the quality score of a dataset, from 0 to 100, and the worst score upstream."""
    with Lineage.open(store, create=False) as lineage:
        found = lineage.quality(dataset, at)
    if json:
        print_json(found)
    else:
        out.print(f"{escape(found.dataset)}: {_shown(found.score)}")
        for part in found.parts:
            value = "unknown" if part.value is None else f"{part.value:.2f}"
            out.print(f"  {part.part:<10} {value:<8} × {part.weight}  {part.detail}")
        out.print(f"  own score {_shown(found.own)}")
        if found.worst_upstream is not None:
            worst = found.worst_upstream
            out.print(f"  worst of {found.looked_at} upstream: {_shown(worst.score)}, "
                      f"{escape(worst.dataset)}")  # fmt: skip
        if not found.complete:
            out.print(f"[yellow]incomplete[/]: {len(found.blind_spots)} blind spots")
    is_low = fail_under is not None and (found.score is None or found.score < fail_under)
    sys.exit(int(is_low))


def _shown(score: float | None) -> str:
    return "unknown" if score is None else f"{score:g}"
