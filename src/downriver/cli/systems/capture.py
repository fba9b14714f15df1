"""`downriver capture mlflow`, `delta`, `iceberg` and `files`: lineage from other systems."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from downriver.cli.capture import DryRunOption
from downriver.cli.output import (
    DisplayNames,
    FullNamesOption,
    JsonOption,
    StoreOption,
    counted,
    err,
    escape,
    out,
    print_json,
    progress_bar,
)
from downriver.errors import InvalidRequestError
from downriver.service import Lineage

if TYPE_CHECKING:
    from downriver.service.systems.capture import SystemCapture

_SHOWN = 20


def mlflow(
    uri: Annotated[
        str | None,
        typer.Argument(
            metavar="URI",
            help="The tracking store: http://host:5000, sqlite:///mlflow.db or a directory. "
            "Default: MLFLOW_TRACKING_URI.",
        ),
    ] = None,
    experiment: Annotated[
        str | None,
        typer.Option("--experiment", metavar="NAME", help="Read only the runs of one experiment."),
    ] = None,
    write_tags: Annotated[
        bool,
        typer.Option("--write-tags", help="Write the lineage id of each run into its tags."),
    ] = False,
    dry_run: DryRunOption = False,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Read training runs, their datasets and model versions from MLflow.

    Later calls read only what changed."""
    with Lineage.open(store) as lineage, progress_bar("runs") as bar:
        task = bar.add_task("Reading", total=None)
        capture = lineage.systems.mlflow(
            uri,
            experiment=experiment,
            write_tags=write_tags,
            dry_run=dry_run,
            progress=lambda done: bar.update(task, completed=done),
        )
    _show(capture, full_names=full_names, json=json)


CheckedOption = Annotated[
    str | None,
    typer.Option("--dataset", metavar="NAME", help="The dataset that was validated."),
]


def great_expectations(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="JSON of a validation or checkpoint result."),
    ],
    dataset: CheckedOption = None,
    dry_run: DryRunOption = False,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Read results of Great Expectations as checks of the datasets that were validated."""
    with Lineage.open(store, create=False) as lineage:
        for path in files:
            capture = lineage.systems.great_expectations(path, dataset=dataset, dry_run=dry_run)
            _show(capture, full_names=full_names, json=json)


def soda(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="JSON that `soda scan -srf FILE` wrote."),
    ],
    dataset: CheckedOption = None,
    dry_run: DryRunOption = False,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Read results of Soda scans as checks of the tables that were scanned."""
    with Lineage.open(store, create=False) as lineage:
        for path in files:
            capture = lineage.systems.soda(path, dataset=dataset, dry_run=dry_run)
            _show(capture, full_names=full_names, json=json)


def deequ(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="JSON of `VerificationResult.checkResultsAsJson`."),
    ],
    dataset: CheckedOption = None,
    dry_run: DryRunOption = False,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Read results of Deequ as checks of a dataset. The files do not name it: use --dataset."""
    with Lineage.open(store, create=False) as lineage:
        for path in files:
            capture = lineage.systems.deequ(path, dataset=dataset, dry_run=dry_run)
            _show(capture, full_names=full_names, json=json)


def delta(
    tables: Annotated[
        list[str], typer.Argument(metavar="TABLE", help="Paths or URLs of Delta tables.")
    ],
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="KEY=VALUE",
            help="An option of the storage, such as AWS_REGION=eu-west-1. May be repeated.",
        ),
    ] = None,
    dry_run: DryRunOption = False,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Read versions, operations, schemas and row counts from the transaction log of Delta tables.

    Spark is not needed. Later calls read only new versions.
    """
    storage = _pairs(options, "--option")
    with Lineage.open(store) as lineage:
        for table in tables:
            capture = lineage.systems.delta(table, options=storage, dry_run=dry_run)
            _show(capture, full_names=full_names, json=json)


def iceberg(
    tables: Annotated[
        list[str], typer.Argument(metavar="TABLE", help="Tables, such as gold.orders.")
    ],
    catalog: Annotated[
        str, typer.Option("--catalog", metavar="NAME", help="The name of the catalog.")
    ] = "default",
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            metavar="KEY=VALUE",
            help="A property of the catalog, such as uri=http://localhost:8181. May be repeated. "
            "Default: the configuration of PyIceberg.",
        ),
    ] = None,
    dry_run: DryRunOption = False,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Read snapshots, schemas and row counts of Iceberg tables.

    Spark is not needed. Later calls read only new snapshots."""
    given = _pairs(properties, "--property")
    with Lineage.open(store) as lineage:
        for table in tables:
            capture = lineage.systems.iceberg(
                table, catalog=catalog, properties=given, dry_run=dry_run
            )
            _show(capture, full_names=full_names, json=json)


def files(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH", help="Files or folders.")],
    dry_run: DryRunOption = False,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Record the version of files: a hash of their content, and a fingerprint of each column.

    No row is stored. A later call reads the content only if a size or time has changed.
    """
    with Lineage.open(store) as lineage:
        for path in paths:
            capture = lineage.systems.files(str(path), dry_run=dry_run)
            _show(capture, full_names=full_names, json=json)


def _pairs(texts: list[str] | None, option: str) -> dict[str, str]:
    pairs = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InvalidRequestError(option, f"{text!r} is not KEY=VALUE")
        pairs[key] = value
    return pairs


def _show(capture: SystemCapture, *, full_names: bool, json: bool) -> None:
    if json:
        print_json(capture)
        return
    for text in capture.unread[:_SHOWN]:
        err.print(f"  [yellow]?[/] {escape(text)}")
    if len(capture.unread) > _SHOWN:
        err.print(
            f"  [yellow]?[/] … and {len(capture.unread) - _SHOWN} more; --json lists them all"
        )
    done = "registered" if capture.registered else "not registered"
    runs, events = counted(capture.runs, "new run"), counted(capture.events, "event")
    datasets = capture.datasets[:_SHOWN] if capture.runs else []
    is_dataset = capture.source.startswith("dataset:")
    names = DisplayNames([*datasets, *[capture.source][:is_dataset]], full=full_names)
    names.print_heading()
    out.print(f"[bold]{names[capture.source]}[/] {runs} · {events} {done}")
    for dataset in datasets if datasets != [capture.source] else ():
        out.print(f"  {names[dataset]}")
