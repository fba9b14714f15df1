"""`downriver lake diff`, `compact`, `expire` and `clean`: what a lake was, and what it keeps."""

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
    """Say which edges came, went, or went stale between two versions or times."""
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
    """Make a few large files of the many small ones that a stream leaves in bronze."""
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
    """Remove from bronze the events from before a time; all tables keep what they told.

    What they told can then no longer be folded anew: --full and --as-of are refused from then on.
    The files go with `lake clean`, once no version names them.
    """
    from downriver.lake.storage.versions import parse_time

    moment = parse_time(before, end=False)
    with open_lake(lake, SparkChoice(master, packages), quiet=json) as opened:
        stage = opened.expire(moment)
    if json:
        print_json(stage)


def clean(
    keep: Annotated[int, typer.Option("--keep", min=1, help="How many versions to keep.")] = 10,
    lake: LakeOption = None,
    json: JsonOption = False,
) -> None:
    """Remove all but the last versions, and what interrupted processes left behind."""
    from downriver.lake.storage.files import Folder
    from downriver.lake.storage.versions import clean_versions as clean_folder

    found = clean_folder(Folder(lake_location(lake)), keep)
    if json:
        print_json(found)
    else:
        out.print(f"{len(found.versions)} versions and {len(found.folders)} folders removed")
