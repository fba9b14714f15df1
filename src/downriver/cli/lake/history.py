"""`downriver lake diff`, `compact`, `expire` and `clean`: versions and retention."""

from __future__ import annotations

from typing import Annotated

import typer

from downriver.cli.lake.spark import (
    LakeOption,
    LimitOption,
    MasterOption,
    PackagesOption,
    SparkChoice,
    lake_location,
    open_lake,
    show_answer,
)
from downriver.cli.output import JsonOption, out, print_json

_POINT = "A version, or a time such as 2026-01-31T12:00:00Z."


def diff(
    before: Annotated[str, typer.Argument(metavar="A", help=_POINT)],
    after: Annotated[str, typer.Argument(metavar="B", help=_POINT)],
    limit: LimitOption = 100,
    lake: LakeOption = None,
    master: MasterOption = None,
    packages: PackagesOption = None,
    json: JsonOption = False,
) -> None:
    """List the edges that were added, removed or became stale between two versions or times."""
    from downriver.lake.runner import answer_query

    with open_lake(lake, SparkChoice(master, packages), quiet=True) as opened:
        frames = opened.diff(before, after)
        answers = {name: answer_query(frame, limit) for name, frame in frames.items()}
    if json:
        print_json(answers)
        return
    for name, answer in answers.items():
        out.print(f"[bold]{name.replace('_', ' ')}[/]")
        show_answer(answer)


def compact(
    lake: LakeOption = None,
    master: MasterOption = None,
    packages: PackagesOption = None,
    json: JsonOption = False,
) -> None:
    """Merge the many small bronze files of a stream into a few large ones."""
    with open_lake(lake, SparkChoice(master, packages), quiet=json) as opened:
        stage = opened.compact()
    if json:
        print_json(stage)


def expire(
    before: Annotated[
        str, typer.Option("--before", metavar="T", help="A time such as 2026-01-31T12:00:00Z.")
    ],
    lake: LakeOption = None,
    master: MasterOption = None,
    packages: PackagesOption = None,
    json: JsonOption = False,
) -> None:
    """Remove the raw events before a time; the tables built from them stay.

    Afterwards `lake build` refuses --full and --as-of, which need all events. `lake clean` deletes
    the files when no version uses them any more.
    """
    from downriver.lake.storage.versions import parse_time

    moment = parse_time(before, end=False)
    with open_lake(lake, SparkChoice(master, packages), quiet=json) as opened:
        stage = opened.expire(moment)
    if json:
        print_json(stage)


def clean(
    keep: Annotated[int, typer.Option("--keep", min=1, help="Number of versions to keep.")] = 10,
    lake: LakeOption = None,
    json: JsonOption = False,
) -> None:
    """Remove old versions, and files left by interrupted processes."""
    from downriver.lake.storage.files import Folder
    from downriver.lake.storage.versions import clean_versions

    report = clean_versions(Folder(lake_location(lake)), keep)
    if json:
        print_json(report)
    else:
        out.print(f"{len(report.versions)} versions and {len(report.folders)} folders removed")
