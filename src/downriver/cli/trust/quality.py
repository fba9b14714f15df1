"""`downriver quality`: the quality score of a dataset."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

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
from downriver.cli.trust.incident import AtOption
from downriver.cli.trust.schema import DatasetArgument
from downriver.errors import InvalidRequestError
from downriver.service import Lineage

if TYPE_CHECKING:
    from downriver.model.trust.quality import QualityScore


def quality(
    dataset: DatasetArgument,
    fail_under: Annotated[
        float | None,
        typer.Option(
            "--fail-under", metavar="SCORE", help="Exit with 1 if the score is lower, or unknown."
        ),
    ] = None,
    at: AtOption = None,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show the quality score of a dataset, from 0 to 100, and the worst score upstream."""
    with Lineage.open(store, create=False) as lineage:
        score = lineage.quality(dataset, at)
    if json:
        print_json(score)
    else:
        _show(score, full_names=full_names)
    try:
        is_low = fail_under is not None and not score.reaches(fail_under)
    except ValueError as exc:
        raise InvalidRequestError("--fail-under", str(exc)) from exc
    sys.exit(int(is_low))


def _show(score: QualityScore, *, full_names: bool) -> None:
    worst = score.worst_upstream
    ids = [score.dataset, *([] if worst is None else [worst.dataset])]
    names = DisplayNames(ids, full=full_names)
    names.print_heading()
    out.print(f"{names[score.dataset]}: {_shown(score.score)}")
    for part in score.parts:
        value = "unknown" if part.value is None else f"{part.value:.2f}"
        out.print(f"  {part.part:<10} {value:<8} × {part.weight}  {part.detail}")
    out.print(f"  own score {_shown(score.own)}")
    if worst is not None:
        out.print(
            f"  worst of {score.looked_at} upstream: {_shown(worst.score)}, {names[worst.dataset]}"
        )
    if not score.complete:
        spots = counted(len(score.blind_spots), "blind spot")
        out.print(f"[yellow]incomplete[/]: {spots}; --json lists them")


def _shown(score: float | None) -> str:
    return "unknown" if score is None else f"{score:g}"
